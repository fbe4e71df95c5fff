//! Views of recorded sessions at some of their places, for the page's tests: what the page makes of a view and the facts
//! after it must be what it makes of the facts alone.
//!
//! `UPDATE_TYPES=1 cargo test -p tolka-facts --test views` writes them anew.

use std::path::Path;
use std::{fs, io};

use serde_json::json;
use tolka_facts::{Event, Fact, View};

const SESSIONS: [&str; 8] = [
    "claude-cancel",
    "copilot",
    "demo",
    "native-compaction",
    "native-family",
    "native-story",
    "opencode-rich",
    "showcase",
];
/// Places for each session, beside its end.
const PLACES: usize = 4;

fn views(facts: &[Fact]) -> String {
    let (mut view, mut views) = (View::default(), Vec::new());
    let every = (facts.len() / PLACES).max(1);
    for (at, fact) in (1..).zip(facts) {
        view.apply(fact);
        if at == facts.len() || usize::is_multiple_of(at, every) {
            views.push(json!(view));
        }
    }
    let lines: Vec<String> = views.iter().map(|view| view.to_string()).collect();
    lines.join("\n") + "\n"
}

/// Two pages, cut at some places inside of turns and between them: what is before, and what is after with what was open.
fn pages(facts: &[Fact]) -> String {
    let mut lines = Vec::new();
    for third in [1, 2] {
        let (before, after) = facts.split_at(facts.len() * third / 3);
        let mut earlier = View::default();
        before.iter().for_each(|fact| earlier.apply(fact));
        let mut later = View::since(earlier.tip.clone());
        after.iter().for_each(|fact| later.apply(fact));
        // As the server does: a page of the past is shown as it stands now.
        earlier.forget_waiting();
        let hidden = after.iter().filter_map(|fact| match &fact.event {
            Event::MessageHidden(e) => Some(e.message.clone()),
            _ => None,
        });
        earlier.hide(&hidden.collect());
        lines.push(json!({ "earlier": earlier, "later": later }).to_string());
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_views_that_the_page_is_tested_with_are_what_facts_make() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in SESSIONS {
        let golden = fs::read_to_string(root.join(format!("tests/golden/{name}.tolka.jsonl"))).unwrap();
        let mut facts: Vec<Fact> = golden.lines().map(|line| Fact::from_json(line.as_bytes()).unwrap()).collect();
        // Some tell the server's own journal as well.
        facts.retain(|fact| !fact.session.is_server());
        hold(&root.join("web/test/data/views"), name, &views(&facts)).unwrap();
        hold(&root.join("web/test/data/pages"), name, &pages(&facts)).unwrap();
    }
}

fn hold(folder: &Path, name: &str, made: &str) -> io::Result<()> {
    let path = folder.join(format!("{name}.jsonl"));
    if std::env::var_os("UPDATE_TYPES").is_some() {
        fs::create_dir_all(folder)?;
        fs::write(&path, made)?;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "{} is stale: UPDATE_TYPES=1 cargo test -p tolka-facts --test views", path.display());
    Ok(())
}

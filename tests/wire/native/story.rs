//! A task of some twenty steps in which everything happens: every tool, calls side by side, a failing command, a
//! rejected permission, a question, a retry after 429 and after a cut stream; then a refusal, a cancel in the middle of
//! a command and of a stream, and a turn that is steered. On both wires it gives the same facts, which stand in
//! `tests/golden` in every dialect; `UPDATE_GOLDEN=1` writes them anew.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tolka_dialect::{Dialect, Frames};
use tolka_facts::{Fact, NoBlobs, Tip};
use tolka_scripted::Script;

use super::normal::Normal;
use super::stage::{Stage, Talk, Wire, data};
use crate::http::get;
use crate::server::{House, until};

fn script() -> Script {
    let text = std::fs::read_to_string(data("story.json")).unwrap();
    Script::read(serde_json::from_str(&text).unwrap()).unwrap()
}

/// Answers what is asked until the turn is over.
fn play_out(talk: &mut Talk) -> Value {
    loop {
        let fact = talk.next().clone();
        match fact["type"].as_str().unwrap() {
            "permission_asked" => {
                let wanted = fact["data"]["metadata"].to_string();
                let answer = match () {
                    () if wanted.contains("rm -r src") => {
                        json!({ "option": "reject", "reason": "Keep the sources; remove only what you made." })
                    }
                    () if wanted.contains("exit 3") => json!({ "option": "always" }),
                    () => json!({ "option": "once" }),
                };
                talk.answer(&fact, &answer);
            }
            "question_asked" => talk.answer(&fact, &json!({ "answers": [["Hej"]] })),
            "turn_ended" => return fact["data"].clone(),
            _ => {}
        }
    }
}

/// The whole story; gives its facts and the stage as it was left.
fn play(wire: Wire) -> (Stage, Talk, crate::server::Server) {
    let stage = Stage::set(wire, script());
    stage.furnish();
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);

    talk.prompt("Write a program that greets.");
    assert_eq!(play_out(&mut talk)["stop"], "end_turn");

    talk.prompt("Do what you refuse.");
    assert_eq!(play_out(&mut talk)["stop"], "refusal");

    talk.prompt("Run something long.");
    let asked = talk.until_type("permission_asked");
    talk.answer(&asked, &json!({ "option": "once" }));
    talk.until(|fact| fact["type"] == "output_appended" && fact["data"]["text"].to_string().contains("started"));
    cancel(&mut talk);

    talk.prompt("Talk.");
    talk.until(|fact| fact["type"] == "text_appended" && fact["data"]["text"].to_string().contains("time"));
    cancel(&mut talk);

    talk.prompt("Be steered.");
    talk.until_type("text_appended");
    talk.steer("Make it shorter.");
    talk.until_type("prompt_queued");
    stage.provider.open("steered");
    assert_eq!(play_out(&mut talk)["stop"], "end_turn");
    (stage, talk, server)
}

fn cancel(talk: &mut Talk) {
    talk.cancel();
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "cancelled");
}

/// Every file of a folder but those of `.git`, by its path.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(name, String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned())),
            }
        }
    }
    found
}

pub(super) fn normal(stage: &Stage, facts: &[Value]) -> String {
    let workspace = stage.house.workspace().canonicalize().unwrap();
    Normal::default().saying(workspace.to_str().unwrap(), "/work/greetings").facts(facts)
}

#[test]
fn a_long_task_is_done_and_told_alike_on_both_wires_and_in_every_dialect() {
    let (stage, talk, server) = play(Wire::OpenAi);
    the_files_are_as_they_should_be(&stage);
    the_facts_say_what_happened(&stage, &talk);
    the_provider_took_every_request(&stage);
    every_stream_is_what_the_facts_make_it(&talk, &server);
    let told = normal(&stage, &talk.facts);
    drop(server);

    let (other, talk, _server) = play(Wire::Anthropic);
    the_files_are_as_they_should_be(&other);
    the_provider_took_every_request(&other);
    assert_same(&told, &normal(&other, &talk.facts));

    golden(&stage.house, "native-story", &told);
}

fn the_files_are_as_they_should_be(stage: &Stage) {
    let workspace = stage.house.workspace();
    let text = |name: &str| std::fs::read_to_string(workspace.join(name)).unwrap();
    let expected = [
        ".gitignore",
        "AGENTS.md",
        "README.md",
        "build/out",
        "docs/guide.md",
        "logo.png",
        "notes/twice.txt",
        "src/app.py",
        "src/greet.py",
    ];
    assert_eq!(files(&workspace).into_keys().collect::<Vec<_>>(), expected);
    assert_eq!(text("src/app.py"), "import sys\n\nfrom greet import greet\n\nprint(greet(\" \".join(sys.argv[1:])))\n");
    assert!(
        text("src/greet.py").contains("    if not name:\n        return \"Hello, you!\"\n"),
        "{}",
        text("src/greet.py")
    );
    assert_eq!(text("notes/twice.txt"), "one\nsame\ntwo\nsame\n");
    assert!(text("README.md").ends_with("A program that greets. See [the guide](docs/guide.md).\n"));
}

fn the_facts_say_what_happened(stage: &Stage, talk: &Talk) {
    let workspace = format!("{}/", stage.house.workspace().canonicalize().unwrap().display());
    let changed: Vec<_> =
        talk.told("file_changed").iter().map(|c| format!("{} {}", c["operation"], c["path"])).collect();
    let changed: Vec<_> = changed.iter().map(|line| line.replace('"', "").replace(&workspace, "")).collect();
    let first = |line: &str| assert_eq!(changed.iter().filter(|c| *c == line).count(), 1, "{line} in {changed:?}");
    for line in [
        "create src/app.py",
        "update src/app.py",
        "update src/greet.py",
        "create docs/guide.md",
        "update README.md",
        "delete src/farewell.py",
        "create made.txt",
        "delete notes/old.txt",
        "delete made.txt",
    ] {
        first(line);
    }
    assert_eq!(changed.len(), 9, "{changed:?}");
    assert!(talk.told("file_changed").iter().all(|c| c["diff"].as_str().is_some_and(|diff| diff.contains("@@"))));
    let retried: Vec<_> = talk.told("retry_scheduled").iter().map(|retry| retry["attempt"].clone()).collect();
    assert_eq!(retried, [1, 1], "{:?}", talk.told("retry_scheduled"));
    let failing = talk.ended("bash", "exit 3");
    assert_eq!((&failing["output"]["metadata"]["exit"], &failing["status"]), (&json!(3), &json!("completed")));
    let rejected = talk.ended("bash", "rm -r src");
    assert_eq!(rejected["status"], "failed");
    assert!(rejected["error"].as_str().unwrap().contains("Keep the sources"), "{rejected}");
    assert_eq!(talk.ended("bash", "sleep 60")["status"], "cancelled");
    assert_eq!(talk.ended("edit", "other")["status"], "failed");
    assert_eq!(talk.told("artifact_saved").len(), 1);
}

fn the_provider_took_every_request(stage: &Stage) {
    let requests = stage.provider.requests();
    let refused: Vec<_> = requests.iter().filter_map(|request| request.refused.clone()).collect();
    assert_eq!(refused, Vec::<String>::new());
    assert!(requests.len() >= 20, "{} requests", requests.len());
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains("Make it shorter.") && last.contains("Greetings are one line each."), "{last}");
    assert!(requests.iter().any(|request| request.body.to_string().contains("Keep the sources")));
}

/// What the door tells is what the encoders make of the facts.
pub(super) fn every_stream_is_what_the_facts_make_it(talk: &Talk, server: &crate::server::Server) {
    let facts: Vec<Fact> =
        talk.facts.iter().map(|fact| Fact::from_json(fact.to_string().as_bytes()).unwrap()).collect();
    for dialect in Dialect::ALL {
        let (told, made) = (talk.in_dialect(server.address, dialect), frames(dialect, &facts));
        assert_eq!(told.len(), made.len(), "{dialect}");
        for (told, made) in told.iter().zip(&made) {
            assert_eq!(*told, serde_json::from_str::<Value>(made).unwrap(), "{dialect}");
        }
    }
}

fn frames(dialect: Dialect, facts: &[Fact]) -> Vec<String> {
    let (mut encoder, mut tip, mut frames) = (dialect.encoder(), Tip::default(), Frames::default());
    for fact in facts {
        tip.apply(fact);
        encoder.encode(fact, &tip, &NoBlobs, &mut frames);
    }
    frames.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
}

fn tolka(house: &House, args: &[&str], input: Vec<u8>) -> (bool, String) {
    let mut command = house.command(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &input).unwrap());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

/// Holds every dialect's telling of the facts against its golden stream, and judges it.
pub(super) fn golden(house: &House, name: &str, facts: &str) {
    let mut wrong = Vec::new();
    let facts: Vec<Fact> = facts.lines().map(|fact| Fact::from_json(fact.as_bytes()).unwrap()).collect();
    for dialect in Dialect::ALL {
        let frames = frames(dialect, &facts);
        let told: String = frames.iter().map(|frame| format!("{frame}\n")).collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/{name}.{dialect}.jsonl"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &told).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != told {
            wrong.push(format!("{} differs", path.display()));
        }
        let mut stream = Vec::new();
        frames.iter().for_each(|frame| dialect.write_frame(frame.as_bytes(), &mut stream));
        let (is_clean, findings) = tolka(house, &["check", "--dialect", dialect.name(), "-"], stream);
        if !is_clean {
            wrong.push(format!("{dialect}: {findings}"));
        }
    }
    assert!(wrong.is_empty(), "UPDATE_GOLDEN=1 writes them anew\n{}", wrong.join("\n"));
}

pub(super) fn assert_same(one: &str, other: &str) {
    let (ones, others): (Vec<_>, Vec<_>) = (one.lines().collect(), other.lines().collect());
    let apart = (0..ones.len().max(others.len())).find(|at| ones.get(*at) != others.get(*at));
    if let Some(at) = apart {
        panic!("line {}:\n  openai    {:?}\n  anthropic {:?}", at + 1, ones.get(at), others.get(at));
    }
}

#[test]
fn a_session_is_named_after_its_first_prompt() {
    let stage = Stage::set(Wire::OpenAi, Script::of([tolka_scripted::Answer::text("Hello.")]));
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Say hello, please.");
    talk.until_type("turn_ended");
    let title = until("a title", || {
        let session = get(server.address, &format!("/v1/sessions/{}", talk.session)).expect(200);
        session["title"].as_str().filter(|title| *title != "New session").map(str::to_owned)
    });
    assert_eq!(title, "Say hello, please.");
}

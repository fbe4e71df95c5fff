//! `grep`: lines that match a regular expression.

use serde_json::json;
use tolka_workspace::search::{self, Hit, Query};

use super::act::{Act, Done, Stop};
use super::ask::{self, Want};
use super::field::{Fields, INCLUDE, PATTERN};
use super::glob::{NONE, place};
use super::hidden::Hidden;
use super::read::fields as map;

/// More lines than that are no answer.
const MOST: usize = 100;

/// Letters of a line that are shown.
const WIDEST: usize = 500;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let within = act.tools.folder(fields)?;
    let pattern = fields.need(PATTERN)?;
    let include = fields.words(INCLUDE);
    act.leave(Want::look("grep", &within), &place(&within)).await?;
    act.running(&pattern, &place(&within)).await?;
    let (workspace, wanted) = (act.workspace(), pattern.clone());
    let found = act
        .looking(move |stop| {
            let (within, pattern, include) = (within.as_str(), wanted.as_str(), include.as_deref());
            search::grep(&Query { workspace: &workspace, within, pattern, include, limit: MOST, stop })
        })
        .await?
        .map_err(Stop::failed)?;
    // What may not be read without asking is not read this way either.
    let hidden = Hidden::of(act.tools);
    let by_file = found.items.chunk_by(|one, other| one.path == other.path);
    let is_free = |hits: &&[Hit]| ask::is_free_to_read(act.tools, &hits[0].path, &hidden);
    let hits: Vec<&Hit> = by_file.filter(is_free).flatten().collect();
    let count = hits.len();
    let mut output = match count {
        0 => NONE.to_owned(),
        _ => format!("Found {count} matches"),
    };
    let mut file = None;
    for hit in hits {
        if file != Some(&hit.path) {
            let gap = if file.is_some() { "\n" } else { "" };
            output.push_str(&format!("{gap}\n{}:", act.absolute(&hit.path)));
            file = Some(&hit.path);
        }
        let text = hit.text.trim_end_matches(['\n', '\r']);
        let (shown, gone) = match text.char_indices().nth(WIDEST) {
            Some((at, _)) => (&text[..at], "..."),
            None => (text, ""),
        };
        output.push_str(&format!("\n  Line {}: {shown}{gone}", hit.line));
    }
    let mut metadata = map(json!({ "matches": count, "count": count, "truncated": found.is_cut }));
    let mut notes = Vec::new();
    if found.is_cut {
        notes.push(format!("[only {MOST} are shown; use a narrower pattern, path or include]"));
    }
    if count < found.items.len() {
        notes.push("[some are in files that are read only with leave; read those to ask for it]".to_owned());
    }
    if !notes.is_empty() {
        metadata.insert("note".to_owned(), notes.join("\n").into());
    }
    Ok(Done { title: pattern, output, metadata, ..Done::default() })
}

//! `glob`: files by their names.

use serde_json::json;
use tolka_workspace::files::Files;
use tolka_workspace::search::{self, Query};

use super::Tools;
use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::field::{FOLDER, Fields, PATTERN};
use super::read::fields as map;

/// More names than that are no answer.
const MOST: usize = 100;

pub(super) const NONE: &str = "No files found";

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let within = act.tools.folder(fields)?;
    let pattern = act.tools.inside_pattern(&fields.need_words(PATTERN)?);
    act.leave(Want::look("glob", &within), &place(&within)).await?;
    act.running(&pattern, &place(&within)).await?;
    let (workspace, wanted) = (act.workspace(), pattern.clone());
    let found = act
        .looking(move |stop| {
            let (within, pattern) = (within.as_str(), wanted.as_str());
            search::glob(&Query { workspace: &workspace, within, pattern, include: None, limit: MOST, stop })
        })
        .await?
        .map_err(Stop::failed)?;
    let count = found.items.len();
    let mut metadata = map(json!({ "count": count, "truncated": found.is_cut }));
    if found.is_cut {
        metadata.insert("note".to_owned(), format!("[only {MOST} are shown; use a narrower pattern or path]").into());
    }
    let output = match count {
        0 => NONE.to_owned(),
        _ => found.items.iter().map(|path| act.absolute(path)).collect::<Vec<_>>().join("\n"),
    };
    Ok(Done { title: pattern, output, metadata, ..Done::default() })
}

/// Where it is looked, unless that is everywhere.
pub(super) fn place(within: &str) -> Vec<&str> {
    if within == "." { Vec::new() } else { vec![within] }
}

impl Tools {
    /// The folder that a search is in, from the workspace on.
    pub(super) fn folder(&self, fields: &Fields) -> Result<String, Stop> {
        match fields.words(FOLDER) {
            // Models that were told to leave a field out write this instead.
            None => Ok(".".to_owned()),
            Some(folder) if ["undefined", "null", "."].contains(&folder.as_str()) => Ok(".".to_owned()),
            Some(folder) => match Files::open(&self.workspace)?.relative(&folder)? {
                folder if folder.is_empty() => Ok(".".to_owned()),
                folder => Ok(folder),
            },
        }
    }

    /// A pattern that begins with the workspace's own path, from there on.
    pub(super) fn inside_pattern(&self, pattern: &str) -> String {
        let root = self.workspace.to_string_lossy();
        let inside = pattern.strip_prefix(&*root).and_then(|rest| rest.strip_prefix('/'));
        inside.unwrap_or(pattern).to_owned()
    }
}

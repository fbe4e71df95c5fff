//! What changed in the workspace: by a turn, by going back, by others.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;
use tolka_facts::event::{Changes, CheckpointSaved, FileOperation, FileStat, KeptFile, KeptWhy, Moment};

use super::Telling;
use super::message::Place;

/// Files that a toast names.
const NAMED: usize = 5;

/// As `session.diff` and the summary of a user's message list it, by its path in the workspace.
#[derive(Serialize)]
pub(super) struct FileDiff<'a> {
    file: &'a str,
    additions: u64,
    deletions: u64,
    status: &'a str,
}

impl<'a> From<&'a FileStat> for FileDiff<'a> {
    fn from(stat: &'a FileStat) -> Self {
        let status = stat.operation.status();
        FileDiff { file: &stat.path, additions: stat.added, deletions: stat.removed, status }
    }
}

#[derive(Serialize)]
struct Patch<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    r#type: &'a str,
    /// The files before it.
    hash: &'a str,
    files: Vec<String>,
}

impl Telling<'_> {
    pub(super) fn saved(&mut self, e: &CheckpointSaved) {
        let changes = e.changes.as_ref().filter(|changes| e.moment == Some(Moment::AfterTurn) && changes.count > 0);
        if let Some(changes) = changes {
            self.changed(changes);
        }
        self.session_diff(e.total.as_ref());
    }

    /// What the turn changed: told with its last message and with its prompt, as in a summary of it.
    fn changed(&mut self, changes: &Changes) {
        for stat in changes.files.iter().filter(|stat| !stat.told) {
            self.event("file.edited", json!({ "file": self.absolute(&stat.path) }));
        }
        let files = changes.files.iter().map(|stat| self.absolute(&stat.path)).collect();
        if let (Some(hash), Some(step)) = (self.told.checkpoint.clone(), self.told.step.take()) {
            let place = Place::of(self.fact, &step.message);
            self.part(Patch { place, r#type: "patch", hash: &hash, files });
            self.told.step = Some(step);
        }
        if let Some(asked) = self.told.asked.take() {
            let diffs: Vec<FileDiff<'_>> = changes.files.iter().map(FileDiff::from).collect();
            self.asked_message(&asked, Some(&diffs));
            self.told.asked = Some(asked);
        }
    }

    /// What was taken back or brought back shows in the session: clients hide messages by it.
    pub(super) fn moved_back(&mut self, changes: Option<&Changes>, total: Option<&Changes>) {
        changes.into_iter().for_each(|changes| self.files_moved(changes));
        self.session_event("session.updated");
        self.session_diff(total);
    }

    /// The answer to a revert has no place for it. Files that no turn touched stay by promise, and are no news.
    pub(super) fn kept(&mut self, kept: &[KeptFile]) {
        let why = |why: KeptWhy| match why {
            KeptWhy::Conflict => Some("somebody else changed it too"),
            KeptWhy::NotOurs => None,
            KeptWhy::Moved => Some("it changed meanwhile"),
            KeptWhy::NotSaved => Some("it is in no checkpoint"),
            KeptWhy::Refused => Some("it could not be written or removed"),
            KeptWhy::NoRoom => Some("the disk is full"),
        };
        let told: Vec<String> =
            kept.iter().filter_map(|file| Some(format!("{} ({})", in_a_line(&file.path), why(file.why)?))).collect();
        if told.is_empty() {
            return;
        }
        let title =
            if told.len() == 1 { "A file was kept".to_owned() } else { format!("{} files were kept", told.len()) };
        let more = match told.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let message = format!("{}{more}", told[..told.len().min(NAMED)].join(", "));
        self.event("tui.toast.show", json!({ "title": title, "message": message, "variant": "warning" }));
    }

    pub(super) fn files_moved(&mut self, changes: &Changes) {
        for stat in &changes.files {
            let event = match stat.operation {
                FileOperation::Create => "add",
                FileOperation::Update => "change",
                FileOperation::Delete => "unlink",
            };
            self.event("file.watcher.updated", json!({ "file": self.absolute(&stat.path), "event": event }));
        }
    }

    fn session_diff(&mut self, total: Option<&Changes>) {
        if let Some(total) = total {
            let diff: Vec<FileDiff<'_>> = total.files.iter().map(FileDiff::from).collect();
            self.event("session.diff", json!({ "sessionID": self.session(), "diff": diff }));
        }
    }

    fn absolute(&self, path: &str) -> String {
        crate::path::absolute(path, &self.tip.head.workspace)
    }
}

/// A name may hold what would be a line of its own.
fn in_a_line(path: &str) -> Cow<'_, str> {
    if path.chars().any(char::is_control) { format!("{path:?}").into() } else { path.into() }
}

//! A restore moves files that other sessions know: theirs are told which.

use std::path::Path;

use tolka_facts::event::FilesMoved;
use tolka_facts::{Draft, Time};
use tolka_workspace::checkpoint::Step;

use super::history::History;
use super::work::changes;
use crate::actor::Command;
use crate::grounds::Folder;
use crate::{Desk, SessionError};

impl Desk {
    /// Tells the sessions of the same folder, or of one inside the other. Best effort: a session that cannot be told
    /// keeps nobody waiting.
    pub(crate) async fn tell_neighbours(self, history: History, steps: Vec<Step>) {
        let neighbours = match history.neighbours(Time::default(), false).await {
            Ok(neighbours) => neighbours,
            Err(error) => return tracing::warn!(%error, "nobody could be told that files moved"),
        };
        for (row, folder) in neighbours {
            let moved = moved(&history.folder.canonical, &folder, &steps);
            if moved.is_empty() {
                continue;
            }
            let fact = FilesMoved { by: history.session.clone(), changes: changes(&moved) };
            let note = |reply| Command::Note(Box::new(Draft::tolka(fact)), reply);
            if let Err(error) = self.call(&row.head.id, note).await
                && !matches!(error, SessionError::ShuttingDown)
            {
                tracing::warn!(session = %row.head.id, %error, "a session could not be told that files moved");
            }
        }
    }
}

/// The steps that touched a folder, by its own paths.
fn moved(workspace: &Path, folder: &Folder, steps: &[Step]) -> Vec<Step> {
    let here = |step: &Step| {
        let path = workspace.join(&step.path).strip_prefix(&folder.canonical).ok()?.to_owned();
        Some(Step { path, ..step.clone() })
    };
    steps.iter().filter_map(here).collect()
}

//! A restore moves files that other sessions know: theirs are told which.

use std::path::Path;
use std::time::Duration;

use tolka_facts::event::FilesMoved;
use tolka_facts::{Draft, Head, Time};
use tolka_workspace::checkpoint::Step;

use super::history::History;
use super::work::changes;
use crate::actor::Command;
use crate::grounds::Folder;
use crate::{Desk, SessionError};

const LATELY: Duration = Duration::from_secs(24 * 60 * 60);

impl Desk {
    /// Tells the sessions of the same folder, or of one inside the other. Best effort: a session that cannot be told
    /// keeps nobody waiting.
    pub(crate) async fn tell_neighbours(self, history: History, steps: Vec<Step>) {
        let neighbours = match history.neighbours(Time::default(), false).await {
            Ok(neighbours) => neighbours,
            Err(error) => return tracing::warn!(%error, "nobody could be told that files moved"),
        };
        for (row, folder) in neighbours.into_iter().filter(|(row, _)| self.is_in_use(&row.head)) {
            let moved = moved(&history.folder.canonical, &folder, &steps);
            if moved.is_empty() {
                continue;
            }
            let fact = FilesMoved { by: history.session.clone(), changes: changes(&moved) };
            let note = |reply| Command::Note(Box::new(Draft::tolka(fact)), reply);
            if let Err(error) = self.call(&row.head.id, note).await
                // A fork that is being copied begins with the files as they are when it is done.
                && !matches!(error, SessionError::ShuttingDown | SessionError::Busy)
            {
                tracing::warn!(session = %row.head.id, %error, "a session could not be told that files moved");
            }
        }
    }

    /// It lives, somebody looks on, or it was used lately. One that is taken up after a longer time looks at its files anew.
    fn is_in_use(&self, head: &Head) -> bool {
        let age = Time::now().micros().saturating_sub(head.updated.micros());
        age < LATELY.as_micros() as u64 || self.is_live(&head.id) || self.is_attended(&head.id)
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

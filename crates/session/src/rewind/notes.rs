//! A restore moves files that other sessions know: theirs are told which.

use std::path::Path;
use std::time::Duration;

use tolka_facts::event::{Changes, FileStat, FilesMoved};
use tolka_facts::{Draft, Event, Fact, Head, SessionId, Time};
use tolka_journal::{MarkKind, SessionQuery};
use tolka_workspace::checkpoint::Step;
use tolka_workspace::names::meant;

use super::history::History;
use super::work::changes;
use crate::actor::Command;
use crate::grounds::Folder;
use crate::{Desk, SessionError};

const LATELY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a restore moved.
pub(crate) struct Moved {
    history: History,
    steps: Vec<Step>,
    /// Of a folder as a whole, where more moved than the steps say.
    whole: Changes,
}

impl Moved {
    pub(crate) fn by(history: History, steps: Vec<Step>) -> Self {
        let whole = changes(&steps);
        Moved { history, steps, whole }
    }

    /// As a fact tells it, which names a few of very many.
    fn told(history: History, whole: Changes) -> Self {
        let step = |file: &FileStat| Step {
            path: meant(&file.path),
            operation: file.operation,
            added: file.added,
            removed: file.removed,
        };
        Moved { history, steps: whole.files.iter().map(step).collect(), whole }
    }

    /// What of it is in a folder, by the paths there.
    fn within(&self, folder: &Folder) -> Option<Changes> {
        if folder.canonical == self.history.folder.canonical {
            return Some(self.whole.clone()).filter(|whole| whole.count > 0);
        }
        let steps = moved(&self.history.folder.canonical, folder, &self.steps);
        (!steps.is_empty()).then(|| changes(&steps))
    }
}

impl Desk {
    /// Tells the sessions of the same folder, or of one inside the other. Best effort: a session that cannot be told
    /// keeps nobody waiting. `since`: some may have been told since then.
    pub(crate) async fn tell_neighbours(self, moved: Moved, since: Option<Time>) {
        let neighbours = match moved.history.neighbours(Time::default(), false).await {
            Ok(neighbours) => neighbours,
            Err(error) => return tracing::warn!(%error, "nobody could be told that files moved"),
        };
        for (row, folder) in neighbours.into_iter().filter(|(row, _)| self.is_in_use(&row.head)) {
            let Some(changes) = moved.within(&folder) else { continue };
            let by = &moved.history.session;
            if let Some(since) = since
                && (row.head.created > since || self.is_told(&row.head, by, since).await)
            {
                continue;
            }
            let fact = FilesMoved { by: by.clone(), changes };
            let note = |reply| Command::Note(Box::new(Draft::tolka(fact)), reply);
            if let Err(error) = self.call(&row.head.id, note).await
                // A fork that is being copied begins with the files as they are when it is done.
                && !matches!(error, SessionError::ShuttingDown | SessionError::Busy)
            {
                tracing::warn!(session = %row.head.id, %error, "a session could not be told that files moved");
            }
        }
    }

    /// Whether a session has heard of a restore since it was done. One that cannot be read hears it twice.
    async fn is_told(&self, head: &Head, by: &SessionId, since: Time) -> bool {
        let history = History::of(self.journal().clone(), head);
        let is_it = |fact: &Fact| match &fact.event {
            Event::FilesMoved(moved) => moved.by == *by && fact.time >= since,
            _ => false,
        };
        history.has_since(since, is_it).await.unwrap_or(false)
    }

    /// A server that died right after a restore has told nobody of it. What was last done in each session says whether
    /// there was one; whoever knows is not told again.
    pub(crate) async fn tell_what_was_not_told(&self) -> Result<(), SessionError> {
        let since = Time::from_micros(Time::now().micros().saturating_sub(LATELY.as_micros() as u64));
        let query = SessionQuery { since, ..SessionQuery::default() };
        for row in self.journal().sessions(query).await? {
            let journal = self.journal().clone();
            let Some(last) = journal.marks(&row.head.id, MarkKind::Point, u64::MAX, 1).await?.first().copied() else {
                continue;
            };
            let folder = Folder::find(&row.head.workspace).await;
            let history = History { journal, session: row.head.id.clone(), folder };
            let Some(fact) = history.fact(last).await? else { continue };
            let changes = match &fact.event {
                Event::Rewound(e) => e.changes.clone(),
                Event::Unrewound(e) => e.changes.clone(),
                _ => None,
            };
            if let Some(changes) = changes.filter(|changes| changes.count > 0 && fact.time >= since) {
                self.clone().tell_neighbours(Moved::told(history, changes), Some(fact.time)).await;
            }
        }
        Ok(())
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

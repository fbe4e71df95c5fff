//! A new session from a point of another one: its facts up to there, copied under ids of their own.
//!
//! The copy is written by the new session's actor, page by page, so that it takes no more memory for a long session than
//! for a short one. Until its last fact, [`SessionForked`], is told, the session is busy and takes no prompts. One that is
//! not finished, because the disk is full or the server died, is removed with all that it has.

mod copy;
mod folder;
mod names;
mod reach;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tolka_facts::event::{Parent, ParentKind, SessionCreated, SessionForked};
use tolka_facts::{Draft, Event, Fact, MessageId, SessionId, Time, Tip};
use tolka_journal::Scope;
use tolka_workspace::{Checkpoints, Save};

use self::copy::Copyist;
use self::reach::Reach;
use crate::actor::Command;
use crate::desk::call;
use crate::rewind::pruned;
use crate::{Desk, SessionError};

/// Facts that are copied at once: as many as one commit takes.
const PAGE: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForkRequest {
    /// What came before this prompt, or answer. `None`: all of it. One that a rewind has hidden will do as well.
    pub before: Option<MessageId>,
    pub workspace: ForkWorkspace,
    pub title: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkWorkspace {
    /// The same folder, as it is now.
    #[default]
    InPlace,
    /// A new folder with the files of that point.
    Own,
}

/// A fact on its way into a fork, with the time that it has.
pub(crate) type Copied = (Time, Draft);

/// A fork that is being made.
struct Making {
    desk: Desk,
    /// Where it comes from.
    from: Tip,
    reach: Reach,
    id: SessionId,
    workspace: PathBuf,
    own: ForkWorkspace,
    commands: mpsc::Sender<Command>,
}

impl Desk {
    /// What has ended is copied, also while a turn runs. It goes on if whoever asked goes away.
    pub async fn fork(&self, session: &SessionId, request: ForkRequest) -> Result<Tip, SessionError> {
        let from = self.tip(session).await?;
        if from.is_copying || from.rewinding.is_some() {
            return Err(SessionError::Busy);
        }
        let reach = Reach::find(self.journal(), &from, request.before.as_ref()).await?;
        let (desk, (reply, answer)) = (self.clone(), oneshot::channel());
        self.spawn_task(async move {
            // Nobody may wait for it any more.
            let _ = reply.send(desk.make(from, reach, request).await);
        })?;
        answer.await.unwrap_or(Err(SessionError::ShuttingDown))
    }

    async fn make(&self, from: Tip, reach: Reach, request: ForkRequest) -> Result<Tip, SessionError> {
        let source = match request.workspace {
            ForkWorkspace::InPlace => None,
            ForkWorkspace::Own => Some(self.files_of(&from, &reach).await?),
        };
        let id = self.new_session_id();
        let workspace = match &source {
            None => PathBuf::from(&from.head.workspace),
            Some(_) => self.checkpoints()?.fork_folder(&id, &from.head.workspace).await.map_err(Arc::new)?,
        };
        let (_copying, _entered) = (self.copies(&id), self.enter(&workspace)?);
        let commands = self.spawn_copy(&id, &from.head.agent)?;
        let (desk, own) = (self.clone(), request.workspace);
        let making = Making { desk, from, reach, id: id.clone(), workspace, own, commands };
        let made = making.all(request.title, source.as_deref()).await;
        if made.is_err() {
            // Its files first: a disk that is full has no room for a fact.
            making.drop_files().await;
            self.discard(&id).await;
        }
        made
    }

    /// A fork that is not whole is nobody's: it goes, with its folder.
    pub(crate) async fn discard(&self, id: &SessionId) {
        // What has no fact yet is not there.
        let deleted = match self.delete(id).await {
            Ok(()) => self.purge(id).await.map(drop),
            Err(SessionError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = deleted {
            tracing::warn!(session = %id, %error, "a fork that is not whole stays until the next start");
        }
    }

    pub(crate) fn checkpoints(&self) -> Result<&Arc<Checkpoints>, SessionError> {
        self.options().checkpoints.as_ref().ok_or(SessionError::CheckpointsOff)
    }

    /// The snapshot that a folder of its own begins with: the one before the turn that is not copied, else one of now.
    async fn files_of(&self, from: &Tip, reach: &Reach) -> Result<String, SessionError> {
        let checkpoints = self.checkpoints()?;
        if let Some(start) = reach.before {
            let page = self.journal().read(&Scope::Session(from.head.id.clone()), start - 1, 1).await?;
            let Some(Event::TurnStarted(started)) = page.first().map(|entry| &entry.fact.event) else {
                return Err(SessionError::NotFound(from.head.id.clone()));
            };
            let commit = started.checkpoint.clone().ok_or_else(|| {
                SessionError::NoCheckpoint("none was saved before that turn; fork in place instead".to_owned())
            })?;
            let held = checkpoints.held(from.head.workspace.as_ref()).await.map_err(Arc::new)?;
            return held.get(&commit).cloned().ok_or_else(|| pruned("fork in place instead"));
        }
        let save = Save::within(self.options().checkpoint_budget, "Forked here");
        let saved = checkpoints.save(from.head.workspace.as_ref(), &from.head.id, save).await;
        Ok(saved.map_err(Arc::new)?.commit)
    }
}

impl Making {
    async fn all(&self, title: Option<String>, source: Option<&str>) -> Result<Tip, SessionError> {
        let first = self.read(0).await?;
        let created = first.first().ok_or_else(|| self.gone())?;
        self.write(vec![(created.time, Draft::client(self.created(created, title)))]).await?;
        if let Some(commit) = source {
            let (checkpoints, from) = (self.desk.checkpoints()?, &self.from.head.workspace);
            checkpoints.make_fork_folder(&self.workspace).await.map_err(Arc::new)?;
            checkpoints.check_out(from.as_ref(), commit, &self.workspace).await.map_err(Arc::new)?;
        }
        self.copy(first).await?;
        let forked =
            SessionForked { from: self.from.head.id.clone(), seq: self.reach.at, checkpoint: self.begins_with().await };
        self.write(vec![(Time::now(), Draft::tolka(forked))]).await?;
        call(&self.commands, Command::Tip).await
    }

    async fn drop_files(&self) {
        let Some(checkpoints) = self.desk.options().checkpoints.as_ref().filter(|_| self.own == ForkWorkspace::Own)
        else {
            return;
        };
        if let Some(folder) = checkpoints.fork_of(&self.workspace).await
            && let Err(error) = checkpoints.remove_fork(&folder).await
        {
            tracing::warn!(session = %self.id, %error, "files of a fork that is not whole stay until it goes");
        }
    }

    async fn copy(&self, mut page: Vec<Arc<Fact>>) -> Result<(), SessionError> {
        let journal = self.desk.journal().as_ref();
        let mut copyist = Copyist::new(journal, &self.id, &self.reach, self.own);
        while let Some(last) = page.last().map(|fact| fact.seq) {
            let mut copied = Vec::with_capacity(page.len());
            for fact in &page {
                copied.extend(copyist.copy(fact).await?.map(|draft| (fact.time, draft)));
            }
            self.hold_checkpoints(&mut copied).await;
            if !copied.is_empty() {
                self.write(copied).await?;
            }
            page = self.read(last).await?;
            if page.is_empty() && last < self.reach.at {
                return Err(self.gone());
            }
        }
        // While it is there its blobs are, and from now on they are the fork's as well.
        match journal.session(&self.from.head.id).await? {
            Some(_) => Ok(()),
            None => Err(self.gone()),
        }
    }

    async fn read(&self, after: u64) -> Result<Vec<Arc<Fact>>, SessionError> {
        let left = usize::try_from(self.reach.at.saturating_sub(after)).unwrap_or(PAGE);
        let scope = Scope::Session(self.from.head.id.clone());
        let page = self.desk.journal().read(&scope, after, left.min(PAGE)).await?;
        Ok(page.into_iter().map(|entry| entry.fact).collect())
    }

    async fn write(&self, facts: Vec<Copied>) -> Result<(), SessionError> {
        call(&self.commands, |reply| Command::Copy(facts, reply)).await
    }

    /// It was purged meanwhile.
    fn gone(&self) -> SessionError {
        SessionError::NotFound(self.from.head.id.clone())
    }

    fn created(&self, first: &Fact, title: Option<String>) -> SessionCreated {
        let head = &self.from.head;
        let (mode, model, agent) = match &first.event {
            Event::SessionCreated(e) => (e.mode.clone(), e.model.clone(), e.agent.clone()),
            _ => (head.mode.clone(), head.model.clone(), head.agent.clone()),
        };
        SessionCreated {
            workspace: self.workspace.to_string_lossy().into_owned(),
            agent,
            title: title.unwrap_or_else(|| forked_title(&head.title)),
            mode,
            model,
            parent: Some(Parent {
                session: head.id.clone(),
                kind: ParentKind::Fork,
                at: Some(self.reach.at),
                call: None,
            }),
        }
    }

    /// Snapshots that the facts name are held for this session too, before anybody can read of them. Those that are gone
    /// are not named.
    async fn hold_checkpoints(&self, copied: &mut Vec<Copied>) {
        let named: Vec<String> =
            copied.iter().flat_map(|(_, draft)| draft.event.checkpoints().all()).map(str::to_owned).collect();
        if named.is_empty() || self.holds(&named).await {
            return;
        }
        let mut lost = HashSet::new();
        for commit in named {
            if !self.holds(std::slice::from_ref(&commit)).await {
                lost.insert(commit);
            }
        }
        let is_lost = |event: &Event| event.checkpoints().all().any(|commit| lost.contains(commit));
        copied.retain(|(_, draft)| !matches!(draft.event, Event::CheckpointSaved(_)) || !is_lost(&draft.event));
        for (_, draft) in copied.iter_mut().filter(|(_, draft)| is_lost(&draft.event)) {
            if let Event::TurnStarted(started) = &mut draft.event {
                started.checkpoint = None;
            }
        }
    }

    async fn holds(&self, commits: &[String]) -> bool {
        let Some(checkpoints) = &self.desk.options().checkpoints else { return false };
        let shared = checkpoints.share(&self.workspace, &self.id, commits).await;
        if let Err(error) = &shared {
            tracing::debug!(session = %self.id, %error, "a fork does not have all checkpoints of its parent");
        }
        shared.is_ok()
    }

    /// The files as they are now. Without it the fork has no more than a session without a snapshot.
    async fn begins_with(&self) -> Option<String> {
        let options = self.desk.options();
        let save = Save::within(options.checkpoint_budget, "A fork began here");
        match options.checkpoints.as_ref()?.save(&self.workspace, &self.id, save).await {
            Ok(saved) => Some(saved.commit),
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "a fork begins without a checkpoint");
                None
            }
        }
    }
}

/// As OpenCode's clients know it: the fork of a fork counts on.
fn forked_title(title: &str) -> String {
    let counted = title.strip_suffix(')').and_then(|title| title.rsplit_once(" (fork #"));
    let counted = counted.and_then(|(title, n)| Some((title, n.parse::<u64>().ok()?.checked_add(1)?)));
    let (title, n) = counted.filter(|(title, _)| !title.is_empty()).unwrap_or((title, 1));
    format!("{title} (fork #{n})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_are_counted_in_their_titles() {
        assert_eq!(forked_title("Fix it"), "Fix it (fork #1)");
        assert_eq!(forked_title("Fix it (fork #9)"), "Fix it (fork #10)");
        assert_eq!(forked_title("Fix it (fork #x)"), "Fix it (fork #x) (fork #1)");
        assert_eq!(forked_title(" (fork #1)"), " (fork #1) (fork #1)");
        let most = format!("t (fork #{})", u64::MAX);
        assert_eq!(forked_title(&most), format!("{most} (fork #1)"));
    }
}

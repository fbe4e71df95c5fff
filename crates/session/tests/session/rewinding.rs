//! Going back and forth in time, with a real journal and real snapshots.

mod after;
mod back;
mod boundary;
mod chance;
mod crash;
mod neighbours;
mod odd;
mod points;
mod pruned;
mod settled;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tolka_facts::event::{KeptWhy, Overwrite};
use tolka_facts::{Event, Fact, MessageId, Role, SessionId, View};
use tolka_session::{Accepted, DeskOptions, NewSession, RewindRequest, Rewinding, SessionError, Target, Undo, What};
use tolka_workspace::Checkpoints;
use tolka_workspace::checkpoint::{Kept, Step};

use crate::saving::LONG;
use crate::{World, prompt};

struct Studio {
    world: World,
    workspace: PathBuf,
}

impl Studio {
    fn new() -> Self {
        Studio::on(tempfile::tempdir().unwrap())
    }

    fn on(folder: tempfile::TempDir) -> Self {
        Studio::within(folder, LONG)
    }

    fn within(folder: tempfile::TempDir, checkpoint_budget: Duration) -> Self {
        let (data, workspace) = (folder.path().join("data"), folder.path().join("workspace"));
        fs::create_dir_all(&workspace).unwrap();
        let checkpoints = Some(Arc::new(Checkpoints::new(&data)));
        let options = DeskOptions { checkpoints, checkpoint_budget };
        Studio { world: World::build("puppet", folder, None, options), workspace }
    }

    /// As a kill leaves it.
    fn crash(self) -> Self {
        let World { desk, journal, folder, .. } = self.world;
        journal.close();
        drop(journal);
        let mut studio = Studio::on(folder);
        studio.world.crashed = Some(desk);
        studio
    }

    async fn session(&self) -> SessionId {
        self.session_in(&self.workspace).await
    }

    async fn session_in(&self, workspace: &Path) -> SessionId {
        let workspace = workspace.to_str().unwrap().to_owned();
        self.world.desk.create(NewSession { workspace, ..NewSession::default() }).await.unwrap().head.id
    }

    async fn begin(&self, session: &SessionId, deeds: &str) -> Accepted {
        self.world.desk.prompt(session, prompt(&format!("do: {deeds}"))).await.unwrap()
    }

    /// A whole turn; the message that asked for it.
    async fn turn(&self, session: &SessionId, deeds: &str) -> MessageId {
        let turns = self.world.desk.tip(session).await.unwrap().head.turns as usize;
        let accepted = self.begin(session, deeds).await;
        self.world.ended(session, turns + 1).await;
        accepted.message
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
    }

    /// Every file of the workspace, without the end of its line.
    fn tree(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.workspace.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(&self.workspace).unwrap().to_str().unwrap().to_owned();
                    files.insert(name, fs::read_to_string(path).unwrap().trim_end().to_owned());
                }
            }
        }
        files
    }

    async fn rewind(&self, session: &SessionId, message: &MessageId, what: What) -> Result<Rewinding, SessionError> {
        self.world.desk.rewind(session, to(message, what)).await
    }

    async fn unrewind(&self, session: &SessionId) -> Result<Rewinding, SessionError> {
        self.world.desk.unrewind(session, Undo::Last, Overwrite::Nothing).await
    }

    async fn events(&self, session: &SessionId) -> Vec<Event> {
        self.world.facts(session).await.iter().map(|fact| fact.event.clone()).collect()
    }

    /// The prompts that a client sees.
    async fn shown(&self, session: &SessionId) -> Vec<MessageId> {
        let mut view = View::default();
        self.world.facts(session).await.iter().for_each(|fact| view.apply(fact));
        let shown = view.messages.into_iter().filter(|message| message.role == Role::User && !message.hidden);
        shown.map(|message| message.id).collect()
    }

    /// Sends a command, and comes back when the session has taken it in and is at it.
    async fn sent<T: std::fmt::Debug>(&self, session: &SessionId, command: Pin<&mut (impl Future<Output = T> + Send)>) {
        tokio::select! {
            biased;
            early = command => panic!("{early:?}"),
            tip = self.world.desk.tip(session) => drop(tip.unwrap()),
        }
    }

    /// Waits for a fact.
    async fn seen(&self, session: &SessionId, is_it: impl Fn(&Event) -> bool) -> Arc<Fact> {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        loop {
            let facts = self.world.facts(session).await;
            if let Some(fact) = facts.iter().find(|fact| is_it(&fact.event)) {
                return fact.clone();
            }
            assert!(std::time::Instant::now() < deadline, "it should have been told by now: {facts:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn to(message: &MessageId, what: What) -> RewindRequest {
    RewindRequest { to: Target::Message(message.clone()), what, overwrite: Overwrite::Nothing }
}

fn files(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect()
}

fn paths(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.path.to_str().unwrap()).collect()
}

fn kept(all: &[Kept]) -> Vec<(&str, KeptWhy)> {
    all.iter().map(|kept| (kept.path.to_str().unwrap(), kept.why)).collect()
}

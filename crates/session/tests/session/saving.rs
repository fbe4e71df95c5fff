//! The snapshot before each turn: it is real, and nobody has to wait for it who did not ask for the turn.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tolka_facts::event::{Noticed, SessionChanged, Severity, Stop, TurnStarted};
use tolka_facts::{Cause, Event, SessionId, TurnId};
use tolka_session::{DeskOptions, NewSession, SessionError};
use tolka_workspace::Checkpoints;

use crate::{World, prompt, texts};

/// A budget that no test uses up.
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) struct Studio {
    pub(crate) world: World,
    data: PathBuf,
    pub(crate) workspace: PathBuf,
}

impl Studio {
    pub(crate) fn new(budget: Duration) -> Self {
        Studio::on(tempfile::tempdir().unwrap(), budget)
    }

    fn on(folder: tempfile::TempDir, budget: Duration) -> Self {
        Studio::within(folder, budget, None)
    }

    fn within(folder: tempfile::TempDir, budget: Duration, max_bytes: Option<u64>) -> Self {
        let (data, workspace) = (folder.path().join("data"), folder.path().join("workspace"));
        fs::create_dir_all(&workspace).unwrap();
        let checkpoints = Some(Arc::new(Checkpoints::new(&data)));
        let world = World::build("puppet", folder, max_bytes, DeskOptions { checkpoints, checkpoint_budget: budget });
        Studio { world, data, workspace }
    }

    pub(crate) async fn session(&self) -> SessionId {
        self.session_in(&self.workspace).await
    }

    pub(crate) async fn session_in(&self, workspace: &Path) -> SessionId {
        let workspace = workspace.to_str().unwrap().to_owned();
        self.world.desk.create(NewSession { workspace, ..NewSession::default() }).await.unwrap().head.id
    }

    async fn prompt(&self, session: &SessionId, text: &str) -> TurnId {
        self.world.desk.prompt(session, prompt(text)).await.unwrap().turn
    }

    /// From now on snapshots wait: git wants to read the ignore file, and a pipe without a writer does not open.
    fn stall(&self) {
        assert!(Command::new("mkfifo").arg(self.workspace.join(".gitignore")).status().unwrap().success());
    }

    fn go_on(&self) {
        release(&self.workspace);
    }

    pub(crate) async fn starts(&self, session: &SessionId) -> Vec<TurnStarted> {
        let facts = self.world.facts(session).await;
        let start = |event: &Event| match event {
            Event::TurnStarted(started) => Some(started.clone()),
            _ => None,
        };
        facts.iter().filter_map(|fact| start(&fact.event)).collect()
    }

    /// Every snapshot that a fact names, in the order of their names.
    async fn checkpoints(&self, session: &SessionId) -> Vec<String> {
        let named = |event: &Event| match event {
            Event::TurnStarted(started) => started.checkpoint.clone(),
            Event::CheckpointSaved(saved) => Some(saved.checkpoint.clone()),
            _ => None,
        };
        let facts = self.world.facts(session).await;
        let commits: BTreeSet<String> = facts.iter().filter_map(|fact| named(&fact.event)).collect();
        commits.into_iter().collect()
    }

    fn git(&self, args: &[&str]) -> String {
        self.try_git(args).unwrap()
    }

    /// Without a store, or while it is being made, there is nothing to say.
    fn try_git(&self, args: &[&str]) -> Result<String, String> {
        let stores = fs::read_dir(self.data.join("checkpoints")).map_err(|error| error.to_string())?;
        let store = stores.map(|store| store.unwrap().path()).find(|store| store.extension().is_none());
        let output = Command::new("git").arg("--git-dir").arg(store.ok_or("no store")?).args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

/// Lets go on who waits at the pipe, and whoever comes finds none. The writer stays: somebody may be on the way in.
fn release(workspace: &Path) {
    let pipe = workspace.join(".gitignore");
    let writer = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    fs::remove_file(pipe).unwrap();
    Box::leak(Box::new(writer));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_has_a_commit_of_the_workspace_as_it_was_before_it() {
    let studio = Studio::new(LONG);
    let session = studio.session().await;
    fs::write(studio.workspace.join("a"), "one").unwrap();
    studio.prompt(&session, "first, with more words than fit into the fifty characters of a commit").await;
    studio.world.ended(&session, 1).await;
    fs::write(studio.workspace.join("a"), "two").unwrap();
    studio.prompt(&session, "second").await;
    studio.prompt(&session, "third").await;
    studio.world.ended(&session, 3).await;
    let starts = studio.starts(&session).await;
    let commits: Vec<&str> = starts.iter().map(|started| started.checkpoint.as_deref().unwrap()).collect();
    let contents: Vec<String> = commits.iter().map(|commit| studio.git(&["show", &format!("{commit}:a")])).collect();
    assert_eq!(contents, ["one", "two", "two"]);
    assert!(commits[1] != commits[2], "one of its own, although nothing changed");
    let words = studio.git(&["log", "-1", "--format=%s", commits[0]]);
    assert_eq!(words, "Before: first, with more words than fit into the fifty cha\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_snapshot_the_turn_starts_and_people_are_told() {
    let studio = Studio::new(Duration::from_secs(5));
    studio.stall();
    for (workspace, why) in [
        (
            Path::new("/nonexistent"),
            "the workspace /nonexistent cannot be used: No such file or directory (os error 2)",
        ),
        (Path::new("/"), "/ holds far more than a project; open a folder inside it instead"),
        (
            &studio.workspace,
            "saving took longer than 5 s; the next checkpoint goes on where this one stopped, and folders that need \
             no saving can be left out by a .gitignore file",
        ),
    ] {
        let session = studio.session_in(workspace).await;
        let turn = studio.prompt(&session, "go").await;
        assert_eq!(studio.world.ended(&session, 1).await, [Stop::EndTurn]);
        let facts = studio.world.facts(&session).await;
        let at = facts.iter().position(|fact| matches!(fact.event, Event::TurnStarted(_))).unwrap();
        assert_eq!(facts[at].event, TurnStarted { turn, checkpoint: None }.into());
        let notice = Noticed {
            severity: Severity::Warning,
            title: "No checkpoint was saved".into(),
            description: Some(format!("What this turn changes cannot be taken back: {why}.")),
        };
        assert_eq!((facts[at + 1].cause, &facts[at + 1].event), (Cause::Tolka, &notice.into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_dropped_during_its_snapshot_never_starts() {
    let studio = Studio::new(LONG);
    let session = studio.session().await;
    studio.stall();
    let first = studio.prompt(&session, "first").await;
    let second = studio.prompt(&session, "second").await;
    // Everybody is answered in the meantime.
    let desk = &studio.world.desk;
    let change = SessionChanged { title: Some("T".into()), mode: None, model: None, agent: None, archived: None };
    desk.change(&session, change).await.unwrap();
    let tip = desk.tip(&session).await.unwrap();
    assert_eq!((tip.head.title.as_str(), tip.queue.len(), tip.is_idle()), ("T", 2, true));
    desk.drop_prompt(&session, first).await.unwrap();
    studio.go_on();
    studio.world.ended(&session, 1).await;
    let starts = studio.starts(&session).await;
    assert_eq!(starts, [TurnStarted { turn: second, checkpoint: starts[0].checkpoint.clone() }]);
    assert_eq!(texts(&studio.world.facts(&session).await), ["second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_during_the_snapshot_ends_the_turn_at_once() {
    for queue_too in [false, true] {
        let studio = Studio::new(LONG);
        let session = studio.session().await;
        studio.stall();
        let first = studio.prompt(&session, "first").await;
        studio.prompt(&session, "second").await;
        assert!(studio.world.desk.cancel(&session, queue_too).await.unwrap());
        assert_eq!(studio.world.ended(&session, 1).await, [Stop::Cancelled]);
        assert_eq!(studio.starts(&session).await, [TurnStarted { turn: first, checkpoint: None }]);
        studio.go_on();
        studio.prompt(&session, "third").await;
        let (ended, words): (usize, &[&str]) = if queue_too { (2, &["third"]) } else { (3, &["second", "third"]) };
        studio.world.ended(&session, ended).await;
        assert_eq!(texts(&studio.world.facts(&session).await), words);
        let starts = studio.starts(&session).await;
        assert!(starts[1..].iter().all(|started| started.checkpoint.is_some()));
        let refs = studio.git(&["for-each-ref", "--format=%(refname)"]);
        let kept = studio.checkpoints(&session).await;
        let named: Vec<String> = kept.iter().map(|commit| format!("refs/tolka/{session}/{commit}")).collect();
        assert_eq!(refs.lines().collect::<Vec<_>>(), named);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_deleted_during_a_snapshot_starts_nothing() {
    let studio = Studio::new(LONG);
    let session = studio.session().await;
    studio.stall();
    studio.prompt(&session, "first").await;
    studio.world.desk.delete(&session).await.unwrap();
    studio.go_on();
    // Another session there gets its snapshot: the first one's no longer holds the store.
    let other = studio.session().await;
    studio.prompt(&other, "other").await;
    studio.world.ended(&other, 1).await;
    assert!(studio.starts(&session).await.is_empty());
    assert!(matches!(studio.world.desk.tip(&session).await, Err(SessionError::NotFound(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_whose_snapshot_the_server_did_not_live_to_see_runs_at_the_next_start() {
    for is_crash in [false, true] {
        let studio = Studio::new(LONG);
        let session = studio.session().await;
        studio.stall();
        studio.prompt(&session, "later").await;
        let Studio { world, .. } = studio;
        if !is_crash {
            world.desk.shut_down().await;
        }
        let World { desk: _still_held, journal, folder, .. } = world;
        journal.close();
        drop(journal);

        release(&folder.path().join("workspace"));
        let studio = Studio::on(folder, LONG);
        assert_eq!(studio.world.desk.recover().await.unwrap(), 1);
        assert_eq!(studio.world.ended(&session, 1).await, [Stop::EndTurn]);
        assert_eq!(texts(&studio.world.facts(&session).await), ["later"]);
        let facts = studio.world.facts(&session).await;
        assert!(studio.starts(&session).await[0].checkpoint.is_some(), "{facts:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_takes_the_checkpoints_of_its_session_along() {
    let studio = Studio::new(LONG);
    fs::write(studio.workspace.join("a"), "one").unwrap();
    let (purged, other) = (studio.session().await, studio.session().await);
    for session in [&purged, &other] {
        studio.prompt(session, "go").await;
        studio.world.ended(session, 1).await;
    }
    let desk = &studio.world.desk;
    let kept = studio.checkpoints(&other).await;
    let lost = studio.checkpoints(&purged).await;
    // What is not deleted keeps everything.
    desk.purge(&purged).await.unwrap_err();
    assert_eq!(studio.git(&["for-each-ref"]).lines().count(), kept.len() + lost.len());
    desk.delete(&purged).await.unwrap();
    assert!(desk.purge(&purged).await.unwrap().freed.facts > 0);
    assert_eq!(studio.git(&["for-each-ref", "--format=%(objectname)"]).lines().collect::<Vec<_>>(), kept);
    assert_eq!(studio.git(&["show", &format!("{}:a", kept[0])]), "one");
}

/// Without git nothing can be pruned, and a store may be damaged: the words of a person go nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_that_cannot_be_removed_do_not_keep_the_facts() {
    let studio = Studio::new(LONG);
    let session = studio.session().await;
    studio.prompt(&session, "go").await;
    studio.world.ended(&session, 1).await;
    let store = fs::read_dir(studio.data.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    fs::remove_dir_all(&store).unwrap();
    fs::write(&store, "in the way").unwrap();
    studio.world.desk.delete(&session).await.unwrap();
    assert!(studio.world.desk.purge(&session).await.unwrap().freed.facts > 0);
    assert!(studio.world.facts(&session).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_the_disk_does_not_let_start_keeps_its_snapshot() {
    let studio = Studio::within(tempfile::tempdir().unwrap(), LONG, Some(400_000));
    let (session, filler) = (studio.session().await, studio.session().await);
    studio.stall();
    studio.prompt(&session, "go").await;
    let desk = &studio.world.desk;
    for size in [20_000, 2_000, 200, 1] {
        while desk.prompt(&filler, prompt(&"x".repeat(size))).await.is_ok() {}
    }
    assert!(desk.tip(&filler).await.unwrap().queue.len() < 100, "it is the disk that is full, not the queue");
    studio.go_on();
    let refs = || {
        let named = studio.try_git(&["for-each-ref", "--format=%(objectname)", &format!("refs/tolka/{session}")]);
        named.unwrap_or_default()
    };
    let deadline = Instant::now() + LONG;
    while refs().is_empty() {
        assert!(Instant::now() < deadline, "the snapshot should be there by now");
        tokio::task::yield_now().await;
    }
    let before = refs();
    assert!(desk.tip(&session).await.unwrap().is_idle(), "there is no room for its start");
    desk.delete(&filler).await.unwrap();
    desk.purge(&filler).await.unwrap();
    studio.world.ended(&session, 1).await;
    let saved = studio.starts(&session).await[0].checkpoint.clone().unwrap();
    assert_eq!(saved, before.trim(), "it is not saved again");
}

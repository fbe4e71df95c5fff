//! What is left when old snapshots went to save room.

use std::collections::HashSet;
use std::time::Duration;

use tolka_facts::SessionId;
use tolka_facts::event::{KeptWhy, Overwrite};
use tolka_session::{Between, ForkRequest, ForkWorkspace, RewindRequest, SessionError, Target, What};
use tolka_workspace::Checkpoints;
use tolka_workspace::checkpoint::{Policy, Pruned};

use super::{Studio, files, kept, paths};

/// Nothing has room; sessions are in use for as long as anybody remembers.
const HARSHEST: Policy = Policy { keep_for: Duration::from_secs(365 * 24 * 3600), most_bytes: 0 };

impl Studio {
    async fn prune(&self, session: &SessionId) -> Pruned {
        // It answers when its turn has left the folder.
        self.world.desk.tip(session).await.unwrap();
        self.world.desk.prune(&HARSHEST).await.unwrap()
    }

    async fn held(&self) -> HashSet<String> {
        Checkpoints::new(&self.world.folder.path().join("data")).held(&self.workspace).await.unwrap()
    }

    /// The snapshots that a session's facts name, the first one first.
    async fn named(&self, session: &SessionId) -> Vec<String> {
        let points = self.world.desk.points(session, u64::MAX, 1000).await.unwrap();
        points.into_iter().rev().map(|point| point.checkpoint).collect()
    }
}

fn to_checkpoint(commit: &str) -> RewindRequest {
    RewindRequest { to: Target::Checkpoint(commit.to_owned()), what: What::Files, overwrite: Overwrite::Nothing }
}

fn assert_pruned<T: std::fmt::Debug>(answer: Result<T, SessionError>) {
    let error = answer.unwrap_err();
    assert!(matches!(error, SessionError::NoCheckpoint(_)), "{error:?}");
    assert!(error.to_string().contains("removed with other old ones"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_needs_outlives_the_harshest_pruning_and_can_be_gone_back_to() {
    let studio = Studio::new();
    studio.write("a", "0");
    let session = studio.session().await;
    for n in 1..=9 {
        studio.turn(&session, &format!("a={n}")).await;
    }
    let named = studio.named(&session).await;
    assert_eq!(named.len(), 18);
    // A rewind that can be taken back, to the start of the second turn.
    let rewinding = studio.world.desk.rewind(&session, to_checkpoint(&named[2])).await.unwrap();
    assert_eq!(studio.tree(), files(&[("a", "1")]));
    let undo = rewinding.before.unwrap();

    let pruned = studio.prune(&session).await;
    let held = studio.held().await;
    let is_held = |commit: &String| held.contains(commit);
    assert!(is_held(&named[0]), "what the changes are counted from");
    assert!(is_held(&named[2]) && is_held(&undo), "a rewind, both ends");
    assert!(named[12..].iter().all(is_held), "the last ones");
    assert!(!named[3..10].iter().any(is_held), "the others went");
    assert!(pruned.snapshots >= 7, "{pruned:?}");
    assert_eq!(studio.prune(&session).await.snapshots, 0, "what is needed goes on being needed");

    for (commit, content) in [(&named[17], "9"), (&named[12], "6"), (&named[0], "0"), (&undo, "9"), (&named[2], "1")] {
        studio.world.desk.rewind(&session, to_checkpoint(commit)).await.unwrap();
        assert_eq!(studio.tree(), files(&[("a", content)]), "{commit}");
    }
    studio.unrewind(&session).await.unwrap();
    assert_eq!(studio.tree(), files(&[("a", "9")]));
    studio.world.desk.reset(&session).await.unwrap();
    assert_eq!(studio.tree(), files(&[("a", "0")]));

    studio.world.desk.delete(&session).await.unwrap();
    studio.world.desk.purge(&session).await.unwrap();
    assert_eq!(studio.held().await, HashSet::new());
    let stores = studio.world.folder.path().join("data/checkpoints");
    assert_eq!(std::fs::read_dir(stores).unwrap().count(), 0, "nothing is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_gone_is_a_missing_snapshot_and_never_an_error() {
    let studio = Studio::new();
    studio.write("a", "0");
    studio.write("hand", "0");
    let session = studio.session().await;
    let first = studio.turn(&session, "tell a=1; tell made=1").await;
    studio.write("hand", "mine");
    let second = studio.turn(&session, "tell a=2").await;
    for n in 3..=7 {
        studio.turn(&session, &format!("tell a={n}")).await;
    }
    studio.write("late", "mine");
    let named = studio.named(&session).await;
    studio.prune(&session).await;
    let held = studio.held().await;
    assert!(
        held.contains(&named[0]) && !held.contains(&named[1]) && !held.contains(&named[2]),
        "a gap behind the base"
    );

    let desk = &studio.world.desk;
    let second = |what| RewindRequest { to: Target::Message(second.clone()), what, overwrite: Overwrite::Nothing };
    assert_pruned(desk.preview_rewind(&session, &second(What::Both)).await);
    assert_pruned(desk.rewind(&session, second(What::Files)).await);
    assert_pruned(desk.differences(&session, Between::Message(first.clone())).await);
    assert_pruned(desk.differences(&session, Between::Checkpoints(named[1].clone(), None)).await);
    let Target::Message(before) = second(What::Both).to else { unreachable!() };
    let fork = |workspace| ForkRequest { before: Some(before.clone()), workspace, title: None };
    assert_pruned(desk.fork(&session, fork(ForkWorkspace::Own)).await);
    let forked = desk.fork(&session, fork(ForkWorkspace::InPlace)).await.unwrap();
    assert_eq!((forked.head.turns, forked.head.busy), (1, false));
    assert_eq!(desk.rewind(&session, second(What::Conversation)).await.unwrap().files, []);
    studio.unrewind(&session).await.unwrap();

    // What was told decides in the gap; what nobody told is kept and shown.
    let changed = desk.differences(&session, Between::Session).await.unwrap();
    assert_eq!(changed.len(), 3, "a, made, and hand, which may be either's: {changed:?}");
    let reset = desk.reset(&session).await.unwrap();
    assert_eq!(paths(&reset.files), ["a", "made"]);
    assert_eq!(kept(&reset.kept), [("hand", KeptWhy::Conflict), ("late", KeptWhy::NotOurs)]);
    assert_eq!(studio.tree(), files(&[("a", "0"), ("hand", "mine"), ("late", "mine")]));
    studio.unrewind(&session).await.unwrap();
    assert_eq!(studio.tree()["a"], "7");
}

/// As `--older-than 0h` says it.
const ALL: Policy = Policy { keep_for: Duration::ZERO, most_bytes: 0 };

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_still_needs_stays_however_old_it_may_be() {
    let studio = Studio::new();
    studio.write("a", "0");
    let session = studio.session().await;
    for n in 1..=3 {
        studio.turn(&session, &format!("a={n}")).await;
    }
    let named = studio.named(&session).await;
    let rewinding = studio.world.desk.rewind(&session, to_checkpoint(&named[2])).await.unwrap();
    studio.world.desk.tip(&session).await.unwrap();
    studio.world.desk.prune(&ALL).await.unwrap();
    let held = studio.held().await;
    for needed in [&named[0], &named[2], rewinding.before.as_ref().unwrap(), rewinding.after.as_ref().unwrap()] {
        assert!(held.contains(needed), "{needed}");
    }
    studio.unrewind(&session).await.unwrap();
    assert_eq!(studio.tree(), files(&[("a", "3")]));

    // A turn that runs began with a snapshot, and so did one that a crash has left open.
    let accepted = studio.begin(&session, "a=4; wait").await;
    studio.world.waits.notified().await;
    let studio = studio.crash();
    studio.world.desk.prune(&ALL).await.unwrap();
    studio.world.desk.recover().await.unwrap();
    studio.world.ended(&session, 4).await;
    for (to, content) in [(Target::Message(accepted.message), "3"), (Target::Base, "0")] {
        // Nobody told what lies between them.
        let request = RewindRequest { to, what: What::Files, overwrite: Overwrite::All };
        studio.world.desk.rewind(&session, request).await.unwrap();
        assert_eq!(studio.tree(), files(&[("a", content)]));
    }

    // What no session needs goes.
    studio.world.desk.delete(&session).await.unwrap();
    studio.world.desk.prune(&ALL).await.unwrap();
    assert_eq!(studio.held().await, HashSet::new());
}

//! A server that is killed in each window of a rewind, and in a turn.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tolka_facts::event::{CheckpointSaved, KeptWhy, Moment, Overwrite, RewindStarted, Stop};
use tolka_facts::{Cause, Draft, Event, MessageId, SessionId, Time};
use tolka_journal::{Append, Journal, Mark, tip_at};
use tolka_session::What;
use tolka_workspace::{Checkpoints, Save};

use super::after::{go_on, stall};
use super::{Studio, files, kept, to};
use crate::prompt;

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(60);

/// Two turns, a person's file, and where the first turn began.
async fn played(studio: &Studio) -> (SessionId, MessageId) {
    studio.write("a", "0");
    let session = studio.session().await;
    let message = studio.turn(&session, "a=1; b=1").await;
    studio.turn(&session, "b=2; c=1").await;
    studio.write("mine", "m");
    (session, message)
}

/// Writes down that a rewind begins, as the actor does, and does not begin it.
async fn intend(studio: &Studio, session: &SessionId, message: &MessageId) {
    let data = studio.world.folder.path().join("data");
    let save = Save::within(Duration::from_secs(60), "now");
    let now = Checkpoints::new(&data).save(&studio.workspace, session, save).await.unwrap();
    let start = studio.seen(session, |event| matches!(event, Event::TurnStarted(_))).await;
    let Event::TurnStarted(started) = &start.event else { unreachable!() };
    let intent = RewindStarted {
        checkpoint: started.checkpoint.clone(),
        message: Some(message.clone()),
        before: Some(now.commit.clone()),
        from: Some(start.seq),
        overwrite: Overwrite::Nothing,
        undoes: None,
        resets: false,
    };
    let saved = CheckpointSaved { moment: Some(Moment::BeforeRewind), ..CheckpointSaved::of(now.commit, now.files) };
    append(studio, session, vec![saved.into(), intent.into()]).await;
}

pub(super) async fn append(studio: &Studio, session: &SessionId, events: Vec<Event>) {
    let journal = &studio.world.journal;
    let mut tip = tip_at(journal.as_ref(), session, u64::MAX).await.unwrap();
    let mut append = Append::default();
    for event in events {
        let fact = Draft::tolka(event).stamp(session.clone(), tip.seq + 1, Time::now());
        tip.apply(&fact);
        append.marks.extend(Mark::of(&fact, &tip).map(|mark| (mark.to_string(), fact.seq)));
        append.facts.push(Arc::new(fact));
    }
    append.head = Some(tip.head);
    journal.append(append).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_was_cut_off_is_finished_at_the_next_start() {
    for is_half_done in [false, true] {
        let studio = Studio::new();
        let (session, message) = played(&studio).await;
        intend(&studio, &session, &message).await;
        let studio = studio.crash();
        if is_half_done {
            studio.write("a", "0");
            fs::remove_file(studio.workspace.join("c")).unwrap();
        }
        // What a person does meanwhile is theirs.
        studio.write("meanwhile", "w");
        studio.world.desk.recover().await.unwrap();
        let fact = studio.seen(&session, |event| matches!(event, Event::Rewound(_))).await;
        let Event::Rewound(rewound) = &fact.event else { unreachable!() };
        assert_eq!(rewound.files, ["a", "b", "c"]);
        let expected = files(&[("a", "0"), ("mine", "m"), ("meanwhile", "w")]);
        assert_eq!(studio.tree(), expected);
        let tip = studio.world.desk.tip(&session).await.unwrap();
        assert_eq!((tip.rewinding, tip.rewinds.len(), tip.head.busy), (None, 1, false));

        let undone = studio.unrewind(&session).await.unwrap();
        let whole = files(&[("a", "1"), ("b", "2"), ("c", "1"), ("mine", "m"), ("meanwhile", "w")]);
        assert_eq!(studio.tree(), whole, "{:?}", undone.kept);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_while_the_server_was_down_is_kept() {
    let studio = Studio::new();
    let (session, message) = played(&studio).await;
    intend(&studio, &session, &message).await;
    let studio = studio.crash();
    studio.write("b", "mine now");
    studio.world.desk.recover().await.unwrap();
    let fact = studio.seen(&session, |event| matches!(event, Event::Rewound(_))).await;
    let Event::Rewound(rewound) = &fact.event else { unreachable!() };
    assert_eq!(rewound.files, ["a", "c"]);
    assert!(rewound.kept.iter().any(|kept| kept.path == "b" && kept.why == KeptWhy::Moved), "{:?}", rewound.kept);
    assert_eq!(studio.tree(), files(&[("a", "0"), ("b", "mine now"), ("mine", "m")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_cannot_be_finished_says_so_and_the_session_goes_on() {
    let studio = Studio::new();
    let (session, message) = played(&studio).await;
    intend(&studio, &session, &message).await;
    let studio = studio.crash();
    fs::remove_dir_all(studio.world.folder.path().join("data/checkpoints")).unwrap();
    let before = studio.tree();
    studio.world.desk.recover().await.unwrap();
    let fact = studio.seen(&session, |event| matches!(event, Event::RewindFailed(_))).await;
    assert_eq!(fact.cause, Cause::Tolka);
    assert_eq!(studio.tree(), before);
    studio.turn(&session, "d=1").await;
    assert!(studio.unrewind(&session).await.is_err());
}

/// A restore that a kill left in its middle, in a folder that is not there now.
async fn half_done() -> (Studio, SessionId) {
    let studio = Studio::new();
    let (session, message) = played(&studio).await;
    intend(&studio, &session, &message).await;
    let studio = studio.crash();
    studio.write("a", "0");
    fs::remove_file(studio.workspace.join("c")).unwrap();
    fs::rename(&studio.workspace, away(&studio)).unwrap();
    (studio, session)
}

fn away(studio: &Studio) -> std::path::PathBuf {
    studio.workspace.with_extension("away")
}

fn is_over(event: &Event) -> bool {
    matches!(event, Event::Rewound(_) | Event::RewindFailed(_))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_cannot_go_on_waits_and_is_finished_when_it_can() {
    let (studio, session) = half_done().await;
    studio.world.desk.recover().await.unwrap();
    studio.world.desk.prompt(&session, prompt("later")).await.unwrap();
    // It waits until the try that runs has failed.
    studio.world.desk.shut_down().await;
    assert!(!studio.events(&session).await.iter().any(is_over), "it is neither done nor is nothing touched");
    let studio = studio.crash();
    let tip = studio.world.desk.tip(&session).await.unwrap();
    assert!(tip.head.busy && tip.rewinding.is_some() && tip.queue.len() == 1);
    fs::rename(away(&studio), &studio.workspace).unwrap();
    let fact = studio.seen(&session, is_over).await;
    let Event::Rewound(rewound) = &fact.event else { panic!("{fact:?}") };
    assert_eq!(rewound.files, ["a", "b", "c"]);
    studio.world.ended(&session, 3).await;
    assert_eq!(studio.tree(), files(&[("a", "0"), ("mine", "m")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_given_up_tells_what_it_can_and_is_taken_back_by_what_the_files_hold() {
    let (studio, session) = half_done().await;
    let desk = &studio.world.desk;
    desk.recover().await.unwrap();
    // It is given up when it has failed, not before.
    while !desk.cancel(&session, false).await.unwrap() {
        tokio::task::yield_now().await;
    }
    let fact = studio.seen(&session, is_over).await;
    let Event::Rewound(rewound) = &fact.event else { panic!("{fact:?}") };
    assert_eq!((&rewound.changes, &rewound.after, rewound.before.is_some()), (&None, &None, true));
    let notice = |event: &Event| matches!(event, Event::Noticed(notice) if notice.title == "A restore was given up");
    studio.seen(&session, notice).await;
    fs::rename(away(&studio), &studio.workspace).unwrap();
    studio.write("a", "a person's");
    let undone = studio.unrewind(&session).await.unwrap();
    assert_eq!(kept(&undone.kept), [("a", KeptWhy::Conflict)]);
    assert_eq!(studio.tree(), files(&[("a", "a person's"), ("b", "2"), ("c", "1"), ("mine", "m")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_deleted_when_its_restore_is_over() {
    let studio = Studio::new();
    let (session, message) = played(&studio).await;
    intend(&studio, &session, &message).await;
    let studio = studio.crash();
    let desk = &studio.world.desk;
    // Nobody restores while another session's snapshot is taken.
    stall(&studio);
    let other = studio.session().await;
    studio.begin(&other, "").await;
    tokio::time::timeout(LONG, desk.tip(&session)).await.unwrap().unwrap();
    let delete = desk.delete(&session);
    tokio::pin!(delete);
    for _ in 0..50 {
        tokio::select! {
            biased;
            early = &mut delete => panic!("{early:?}"),
            tip = desk.tip(&session) => assert!(tip.unwrap().rewinding.is_some()),
        }
    }
    go_on(&studio);
    tokio::time::timeout(LONG, delete).await.unwrap().unwrap();
    let events = studio.events(&session).await;
    let [.., Event::Rewound(rewound), Event::SessionDeleted(_)] = events.as_slice() else { panic!("{events:#?}") };
    assert_eq!(rewound.files, ["a", "b", "c"]);
    studio.world.ended(&other, 1).await;
    assert_eq!(studio.tree(), files(&[("a", "0"), ("mine", "m")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_before_anything_is_written_down_leaves_all_as_it_was() {
    let studio = Studio::new();
    let (session, message) = played(&studio).await;
    let before = studio.tree();
    let seq = studio.world.desk.tip(&session).await.unwrap().seq;
    stall(&studio);
    let desk = studio.world.desk.clone();
    let rewind = desk.rewind(&session, to(&message, What::Both));
    tokio::pin!(rewind);
    studio.sent(&session, rewind.as_mut()).await;
    let studio = studio.crash();
    go_on(&studio);
    rewind.await.unwrap_err();
    assert_eq!((studio.tree(), studio.world.desk.recover().await.unwrap()), (before, 0));
    assert_eq!(studio.world.desk.tip(&session).await.unwrap().seq, seq);
    studio.rewind(&session, &message, What::Both).await.unwrap();
    assert_eq!(studio.tree(), files(&[("a", "0"), ("mine", "m")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_turn_that_a_kill_ended_what_it_told_goes_back_and_the_rest_may_be_anybodys() {
    let studio = Studio::new();
    let session = studio.session().await;
    for path in ["edited", "edited too", "gone", "back"] {
        studio.write(path, "0");
    }
    let deeds =
        "tell told=1; quiet=1; tell edited=1; tell edited too=1; tell edited too=2; tell rm gone; tell rm back; wait";
    let accepted = studio.begin(&session, deeds).await;
    studio.world.waits.notified().await;
    let studio = studio.crash();
    studio.write("mine", "m");
    // What a person makes of the turn's files is theirs as well.
    studio.write("edited", "mine");
    studio.write("back", "mine");
    studio.world.desk.recover().await.unwrap();
    assert_eq!(studio.world.ended(&session, 1).await, [Stop::Interrupted]);
    let fact = studio.seen(&session, |event| matches!(event, Event::CheckpointSaved(_))).await;
    let Event::CheckpointSaved(saved) = &fact.event else { unreachable!() };
    assert_eq!((&saved.turn, &saved.changes), (&Some(accepted.turn), &None), "nobody knows what it changed");
    assert!(saved.late);
    let rewinding = studio.rewind(&session, &accepted.message, What::Both).await.unwrap();
    let conflicts = ["back", "edited", "mine", "quiet"].map(|path| (path, KeptWhy::Conflict));
    assert_eq!(kept(&rewinding.kept), conflicts);
    let expected =
        [("back", "mine"), ("edited", "mine"), ("edited too", "0"), ("gone", "0"), ("mine", "m"), ("quiet", "1")];
    assert_eq!(studio.tree(), files(&expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_desk_that_shuts_down_saves_what_its_turn_had_done() {
    let studio = Studio::new();
    let session = studio.session().await;
    let accepted = studio.begin(&session, "quiet=1; wait").await;
    studio.world.waits.notified().await;
    studio.world.desk.shut_down().await;
    let studio = studio.crash();
    studio.write("mine", "m");
    studio.rewind(&session, &accepted.message, What::Both).await.unwrap();
    assert_eq!(studio.tree(), files(&[("mine", "m")]));
}

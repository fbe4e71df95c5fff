//! One boundary that is moved and taken away, and undos that mean one rewind and no other.

use tolka_facts::Event;
use tolka_facts::event::Overwrite;
use tolka_session::{RewindRequest, SessionError, Target, Undo, What};

use super::{Studio, files, to};

const A: &str = "a.txt";

/// Three turns that each write their number; the messages that asked for them.
async fn three(studio: &Studio) -> (tolka_facts::SessionId, [tolka_facts::MessageId; 3]) {
    let session = studio.session().await;
    let one = studio.turn(&session, "a.txt=one").await;
    let two = studio.turn(&session, "a.txt=two").await;
    let three = studio.turn(&session, "a.txt=three").await;
    (session, [one, two, three])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_takes_back_the_rewind_that_is_meant_or_none() {
    let studio = Studio::new();
    let (session, [_, two, three]) = three(&studio).await;
    let desk = &studio.world.desk;
    let undo = |seq: u64| desk.unrewind(&session, Undo::This(seq), Overwrite::Nothing);
    let mine = studio.rewind(&session, &three, What::Both).await.unwrap().seq;
    let theirs = studio.rewind(&session, &two, What::Both).await.unwrap().seq;
    assert!(matches!(undo(mine).await, Err(SessionError::NotTheLast(seq)) if seq == mine));
    assert_eq!(studio.tree(), files(&[(A, "one")]));
    undo(theirs).await.unwrap();
    assert!(matches!(undo(theirs).await, Err(SessionError::NotTheLast(_))), "another client was faster");
    assert_eq!(studio.tree(), files(&[(A, "two")]));
    undo(mine).await.unwrap();
    assert_eq!(studio.tree(), files(&[(A, "three")]));
    assert!(matches!(undo(mine).await, Err(SessionError::NotTheLast(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boundary_moves_by_one_fact_and_goes_by_one() {
    let studio = Studio::new();
    let (session, [one, two, three]) = three(&studio).await;
    let desk = &studio.world.desk;
    let told = async || {
        let events = studio.events(&session).await;
        events.iter().filter(|event| matches!(event, Event::Rewound(_) | Event::Unrewound(_))).count()
    };
    let hidden = async || desk.tip(&session).await.unwrap().head.rewound.and_then(|rewind| rewind.message);
    let moves = [
        (&three, What::Both, "two"),
        (&one, What::Both, ""),
        (&two, What::Both, "one"),
        (&three, What::Both, "two"),
        (&three, What::Conversation, "three"),
        (&one, What::Conversation, "three"),
        (&two, What::Both, "one"),
    ];
    for (at, (message, what, text)) in moves.into_iter().enumerate() {
        desk.move_boundary(&session, message.clone(), what).await.unwrap();
        let tree = if text.is_empty() { files(&[]) } else { files(&[(A, text)]) };
        assert_eq!((studio.tree(), hidden().await.as_ref(), told().await), (tree, Some(message), at + 1), "{at}");
        let again = desk.move_boundary(&session, message.clone(), what).await;
        assert!(matches!(again, Err(SessionError::AlreadyThere)), "{at}");
    }
    desk.unrewind(&session, Undo::All, Overwrite::Nothing).await.unwrap();
    assert_eq!((studio.tree(), hidden().await, told().await), (files(&[(A, "three")]), None, moves.len() + 1));
    let nothing = desk.unrewind(&session, Undo::All, Overwrite::Nothing).await;
    assert!(matches!(nothing, Err(SessionError::NothingToUndo)));
}

/// A rewind of files alone that came before the boundary is somebody else's business.
#[tokio::test(flavor = "multi_thread")]
async fn a_boundary_that_goes_leaves_the_files_that_were_restored_before() {
    let studio = Studio::new();
    let (session, [_, two, three]) = three(&studio).await;
    let desk = &studio.world.desk;
    studio.rewind(&session, &two, What::Files).await.unwrap();
    assert_eq!(studio.tree(), files(&[(A, "one")]));
    desk.move_boundary(&session, three.clone(), What::Both).await.unwrap();
    assert_eq!(studio.tree(), files(&[(A, "two")]));
    desk.unrewind(&session, Undo::All, Overwrite::Nothing).await.unwrap();
    assert_eq!(studio.tree(), files(&[(A, "one")]));
    assert_eq!(desk.tip(&session).await.unwrap().rewinds.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_hidden_for_good_is_no_place_to_go_to() {
    let studio = Studio::new();
    let (session, [_, two, _]) = three(&studio).await;
    let gone = studio.rewind(&session, &two, What::Both).await.unwrap().checkpoint.unwrap();
    studio.turn(&session, "a.txt=four").await;
    let desk = &studio.world.desk;
    let request = to(&two, What::Both);
    assert!(matches!(desk.preview_rewind(&session, &request).await, Err(SessionError::NoSuchMessage(_))));
    assert!(matches!(desk.rewind(&session, request).await, Err(SessionError::NoSuchMessage(_))));
    let moved = desk.move_boundary(&session, two.clone(), What::Both).await;
    assert!(matches!(moved, Err(SessionError::NoSuchMessage(_))));
    assert_eq!(studio.tree(), files(&[(A, "four")]));
    let request = RewindRequest { to: Target::Checkpoint(gone), what: What::Files, overwrite: Overwrite::Nothing };
    desk.rewind(&session, request).await.unwrap();
    assert_eq!(studio.tree(), files(&[(A, "one")]), "what was saved before it can be named");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_clients_that_go_back_at_once_one_does_and_the_other_is_told() {
    let studio = Studio::new();
    let (session, [one, two, _]) = three(&studio).await;
    let first = studio.rewind(&session, &one, What::Both);
    let second = studio.rewind(&session, &two, What::Both);
    let (first, second) = tokio::join!(first, second);
    let (done, tree) = match (first, second) {
        (Ok(done), Err(SessionError::Busy)) => (done, files(&[])),
        (Err(SessionError::Busy), Ok(done)) => (done, files(&[(A, "one")])),
        both => panic!("{both:?}"),
    };
    assert_eq!(studio.tree(), tree);
    let undo = |seq: u64| studio.world.desk.unrewind(&session, Undo::This(seq), Overwrite::Nothing);
    let (first, second) = tokio::join!(undo(done.seq), undo(done.seq));
    assert_eq!(usize::from(first.is_ok()) + usize::from(second.is_ok()), 1, "{first:?} {second:?}");
    assert_eq!(studio.tree(), files(&[(A, "three")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_rewind_took_back_comes_again_after_more_prompts_and_goes_once_more() {
    let studio = Studio::new();
    let session = studio.session().await;
    studio.turn(&session, "a.txt=one").await;
    let second = studio.turn(&session, "a.txt=two; b.txt=two").await;
    let rewound = studio.rewind(&session, &second, What::Both).await.unwrap();
    studio.write("mine", "mine");
    studio.turn(&session, "a.txt=three; c.txt=three").await;
    let after = studio.tree();
    let desk = &studio.world.desk;
    assert!(matches!(studio.unrewind(&session).await, Err(SessionError::NothingToUndo)));
    let before = Target::Checkpoint(rewound.before.clone().unwrap());
    let request = RewindRequest { to: before, what: What::Files, overwrite: Overwrite::Nothing };
    let again = desk.rewind(&session, request).await.unwrap();
    assert_eq!(studio.tree(), files(&[(A, "two"), ("b.txt", "two"), ("mine", "mine")]));
    assert_eq!(super::kept(&again.kept), [("mine", tolka_facts::event::KeptWhy::NotOurs)]);
    studio.unrewind(&session).await.unwrap();
    assert_eq!(studio.tree(), after);
    // And once more, from there.
    let to = Target::Checkpoint(again.before.unwrap());
    desk.rewind(&session, RewindRequest { to, what: What::Files, overwrite: Overwrite::Nothing }).await.unwrap();
    assert_eq!(studio.tree(), after, "it is there");
}

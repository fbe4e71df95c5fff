//! Work that is agreed to, or taken back as a whole.

use tolka_facts::Event;
use tolka_facts::event::Overwrite;
use tolka_session::{Between, RewindRequest, Target, What};

use super::{Studio, files, paths};

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_takes_back_what_was_not_approved_and_can_itself_be_taken_back() {
    let studio = Studio::new();
    studio.write("a", "0");
    let session = studio.session().await;
    let desk = &studio.world.desk;
    studio.turn(&session, "a=1; made=1").await;
    let approval = desk.approve(&session, Some("fine".into())).await.unwrap();
    assert_eq!((approval.points, approval.settled), (1, 1));
    assert!(desk.differences(&session, Between::SinceApproval).await.unwrap().is_empty());
    studio.turn(&session, "a=2; more=1").await;
    studio.write("mine", "m");
    let end = studio.tree();
    let changed = desk.differences(&session, Between::SinceApproval).await.unwrap();
    let names: Vec<&str> = changed.iter().map(|diff| diff.change.path.to_str().unwrap()).collect();
    assert_eq!(names, ["a", "more"], "what a person made is no part of it");

    let reset = desk.reset(&session).await.unwrap();
    assert_eq!((reset.checkpoint.as_ref(), paths(&reset.files)), (Some(&approval.checkpoint), vec!["a", "more"]));
    assert_eq!(studio.tree(), files(&[("a", "1"), ("made", "1"), ("mine", "m")]));
    let tip = desk.tip(&session).await.unwrap();
    assert_eq!((tip.base.unwrap().settled, tip.rewinds[0].from), (2, None), "the conversation stays");
    let events = studio.events(&session).await;
    assert!(matches!(events.last(), Some(Event::Rewound(rewound)) if rewound.resets));

    // What was there before the reset is a checkpoint like any other.
    let pre_reset = Target::Checkpoint(reset.before.unwrap());
    let request = RewindRequest { to: pre_reset, what: What::Files, overwrite: Overwrite::Nothing };
    let restored = desk.rewind(&session, request).await.unwrap();
    assert_eq!(studio.tree(), end);
    // And so is what came of it.
    let after = Target::Checkpoint(restored.after.unwrap());
    let request = RewindRequest { to: after, what: What::Files, overwrite: Overwrite::Nothing };
    assert!(desk.rewind(&session, request).await.unwrap().files.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_approval_a_reset_goes_back_to_the_beginning() {
    let studio = Studio::new();
    studio.write("a", "0");
    let session = studio.session().await;
    studio.turn(&session, "a=1").await;
    studio.turn(&session, "a=2; b=2").await;
    studio.world.desk.reset(&session).await.unwrap();
    assert_eq!(studio.tree(), files(&[("a", "0")]));
}

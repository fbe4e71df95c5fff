//! Forks: the same conversation under ids of its own, whole or not there.

mod alike;
mod folder;

use std::collections::HashSet;
use std::sync::Arc;

use tolka_facts::event::{Parent, ParentKind, SessionChanged, SessionCreated, Stop};
use tolka_facts::{Draft, Event, Fact, Hash, SessionId, Time};
use tolka_journal::{Append, Journal, Kin, SessionQuery};
use tolka_session::{Answer, ForkRequest, ForkWorkspace, SessionError};

use crate::{World, prompt, texts};

fn all() -> ForkRequest {
    ForkRequest::default()
}

/// Every turn, message and request that is named.
fn named(facts: &[Arc<Fact>]) -> HashSet<String> {
    let mut names = HashSet::new();
    for fact in facts {
        match &fact.event {
            Event::PromptQueued(e) => names.extend([e.turn.to_string(), e.message.to_string()]),
            Event::TurnStarted(e) => _ = names.insert(e.turn.to_string()),
            Event::StepStarted(e) => _ = names.insert(e.message.to_string()),
            Event::PermissionAsked(e) => _ = names.insert(e.request.to_string()),
            Event::ArtifactSaved(e) => _ = names.insert(e.id.to_string()),
            _ => {}
        }
    }
    names
}

async fn forks_of(world: &World, session: &SessionId) -> usize {
    let kin = Kin::ChildrenOf(session.clone());
    world.journal.sessions(SessionQuery { kin, deleted: true, ..SessionQuery::default() }).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_goes_on_with_all_that_was_said_under_names_of_its_own() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("hello")).await.unwrap();
    world.desk.prompt(&session, prompt("permission")).await.unwrap();
    let request = world.asked(&session).await;
    let answer = Answer::Option { id: "yes".into(), reason: None };
    world.desk.answer(&session, request, answer, "me".into()).await.unwrap();
    // More than a page of facts.
    world.desk.prompt(&session, prompt("burst")).await.unwrap();
    world.ended(&session, 3).await;
    let parent = world.facts(&session).await;

    let before = Time::now();
    let fork = world.desk.fork(&session, all()).await.unwrap();
    let from =
        Parent { session: session.clone(), kind: ParentKind::Fork, at: Some(parent.last().unwrap().seq), call: None };
    assert_eq!((fork.head.parent.clone(), fork.head.turns, fork.head.busy), (Some(from), 3, false));
    assert!(fork.head.created >= before && fork.head.title.ends_with(" (fork #1)"), "{:?}", fork.head);
    let copied = world.facts(&fork.head.id).await;
    assert!(copied.iter().zip(1..).all(|(fact, seq)| fact.seq == seq), "gapless");
    assert!(copied.is_sorted_by_key(|fact| fact.time));
    assert_eq!(texts(&copied), texts(&parent));
    let times = |facts: &[Arc<Fact>]| {
        facts.iter().filter(|f| matches!(f.event, Event::TextAppended(_))).map(|f| f.time).collect::<Vec<_>>()
    };
    assert_eq!(times(&copied), times(&parent), "it was said when it was said");
    assert!(named(&parent).is_disjoint(&named(&copied)) && named(&parent).len() == named(&copied).len());

    world.desk.prompt(&fork.head.id, prompt("remember")).await.unwrap();
    world.ended(&fork.head.id, 4).await;
    let said = texts(&world.facts(&fork.head.id).await).pop().unwrap();
    assert!(said.starts_with("u5 a5 u10 a19 u5 a1 a1 ") && said.ends_with(" a14 u8"), "{said:.100}");
    assert_eq!(world.facts(&session).await.len(), parent.len(), "nothing of it is in the other");

    let again = world.desk.fork(&fork.head.id, all()).await.unwrap();
    assert!(again.head.title.ends_with(" (fork #2)"), "{}", again.head.title);
    let titled = ForkRequest { title: Some("mine".into()), ..all() };
    assert_eq!(world.desk.fork(&session, titled).await.unwrap().head.title, "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_turn_runs_what_has_ended_is_forked_and_the_queue_is_not() {
    let world = World::new();
    let session = world.session().await;
    let first = world.desk.prompt(&session, prompt("one")).await.unwrap();
    world.ended(&session, 1).await;
    let keyed = tolka_session::PromptRequest { key: Some("k".into()), ..prompt("hang") };
    let running = world.desk.prompt(&session, keyed).await.unwrap();
    world.waits.notified().await;
    let waiting = world.desk.prompt(&session, prompt("three")).await.unwrap();
    let dropped = world.desk.prompt(&session, prompt("four")).await.unwrap();
    world.desk.drop_prompt(&session, dropped.turn).await.unwrap();
    let before = |message| ForkRequest { before: Some(message), ..all() };
    for (request, said) in [
        (all(), &["one"][..]),
        (before(running.message), &["one"]),
        (before(waiting.message), &["one"]),
        (before(first.message), &[]),
    ] {
        let fork = world.desk.fork(&session, request).await.unwrap();
        assert_eq!((fork.queue.len(), fork.turn.is_some()), (0, false));
        assert_eq!(texts(&world.facts(&fork.head.id).await), said);
    }
    for nowhere in [dropped.message, "msg_nowhere".into()] {
        let refused = world.desk.fork(&session, before(nowhere)).await;
        assert!(matches!(refused, Err(SessionError::NoSuchMessage(_))), "{refused:?}");
    }
    let fork = world.desk.fork(&session, all()).await.unwrap().head.id;
    let keyed = tolka_session::PromptRequest { key: Some("k".into()), ..prompt("two") };
    assert!(!world.desk.prompt(&fork, keyed).await.unwrap().repeated, "the key was for another session");
    world.ended(&fork, 2).await;
    world.desk.cancel(&session, true).await.unwrap();
    assert_eq!(world.ended(&session, 2).await, [Stop::EndTurn, Stop::Cancelled]);
    assert_eq!(texts(&world.facts(&fork).await), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_long_outlives_the_session_that_brought_it() {
    let world = World::new();
    let (session, long) = (world.session().await, format!("measure{}", "x".repeat(100_000)));
    world.desk.prompt(&session, prompt(&long)).await.unwrap();
    world.ended(&session, 1).await;
    let fork = world.desk.fork(&session, all()).await.unwrap().head.id;
    world.desk.delete(&session).await.unwrap();
    assert_eq!(world.desk.purge(&session).await.unwrap().freed.blobs, 0);
    assert_eq!(world.journal.blob(&Hash::of(long.as_bytes())).unwrap(), Some(long.into_bytes()));
    world.desk.prompt(&fork, prompt("remember")).await.unwrap();
    world.ended(&fork, 2).await;
    assert_eq!(texts(&world.facts(&fork).await)[1], "u100007 a12 u8");
    world.desk.delete(&fork).await.unwrap();
    assert_eq!(world.desk.purge(&fork).await.unwrap().freed.blobs, 1, "and goes with the last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_a_crash_left_half_made_takes_no_prompts_and_is_gone_at_the_next_start() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("one")).await.unwrap();
    world.ended(&session, 1).await;
    let whole = world.desk.fork(&session, all()).await.unwrap().head.id;
    let facts = world.facts(&whole).await;
    // In the middle of a turn, as one that died after a page leaves it.
    let (half, created) = (SessionId::from("ses_half"), facts[0].clone());
    let mut tip = tolka_facts::Tip::default();
    let mut append = Append::default();
    for fact in [created].iter().chain(&facts[1..4]) {
        let fact =
            Draft { cause: fact.cause, event: fact.event.clone(), raw: None }.stamp(half.clone(), fact.seq, fact.time);
        tip.apply(&fact);
        append.facts.push(Arc::new(fact));
    }
    assert!(tip.is_copying && tip.turn.is_some() && tip.head.busy);
    append.head = Some(tip.head);
    world.journal.append(append).await.unwrap();

    let refused = world.desk.prompt(&half, prompt("too early")).await;
    assert!(matches!(refused, Err(SessionError::Busy)), "{refused:?}");
    assert!(matches!(world.desk.fork(&half, all()).await, Err(SessionError::Busy)));
    let named =
        SessionChanged { title: Some("too early".into()), agent: None, mode: None, model: None, archived: None };
    assert!(matches!(world.desk.change(&half, named).await, Err(SessionError::Busy)));
    assert_eq!(world.facts(&half).await.len(), 4, "nobody ends the turn that it stands in");
    let world = world.crash();
    assert_eq!(world.desk.recover().await.unwrap(), 0);
    assert!(world.journal.session(&half).await.unwrap().is_none());
    assert_eq!(forks_of(&world, &session).await, 1);
    assert_eq!(texts(&world.facts(&whole).await), ["one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_no_half_fork() {
    let world = World::on(tempfile::tempdir().unwrap(), Some(1_500_000));
    let session = world.session().await;
    world.desk.prompt(&session, prompt("burst")).await.unwrap();
    world.ended(&session, 1).await;
    // As often as there is room.
    let mut made = 0;
    let refused = loop {
        match world.desk.fork(&session, all()).await {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert!(refused.to_string().contains("full"), "{refused}");
    assert_eq!(forks_of(&world, &session).await, made);
    world.desk.prompt(&session, prompt("after it")).await.unwrap();
    assert_eq!(world.ended(&session, 2).await, [Stop::EndTurn, Stop::EndTurn]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_forked_that_is_not_there() {
    let world = World::new();
    let session = world.session().await;
    world.desk.delete(&session).await.unwrap();
    for id in [session, "ses_nowhere".into(), SessionId::server()] {
        let refused = world.desk.fork(&id, all()).await;
        assert!(matches!(refused, Err(SessionError::NotFound(_))), "{refused:?}");
    }
    let session = world.session().await;
    let own = ForkRequest { workspace: ForkWorkspace::Own, ..all() };
    let refused = world.desk.fork(&session, own).await;
    assert!(matches!(refused, Err(SessionError::CheckpointsOff)), "{refused:?}");
    assert_eq!(forks_of(&world, &session).await, 0);
    assert_eq!(texts(&world.facts(&world.desk.fork(&session, all()).await.unwrap().head.id).await), [""; 0]);
}

/// A session of an agent that is not there, so that what waits in it goes on waiting.
pub(crate) fn created() -> Draft {
    let (workspace, agent, title) = ("/w".to_owned(), "nobody".to_owned(), "t".to_owned());
    Draft::client(SessionCreated { workspace, agent, title, mode: None, model: None, parent: None })
}

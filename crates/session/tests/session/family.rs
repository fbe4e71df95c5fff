//! Sessions of subagents, and what becomes of them with their parents.

use tolka_agent::{Birth, Family, Patience, Teller};
use tolka_facts::event::{Model, OptionKind, Parent, ParentKind, PermissionAsked, PermissionOption, Stop, ToolChanged};
use tolka_facts::{CallId, Draft, Event, Json, RequestId, SessionId};
use tolka_journal::Journal;
use tolka_session::{Answer, NewSession, PromptRequest, SessionError};

use super::{World, prompt, texts};

/// A mind that has a subagent, and leaves it in the way that its prompt says.
pub(crate) async fn raise(how: &str, family: &dyn Family, teller: &Teller) {
    let model = Model { provider: "test".into(), id: "puppet".into() };
    let birth = Birth { call: "call_1".into(), title: "Child".into(), kind: "build".into(), model };
    let child = family.bear(birth).await.unwrap();
    if how == "give up" {
        // Polled once, and no more.
        tokio::select! {
            biased;
            _ = family.give(child, "hang".into()) => panic!("nothing is so quick"),
            () = std::future::ready(()) => return,
        }
    }
    let mut work = family.give(child, "hang".into()).await.unwrap();
    while !matches!(&work.next().await.unwrap().unwrap().event, Event::ToolChanged(_)) {}
    match how {
        "drop" => drop(work),
        "panic" => panic!("as asked"),
        "be cancelled" => teller.cancel().fired().await,
        _ => std::future::pending().await,
    }
}

/// Tells that a session works for a call, and asks for something in that call.
pub(crate) async fn pretend(session: &str, request: &str, teller: &Teller) {
    let call = CallId::from("call_1");
    let meta = Some(Json::from(serde_json::json!({ "subagentSessionId": session })));
    teller
        .tell(Draft::agent(ToolChanged { meta, subagent: Some(session.into()), ..ToolChanged::of(call.clone()) }))
        .await
        .unwrap();
    let option = PermissionOption { id: "yes".into(), name: "yes".into(), kind: OptionKind::AllowOnce };
    let ask = PermissionAsked {
        request: RequestId::from(request),
        call: Some(call),
        permission: "bash".into(),
        title: "List the files?".into(),
        patterns: Vec::new(),
        metadata: None,
        options: vec![option],
    };
    let _ = teller.ask_permission(ask, None, Patience::default()).await;
}

async fn child_of(world: &World, parent: &SessionId) -> SessionId {
    let parent = Parent { session: parent.clone(), kind: ParentKind::Subagent, at: None, call: None };
    let new = NewSession { workspace: "/w".into(), parent: Some(parent), ..NewSession::default() };
    world.desk.create(new).await.unwrap().head.id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_had_not_begun_when_the_server_died_is_dropped_and_what_people_sent_is_not() {
    let world = World::new();
    let parent = world.session().await;
    let child = child_of(&world, &parent).await;
    world.desk.prompt(&child, prompt("hang")).await.unwrap();
    world.waits.notified().await;
    let task = PromptRequest { key: Some("tolka:task:1".into()), is_models: true, ..prompt("task") };
    let task = world.desk.prompt(&child, task).await.unwrap();
    let mistaken = PromptRequest { key: Some("tolka:task:1".into()), ..prompt("taken for a task") };
    let refused = world.desk.prompt(&child, mistaken).await;
    assert!(matches!(refused, Err(SessionError::OwnKey(_))), "{refused:?}");
    world.desk.prompt(&child, prompt("mine")).await.unwrap();

    let world = world.crash();
    world.desk.recover().await.unwrap();
    assert_eq!(world.ended(&child, 2).await, [Stop::Interrupted, Stop::EndTurn]);
    let facts = world.facts(&child).await;
    assert_eq!(texts(&facts), ["mine"]);
    let is_dropped = |event: &Event| matches!(event, Event::PromptDropped(dropped) if dropped.turn == task.turn);
    assert!(facts.iter().any(|fact| is_dropped(&fact.event)));
}

#[tokio::test(flavor = "multi_thread")]
async fn subagents_are_deleted_and_purged_with_the_session_that_they_worked_for() {
    let world = World::new();
    let (parent, other) = (world.session().await, world.session().await);
    let child = child_of(&world, &parent).await;
    let grandchild = child_of(&world, &child).await;
    world.desk.prompt(&grandchild, prompt("hang")).await.unwrap();
    world.waits.notified().await;
    world.desk.delete(&parent).await.unwrap();
    for gone in [&parent, &child, &grandchild] {
        assert!(matches!(world.desk.tip(gone).await, Err(SessionError::NotFound(_))), "{gone}");
    }
    world.desk.tip(&other).await.unwrap();
    let mut facts = 0;
    for session in [&parent, &child, &grandchild] {
        facts += world.facts(session).await.len() as u64;
    }
    assert_eq!(world.desk.purge(&parent).await.unwrap().freed.facts, facts);
    for gone in [&parent, &child, &grandchild] {
        assert!(world.journal.session(gone).await.unwrap().is_none(), "{gone}");
    }
    assert!(world.journal.session(&other).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_reaches_no_session_that_an_agent_only_says_is_its_subagents() {
    let world = World::new();
    let (victim, liar) = (world.session().await, world.session().await);
    world.desk.prompt(&victim, prompt("permission")).await.unwrap();
    let request = world.asked(&victim).await;
    world.desk.prompt(&liar, prompt(&format!("pretend:{victim}:{request}"))).await.unwrap();
    assert_eq!(world.asked(&liar).await, request);
    let yes = Answer::Option { id: "yes".into(), reason: None };
    world.desk.answer(&liar, request.clone(), yes, "a".into()).await.unwrap();
    assert_eq!(world.ended(&liar, 1).await, [Stop::EndTurn]);
    assert_eq!(world.asked(&victim).await, request, "nobody has answered what the other asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_that_nobody_follows_any_more_is_cancelled() {
    for how in ["drop", "panic", "give up", "be cancelled", "be dropped"] {
        let world = World::new();
        let parent = world.session().await;
        world.desk.prompt(&parent, prompt(&format!("raise:{how}"))).await.unwrap();
        if how.starts_with("be ") {
            world.waits.notified().await;
            world.desk.cancel(&parent, false).await.unwrap();
        }
        world.ended(&parent, 1).await;
        let children = world.journal.sessions(tolka_journal::SessionQuery::default()).await.unwrap();
        let child = children.into_iter().find(|row| row.head.parent.is_some()).unwrap().head.id;
        let mut head = world.journal.watch(&tolka_journal::Scope::Session(child.clone()));
        loop {
            let tip = world.desk.tip(&child).await.unwrap();
            let facts = world.facts(&child).await;
            let was_given = facts.iter().any(|fact| matches!(fact.event, Event::PromptQueued(_)));
            if was_given && tip.turn.is_none() && tip.queue.is_empty() {
                let ran =
                    facts.iter().any(|fact| matches!(&fact.event, Event::TurnEnded(e) if e.stop == Stop::EndTurn));
                assert!(!ran, "{how}");
                break;
            }
            let news = tokio::time::timeout(std::time::Duration::from_secs(30), head.wait_for(|head| *head > tip.seq));
            news.await.unwrap_or_else(|_| panic!("{how}: the subagent works on")).unwrap();
        }
    }
}

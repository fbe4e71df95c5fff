use tolka_facts::event::{
    ArtifactKind, ArtifactSaved, Foreign, PromptQueued, QuestionAnswered, QuestionAsked, Stop, TextAppended,
    ToolChanged, TurnEnded, TurnStarted,
};
use tolka_facts::{Blobs, CallId, Json, ToolStatus};
use tolka_journal::{MarkKind, Sqlite, SqliteOptions, tip_at};

use super::*;

fn told(drafts: Vec<Draft>) -> Told {
    let mut told = Told::default();
    told.push_all(drafts);
    told
}

fn started(turn: &str) -> [Draft; 2] {
    let queued = PromptQueued {
        turn: turn.into(),
        message: "msg".into(),
        content: Vec::new(),
        key: None,
        agent: None,
        model: None,
        context: None,
        steers: None,
    };
    [Draft::agent(queued), Draft::agent(TurnStarted { turn: turn.into(), checkpoint: None })]
}

fn changed(title: &str, status: ToolStatus) -> Draft {
    Draft::agent(ToolChanged { title: Some(title.to_owned()), status: Some(status), ..ToolChanged::of("call".into()) })
}

fn ended(turn: &str) -> Draft {
    Draft::agent(TurnEnded { turn: turn.into(), stop: Stop::EndTurn, usage: None, cost: None, meta: None })
}

fn saved(path: &str) -> Draft {
    Draft::agent(ArtifactSaved {
        id: "art".into(),
        kind: ArtifactKind::File,
        name: path.to_owned(),
        path: path.to_owned(),
        mime: "a/b".to_owned(),
        size: 1,
        preview: None,
    })
}

#[tokio::test]
async fn a_call_is_found_where_it_last_ended_and_an_artifact_by_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> = Sqlite::open(&SqliteOptions::new(dir.path())).unwrap();
    let (session, call) = (SessionId::from("ses_1"), CallId::from("call"));
    let mut ledger = Ledger::new(journal.clone(), session.clone());
    let mark = async |mark: Mark<'_>| journal.mark(&session, &mark.to_string()).await.unwrap();

    ledger.append(told(started("trn_1").into())).await.unwrap();
    ledger.append(told(vec![changed("one", ToolStatus::Running)])).await.unwrap();
    assert_eq!(mark(Mark::CallEnd(&call)).await, None, "it still runs");
    ledger
        .append(told(vec![changed("one", ToolStatus::Completed), changed("late", ToolStatus::Failed)]))
        .await
        .unwrap();
    assert_eq!(mark(Mark::CallEnd(&call)).await, Some(4), "what is late ends nothing");
    ledger.append(told(vec![saved("out/"), ended("trn_1")])).await.unwrap();

    // Long enough for a tip to be kept inside the turn.
    ledger.append(told(started("trn_2").into())).await.unwrap();
    ledger.append(told(vec![changed("two", ToolStatus::Running)])).await.unwrap();
    for _ in 0..3 {
        let text = Draft::agent(TextAppended { part: "prt".into(), text: "words ".repeat(8) });
        ledger.append(told(vec![text; 400])).await.unwrap();
    }
    ledger.append(told(vec![changed("two", ToolStatus::Failed), saved("out/"), ended("trn_2")])).await.unwrap();
    let end = 10 + 3 * 400 + 1;
    assert_eq!(mark(Mark::CallEnd(&call)).await, Some(end));
    assert_eq!((mark(Mark::Artifact("out/")).await, mark(Mark::Artifact("out")).await), (Some(6), None));
    assert_eq!(journal.marks(&session, MarkKind::Save, u64::MAX, 9).await.unwrap(), [end + 1, 6], "every time");
    let kept = journal.kept(&session, TIP, end, false).await.unwrap();
    assert!(kept.is_some_and(|kept| !kept.idle && end - kept.seq < 2 * KEEP_EVERY));
    let facts = journal.read(&Scope::Session(session.clone()), 0, 4096).await.unwrap();
    for seq in [1, 4, 5, end - 1, end, end + 2] {
        let mut folded = Tip::default();
        facts.iter().take_while(|entry| entry.place <= seq).for_each(|entry| folded.apply(&entry.fact));
        assert_eq!(tip_at(journal.as_ref(), &session, seq).await.unwrap(), folded, "after fact {seq}");
    }
    let tip = tip_at(journal.as_ref(), &session, end).await.unwrap();
    assert_eq!(tip.tool(&call).map(|tool| (tool.title.as_str(), tool.status)), Some(("two", ToolStatus::Failed)));
}

async fn stored(journal: &dyn Journal, session: &SessionId) -> Vec<Arc<Fact>> {
    let page = journal.read(&Scope::Session(session.clone()), 0, 4096).await.unwrap();
    page.into_iter().map(|entry| entry.fact).collect()
}

fn folded(facts: &[Arc<Fact>]) -> Tip {
    let mut tip = Tip::default();
    facts.iter().for_each(|fact| tip.apply(fact));
    tip
}

#[tokio::test]
async fn what_is_prepared_while_one_is_written_follows_it() {
    let dir = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> = Sqlite::open(&SqliteOptions::new(dir.path())).unwrap();
    let session = SessionId::from("ses_1");
    let mut ledger = Ledger::new(journal.clone(), session.clone());
    ledger.append(told(started("trn_1").into())).await.unwrap();
    let before = ledger.tip.clone();

    let ask = QuestionAsked { request: "que_1".into(), call: None, questions: Vec::new() };
    let answer = QuestionAnswered { request: "que_1".into(), answers: None, by: "test".into() };
    let first = ledger.prepare(told(vec![Draft::agent(ask)]));
    ledger.send(first).await;
    let second = ledger.prepare(told(vec![Draft::client(answer), changed("one", ToolStatus::Completed)]));
    assert_eq!(ledger.tip, before, "nothing of it is durable yet");
    let answer = ledger.answer().await;
    ledger.land(answer).unwrap();
    assert_eq!((ledger.tip.seq, ledger.tip.head.waiting), (3, 1));
    ledger.send(second).await;
    let answer = ledger.answer().await;
    ledger.land(answer).unwrap();

    let facts = stored(journal.as_ref(), &session).await;
    assert_eq!((facts.len(), &ledger.tip), (5, &folded(&facts)));
    // The second tells the head that the session began with, and the first told another in between.
    assert_eq!(journal.session(&session).await.unwrap().unwrap().head, ledger.tip.head);
    assert_eq!(journal.mark(&session, &Mark::CallEnd(&"call".into()).to_string()).await.unwrap(), Some(5));
}

#[tokio::test]
async fn a_refusal_gives_back_what_was_prepared_after_it_too() {
    let dir = tempfile::tempdir().unwrap();
    let open = |max_bytes| Sqlite::open(&SqliteOptions { max_bytes, ..SqliteOptions::new(dir.path()) }).unwrap();
    let session = SessionId::from("ses_1");
    let small = open(Some(300_000));
    let mut ledger = Ledger::new(small.clone(), session.clone());
    ledger.append(told(started("trn_1").into())).await.unwrap();
    let before = ledger.tip.clone();

    let long = Json::of(&"long ".repeat(100_000));
    let foreign = Foreign { origin: "test".into(), what: "it".into() };
    let text = |text: &str| Draft::agent(TextAppended { part: "prt".into(), text: text.to_owned() });
    let first = ledger.prepare(told(vec![text("one"), Draft::agent(foreign).with_raw(long.clone())]));
    ledger.send(first).await;
    let second = ledger.prepare(told(vec![text("two")]));
    let answer = ledger.answer().await;
    let (mut back, error) = ledger.land(answer).unwrap_err();
    back.append(second.take_back());
    assert!(matches!(error, JournalError::DiskFull { .. }), "{error}");
    assert_eq!((&ledger.tip, stored(small.as_ref(), &session).await.len()), (&before, 2));
    // A small one goes on from there.
    ledger.append(told(vec![text("zero")])).await.unwrap();
    assert_eq!(ledger.tip.seq, 3);
    small.close();

    let large: Arc<dyn Journal> = open(None);
    let mut ledger = Ledger::load(large.clone(), session.clone()).await.unwrap();
    ledger.append(*back).await.unwrap();
    let facts = stored(large.as_ref(), &session).await;
    assert_eq!(ledger.tip, folded(&facts));
    assert_eq!(ledger.tip.turn.as_ref().unwrap().text.as_ref().unwrap().text.to_string(), "zeroonetwo");
    let raw = facts[4].raw.as_ref().unwrap();
    assert!(raw.blob().is_some());
    assert_eq!(*raw.whole(&Stored(large)), long, "it was moved out once");
}

struct Stored(Arc<dyn Journal>);

impl Blobs for Stored {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.0.blob(hash).unwrap()
    }
}

#[tokio::test]
async fn a_conflict_leaves_the_tip_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> = Sqlite::open(&SqliteOptions::new(dir.path())).unwrap();
    let session = SessionId::from("ses_1");
    let mut ledger = Ledger::load(journal.clone(), session.clone()).await.unwrap();
    let mut other = Ledger::load(journal.clone(), session.clone()).await.unwrap();
    other.append(told(started("trn_1").into())).await.unwrap();

    let first = ledger.prepare(told(started("trn_2").into()));
    ledger.send(first).await;
    let second = ledger.prepare(told(vec![ended("trn_2")]));
    let answer = ledger.answer().await;
    let (back, error) = ledger.land(answer).unwrap_err();
    assert!(matches!(error, JournalError::Conflict { expected: 0, actual: 2, .. }), "{error}");
    assert_eq!((back.len(), second.take_back().len(), &ledger.tip), (2, 1, &Tip::default()));
    assert_eq!(folded(&stored(journal.as_ref(), &session).await), other.tip);
}

/// What is open can be long, and a state of it is looked at only when there is room for one.
#[tokio::test]
async fn a_state_is_kept_when_as_much_was_journalled_since() {
    let dir = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> = Sqlite::open(&SqliteOptions::new(dir.path())).unwrap();
    let session = SessionId::from("ses_1");
    let mut ledger = Ledger::new(journal.clone(), session.clone());
    ledger.append(told(started("trn_1").into())).await.unwrap();
    let text = Draft::agent(TextAppended { part: "prt".into(), text: "many words ".repeat(20) });
    let mut kept = Vec::new();
    for _ in 0..40 {
        ledger.append(told(vec![text.clone(); 256])).await.unwrap();
        kept.extend(
            journal.kept(&session, TIP, u64::MAX, false).await.unwrap().map(|kept| (kept.seq, kept.state.len())),
        );
    }
    kept.dedup();
    assert!(kept.len() > 2, "the text grows, and so does the room: {kept:?}");
    let states: usize = kept.iter().map(|(_, bytes)| bytes).sum();
    assert!(states < ledger.tip.open_bytes() * 3, "{kept:?}");
}

#[tokio::test]
async fn every_dialect_finds_an_idle_state_near_the_end_of_a_turn() {
    let dir = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> = Sqlite::open(&SqliteOptions::new(dir.path())).unwrap();
    let session = SessionId::from("ses_1");
    let mut ledger = Ledger::new(journal.clone(), session.clone());
    // Turns in which a state is kept a little before the end, short ones, and one that is longer than the others.
    for (n, pieces) in [600, 600, 150, 150, 150, 150, 5000, 600].into_iter().enumerate() {
        let turn = format!("trn_{n}");
        ledger.append(told(started(&turn).into())).await.unwrap();
        for _ in 0..pieces / 50 {
            let text = Draft::agent(TextAppended { part: turn.as_str().into(), text: "words ".repeat(8) });
            ledger.append(told(vec![text; 50])).await.unwrap();
        }
        ledger.append(told(vec![ended(&turn)])).await.unwrap();
        let end = ledger.tip.seq;
        let idle = journal.kept(&session, TIP, end, true).await.unwrap().map_or(0, |kept| kept.seq);
        assert!(end - idle < KEEP_EVERY, "after turn {n}: {end} facts, the last idle state after {idle}");
    }
}

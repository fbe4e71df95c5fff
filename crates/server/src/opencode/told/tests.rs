use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tolka_facts::event::*;
use tolka_facts::{Block, CallId, Draft, Fact, Hash, PartId, Time, ToolStatus};
use tolka_journal::{Append, Kept, Pending, Purged, SessionQuery, SessionRow, Sqlite, SqliteOptions, Workspace};

use super::*;
use crate::opencode::messages::page;
use crate::past::tests::runs;

/// A journal that counts the facts that are read from it.
#[derive(Debug)]
struct Counted {
    journal: Arc<Sqlite>,
    read: AtomicU64,
}

impl Journal for Counted {
    fn read(&self, scope: &Scope, after: u64, limit: usize) -> Pending<'_, Vec<Entry>> {
        let reading = self.journal.read(scope, after, limit);
        Box::pin(async move {
            let facts = reading.await?;
            self.read.fetch_add(facts.len() as u64, Ordering::Relaxed);
            Ok(facts)
        })
    }
    fn append(&self, batch: Append) -> Pending<'static, ()> {
        self.journal.append(batch)
    }
    fn recent(&self, scope: &Scope, after: u64, limit: usize) -> Option<Vec<Entry>> {
        self.journal.recent(scope, after, limit)
    }
    fn watch(&self, scope: &Scope) -> watch::Receiver<u64> {
        self.journal.watch(scope)
    }
    fn mark(&self, session: &SessionId, name: &str) -> Pending<'_, Option<u64>> {
        self.journal.mark(session, name)
    }
    fn is_marked(&self, name: &str) -> Pending<'_, bool> {
        self.journal.is_marked(name)
    }
    fn marks(&self, session: &SessionId, kind: MarkKind, before: u64, limit: usize) -> Pending<'_, Vec<u64>> {
        self.journal.marks(session, kind, before, limit)
    }
    fn keep(&self, session: &SessionId, name: &str, state: Kept) -> Pending<'_, ()> {
        self.journal.keep(session, name, state)
    }
    fn kept(&self, session: &SessionId, name: &str, seq: u64, idle: bool) -> Pending<'_, Option<Kept>> {
        self.journal.kept(session, name, seq, idle)
    }
    fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>, JournalError> {
        self.journal.blob(hash)
    }
    fn session(&self, session: &SessionId) -> Pending<'_, Option<SessionRow>> {
        self.journal.session(session)
    }
    fn sessions(&self, query: SessionQuery) -> Pending<'_, Vec<SessionRow>> {
        self.journal.sessions(query)
    }
    fn workspaces(&self) -> Pending<'_, Vec<Workspace>> {
        self.journal.workspaces()
    }
    fn purge(&self, session: &SessionId) -> Pending<'_, Purged> {
        self.journal.purge(session)
    }
    fn epoch(&self) -> &str {
        self.journal.epoch()
    }
}

struct House {
    _folder: TempDir,
    journal: Arc<Counted>,
    tongues: Tongues,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = Sqlite::open(&SqliteOptions::new(folder.path())).unwrap();
        let journal = Arc::new(Counted { journal, read: AtomicU64::new(0) });
        let tongues = Tongues::new(journal.clone(), Duration::ZERO);
        House { _folder: folder, journal, tongues }
    }

    /// As the session's actor would, with a tip after every few hundred facts, be they idle or not.
    async fn seed(&self, events: Vec<Event>, session: &SessionId) -> Vec<Fact> {
        let stamp = |(seq, event): (u64, Event)| {
            Draft::agent(event).stamp(session.clone(), seq, Time::from_micros(1_794_702_342_312_000 + seq * 400))
        };
        let facts: Vec<Fact> = (1..).zip(events).map(stamp).collect();
        let (mut tip, mut kept) = (Tip::default(), 0);
        for batch in facts.chunks(256) {
            let mut append = Append::default();
            for fact in batch {
                tip.apply(fact);
                append.marks.extend(Mark::of(fact, &tip).map(|mark| (mark.to_string(), fact.seq)));
                append.facts.push(Arc::new(fact.clone()));
                if tip.seq - kept >= 256 {
                    kept = tip.seq;
                    append.tip =
                        Some(Kept { seq: kept, idle: tip.is_idle(), state: serde_json::to_vec(&tip).unwrap() });
                }
            }
            append.head = Some(tip.head.clone());
            self.journal.append(append).await.unwrap();
        }
        facts
    }

    /// All messages as one fold over all facts has them. One that is hidden while its step is open is told once more, when
    /// that ends; no list shows it.
    async fn whole(&self, session: &SessionId) -> Vec<Value> {
        let (mut voice, mut history) = (voice(&self.tongues, session), History::default());
        let facts = self.journal.read(&Scope::Session(session.clone()), 0, usize::MAX).await.unwrap();
        voice.payloads(&facts, Cursor::whole(0), |_, frame| history.apply(frame)).await.unwrap();
        let hidden: HashSet<&str> = facts.iter().filter_map(|fact| hidden(&fact.fact)).collect();
        let is_shown = |message: &Value| !hidden.contains(message["info"]["id"].as_str().unwrap());
        history.messages().filter(is_shown).collect()
    }

    fn told(&self, session: &SessionId, end: u64) -> Told {
        Told::new(&self.tongues, session, end)
    }

    /// Every reading of a session against the fold over all of it.
    async fn compare(&self, session: &SessionId, end: u64, limits: &[usize]) {
        let whole = self.whole(session).await;
        let journal = self.journal.as_ref();
        for &limit in limits {
            let (mut glued, mut before) = (Vec::new(), end + 1);
            loop {
                let (messages, has_more) = page(&self.tongues, self.told(session, end), before, limit).await.unwrap();
                assert_eq!(messages.len(), limit.min(whole.len() - glued.len()), "{limit} at a time");
                glued.splice(..0, messages);
                if !has_more {
                    break;
                }
                let first = MessageId::from(glued[0]["info"]["id"].as_str().unwrap());
                before = place(journal, session, &first).await.unwrap().unwrap();
            }
            assert_eq!(glued, whole, "{limit} at a time");
        }
        let all = places(journal, session, end + 1, usize::MAX).await.unwrap();
        for at_once in [3, 64] {
            let (mut told, mut listed) = (self.told(session, end), Vec::new());
            for some in all.chunks(at_once) {
                listed.extend(told.messages(some).await.unwrap());
            }
            assert_eq!(listed, whole, "forwards, {at_once} at once");
        }
    }
}

fn hidden(fact: &Fact) -> Option<&str> {
    match &fact.event {
        Event::MessageHidden(e) => Some(e.message.as_str()),
        _ => None,
    }
}

fn created() -> Event {
    let (workspace, agent, title) = ("/w".to_owned(), "a".to_owned(), "t".to_owned());
    SessionCreated { workspace, agent, title, mode: None, model: None, parent: None }.into()
}

fn prompt(n: usize) -> Event {
    let (turn, message) = (TurnId::from(format!("trn_q{n}")), MessageId::from(format!("msg_q{n}")));
    let content = vec![Block::text(format!("prompt {n}"))];
    PromptQueued { turn, message, content, key: None, agent: None, model: None, context: None, steers: None }.into()
}

fn say(part: &str, text: &str) -> Event {
    TextAppended { part: PartId::from(part), text: text.to_owned() }.into()
}

fn call(call: &str, status: ToolStatus) -> Event {
    let fact = json!({ "call": call, "name": "bash", "status": status });
    Event::ToolChanged(serde_json::from_value(fact).unwrap())
}

/// Turns of some steps each, with so many prompts waiting at any moment. Some of what is said is in no step, and a call
/// of each turn's first step ends in its last.
fn queued(turns: usize, deep: usize, steps: usize, pieces: usize) -> Vec<Event> {
    let mut events = vec![created()];
    events.extend((0..deep).map(prompt));
    for n in 0..turns {
        let turn = TurnId::from(format!("trn_q{n}"));
        events.push(prompt(n + deep));
        events.push(TurnStarted { turn: turn.clone(), checkpoint: None }.into());
        events.push(say(&format!("prt_{n}_before"), "in no step"));
        for step in 0..steps {
            let message = MessageId::from(format!("msg_s{n}_{step}"));
            events.push(StepStarted { message: message.clone(), model: None }.into());
            if step == 0 {
                events.push(call(CallId::from(format!("call_{n}")).as_str(), ToolStatus::Running));
            }
            events.extend((0..pieces).map(|piece| say(&format!("prt_{n}_{step}"), &format!("{piece} "))));
            if step + 1 == steps {
                events.push(call(&format!("call_{n}"), ToolStatus::Completed));
            }
            events.push(StepEnded { message, finish: Finish::Stop, usage: None, cost: None, kept: None }.into());
        }
        events.push(say(&format!("prt_{n}_after"), "in no step either"));
        let stop = if n % 3 == 0 { Stop::Cancelled } else { Stop::EndTurn };
        events.push(TurnEnded { turn, stop, usage: None, cost: None, meta: None }.into());
    }
    events
}

/// A run whose queue is never empty, and with a message of it hidden at a moment after.
fn always_waiting(run: Vec<Fact>, hide: Option<(Index, Index)>) -> Vec<Event> {
    let mut events = vec![created()];
    let mut made = 0;
    for fact in run {
        if made == 0 || matches!(fact.event, Event::TurnStarted(_)) {
            events.push(prompt(made));
            made += 1;
        }
        events.push(fact.event);
    }
    let told = |(at, event): (usize, &Event)| match event {
        Event::PromptQueued(e) => Some((at, e.message.clone())),
        Event::StepStarted(e) => Some((at, e.message.clone())),
        _ => None,
    };
    let told: Vec<(usize, MessageId)> = events.iter().enumerate().filter_map(told).collect();
    if let Some((which, moment)) = hide.filter(|_| !told.is_empty()) {
        let (at, message) = which.get(&told).clone();
        let after = at + 1 + moment.index(events.len() - at);
        events.insert(after, MessageHidden { message }.into());
    }
    events
}

#[test]
fn pages_and_the_list_are_one_fold_over_all() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let house = House::new();
    let made = std::cell::Cell::new(0);
    let config = ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&(runs::run(), prop::option::of(any::<(Index, Index)>())), |(run, hide)| {
            made.set(made.get() + 1);
            let session = SessionId::from(format!("ses_{}", made.get()));
            runtime.block_on(async {
                let facts = house.seed(always_waiting(run, hide), &session).await;
                house.compare(&session, facts.len() as u64, &[1, 2, 5, 1000]).await;
            });
            Ok(())
        })
        .unwrap();
}

/// Long enough for places that are far apart.
#[tokio::test(flavor = "multi_thread")]
async fn prompts_may_wait_for_long() {
    let house = House::new();
    for (name, deep) in [("ses_short", 1), ("ses_deep", 6)] {
        let session = SessionId::from(name);
        let facts = house.seed(queued(9, deep, 3, 30), &session).await;
        house.compare(&session, facts.len() as u64, &[3, 50]).await;
    }
}

fn print(call: &str, text: String) -> Event {
    OutputAppended { call: CallId::from(call), text }.into()
}

/// One command prints so many lines, and says something else in the middle.
fn printing(lines: usize) -> Vec<Event> {
    let (turn, message) = (TurnId::from("trn_q0"), MessageId::from("msg_s"));
    let mut events = vec![created(), prompt(0), TurnStarted { turn: turn.clone(), checkpoint: None }.into()];
    events.push(StepStarted { message: message.clone(), model: None }.into());
    events.push(call("call", ToolStatus::Running));
    for n in 0..lines {
        events.push(print("call", format!("line {n:5}: {}\n", "é".repeat(40))));
        if n == lines / 2 {
            let titled = json!({ "call": "call", "title": "ls" });
            events.push(Event::ToolChanged(serde_json::from_value(titled).unwrap()));
        }
    }
    events.push(call("call", ToolStatus::Completed));
    events.push(StepEnded { message, finish: Finish::Stop, usage: None, cost: None, kept: None }.into());
    events.push(TurnEnded { turn, stop: Stop::EndTurn, usage: None, cost: None, meta: None }.into());
    events
}

/// A list has what a stream last told of a command, also of one that still prints.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_prints_is_listed_as_streams_tell_it() {
    let house = House::new();
    let events = printing(400);
    for end in [5, 6, 7, 17, 18, 19, 20, 100, 205, 206, 207, 208, 209, 260, 390, 405, 406, 407, 408, 409] {
        let session = SessionId::from(format!("ses_{end}"));
        house.seed(events[..end].to_vec(), &session).await;
        house.compare(&session, end as u64, &[1, 1000]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_reads_as_much_of_a_long_session_as_of_a_short_one() {
    let house = House::new();
    let mut read = Vec::new();
    for (name, turns) in [("ses_20", 20), ("ses_200", 200)] {
        let session = SessionId::from(name);
        let end = house.seed(queued(turns, 2, 2, 20), &session).await.len() as u64;
        house.journal.read.store(0, Ordering::Relaxed);
        let (messages, has_more) = page(&house.tongues, house.told(&session, end), end + 1, 2).await.unwrap();
        assert_eq!((messages.len(), has_more), (2, true));
        read.push(house.journal.read.load(Ordering::Relaxed));
    }
    // A tip is kept after every 256 facts here, and a turn has fewer than 100.
    assert!(read.iter().all(|read| *read < 1024), "{read:?}");
}

//! Channels and readers on a real journal, without a connection: what is told together, and what is held.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tolka_dialect::Dialect;
use tolka_facts::{Fact, Head, SessionId};
use tolka_journal::{Append, Journal, Scope, Sqlite, SqliteOptions};

use super::budget::LIMIT;
use super::{Channel, Cursor, Dress, Follow, Reader, Tongues, Until, Whose};

const MIB: usize = 1024 * 1024;
const HOUR: Duration = Duration::from_secs(3600);

struct House {
    _folder: TempDir,
    journal: Arc<Sqlite>,
    told: u64,
}

impl House {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = Sqlite::open(&SqliteOptions::new(folder.path())).unwrap();
        let mut house = House { _folder: folder, journal, told: 0 };
        house.tell("session_created", json!({ "workspace": "/w", "agent": "a", "title": "t" })).await;
        let content = json!([{ "type": "text", "text": "go" }]);
        house.tell("prompt_queued", json!({ "turn": "trn_1", "message": "msg_1", "content": content })).await;
        house.tell("turn_started", json!({ "turn": "trn_1" })).await;
        house.tell("step_started", json!({ "message": "msg_2" })).await;
        house
    }

    async fn tell(&mut self, kind: &str, data: Value) {
        self.told += 1;
        let seq = self.told;
        let fact = json!({ "v": 1, "session": "ses_1", "seq": seq, "time": seq, "cause": "agent", "type": kind, "data": data });
        let fact: Fact = serde_json::from_value(fact).unwrap();
        self.journal.append(Append { facts: vec![Arc::new(fact)], ..Append::default() }).await.unwrap();
    }

    async fn say(&mut self, text: &str) {
        let part = format!("prt_{}", self.told);
        self.tell("text_appended", json!({ "part": part, "text": text })).await;
    }

    fn tongues(&self, limit: usize, gather: Duration) -> Tongues {
        Tongues::within(limit, self.journal.clone(), gather)
    }

    fn reader(&self, tongues: &Tongues, dialect: Dialect, after: u64) -> Reader {
        let channel = Channel { whose: Whose::Session(SessionId::from("ses_1")), dialect, dress: Dress::Positions };
        Reader::new(tongues, channel, Cursor::whole(after), Until::Never)
    }
}

/// The next bytes that are no heartbeat.
async fn next(reader: &mut Reader) -> Bytes {
    loop {
        let bytes = std::future::poll_fn(|cx| reader.poll_next(cx)).await.unwrap().unwrap();
        if !bytes.starts_with(b":") {
            return bytes;
        }
    }
}

/// All bytes up to the fact at `last`.
async fn read_to(reader: &mut Reader, last: u64) -> Vec<u8> {
    let mut all = Vec::new();
    while reader.cursor().before() < last {
        all.extend_from_slice(&next(reader).await);
    }
    all
}

async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// The disk has a fact a moment before its bell rings: a reader of the disk is ahead then, and nothing is purged.
#[tokio::test]
async fn a_reader_ahead_of_the_bell_does_not_take_the_session_for_purged() {
    let house = House::new().await;
    let scope = Scope::Session(SessionId::from("ses_1"));
    let mut follow = Follow::new(house.journal.clone(), scope.clone(), house.told);
    let (_bell, late) = watch::channel(house.told - 1);
    follow.head = late;
    assert!(follow.ready(1).await.unwrap().is_empty());
    assert!(!follow.is_gone().await.unwrap());

    let fact = Fact { seq: house.told + 1, ..(*house.journal.read(&scope, 0, 1).await.unwrap()[0].fact).clone() };
    let head = Head { id: SessionId::from("ses_1"), deleted: true, ..Head::default() };
    let deletion = Append { facts: vec![Arc::new(fact)], head: Some(head), ..Append::default() };
    house.journal.append(deletion).await.unwrap();
    house.journal.purge(&SessionId::from("ses_1")).await.unwrap();
    assert!(follow.is_gone().await.unwrap());
}

#[tokio::test]
async fn the_first_fact_is_told_at_once_and_what_follows_together() {
    let mut house = House::new().await;
    let (gathering, at_once) = (house.tongues(LIMIT, HOUR), house.tongues(LIMIT, Duration::ZERO));
    let mut gathered = house.reader(&gathering, Dialect::Tolka, house.told);
    let mut plain = house.reader(&at_once, Dialect::Tolka, house.told);
    house.say("one").await;
    let first = next(&mut gathered).await;
    assert_eq!(first, next(&mut plain).await);
    let mut expected = Vec::new();
    for text in ["two", "three", "four"] {
        house.say(text).await;
        expected.extend_from_slice(&next(&mut plain).await);
    }
    settle().await;
    let told = tokio::time::timeout(Duration::ZERO, next(&mut gathered)).await;
    assert!(told.is_err(), "{told:?} before its time");
    tokio::time::pause();
    tokio::time::advance(HOUR).await;
    assert_eq!(next(&mut gathered).await, expected);
}

#[tokio::test]
async fn what_nobody_needs_is_not_kept() {
    let mut house = House::new().await;
    let tongues = house.tongues(LIMIT, Duration::ZERO);
    let mut reader = house.reader(&tongues, Dialect::Tolka, house.told);
    house.say("one").await;
    drop(next(&mut reader).await);
    assert_ne!(tongues.budget().used(), 0, "the log has it");
    assert_eq!(tongues.memory(), tongues.budget().used() + "one".len(), "the text is open");
    settle().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    settle().await;
    assert_eq!(tongues.memory(), 0, "a channel that is quiet has a log, or a speaker");
    assert_eq!(tongues.channels(), 1);
    tokio::time::resume();
    house.say("two").await;
    let told = next(&mut reader).await;
    assert!(String::from_utf8_lossy(&told).contains("two"));
    drop(reader);
    assert_eq!(tongues.channels(), 0, "a channel without readers is there");
    drop(told);
    assert_eq!(tongues.budget().used(), 0);
}

#[tokio::test]
async fn a_reader_that_fell_behind_shares_again_although_its_channel_never_rests() {
    let mut house = House::new().await;
    let tongues = house.tongues(LIMIT, Duration::ZERO);
    let mut lively = house.reader(&tongues, Dialect::Tolka, house.told);
    let mut behind = house.reader(&tongues, Dialect::Tolka, 0);
    let mut told = next(&mut behind).await.to_vec();
    assert!(!behind.is_sharing(), "the log began after what it lacks");
    for text in ["one", "two", "three"] {
        // Whenever it asks, there is more: it never finds itself at the head.
        house.say(text).await;
        drop(next(&mut lively).await);
        told.extend_from_slice(&next(&mut behind).await);
        assert!(behind.is_sharing(), "it encodes for itself what the log has");
    }
    let alone = house.tongues(LIMIT, Duration::ZERO);
    assert_eq!(told, read_to(&mut house.reader(&alone, Dialect::Tolka, 0), house.told).await);
}

/// Each fact is larger than a write, so this is about what a reader holds at the least.
const GIANT: usize = 100 * 1024;
const GIANTS: usize = 3;
const STALLED: usize = 60;

#[tokio::test]
async fn memory_is_bounded_whoever_stands_still() {
    // Its last quarter is more than four who are behind can overrun their own ceiling by: what is told live must not wait
    // for clients to be cut off, for here nobody does that.
    const BOUND: usize = 8 * MIB;
    // Four of each kind may be at work when the bound is reached, each with a write and one fact more. OpenCode tells
    // a text twice.
    const SLACK: usize = 8 * (64 * 1024 + 2 * GIANT + 4096);
    let mut house = House::new().await;
    let tongues = house.tongues(BOUND, Duration::ZERO);
    for n in 0..GIANTS {
        house.say(&format!("{n}").repeat(GIANT)).await;
    }
    let dialects: [Dialect; 3] = ["tolka", "opencode", "onyx"].map(|name| name.parse().unwrap());
    let mut lively: Vec<_> = dialects.iter().map(|dialect| house.reader(&tongues, *dialect, house.told)).collect();
    let (go, going) = watch::channel(false);
    let mut stalled = JoinSet::new();
    let last = house.told + 1;
    for n in 0..STALLED {
        let mut reader = house.reader(&tongues, dialects[n % 3], 0);
        let (mut going, budget) = (going.clone(), tongues.budget().clone());
        stalled.spawn(async move {
            let mut all = Vec::new();
            while reader.cursor().before() < last {
                let bytes = next(&mut reader).await;
                assert!(budget.used() <= BOUND + SLACK, "{} bytes are held", budget.used());
                all.extend_from_slice(&bytes);
                // Held as a connection holds what its client does not take.
                going.wait_for(|going| *going).await.unwrap();
                drop(bytes);
            }
            (n, all)
        });
    }
    let mut pressure = tongues.pressure();
    tokio::select! {
        short = pressure.wait_for(Option::is_some) => drop(short.unwrap()),
        Some(done) = stalled.join_next() => panic!("{:?} before memory was short", done.map(|(n, _)| n)),
    }
    assert!(tongues.budget().used() >= BOUND / 4 * 3, "only {} bytes are held", tongues.budget().used());
    // Those at the head get everything meanwhile.
    house.say("live").await;
    for reader in &mut lively {
        assert!(String::from_utf8_lossy(&read_to(reader, last).await).contains("live"));
    }
    go.send_replace(true);
    let roomy = house.tongues(LIMIT, Duration::ZERO);
    let mut expected = Vec::new();
    for dialect in dialects {
        expected.push(read_to(&mut house.reader(&roomy, dialect, 0), last).await);
    }
    while let Some(done) = stalled.join_next().await {
        let (n, all) = done.unwrap();
        assert!(all == expected[n % 3], "reader {n} was told something else");
    }
    assert!(tongues.budget().used() <= BOUND / 4, "{} bytes stay", tongues.budget().used());
}

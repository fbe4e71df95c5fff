//! The desk with a real journal and minds that do as they are told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod deeds;
mod effects;
mod family;
mod files;
mod fork;
mod past;
mod patience;
mod rewinding;
mod saving;
mod steering;
mod ways;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tolka_agent::{
    Agent, Agents, Ended, Family, Mind, ModeAbout, ModelAbout, Past, Patience, Place, Prompt, Running, Teller,
};
use tolka_facts::event::{
    Model, OptionKind, PermissionAsked, PermissionOption, SessionChanged, Stop, TextAppended, ToolChanged,
};
use tolka_facts::{Block, Cause, Draft, Event, Fact, Ids, RequestId, SessionId, Time, ToolStatus};
use tolka_journal::{Journal, Scope, Sqlite, SqliteOptions};
use tolka_session::{Answer, Desk, DeskOptions, NewSession, PromptRequest, SessionError};

/// A mind that does what the prompt says.
#[derive(Debug)]
struct Puppet {
    name: &'static str,
    /// Fired when a turn has said what it has to say and goes on to wait.
    waits: Arc<Notify>,
    /// Lets a turn that waits for it go on.
    go: Arc<Notify>,
    journal: Arc<Sqlite>,
    forgotten: Forgotten,
}

/// Sessions that the agent was told to forget, and the last fact of each that was durable then.
type Forgotten = Arc<Mutex<Vec<(SessionId, u64)>>>;

struct Strings {
    waits: Arc<Notify>,
    go: Arc<Notify>,
    past: Arc<dyn Past>,
    family: Option<Arc<dyn Family>>,
    workspace: String,
}

impl Agent for Puppet {
    fn name(&self) -> &str {
        self.name
    }

    fn model(&self) -> Model {
        Model { provider: "test".into(), id: "puppet".into() }
    }

    fn models(&self) -> Vec<ModelAbout> {
        let other = Model { provider: "test".into(), id: "other".into() };
        vec![ModelAbout::named(self.model()), ModelAbout::named(other)]
    }

    fn modes(&self) -> Vec<ModeAbout> {
        let mode = |name: &str| ModeAbout { name: name.into(), description: String::new() };
        vec![mode("build"), mode("plan")]
    }

    fn forget(&self, session: &SessionId) {
        let durable = *self.journal.watch(&Scope::Session(session.clone())).borrow();
        self.forgotten.lock().unwrap().push((session.clone(), durable));
    }

    fn open(&self, place: Place) -> Box<dyn Mind> {
        Box::new(Strings {
            waits: self.waits.clone(),
            go: self.go.clone(),
            past: place.past,
            family: place.family,
            workspace: place.workspace,
        })
    }
}

impl Mind for Strings {
    fn turn<'a>(&'a mut self, prompt: Prompt, teller: &'a Teller) -> Running<'a> {
        Box::pin(async move {
            let Some(Block::Text { text, .. }) = prompt.content.first() else { unreachable!("prompts here are text") };
            match text.head() {
                "permission" => {
                    let option = |id: &str, kind| PermissionOption { id: id.into(), name: id.into(), kind };
                    let ask = PermissionAsked {
                        request: teller.ids().permission(Time::now()),
                        call: None,
                        permission: "bash".into(),
                        title: "Run it?".into(),
                        patterns: Vec::new(),
                        metadata: None,
                        options: vec![option("yes", OptionKind::AllowOnce), option("no", OptionKind::RejectOnce)],
                    };
                    let chosen = teller
                        .ask_permission(ask, None, Patience::default())
                        .await
                        .unwrap()
                        .map(|chosen| chosen.option);
                    say(teller, &format!("chosen: {chosen:?}")).await;
                }
                words if words.starts_with("do:") => {
                    deeds::carry_out(self, &words["do:".len()..], teller).await;
                }
                words if words.starts_with("raise:") => {
                    let family = self.family.clone().unwrap();
                    family::raise(&words["raise:".len()..], family.as_ref(), teller).await;
                }
                words if words.starts_with("pretend:") => {
                    let (session, request) = words["pretend:".len()..].split_once(':').unwrap();
                    family::pretend(session, request, teller).await;
                }
                words if words.starts_with("patient") => patience::ask(words, teller).await,
                "steered" => steering::turn(self, teller).await,
                "remember" => past::tell(self.past.as_ref(), teller).await,
                "change a file" => files::change(teller).await,
                "change many files" => files::change_many(teller).await,
                "ways" => say(teller, &format!("{:?} {:?}", prompt.mode, prompt.model.map(|model| model.id))).await,
                "lasting" => effects::begin(teller, &self.waits, &self.go).await,
                "hang" | "ignore cancel" => {
                    tool(teller, "call_1").await;
                    teller.settled().await.unwrap();
                    self.waits.notify_one();
                    if text.head() == "hang" {
                        teller.cancel().fired().await;
                        return Ended::stopped(Stop::Cancelled);
                    }
                    std::future::pending::<()>().await;
                }
                "panic" => panic!("as asked"),
                "burst" => {
                    for n in 0..BURST {
                        say(teller, &n.to_string()).await;
                    }
                    teller.settled().await.unwrap();
                    say(teller, "all is durable").await;
                }
                words if words.starts_with("measure") => say(teller, &format!("{} bytes", text.len())).await,
                "long" => say(teller, &"ä".repeat(100_000)).await,
                words => say(teller, words).await,
            }
            Ended::stopped(Stop::EndTurn)
        })
    }
}

async fn say(teller: &Teller, text: &str) {
    let part = teller.ids().part(Time::now());
    teller.tell(Draft::agent(TextAppended { part, text: text.to_owned() })).await.unwrap();
}

async fn tool(teller: &Teller, call: &str) {
    let changed =
        ToolChanged { name: Some("bash".into()), status: Some(ToolStatus::Running), ..ToolChanged::of(call.into()) };
    teller.tell(Draft::agent(changed)).await.unwrap();
}

/// Many commits' worth of facts.
const BURST: usize = 4000;

struct World {
    desk: Desk,
    journal: Arc<Sqlite>,
    waits: Arc<Notify>,
    go: Arc<Notify>,
    folder: tempfile::TempDir,
    forgotten: Forgotten,
    /// The desk before the crash. It is held: one that goes would end its turns.
    #[allow(dead_code, reason = "it is only held")]
    crashed: Option<Desk>,
}

impl World {
    fn new() -> Self {
        World::on(tempfile::tempdir().unwrap(), None)
    }

    fn on(folder: tempfile::TempDir, max_bytes: Option<u64>) -> Self {
        World::with("puppet", folder, max_bytes)
    }

    fn with(name: &'static str, folder: tempfile::TempDir, max_bytes: Option<u64>) -> Self {
        World::build(name, folder, max_bytes, DeskOptions::default())
    }

    fn build(name: &'static str, folder: tempfile::TempDir, max_bytes: Option<u64>, desk: DeskOptions) -> Self {
        let options = SqliteOptions { max_bytes, ..SqliteOptions::new(folder.path()) };
        let journal = Sqlite::open(&options).unwrap();
        let (waits, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let forgotten = Forgotten::default();
        let (waits_too, go_too) = (waits.clone(), go.clone());
        let puppet =
            Puppet { name, waits: waits_too, go: go_too, journal: journal.clone(), forgotten: forgotten.clone() };
        let agents: Agents = Arc::from([Arc::new(puppet) as Arc<dyn Agent>]);
        let desk = Desk::with_options(journal.clone(), agents, Arc::new(Ids::seeded(Time::now().micros())), desk);
        World { desk, journal, waits, go, folder, forgotten, crashed: None }
    }

    async fn session(&self) -> SessionId {
        self.desk.create(NewSession { workspace: "/w".into(), ..NewSession::default() }).await.unwrap().head.id
    }

    async fn facts(&self, session: &SessionId) -> Vec<Arc<Fact>> {
        let page = self.journal.read(&Scope::Session(session.clone()), 0, 10_000).await.unwrap();
        page.into_iter().map(|entry| entry.fact).collect()
    }

    /// As a crash leaves it: the journal goes, and nobody gets to say a last word.
    fn crash(self) -> Self {
        let World { desk, journal, folder, .. } = self;
        journal.close();
        drop(journal);
        World { crashed: Some(desk), ..World::on(folder, None) }
    }

    /// The request that waits for a person, when it does.
    async fn asked(&self, session: &SessionId) -> RequestId {
        let mut head = self.journal.watch(&Scope::Session(session.clone()));
        loop {
            let tip = self.desk.tip(session).await.unwrap();
            if let Some(ask) = tip.asks().next() {
                return ask.request().clone();
            }
            head.wait_for(|head| *head > tip.seq).await.unwrap();
        }
    }

    /// Waits until `n` turns have ended, and gives how.
    async fn ended(&self, session: &SessionId, n: usize) -> Vec<Stop> {
        let mut head = self.journal.watch(&Scope::Session(session.clone()));
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let seen = *head.borrow_and_update();
            let facts = self.facts(session).await;
            let stops: Vec<Stop> = facts
                .iter()
                .filter_map(|fact| match &fact.event {
                    Event::TurnEnded(ended) => Some(ended.stop),
                    _ => None,
                })
                .collect();
            if stops.len() >= n {
                return stops;
            }
            assert!(Instant::now() < deadline, "{n} turns should have ended by now: {facts:#?}");
            let _ = tokio::time::timeout(Duration::from_millis(200), head.wait_for(|head| *head > seen)).await;
        }
    }
}

fn prompt(text: &str) -> PromptRequest {
    PromptRequest { content: vec![Block::text(text)], ..PromptRequest::default() }
}

fn texts(facts: &[Arc<Fact>]) -> Vec<String> {
    let text = |fact: &Arc<Fact>| match &fact.event {
        Event::TextAppended(e) => Some(e.text.clone()),
        _ => None,
    };
    facts.iter().filter_map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_are_queued_and_run_in_order() {
    let world = World::new();
    let session = world.session().await;
    let aheads = [
        world.desk.prompt(&session, prompt("hang")).await.unwrap().ahead,
        world.desk.prompt(&session, prompt("two")).await.unwrap().ahead,
        world.desk.prompt(&session, prompt("three")).await.unwrap().ahead,
    ];
    assert!(aheads.is_sorted() && aheads[2] > 0, "{aheads:?}");
    world.waits.notified().await;
    assert!(world.desk.cancel(&session, false).await.unwrap());
    assert_eq!(world.ended(&session, 3).await, [Stop::Cancelled, Stop::EndTurn, Stop::EndTurn]);
    let facts = world.facts(&session).await;
    assert_eq!(texts(&facts), ["two", "three"]);
    assert!(facts.iter().zip(1..).all(|(fact, seq)| fact.seq == seq), "gapless");
    assert!(facts.is_sorted_by_key(|fact| fact.time));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_twice_is_one_turn_also_after_a_restart() {
    let world = World::new();
    let session = world.session().await;
    let keyed = PromptRequest { key: Some("k1".into()), ..prompt("once") };
    let first = world.desk.prompt(&session, keyed.clone()).await.unwrap();
    let again = world.desk.prompt(&session, keyed.clone()).await.unwrap();
    assert_eq!((again.turn.clone(), again.repeated), (first.turn.clone(), true));
    world.ended(&session, 1).await;
    world.desk.shut_down().await;
    let World { desk, journal, folder, .. } = world;
    drop(desk);
    journal.close();
    drop(journal);
    let world = World::on(folder, None);
    let later = world.desk.prompt(&session, keyed).await.unwrap();
    assert_eq!((later.turn, later.repeated), (first.turn, true));
    assert_eq!(texts(&world.facts(&session).await), ["once"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_within_a_second_even_if_the_mind_does_not_listen() {
    for words in ["hang", "ignore cancel"] {
        let (_still, world) = (patience::Still::new(), World::new());
        let session = world.session().await;
        world.desk.prompt(&session, prompt(words)).await.unwrap();
        world.waits.notified().await;
        assert!(world.desk.cancel(&session, false).await.unwrap());
        if words == "ignore cancel" {
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(world.ended(&session, 1).await, [Stop::Cancelled]);
        let facts = world.facts(&session).await;
        let closed = facts.iter().find_map(|fact| match &fact.event {
            Event::ToolChanged(e) if e.status == Some(ToolStatus::Cancelled) => Some(fact.cause),
            _ => None,
        });
        assert_eq!(closed, Some(Cause::Tolka), "the open tool is closed, and marked as closed by us");
        world.desk.prompt(&session, prompt("next")).await.unwrap();
        assert_eq!(world.ended(&session, 2).await[1], Stop::EndTurn);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_wins_and_the_second_learns_of_it() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("permission")).await.unwrap();
    let request = world.asked(&session).await;
    let answer = |id: &str| Answer::Option { id: id.into(), reason: None };
    let wrong = world.desk.answer(&session, request.clone(), answer("maybe"), "a".into()).await;
    assert!(matches!(wrong, Err(SessionError::NoSuchOption { .. })), "{wrong:?}");
    let (one, two) = tokio::join!(
        world.desk.answer(&session, request.clone(), answer("yes"), "a".into()),
        world.desk.answer(&session, request.clone(), answer("yes"), "b".into()),
    );
    assert_ne!(one.is_ok(), two.is_ok());
    let late = one.err().or(two.err()).unwrap();
    assert!(matches!(late, SessionError::AlreadyAnswered(_)), "{late}");
    let unknown = world.desk.answer(&session, "per_none".into(), answer("yes"), "a".into()).await;
    assert!(matches!(unknown, Err(SessionError::NotAsked(_))), "{unknown:?}");
    world.ended(&session, 1).await;
    assert_eq!(texts(&world.facts(&session).await), ["chosen: Some(\"yes\")"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_the_open_turn_is_interrupted_and_the_queue_goes_on() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("ignore cancel")).await.unwrap();
    world.desk.prompt(&session, prompt("waiting")).await.unwrap();
    world.waits.notified().await;
    // A crash: the journal goes, and nobody gets to say a last word.
    let World { desk: _still_held, journal, folder, .. } = world;
    journal.close();
    drop(journal);

    let world = World::on(folder, None);
    assert_eq!(world.desk.recover().await.unwrap(), 1);
    assert_eq!(world.ended(&session, 2).await, [Stop::Interrupted, Stop::EndTurn]);
    let facts = world.facts(&session).await;
    assert_eq!(texts(&facts), ["waiting"], "what had begun is not run again; what had not is run");
    let ended = facts.iter().find(|fact| matches!(&fact.event, Event::TurnEnded(_))).unwrap();
    assert_eq!(ended.cause, Cause::Tolka);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mind_that_panics_fails_its_turn_and_no_other() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("panic")).await.unwrap();
    world.desk.prompt(&session, prompt("fine")).await.unwrap();
    assert_eq!(world.ended(&session, 2).await, [Stop::Failed, Stop::EndTurn]);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_text_is_cut_into_facts_and_nothing_of_it_is_lost() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("long")).await.unwrap();
    world.ended(&session, 1).await;
    let pieces = texts(&world.facts(&session).await);
    assert!(pieces.len() > 1 && pieces.iter().all(|piece| piece.len() <= tolka_facts::INLINE_LIMIT));
    assert_eq!(pieces.concat(), "ä".repeat(100_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_prompts_clearly_and_loses_nothing_that_was_acknowledged() {
    let world = World::on(tempfile::tempdir().unwrap(), Some(400_000));
    let session = world.session().await;
    let mut accepted = 0;
    let refused = loop {
        match world.desk.prompt(&session, prompt(&"x".repeat(20_000))).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 100, "the quota does not hold");
    };
    assert!(refused.to_string().contains("full"), "{refused}");
    let queued = world.facts(&session).await.iter().filter(|f| matches!(f.event, Event::PromptQueued(_))).count();
    assert_eq!(queued, accepted);
    // Deleting is the way out, whatever the agent still has to say.
    world.desk.delete(&session).await.unwrap();
    assert!(world.journal.purge(&session).await.unwrap().facts > 0);
    let next = world.session().await;
    world.desk.prompt(&next, prompt("room again")).await.unwrap();
    assert_eq!(world.ended(&next, 1).await, [Stop::EndTurn]);
    drop(world.folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_that_a_full_disk_stops_goes_on_where_it_was() {
    let world = World::on(tempfile::tempdir().unwrap(), Some(1_400_000));
    let (filler, other, session) = (world.session().await, world.session().await, world.session().await);
    for n in 1..=20 {
        world.desk.prompt(&filler, prompt(&"x".repeat(20_000))).await.unwrap();
        world.ended(&filler, n).await;
    }
    world.desk.prompt(&session, prompt("burst")).await.unwrap();
    // Somebody else finds out when the disk is full: then one batch was refused, and the next was ready or being told.
    let change = SessionChanged { title: Some("t".into()), mode: None, model: None, agent: None, archived: None };
    let refused = loop {
        if let Err(error) = world.desk.change(&other, change.clone()).await {
            break error;
        }
    };
    assert!(refused.to_string().contains("full"), "{refused}");
    let told = texts(&world.facts(&session).await);
    assert!(told.len() < BURST, "the quota did not stop it");
    world.desk.delete(&filler).await.unwrap();
    world.journal.purge(&filler).await.unwrap();
    assert_eq!(world.ended(&session, 1).await, [Stop::EndTurn]);
    let expected: Vec<String> = (0..BURST).map(|n| n.to_string()).chain(["all is durable".to_owned()]).collect();
    assert_eq!(texts(&world.facts(&session).await), expected);
    drop(world.folder);
}

/// A deletion that fails must leave what the agent has of the session.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_forgets_a_session_when_its_deletion_is_durable() {
    let world = World::new();
    let session = world.session().await;
    world.desk.delete(&session).await.unwrap();
    let deleted =
        world.facts(&session).await.iter().find(|fact| matches!(fact.event, Event::SessionDeleted(_))).unwrap().seq;
    let [(forgotten, durable)] = world.forgotten.lock().unwrap().clone().try_into().unwrap();
    assert_eq!((forgotten, durable >= deleted), (session, true), "{durable} of {deleted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_prompt_reaches_the_agent_whole() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt(&format!("measure{}", "x".repeat(100_000)))).await.unwrap();
    world.ended(&session, 1).await;
    assert_eq!(texts(&world.facts(&session).await), ["100007 bytes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_in_a_prompt_is_refused() {
    let world = World::new();
    let session = world.session().await;
    let forged = serde_json::json!([{ "type": "text", "text": { "head": "x", "hash": "0".repeat(64), "size": 9 } }]);
    let content = serde_json::from_value(forged).unwrap();
    let refused = world.desk.prompt(&session, PromptRequest { content, ..PromptRequest::default() }).await;
    assert!(matches!(refused, Err(SessionError::Reference)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_picture_is_refused_at_the_door() {
    let world = World::new();
    let session = world.session().await;
    let before = world.facts(&session).await.len();
    let large = "AAAA".repeat((20 << 20) / 3 + 2);
    for (data, mime, words) in [
        ("!!notb64", "image/png", "not base64"),
        ("aGk", "image/png", "not base64"),
        ("", "image/png", "it is empty"),
        ("aGk=", "text/plain", "`text/plain` is no type of pictures"),
        ("aGk=", "image/", "is no type of pictures"),
        (&*large, "image/png", "more than 20 MB"),
    ] {
        let picture = Block::Image { data: data.into(), mime: mime.into(), uri: None };
        let content = vec![Block::text("Look"), picture];
        let refused = world.desk.prompt(&session, PromptRequest { content, ..PromptRequest::default() }).await;
        let Err(error @ SessionError::BadPicture { block: 2, .. }) = refused else { panic!("{mime}: {refused:?}") };
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(world.facts(&session).await.len(), before, "nothing is queued");
    let picture = Block::Image { data: "aGk=".into(), mime: "image/png".into(), uri: None };
    let content = vec![Block::text("measure"), picture];
    world.desk.prompt(&session, PromptRequest { content, ..PromptRequest::default() }).await.unwrap();
    world.ended(&session, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_agent_a_session_can_be_read_and_its_prompts_wait() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("ignore cancel")).await.unwrap();
    world.desk.prompt(&session, prompt("waiting")).await.unwrap();
    world.waits.notified().await;
    let World { desk: _still_held, journal, folder, .. } = world;
    journal.close();
    drop(journal);

    let other = World::with("other", folder, None);
    other.desk.recover().await.unwrap();
    assert_eq!(other.ended(&session, 1).await, [Stop::Interrupted]);
    assert_eq!(other.desk.tip(&session).await.unwrap().queue.len(), 1, "nobody else answers in its name");
    let refused = other.desk.prompt(&session, prompt("more")).await;
    assert!(matches!(refused, Err(SessionError::UnknownAgent { .. })), "{refused:?}");
    other.desk.shut_down().await;
    let World { desk, journal, folder, .. } = other;
    drop(desk);
    journal.close();
    drop(journal);

    let world = World::on(folder, None);
    world.desk.recover().await.unwrap();
    assert_eq!(world.ended(&session, 2).await, [Stop::Interrupted, Stop::EndTurn]);
    assert_eq!(texts(&world.facts(&session).await), ["waiting"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_own_journal_is_nobodys_session() {
    let world = World::new();
    world.desk.note(tolka_facts::event::VersionChanged { version: "1".into() }).await.unwrap();
    for id in ["srv_tolka", "srv_other"] {
        let id = SessionId::from(id);
        assert!(matches!(world.desk.tip(&id).await, Err(SessionError::NotFound(_))));
        assert!(matches!(world.desk.prompt(&id, prompt("hi")).await, Err(SessionError::NotFound(_))));
        assert!(matches!(world.desk.delete(&id).await, Err(SessionError::NotFound(_))));
    }
}

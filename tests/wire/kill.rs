//! SIGKILL at any moment, again and again, while readers of every kind resume and a client goes on prompting.
//!
//! What each reader has in the end, stitched together over all breaks, must be what a new reader gets; what was
//! acknowledged must be there; a turn that was killed must have ended as interrupted; and it must go on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tolka_dialect::Dialect;

use crate::http::{get, new_session, post, try_call};
use crate::recording::busy_turn;
use crate::server::{DEADLINE, House, Server, free_port};
use crate::sse::{Kept, Stream, data};

/// What a reader follows.
#[derive(Debug, Clone)]
struct Channel {
    path: String,
    /// `None`: all sessions.
    session: Option<String>,
    /// What is in the frame that ends a turn, and in no other.
    ends: &'static [&'static str],
}

impl Channel {
    fn all(epoch: &str, session: &str) -> Vec<Channel> {
        let of_session = Dialect::ALL.map(|dialect| Channel {
            path: format!("/v1/sessions/{session}/events?dialect={dialect}"),
            session: Some(session.to_owned()),
            ends: match dialect {
                Dialect::Tolka => &[r#""type":"turn_ended""#],
                Dialect::Onyx(_) => &[r#""type":"prompt_response""#, r#""type":"error""#],
                Dialect::OpenCode(_) => &[r#""type":"session.idle""#],
            },
        });
        let feed = |path: &str, ends| Channel { path: format!("{path}?after={epoch}.0"), session: None, ends };
        let feeds = [
            feed("/v1/events", &[r#""type":"turn_ended""#] as &[_]),
            feed("/event", &[r#""type":"session.idle""#]),
            feed("/global/event", &[r#""type":"session.idle""#]),
        ];
        of_session.into_iter().chain(feeds).collect()
    }

    fn is_end(&self, event: &[u8]) -> bool {
        let text = std::str::from_utf8(event).unwrap();
        self.ends.iter().any(|end| text.contains(end))
    }
}

#[derive(Debug, Clone)]
struct Acknowledged {
    session: String,
    key: String,
    turn: String,
    position: String,
}

/// What all threads know of the run.
#[derive(Default)]
struct Run {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Servers that have been up.
    servers: u64,
    /// Events that readers have had.
    seen: usize,
    acknowledged: Vec<Acknowledged>,
    /// By session, the turns that ended.
    ended: HashMap<String, HashSet<String>>,
    no_more_prompts: bool,
    /// No more will be told: whoever has all ends may go.
    is_told: bool,
}

impl State {
    fn ends(&self, session: Option<&str>) -> usize {
        let wanted = |of: &str| session.is_none_or(|session| session == of);
        self.ended.iter().filter(|(of, _)| wanted(of)).map(|(_, turns)| turns.len()).sum()
    }

    fn waiting(&self) -> usize {
        let is_over = |prompt: &Acknowledged| self.ended.get(&prompt.session).is_some_and(|t| t.contains(&prompt.turn));
        self.acknowledged.iter().filter(|prompt| !is_over(prompt)).count()
    }
}

impl Run {
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
        changed
    }

    /// Waits for something of the run; `None` if it takes too long.
    fn wait<T>(&self, patience: Duration, mut is_it: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let until = Instant::now() + patience;
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(found) = is_it(&state) {
                return Some(found);
            }
            let left = until.checked_duration_since(Instant::now())?;
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits for a server younger than the one that broke off.
    fn next_server(&self, last: u64) -> u64 {
        self.wait(DEADLINE, |state| (state.servers > last).then_some(state.servers)).expect("another server comes")
    }

    fn read(&self, address: SocketAddr, channel: &Channel) -> Kept {
        let (mut kept, mut ends, mut server) = (Kept::default(), 0, 0);
        let has_all = |ends| {
            let state = self.state.lock().unwrap();
            state.is_told && ends >= state.ends(channel.session.as_deref())
        };
        while !has_all(ends) {
            server = self.next_server(server);
            let Ok(mut stream) = Stream::open(address, &channel.path, kept.last.as_deref()) else { continue };
            while !has_all(ends) {
                let Some(event) = stream.next_told() else { break };
                kept.take(&event);
                let is_end = channel.is_end(&event);
                ends += usize::from(is_end);
                self.change(|state| {
                    state.seen += 1;
                    if is_end && channel.path.starts_with("/v1/events") {
                        let fact = data(&event);
                        let text = |value: &Value| value.as_str().unwrap().to_owned();
                        state.ended.entry(text(&fact["session"])).or_default().insert(text(&fact["data"]["turn"]));
                    }
                });
            }
        }
        kept
    }

    /// Follows each turn of a session by the stream of that turn, one after the other.
    fn read_turns(&self, address: SocketAddr, session: &str) -> Vec<(String, Kept)> {
        let mut turns = Vec::<(String, Kept)>::new();
        loop {
            let next = self.wait(DEADLINE, |state| {
                let next = state.acknowledged.iter().filter(|prompt| prompt.session == session).nth(turns.len());
                next.map(|prompt| Some(prompt.turn.clone())).or(state.is_told.then_some(None))
            });
            let Some(turn) = next.expect("another turn comes") else { return turns };
            let kept = self.read_turn(address, session, &turn);
            turns.push((turn, kept));
        }
    }

    fn read_turn(&self, address: SocketAddr, session: &str, turn: &str) -> Kept {
        let path = format!("/api/build/sessions/{session}/turns/{turn}/events");
        let mut kept = Kept::default();
        loop {
            let server = self.state.lock().unwrap().servers;
            if let Ok(mut stream) = Stream::open(address, &path, kept.last.as_deref()) {
                while let Some(event) = stream.next_told() {
                    kept.take(&event);
                    self.change(|state| state.seen += 1);
                }
                if stream.ended_well {
                    return kept;
                }
            }
            self.next_server(server);
        }
    }

    /// Keeps a few prompts waiting. A prompt without an answer is sent again with its key: it must be one turn.
    fn prompt(&self, address: SocketAddr, sessions: &[String]) {
        let (mut number, mut server) = (0, 0);
        let room = |state: &State| (state.no_more_prompts || state.waiting() < 3).then_some(!state.no_more_prompts);
        while self.wait(DEADLINE, room).expect("room for a prompt") {
            let (session, key) = (&sessions[number % sessions.len()], format!("key-{number}"));
            let body = json!({ "text": "Go on.", "key": key }).to_string();
            let path = format!("/v1/sessions/{session}/prompt");
            match try_call(address, "POST", &path, &[], body.as_bytes()) {
                Ok(answer) => {
                    let answer = answer.expect(202);
                    let text = |name: &str| answer[name].as_str().unwrap().to_owned();
                    let (turn, position) = (text("turn"), text("position"));
                    let prompt = Acknowledged { session: session.clone(), key, turn, position };
                    self.change(|state| state.acknowledged.push(prompt));
                    number += 1;
                }
                Err(_) => server = self.next_server(server),
            }
        }
    }
}

/// When the server is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    BeforeItIsUp(Duration),
    After(Duration),
    AfterEvents(usize),
    WhenItTakesAPrompt,
}

/// SplitMix64: the moments of a run can be chosen again from its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn moment(&mut self) -> Moment {
        match self.below(10) {
            0 => Moment::BeforeItIsUp(Duration::from_millis(self.below(80))),
            1..=4 => Moment::After(Duration::from_millis(self.below(500))),
            5..=8 => Moment::AfterEvents(1 + self.below(6000) as usize),
            _ => Moment::WhenItTakesAPrompt,
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn kills_at_any_moment_lose_nothing_and_repeat_nothing() {
    let kills = number("TOLKA_KILLS", 50);
    let seed = number("TOLKA_SEED", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("{kills} kills, TOLKA_SEED={seed}");
    let (house, port, mut chance) = (House::new(), free_port(), Chance(seed));
    let agent = house.plays(&busy_turn(12, 1000));
    let args = ["--agent", &agent, "--pace", "1"];
    let server = Server::start(&house, port, &args);
    let address = server.address;
    let epoch = get(address, "/v1").expect(200)["journal"].as_str().unwrap().to_owned();
    let sessions = [new_session(address), new_session(address)];
    server.kill();
    let channels = Channel::all(&epoch, &sessions[0]);
    let run = Run::default();
    std::thread::scope(|scope| {
        let run = &run;
        let readers: Vec<_> = channels.iter().map(|channel| scope.spawn(move || run.read(address, channel))).collect();
        let turns = scope.spawn(|| run.read_turns(address, &sessions[0]));
        let prompts = scope.spawn(|| run.prompt(address, &sessions));
        let began = Instant::now();
        for _ in 0..kills {
            kill_once(run, &house, port, &args, chance.moment());
        }
        println!("killed for {:?}", began.elapsed());
        let last = Server::start(&house, port, &args);
        run.change(|state| {
            state.servers += 1;
            state.no_more_prompts = true;
        });
        prompts.join().unwrap();
        let all_over = |state: &State| (state.waiting() == 0).then_some(());
        run.wait(DEADLINE, all_over).expect("every acknowledged turn ends");
        // One more, while nothing is open: it wakes those who have all and wait for more.
        run.change(|state| state.is_told = true);
        last.kill();
        let server = Server::start(&house, port, &args);
        run.change(|state| state.servers += 1);
        for (channel, reader) in channels.iter().zip(readers) {
            let (stitched, fresh) = (reader.join().unwrap(), run.read_anew(address, channel));
            stitched.assert_same(&fresh, &channel.path);
            println!("{:>9} bytes, {:>6} events alike: {}", fresh.bytes.len(), fresh.events, channel.path);
            if channel.path.starts_with("/v1/events") {
                check_journal(&fresh, &run.state.lock().unwrap());
            }
        }
        let turns = turns.join().unwrap();
        for (turn, stitched) in &turns {
            stitched.assert_same(&run.read_turn(address, &sessions[0], turn), turn);
        }
        println!("{} turns alike, each by its own stream", turns.len());
        goes_on(address, &sessions[0]);
        server.kill();
    });
}

fn kill_once(run: &Run, house: &House, port: u16, args: &[&str], moment: Moment) {
    if let Moment::BeforeItIsUp(after) = moment {
        let mut child = Server::spawn(house, port, args);
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    let server = Server::start(house, port, args);
    let (seen, taken) = run.change(|state| {
        state.servers += 1;
        (state.seen, state.acknowledged.len())
    });
    // Moments that do not come (no room for a prompt, nothing left to tell) are replaced by the time they took.
    let patience = Duration::from_secs(1);
    match moment {
        Moment::BeforeItIsUp(_) => {}
        Moment::After(time) => std::thread::sleep(time),
        Moment::AfterEvents(n) => drop(run.wait(patience, |state| (state.seen >= seen + n).then_some(()))),
        Moment::WhenItTakesAPrompt => {
            drop(run.wait(patience, |state| (state.acknowledged.len() > taken).then_some(())))
        }
    }
    server.kill();
}

impl Run {
    fn read_anew(&self, address: SocketAddr, channel: &Channel) -> Kept {
        let wanted = self.state.lock().unwrap().ends(channel.session.as_deref());
        let (mut kept, mut ends) = (Kept::default(), 0);
        let mut stream = Stream::open(address, &channel.path, None).unwrap();
        while ends < wanted {
            let event = stream.next_told().expect("a whole stream");
            ends += usize::from(channel.is_end(&event));
            kept.take(&event);
        }
        kept
    }
}

/// Every prompt that was acknowledged is in the journal, where it was said to be, once, and its turn ended.
fn check_journal(feed: &Kept, state: &State) {
    let text = String::from_utf8(feed.bytes.clone()).unwrap();
    let facts: Vec<Value> = text.split_terminator("\n\n").map(|event| data(event.as_bytes())).collect();
    let mut last = HashMap::<&str, u64>::new();
    let mut stops = BTreeMap::<&str, usize>::new();
    let mut queued = HashMap::<&str, &Value>::new();
    let mut ended = HashSet::<&str>::new();
    for fact in &facts {
        let seq = last.entry(fact["session"].as_str().unwrap()).or_default();
        *seq += 1;
        assert_eq!(fact["seq"], *seq, "a gap in {}", fact["session"]);
        match fact["type"].as_str().unwrap() {
            "prompt_queued" => {
                let twice = queued.insert(fact["data"]["key"].as_str().unwrap(), fact);
                assert!(twice.is_none(), "{} is two turns", fact["data"]["key"]);
            }
            "turn_ended" => {
                assert!(ended.insert(fact["data"]["turn"].as_str().unwrap()), "a turn ended twice: {fact}");
                *stops.entry(fact["data"]["stop"].as_str().unwrap()).or_default() += 1;
            }
            _ => {}
        }
    }
    for prompt in &state.acknowledged {
        let fact = queued.get(prompt.key.as_str()).unwrap_or_else(|| panic!("{prompt:?} is lost"));
        assert_eq!(fact["seq"].to_string(), prompt.position, "{prompt:?} is elsewhere");
        assert_eq!((&fact["session"], &fact["data"]["turn"]), (&json!(prompt.session), &json!(prompt.turn)));
        assert!(ended.contains(prompt.turn.as_str()), "{prompt:?} did not end");
    }
    println!("{} facts, {} prompts acknowledged; turns ended: {stops:?}", facts.len(), state.acknowledged.len());
    assert!(stops.contains_key("interrupted"), "no kill hit a turn; the moments are chosen badly");
    assert!(stops.keys().all(|stop| matches!(*stop, "interrupted" | "end_turn")), "{stops:?}");
}

fn goes_on(address: SocketAddr, session: &str) {
    let path = format!("/v1/sessions/{session}/prompt");
    let accepted = post(address, &path, &json!({ "text": "And now?" })).expect(202);
    let after = accepted["position"].as_str();
    let mut stream = Stream::open(address, &format!("/v1/sessions/{session}/events"), after).unwrap();
    let ended = stream.fact("turn_ended");
    assert_eq!((&ended["data"]["turn"], &ended["data"]["stop"]), (&accepted["turn"], &json!("end_turn")));
}

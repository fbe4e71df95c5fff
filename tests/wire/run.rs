//! A run of servers that come and go, and those who live through it: readers that resume, and a client that
//! goes on prompting. They wait for each other, never for the clock.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tolka_dialect::Dialect;

use crate::http::try_call;
use crate::server::{DEADLINE, send};
use crate::sse::{Kept, Stream, data};

/// What a reader follows.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    pub(crate) path: String,
    /// `None`: all sessions.
    session: Option<String>,
    /// What is in the frame that ends a turn, and in no other.
    ends: &'static [&'static str],
}

impl Channel {
    pub(crate) fn all(epoch: &str, session: &str) -> Vec<Channel> {
        let of_session = Dialect::ALL.map(|dialect| Channel {
            path: format!("/v1/sessions/{session}/events?dialect={dialect}"),
            session: Some(session.to_owned()),
            ends: match dialect {
                Dialect::Tolka => &[r#""type":"turn_ended""#],
                Dialect::Acp => &[r#","id":"trn_"#],
                Dialect::AgentSmithy => &[r#""type":"done""#],
                Dialect::OnyxSteps => &[r#""type":"done""#, r#""type":"error""#],
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

/// How a turn is followed by a stream of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TurnStream {
    Onyx,
    OnyxSteps,
    /// Without `id:` lines: a reader comes back with the number of events that it has.
    AgentSmithy,
}

impl TurnStream {
    pub(crate) const ALL: [TurnStream; 3] = [TurnStream::Onyx, TurnStream::OnyxSteps, TurnStream::AgentSmithy];

    fn open(self, address: SocketAddr, session: &str, turn: &str, had: &Kept) -> std::io::Result<Stream> {
        let events = format!("/api/build/sessions/{session}/turns/{turn}/events");
        match self {
            TurnStream::Onyx => Stream::open(address, &events, had.last.as_deref()),
            TurnStream::OnyxSteps => Stream::open(address, &format!("{events}?packets=steps"), had.last.as_deref()),
            TurnStream::AgentSmithy => {
                let path = format!("/api/chat?dialog_id={session}&turn={turn}&skip={}", had.events);
                Stream::open(address, &path, None)
            }
        }
    }

    fn next(self, stream: &mut Stream) -> Option<Vec<u8>> {
        match self {
            TurnStream::Onyx | TurnStream::OnyxSteps => stream.next_told(),
            TurnStream::AgentSmithy => stream.next_with_data(),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Acknowledged {
    pub(crate) session: String,
    pub(crate) key: String,
    pub(crate) turn: String,
    pub(crate) position: String,
}

/// What all threads know of the run.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    /// Servers that have been up.
    pub(crate) servers: u64,
    /// Events that readers have had.
    pub(crate) seen: usize,
    /// The reader of so many events kills this process at once: what it has just read must be durable.
    pub(crate) kill_at: Option<(usize, u32)>,
    pub(crate) acknowledged: Vec<Acknowledged>,
    /// By session, the turns that ended.
    ended: HashMap<String, HashSet<String>>,
    pub(crate) no_more_prompts: bool,
    /// No more will be told: whoever has all ends may go.
    pub(crate) is_told: bool,
}

impl State {
    pub(crate) fn ends(&self, session: Option<&str>) -> usize {
        let wanted = |of: &str| session.is_none_or(|session| session == of);
        self.ended.iter().filter(|(of, _)| wanted(of)).map(|(_, turns)| turns.len()).sum()
    }

    fn saw_one(&mut self) {
        self.seen += 1;
        if let Some((_, pid)) = self.kill_at.take_if(|(at, _)| self.seen >= *at) {
            send(pid, Signal::KILL);
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        let is_over = |prompt: &Acknowledged| self.ended.get(&prompt.session).is_some_and(|t| t.contains(&prompt.turn));
        self.acknowledged.iter().filter(|prompt| !is_over(prompt)).count()
    }
}

impl Run {
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
        changed
    }

    /// Waits for something of the run; `None` if it takes too long.
    pub(crate) fn wait<T>(&self, patience: Duration, mut is_it: impl FnMut(&State) -> Option<T>) -> Option<T> {
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

    pub(crate) fn read(&self, address: SocketAddr, channel: &Channel) -> Kept {
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
                    state.saw_one();
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
    pub(crate) fn read_turns(&self, address: SocketAddr, session: &str, by: TurnStream) -> Vec<(String, Kept)> {
        let mut turns = Vec::<(String, Kept)>::new();
        loop {
            let next = self.wait(DEADLINE, |state| {
                let next = state.acknowledged.iter().filter(|prompt| prompt.session == session).nth(turns.len());
                next.map(|prompt| Some(prompt.turn.clone())).or(state.is_told.then_some(None))
            });
            let Some(turn) = next.expect("another turn comes") else { return turns };
            let kept = self.read_turn(address, session, &turn, by);
            turns.push((turn, kept));
        }
    }

    pub(crate) fn read_turn(&self, address: SocketAddr, session: &str, turn: &str, by: TurnStream) -> Kept {
        let mut kept = Kept::default();
        loop {
            let server = self.state.lock().unwrap().servers;
            if let Ok(mut stream) = by.open(address, session, turn, &kept) {
                while let Some(event) = by.next(&mut stream) {
                    kept.take(&event);
                    self.change(State::saw_one);
                }
                if stream.ended_well {
                    return kept;
                }
            }
            self.next_server(server);
        }
    }

    /// Keeps a few prompts waiting. A prompt without an answer is sent again with its key: it must be one turn.
    pub(crate) fn prompt(&self, address: SocketAddr, sessions: &[String]) {
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

    /// What a reader gets who was never cut off.
    pub(crate) fn read_anew(&self, address: SocketAddr, channel: &Channel) -> Kept {
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

//! SIGKILL at any moment, again and again, while readers of every kind resume and a client goes on prompting.
//!
//! What each reader has in the end, stitched together over all breaks, must be what a new reader gets; what was
//! acknowledged must be there; a turn that was killed must have ended as interrupted; and it must go on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{get, new_session, post};
use crate::recording::busy_turn;
use crate::run::{Channel, Run, State, TurnStream};
use crate::server::{DEADLINE, House, Server, free_port};
use crate::sse::{Kept, Stream, data};

/// When the server is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    BeforeItIsUp(Duration),
    After(Duration),
    AfterEvents(usize),
    WhenItTakesAPrompt,
}

/// SplitMix64: the moments of a run can be chosen again from its seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
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

pub(crate) fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

/// So many kills are made of one journal; more of them begin another, so that what readers keep stays bounded.
const ROUND: u64 = 250;

#[test]
fn kills_at_any_moment_lose_nothing_and_repeat_nothing() {
    let mut kills = number("TOLKA_KILLS", 50);
    let seed = number("TOLKA_SEED", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("{kills} kills, TOLKA_SEED={seed}");
    let mut chance = Chance(seed);
    while kills > 0 {
        let now = kills.min(ROUND);
        kill_often(now, &mut chance);
        kills -= now;
    }
}

fn kill_often(kills: u64, chance: &mut Chance) {
    let (house, port) = (House::new(), free_port());
    let agent = house.plays(&busy_turn(6, 1000));
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
        let session = &sessions[0];
        let followers = TurnStream::ALL.map(|by| (by, scope.spawn(move || run.read_turns(address, session, by))));
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
        for (by, follower) in followers {
            let turns = follower.join().unwrap();
            for (turn, stitched) in &turns {
                stitched.assert_same(&run.read_turn(address, session, turn, by), turn);
            }
            println!("{} turns alike, each by a stream of {by:?}", turns.len());
        }
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
    let _ = match moment {
        Moment::BeforeItIsUp(_) => None,
        Moment::After(time) => run.wait(time, |_| None),
        Moment::AfterEvents(n) => {
            run.change(|state| state.kill_at = Some((seen + n, server.pid())));
            let killed = run.wait(patience, |state| state.kill_at.is_none().then_some(()));
            run.change(|state| state.kill_at = None);
            killed
        }
        Moment::WhenItTakesAPrompt => run.wait(patience, |state| (state.acknowledged.len() > taken).then_some(())),
    };
    server.kill();
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

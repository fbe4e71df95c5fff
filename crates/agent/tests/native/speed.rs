//! What the loop costs: for a piece of text on its way through it, and for a step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream;
use tolka_agent::native::Native;
use tolka_agent::native::model::{Model, Piece, Pieces, Request};
use tolka_agent::{Agent as _, Mind, ModelAbout, NoPast, Past, Place, Prompt, Remembered, Remembering, Said, teller};
use tolka_facts::event::{
    Finish, Model as ModelName, PromptQueued, StepEnded, StepStarted, Stop, ToolChanged, TurnEnded, TurnStarted,
};
use tolka_facts::{
    Blobs, Block, CallId, Draft, Event, Hash, Ids, Json, MessageId, SessionId, Time, ToolStatus, TurnId, View,
};

use crate::hall::Hall;

/// A model that has its whole answer at once: so many words, and for so many steps a call that fails at once.
#[derive(Debug)]
struct Prompter {
    about: ModelAbout,
    words: usize,
    steps: usize,
    asked: AtomicUsize,
}

impl Model for Prompter {
    fn about(&self) -> &ModelAbout {
        &self.about
    }

    fn ask(&self, _: Request) -> Pieces {
        let step = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let words = (0..self.words).map(|_| Ok(Piece::Text("word ".to_owned())));
        let call = (step < self.steps).then(|| {
            [
                Ok(Piece::CallBegan { slot: 0, id: String::new(), name: "nothing".to_owned() }),
                Ok(Piece::CallInput { slot: 0, text: format!("{{\"step\":{step}}}") }),
            ]
        });
        let end = Ok(Piece::Ended { finish: Finish::Stop, is_refusal: false, usage: None });
        Box::pin(stream::iter(words.chain(call.into_iter().flatten()).chain([end])))
    }
}

/// The processor's time that this thread has had; other tests run beside it. Elsewhere than on Linux the clock's.
fn now(began: Instant) -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).map(Duration::from_nanos);
    spent.unwrap_or_else(|| began.elapsed())
}

/// A session with a mind and a listener that only counts.
struct Counted {
    mind: Box<dyn Mind>,
    turns: u64,
    // Its folder goes with it.
    _hall: Hall,
}

impl Counted {
    fn open(words: usize, steps: usize, past: Arc<dyn Past>) -> Self {
        let about = ModelAbout::named(ModelName { provider: "instant".into(), id: "m".into() });
        let mut hall = Hall::open(vec![Arc::new(Prompter { about, words, steps, asked: AtomicUsize::new(0) })]);
        hall.settings.steps = u32::try_from(steps).unwrap();
        let agent = Native::new("native", Arc::new(hall.settings.clone()));
        let workspace = hall.folder.path().to_str().unwrap().to_owned();
        let mind = agent.open(Place {
            session: SessionId::from("ses_test"),
            workspace,
            turns: 0,
            past,
            family: None,
            depth: 0,
        });
        Counted { mind, turns: 0, _hall: hall }
    }

    /// What one turn cost this thread, and how many facts it told.
    async fn turn(&mut self) -> (Duration, usize) {
        let (teller, mut said, _switch) = teller(Arc::new(Ids::seeded(1)));
        self.turns += 1;
        let turn = TurnId::from(format!("trn_running_{}", self.turns));
        let prompt = Prompt { turn, content: vec![Block::text("Go")], ..Prompt::default() };
        let clock = Instant::now();
        let began = now(clock);
        let mut told = 0;
        let mut running = self.mind.turn(prompt, &teller);
        loop {
            tokio::select! {
                biased;
                Some(said) = said.recv() => match said {
                    Said::Told(_) => told += 1,
                    Said::Steering(reply) => reply.send(Vec::new()).unwrap(),
                    other => panic!("{other:?}"),
                },
                _ = &mut running => return (now(clock) - began, told),
            }
        }
    }
}

async fn cost(words: usize, steps: usize) -> (Duration, usize) {
    Counted::open(words, steps, Arc::new(NoPast)).turn().await
}

/// A session that has run many commands, each with an output of so many bytes; and how often such an output was read.
#[derive(Debug)]
struct Long {
    view: View,
    output: Vec<u8>,
    read: Arc<AtomicUsize>,
}

impl Long {
    fn past(turns: usize, bytes: usize) -> Arc<Self> {
        let line = "a line of what a command says, as long as most of them are\n";
        let text: String = line.chars().cycle().take(bytes).collect();
        let output = serde_json::json!({ "output": text, "metadata": { "exit": 0 } }).to_string().into_bytes();
        let mut view = View::default();
        let mut seq = 0;
        let mut tell = |event: Event| {
            seq += 1;
            let mut draft = Draft::agent(event);
            draft.spill(&mut |_| {});
            view.apply(&draft.stamp(SessionId::from("ses_test"), seq, Time::from_millis(seq)));
        };
        for nth in 0..turns {
            let (turn, message) = (TurnId::from(format!("trn_{nth}")), MessageId::from(format!("msg_{nth}")));
            let call = CallId::from(format!("call_{nth}"));
            let content = vec![Block::text("Run it")];
            let prompt = MessageId::from(format!("msg_prompt_{nth}"));
            let (key, agent, model, context, steers) = (None, None, None, None, None);
            tell(
                PromptQueued { turn: turn.clone(), message: prompt, content, key, agent, model, context, steers }
                    .into(),
            );
            tell(TurnStarted { turn: turn.clone(), checkpoint: None }.into());
            tell(StepStarted { message: message.clone(), model: None }.into());
            let output = Json::parse(std::str::from_utf8(&output).unwrap()).unwrap();
            let ran = ToolChanged {
                name: Some("bash".into()),
                status: Some(ToolStatus::Completed),
                input: Some(Json::from(serde_json::json!({ "command": "make" }))),
                output: Some(output),
                ..ToolChanged::of(call)
            };
            tell(ran.into());
            tell(StepEnded { message, finish: Finish::ToolCalls, usage: None, cost: None, kept: None }.into());
            tell(TurnEnded { turn, stop: Stop::EndTurn, usage: None, cost: None, meta: None }.into());
        }
        Arc::new(Long { view, output, read: Arc::default() })
    }
}

impl Past for Long {
    fn remember(&self) -> Remembering<'_> {
        self.go_on(self.view.clone())
    }

    fn go_on(&self, view: View) -> Remembering<'_> {
        let blobs = Arc::new(Outputs(self.output.clone(), self.read.clone()));
        Box::pin(async { Ok(Remembered { view, blobs }) })
    }
}

struct Outputs(Vec<u8>, Arc<AtomicUsize>);

impl Blobs for Outputs {
    fn blob(&self, _: &Hash) -> Option<Vec<u8>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Some(self.0.clone())
    }
}

/// What was read once need not be read again: the second turn of a mind reads nothing of a hundred long outputs.
#[tokio::test]
async fn a_turn_in_a_long_session_costs_little() {
    let past = Long::past(100, 256 * 1024);
    let mut session = Counted::open(1, 1, past.clone());
    let began = Instant::now();
    session.turn().await;
    let first = began.elapsed();
    let read = past.read.load(Ordering::Relaxed);
    let began = Instant::now();
    session.turn().await;
    println!("{first:?} for the first turn ({read} outputs read), {:?} for the next", began.elapsed());
    assert_eq!(past.read.load(Ordering::Relaxed), read, "outputs were read again");
}

/// A step sends all that was said before it; it does not copy it.
#[tokio::test]
async fn a_step_after_much_was_said_costs_little() {
    let past = Long::past(100, 256 * 1024);
    let mut session = Counted::open(1, 200, past);
    let (spent, _) = session.turn().await;
    let each = spent / 200;
    println!("{each:?} for a step with 5 MB before it");
    assert!(each < Duration::from_millis(5), "{each:?} for a step");
}

/// Goal: far below 50 µs for a token, in a build without optimisation too.
#[tokio::test]
async fn a_token_costs_little() {
    let (spent, told) = cost(50_000, 1).await;
    let each = spent / 50_000;
    println!("{each:?} for a token");
    assert!(told > 50_000, "{told}");
    assert!(each < Duration::from_micros(50), "{each:?} for a token");
}

/// All steps of a turn: the conversation that is sent grows with each.
#[tokio::test]
async fn a_step_costs_little() {
    let (spent, told) = cost(10, 200).await;
    let each = spent / 200;
    println!("{each:?} for a step");
    assert!(told > 200 * 13, "{told}");
    assert!(each < Duration::from_millis(5), "{each:?} for a step");
}

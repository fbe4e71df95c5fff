//! What the loop costs: for a piece of text on its way through it, and for a step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream;
use tolka_agent::native::Native;
use tolka_agent::native::model::{Model, Piece, Pieces, Request};
use tolka_agent::{Agent as _, ModelAbout, NoPast, Place, Prompt, Said, teller};
use tolka_facts::event::{Finish, Model as ModelName};
use tolka_facts::{Block, Ids, SessionId};

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

/// The cost of one turn with a session that only counts, and how many facts it was told.
async fn cost(words: usize, steps: usize) -> (Duration, usize) {
    let about = ModelAbout::named(ModelName { provider: "instant".into(), id: "m".into() });
    let mut hall = Hall::open(vec![Arc::new(Prompter { about, words, steps, asked: AtomicUsize::new(0) })]);
    hall.settings.steps = u32::try_from(steps).unwrap();
    let agent = Native::new("native", Arc::new(hall.settings.clone()));
    let workspace = hall.folder.path().to_str().unwrap().to_owned();
    let place = Place { session: SessionId::from("ses_test"), workspace, turns: 0, past: Arc::new(NoPast) };
    let mut mind = agent.open(place);
    let (teller, mut said, _switch) = teller(Arc::new(Ids::seeded(1)));
    let prompt = Prompt { content: vec![Block::text("Go")], ..Prompt::default() };
    let clock = Instant::now();
    let began = now(clock);
    let mut told = 0;
    let mut running = mind.turn(prompt, &teller);
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

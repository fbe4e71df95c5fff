//! What a piece of text costs on its way through the loop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream;
use tolka_agent::native::Native;
use tolka_agent::native::model::{Model, Piece, Pieces, Request};
use tolka_agent::{Agent as _, ModelAbout, NoPast, Place, Prompt, Said, teller};
use tolka_facts::event::{Finish, Model as ModelName};
use tolka_facts::{Block, Ids, SessionId};

use crate::hall::Hall;

/// A model that says all it has at once.
#[derive(Debug)]
struct Prompter {
    about: ModelAbout,
    pieces: usize,
}

impl Model for Prompter {
    fn about(&self) -> &ModelAbout {
        &self.about
    }

    fn ask(&self, _: Request) -> Pieces {
        let words = (0..self.pieces).map(|_| Ok(Piece::Text("word ".to_owned())));
        let end = Ok(Piece::Ended { finish: Finish::Stop, is_refusal: false, usage: None });
        Box::pin(stream::iter(words.chain([end])))
    }
}

/// Goal: far below 50 µs for a token. Here with a session that only counts, and in a build without optimisation.
#[tokio::test]
async fn a_token_costs_little() {
    let pieces = 50_000;
    let about = ModelAbout::named(ModelName { provider: "instant".into(), id: "m".into() });
    let mut hall = Hall::open(Vec::new());
    hall.settings.models = vec![Arc::new(Prompter { about, pieces })];
    let agent = Native::new("native", Arc::new(hall.settings.clone()));
    let workspace = hall.folder.path().to_str().unwrap().to_owned();
    let place = Place { session: SessionId::from("ses_test"), workspace, turns: 0, past: Arc::new(NoPast) };
    let mut mind = agent.open(place);
    let (teller, mut said, _switch) = teller(Arc::new(Ids::seeded(1)));
    let prompt = Prompt { content: vec![Block::text("Go")], ..Prompt::default() };
    let began = Instant::now();
    let mut count = 0;
    let mut running = mind.turn(prompt, &teller);
    loop {
        tokio::select! {
            biased;
            Some(said) = said.recv() => match said {
                Said::Told(_) => count += 1,
                Said::Steering(reply) => reply.send(Vec::new()).unwrap(),
                _ => {}
            },
            _ = &mut running => break,
        }
    }
    let each = began.elapsed() / u32::try_from(pieces).unwrap();
    println!("{each:?} for a token");
    assert!(count > pieces, "{count}");
    assert!(each < Duration::from_micros(50), "{each:?} for a token");
}

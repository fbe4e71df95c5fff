//! What a token costs.

use std::time::Instant;

use futures_util::StreamExt;
use tolka_agent::native::model::Piece;
use tolka_scripted::{Answer, Beat, Script, Scripted};

use crate::said::{both, prompt};

/// The processor time of this thread, which runs the wire and nothing else.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e3
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "a measurement: cargo test --profile measure -p tolka-agent --test model cost -- --ignored --nocapture"]
async fn a_token_costs_little() {
    const TOKENS: u64 = 200_000;
    let flood = Answer::beats([Beat::Flood { text: "tok ".to_owned(), times: TOKENS }]).for_ever();
    let provider = Scripted::start(Script::of([flood])).unwrap();
    for (name, model) in both(&provider) {
        for _ in 0..3 {
            let (mut count, begin, clock) = (0, cpu(), Instant::now());
            let mut stream = model.ask(prompt("go"));
            while let Some(piece) = stream.next().await {
                count += u64::from(matches!(piece, Ok(Piece::Text(_))));
            }
            assert_eq!(count, TOKENS);
            let each = (cpu() - begin) / TOKENS as f64;
            println!("{name}: {each:.2} µs of processor time for a token, {:.2?} in all", clock.elapsed());
        }
    }
}

//! Readers that come and go leave nothing behind: the same turn costs the same before and after.

use anyhow::Result;

use crate::Bench;
use crate::figure::percentile;
use crate::paced::{EVERY, turn};
use crate::report::{Figure, Goal};
use crate::server::{Script, new_session, readers};

const COME_AND_GO: usize = 10_000;
const AT_ONCE: usize = 500;
const STAY: usize = 100;

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let mut before: [Vec<f64>; 4] = Default::default();
    let mut after: [Vec<f64>; 4] = Default::default();
    let mut fresh = Vec::new();
    for _ in 0..bench.runs {
        let (server, _scratch) = bench.tolka.play(&Script::paced(200, EVERY), &[]).await?;
        let session = new_session(&server).await?;
        fresh.push(server.rss()? / 1e6);
        // As many readers at once as will be later: what is kept for the next ones is no leak.
        drop(readers(&server, &session, AT_ONCE).await?);
        let all = [&mut before, &mut after];
        for (nth, figures) in all.into_iter().enumerate() {
            if nth == 1 {
                for _ in 0..COME_AND_GO / AT_ONCE {
                    drop(readers(&server, &session, AT_ONCE).await?);
                }
            }
            let paced = turn(bench, &server, STAY).await?;
            figures[0].push(percentile(&paced.delays, 50.0));
            figures[1].push(percentile(&paced.delays, 99.0));
            figures[2].push(paced.cpu);
            figures[3].push(server.rss()? / 1e6);
        }
        server.stop().await?;
    }
    let memory = Figure::of(after[3].clone());
    let names = [("delay p50", "ms"), ("delay p99", "ms"), ("server CPU per delivery", "µs"), ("memory", "MB")];
    for (((name, unit), after), before) in names.into_iter().zip(after).zip(before) {
        let what = format!("{name}, {STAY} readers, after 10,000 came and went");
        bench
            .report
            .row(&what, unit, Figure::of(after), Some(("after the first 500", Figure::of(before))))
            .goal(Goal::RatioAtMost(1.2));
    }
    let what = "memory, after 10,000 came and went, beside a server that had no reader yet";
    bench.report.row(what, "MB", memory, Some(("fresh", Figure::of(fresh))));
    Ok(())
}

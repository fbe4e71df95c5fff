//! What a server holds when nothing happens: alone, per reader, per session.

use anyhow::Result;
use serde_json::json;

use crate::Bench;
use crate::report::{Figure, Goal};
use crate::seed::one_of_many;
use crate::server::{Script, new_session, readers, readers_at_the_end};

const READERS: usize = 1000;
const SESSIONS: u64 = 1000;

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let many = bench.seeds.many(SESSIONS).await?;
    let (mut alone, mut per_reader, mut at_the_end, mut per_session) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        let (server, _scratch) = bench.tolka.play(&Script::burst(1), &[]).await?;
        server.get("/healthz").await?;
        let session = new_session(&server).await?;
        let before = server.rss()?;
        let waiting = readers(&server, &session, READERS).await?;
        alone.push(before / 1e6);
        per_reader.push((server.rss()? - before) / READERS as f64 / 1024.0);
        drop(waiting);
        server.stop().await?;

        let (server, _scratch) = bench.tolka.play(&Script::burst(1), &[]).await?;
        let session = new_session(&server).await?;
        let before = server.rss()?;
        let waiting = readers_at_the_end(&server, &session, READERS).await?;
        at_the_end.push((server.rss()? - before) / READERS as f64 / 1024.0);
        drop(waiting);
        server.stop().await?;

        let server = bench.tolka.serve(&many, &[]).await?;
        server.get("/v1/sessions").await?;
        let before = server.rss()?;
        for n in 0..SESSIONS {
            // A change of its title brings a session's actor in.
            let path = format!("/v1/sessions/{}", one_of_many(n));
            server.request("PATCH", &path, &json!({ "title": "Touched" }).to_string()).await?;
        }
        per_session.push((server.rss()? - before) / SESSIONS as f64 / 1024.0);
        server.stop().await?;
    }
    let report = &mut bench.report;
    report.point("memory", "an idle server, MB", 0.0, Figure::of(alone.clone()).median);
    report.row("memory of an idle server", "MB", Figure::of(alone), None).goal(Goal::AtMost(15.0));
    report.row("memory per idle reader", "KiB", Figure::of(per_reader), None).goal(Goal::AtMost(20.0));
    report.row("memory per idle reader that had nothing to catch up (`after=1`)", "KiB", Figure::of(at_the_end), None);
    report.row("memory per idle session loaded", "KiB", Figure::of(per_session), None).goal(Goal::AtMost(50.0));
    Ok(())
}

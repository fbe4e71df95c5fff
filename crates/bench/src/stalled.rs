//! A thousand readers in mixed dialects stop reading while much is told: what the server holds then, and whether they
//! get all of it when they read on.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpSocket;

use crate::Bench;
use crate::reader::{Numbers, Reader};
use crate::report::{Figure, Goal};
use crate::server::{Script, new_session, prompt, readers};

const READERS: usize = 1000;
/// So many of them read on to the end; all thousand would read a hundred gigabytes.
const READ_ON: usize = 10;
const DIALECTS: [&str; 5] = ["tolka", "acp", "onyx", "agentsmithy", "opencode"];
/// 8,192 pieces of 8 KiB: 64 MiB of text, more on every wire.
const PIECES: usize = 8192;
const PIECE: usize = 8192;

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let (mut before, mut peak, mut differ) = (Vec::new(), Vec::new(), 0);
    // Each run moves gigabytes: three show whether it is bounded.
    for _ in 0..bench.runs.min(3) {
        let text = "All work and no play makes a long text. ".repeat(PIECE / 40);
        // Parts end, as they do: a wire that repeats whole parts would tell this a hundred times otherwise.
        let script = Script { pieces: PIECES, every: Duration::ZERO, part: 4, text };
        let (server, _scratch) = bench.tolka.play(&script, &[]).await?;
        let session = new_session(&server).await?;
        let mut stalled = Vec::new();
        for n in 0..READERS {
            let dialect = DIALECTS[n % DIALECTS.len()];
            let path = format!("/v1/sessions/{session}/events?dialect={dialect}");
            let socket = TcpSocket::new_v4()?;
            // Little is in flight: what they have not read is the server's, or the journal's.
            socket.set_recv_buffer_size(16 * 1024)?;
            let socket = socket.connect(server.address.parse()?).await?;
            let mut reader = Reader::ask_on(socket, &server.address, &path, Numbers::None).await?;
            reader.sum = Some(0);
            reader.read().await?;
            stalled.push((dialect, path, reader));
        }
        let mut keen = readers(&server, &session, 1).await?.remove(0);
        keen.captured = None;
        before.push(server.rss()? / 1e6);
        prompt(&server, &session).await?;
        keen.until(b"\"turn_ended\"").await?;
        bench.ledger.add(&keen.seen);
        for (dialect, path, reader) in stalled.iter_mut().take(READ_ON) {
            read_to_end(reader, dialect).await?;
            let mut fresh = Reader::ask(&server.address, path, Numbers::None).await?;
            fresh.sum = Some(0);
            read_to_end(&mut fresh, dialect).await?;
            differ += usize::from(fresh.sum != reader.sum);
        }
        peak.push(server.peak_rss()? / 1e6);
        server.stop().await?;
    }
    let report = &mut bench.report;
    let what = "1,000 stalled readers, five dialects, 64 MiB told";
    report.point("memory", "1,000 stalled readers, MB", 0.0, Figure::of(peak.clone()).median);
    report.row(&format!("most memory, {what}"), "MB", Figure::of(peak), Some(("before", Figure::of(before))));
    let row =
        report.row(&format!("{READ_ON} that read on and differ, {what}"), "", Figure::of(vec![differ as f64]), None);
    row.goal(Goal::AtMost(0.0)).note("each beside a new reader of the same stream");
    Ok(())
}

/// The frame that tells the end of a turn, in each dialect.
async fn read_to_end(reader: &mut Reader, dialect: &str) -> Result<()> {
    let mark: &[u8] = match dialect {
        "tolka" => b"\"turn_ended\"",
        "acp" => b"\"stopReason\"",
        "onyx" => b"prompt_response",
        "agentsmithy" => b"\"done\"",
        "opencode" => b"session.idle",
        _ => anyhow::bail!("no such dialect"),
    };
    reader.until(mark).await.with_context(|| format!("in {dialect}"))
}

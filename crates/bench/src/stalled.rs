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
/// They lie so far apart: among the first and the last that came, and in every dialect, since it is no multiple of five.
const APART: usize = READERS / READ_ON + 1;
const DIALECTS: [&str; 5] = ["tolka", "acp", "onyx", "agentsmithy", "opencode"];
/// 8,192 pieces of 8 KiB: 64 MiB of text, more on every wire.
const PIECES: usize = 8192;
const PIECE: usize = 8192;
/// Of the kernel's memory; the usual one.
const PAGE: f64 = 4096.0;

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let (mut before, mut peak, mut differ) = (Vec::new(), Vec::new(), 0);
    let mut cut = 0;
    let (mut kernel_before, mut kernel) = (Vec::new(), Vec::new());
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
        kernel_before.push(kernel_memory()? / 1e6);
        prompt(&server, &session).await?;
        keen.until(b"\"turn_ended\"").await?;
        bench.ledger.add(&keen.seen);
        kernel.push(kernel_memory()? / 1e6);
        for (dialect, path, reader) in stalled.iter_mut().step_by(APART) {
            if let Err(error) = read_to_end(reader, dialect).await {
                // Where memory is short the server cuts off who stands still: they come back, as clients do.
                anyhow::ensure!(is_cut_off(&error), error);
                cut += 1;
                reader.come_back(&server.address, path).await?;
                read_to_end(reader, dialect).await?;
            }
            let mut fresh = Reader::ask(&server.address, path, Numbers::None).await?;
            fresh.sum = Some(0);
            read_to_end(&mut fresh, dialect).await?;
            anyhow::ensure!(fresh.sum != Some(0), "no frame of {dialect} has a position and data");
            differ += usize::from(fresh.sum != reader.sum);
        }
        peak.push(server.peak_rss()? / 1e6);
        server.stop().await?;
    }
    let report = &mut bench.report;
    let what = "1,000 stalled readers, five dialects, 64 MiB told";
    report.point("memory", "1,000 stalled readers, MB", 0.0, Figure::of(peak.clone()).median);
    report.row(&format!("most memory, {what}"), "MB", Figure::of(peak), Some(("before", Figure::of(before))));
    let before = Some(("before", Figure::of(kernel_before)));
    report
        .row(&format!("the kernel's memory for TCP, {what}"), "MB", Figure::of(kernel), before)
        .note("of the whole machine, both ends of every connection; the readers have small receive buffers");
    let row =
        report.row(&format!("{READ_ON} that read on and differ, {what}"), "", Figure::of(vec![differ as f64]), None);
    row.goal(Goal::AtMost(0.0)).note(format!(
        "each beside a new reader of the same stream; {cut} of them had been cut off and came back to where they were"
    ));
    Ok(())
}

fn is_cut_off(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

/// Bytes that the kernel holds in buffers of TCP, for the whole machine: no figure of a process has them.
fn kernel_memory() -> Result<f64> {
    let sockets = std::fs::read_to_string("/proc/net/sockstat")?;
    Ok(tcp_pages(&sockets).context("/proc/net/sockstat says nothing of TCP")? * PAGE)
}

fn tcp_pages(sockets: &str) -> Option<f64> {
    let mut words =
        sockets.lines().find_map(|line| line.strip_prefix("TCP: "))?.split(' ').skip_while(|word| *word != "mem");
    words.nth(1)?.parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_read_on_are_ten_of_all_dialects() {
        let chosen: Vec<usize> = (0..READERS).step_by(APART).collect();
        assert_eq!((chosen.len(), chosen.last()), (READ_ON, Some(&909)));
        for n in 0..DIALECTS.len() {
            assert_eq!(chosen.iter().filter(|reader| *reader % DIALECTS.len() == n).count(), 2);
        }
    }

    #[test]
    fn the_pages_of_tcp_are_found() {
        let sockets = "sockets: used 9\nTCP: inuse 12 orphan 0 tw 20 alloc 15 mem 749\nUDP: inuse 0 mem 256\n";
        assert_eq!(tcp_pages(sockets), Some(749.0));
        assert_eq!(tcp_pages("UDP: inuse 0 mem 256\n"), None);
    }
}

//! Events delivered per second as fast as it goes, and what each delivery costs the server, beside raw TCP with the
//! same bytes in pieces of the same size, and beside a server that encodes for each reader.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Bench;
use crate::body::Body;
use crate::gapless::{Gapless, Ledger};
use crate::process::Process;
use crate::reader::{Numbers, Reader};
use crate::report::{Figure, Goal};
use crate::server::{Script, new_session, prompt, readers};

const LAST: &[u8] = b"\"turn_ended\"";

/// What a set of readers saw, and what it cost.
struct Delivered {
    seconds: f64,
    cpu: f64,
    events: f64,
    /// Bytes in one of the server's writes, on average.
    piece: usize,
    captured: Vec<u8>,
    /// The number of the first event that each had to see.
    first: u64,
}

#[derive(Default)]
struct Rates {
    rates: Vec<f64>,
    costs: Vec<f64>,
}

impl Rates {
    fn add(&mut self, delivered: &Delivered) {
        self.rates.push(delivered.events / delivered.seconds);
        self.costs.push(delivered.cpu / delivered.events * 1e6);
    }
}

/// The whole path: told by an agent, made durable, encoded, written to every reader.
pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    for (count, pieces) in [(1, 60_000), (100, 10_000), (1000, 2_000)] {
        let (mut ours, mut raw, mut each) = (Rates::default(), Rates::default(), Rates::default());
        let mut piece = 0;
        for _ in 0..bench.runs {
            let delivered = burst(bench, count, pieces).await?;
            ours.add(&delivered);
            piece = delivered.piece;
            raw.add(&beside_raw(&delivered, count, 1).await?);
            each.add(&beside_each(&delivered, count, 1).await?);
        }
        let who = readers_of(count);
        let what = format!("events delivered, burst of {}, {who}", thousands(pieces));
        rows(bench, &what, &format!("server CPU per delivery, burst, {who}"), count, piece, ours, raw, each);
    }
    Ok(())
}

/// Delivery alone: readers join a channel that has all they want in shared segments.
pub(crate) async fn ready(bench: &mut Bench) -> Result<()> {
    const PIECES: usize = 3_000;
    for (count, rounds) in [(1, 100), (100, 4), (1000, 1)] {
        let (mut ours, mut raw, mut each) = (Rates::default(), Rates::default(), Rates::default());
        let mut piece = 0;
        for _ in 0..bench.runs {
            // Told anew for every run: a channel that has been quiet for ten seconds keeps nothing.
            let (server, _scratch) = bench.tolka.play(&Script::burst(PIECES), &[]).await?;
            let session = new_session(&server).await?;
            // It keeps the channel while others come and go.
            let mut keeper = readers(&server, &session, 1).await?.remove(0);
            prompt(&server, &session).await?;
            keeper.until(LAST).await?;
            // What came before the channel was there is not in its segments.
            let (path, first) = (format!("/v1/sessions/{session}/events?after=1"), 2);
            let delivered = join(&server, &path, first, (count, rounds), &mut bench.ledger).await?;
            server.stop().await?;
            ours.add(&delivered);
            piece = delivered.piece;
            raw.add(&beside_raw(&delivered, count, rounds).await?);
            each.add(&beside_each(&delivered, count, rounds).await?);
        }
        let who = readers_of(count);
        let what = format!("events delivered, {} ready, {who}", thousands(PIECES));
        rows(bench, &what, &format!("server CPU per delivery, ready, {who}"), count, piece, ours, raw, each);
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "they are the columns of a table")]
fn rows(bench: &mut Bench, what: &str, cpu: &str, count: usize, piece: usize, ours: Rates, raw: Rates, each: Rates) {
    let chart = if what.contains("ready") { "ready" } else { "burst" };
    let (our_rate, raw_rate, each_rate) = (Figure::of(ours.rates), Figure::of(raw.rates), Figure::of(each.rates));
    for (line, figure) in [("raw TCP", raw_rate), ("Tolka", our_rate), ("encoded per reader", each_rate)] {
        bench.report.point(chart, line, count as f64, figure.median);
    }
    let note = format!("raw TCP in pieces of {piece} bytes, the average of the server's own");
    bench.report.row(what, "per s", our_rate, Some(("raw TCP", raw_rate))).goal(Goal::RatioAtLeast(0.7)).note(note);
    let each_row = format!("{what}, against encoded per reader");
    bench.report.row(&each_row, "per s", our_rate, Some(("encoded per reader", each_rate)));
    let row = bench.report.row(cpu, "µs", Figure::of(ours.costs), Some(("raw TCP", Figure::of(raw.costs))));
    if count == 1000 {
        row.goal(Goal::AtMost(1.0));
    }
}

async fn burst(bench: &mut Bench, count: usize, pieces: usize) -> Result<Delivered> {
    let (server, _scratch) = bench.tolka.play(&Script::burst(pieces), &[]).await?;
    let session = new_session(&server).await?;
    let mut reading = JoinSet::new();
    for mut reader in readers(&server, &session, count).await? {
        reading.spawn(async move { reader.until(LAST).await.map(|()| reader) });
    }
    let (cpu, started) = (server.cpu()?, Instant::now());
    prompt(&server, &session).await?;
    let done = finished(reading, started, 1, &mut bench.ledger).await?;
    let delivered = Delivered { cpu: server.cpu()? - cpu, ..done };
    server.stop().await?;
    Ok(delivered)
}

/// So many readers at once, so many times, each of which must see all from `first` on.
async fn join(
    server: &Process,
    path: &str,
    first: u64,
    (count, rounds): (usize, usize),
    ledger: &mut Ledger,
) -> Result<Delivered> {
    let cpu = server.cpu()?;
    let mut total: Option<Delivered> = None;
    for _ in 0..rounds {
        let sockets = connect(server, count).await?;
        let started = Instant::now();
        let mut reading = JoinSet::new();
        for (n, socket) in sockets.into_iter().enumerate() {
            let (address, path) = (server.address.clone(), path.to_owned());
            reading.spawn(async move {
                let mut reader = Reader::ask_on(socket, &address, &path, Numbers::Positions).await?;
                reader.captured = (n == 0).then(Vec::new);
                reader.seen = Gapless::starting_at(first);
                reader.until(LAST).await.map(|()| reader)
            });
        }
        let done = finished(reading, started, first, ledger).await?;
        total = Some(match total {
            Some(so_far) => {
                Delivered { seconds: so_far.seconds + done.seconds, events: so_far.events + done.events, ..done }
            }
            None => done,
        });
    }
    let total = total.context("no round")?;
    Ok(Delivered { cpu: server.cpu()? - cpu, ..total })
}

async fn finished(
    mut reading: JoinSet<Result<Reader>>,
    started: Instant,
    first: u64,
    ledger: &mut Ledger,
) -> Result<Delivered> {
    let mut readers = Vec::new();
    while let Some(reader) = reading.join_next().await {
        readers.push(reader??);
    }
    let seconds = started.elapsed().as_secs_f64();
    let last = readers.iter().filter_map(|reader| reader.seen.last()).max().unwrap_or(0);
    let mut delivered = Delivered { seconds, cpu: 0.0, events: 0.0, piece: 0, captured: Vec::new(), first };
    let (mut bytes, mut pieces) = (0, 0);
    for mut reader in readers {
        reader.seen.ended_at(last);
        ledger.add(&reader.seen);
        delivered.events += reader.seen.events as f64;
        bytes += reader.bytes;
        pieces += reader.pieces();
        delivered.captured.append(&mut reader.captured.unwrap_or_default());
    }
    delivered.piece = (bytes / pieces.max(1)) as usize;
    Ok(delivered)
}

async fn beside_raw(ours: &Delivered, count: usize, rounds: usize) -> Result<Delivered> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), &ours.captured)?;
    beside(&["raw-server", path(file.path())?, &ours.piece.to_string()], ours.first, (count, rounds)).await
}

async fn beside_each(ours: &Delivered, count: usize, rounds: usize) -> Result<Delivered> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), facts_of(&ours.captured)?)?;
    beside(&["each-server", path(file.path())?], ours.first, (count, rounds)).await
}

async fn beside(args: &[&str], first: u64, readers: (usize, usize)) -> Result<Delivered> {
    let server = Process::start(&std::env::current_exe()?, args).await?;
    // A reference that loses is a fault of the bench, not of the server: it has a ledger of its own.
    let mut ledger = Ledger::default();
    let delivered = join(&server, "/", first, readers, &mut ledger).await?;
    anyhow::ensure!(ledger.lost + ledger.doubled == 0, "the reference lost events");
    server.stop().await?;
    Ok(delivered)
}

async fn connect(server: &Process, count: usize) -> Result<Vec<TcpStream>> {
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        sockets.push(TcpStream::connect(&server.address).await?);
    }
    Ok(sockets)
}

/// The facts in an answer of our own wire, a line each.
pub(crate) fn facts_of(answer: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    Body::default().feed(answer, &mut body)?;
    let mut lines = Vec::with_capacity(body.len());
    for line in body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: ")) {
        lines.extend_from_slice(line);
        lines.push(b'\n');
    }
    Ok(lines)
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is no text")
}

pub(crate) fn readers_of(count: usize) -> String {
    format!("{} reader{}", thousands(count), if count == 1 { "" } else { "s" })
}

pub(crate) fn thousands(n: usize) -> String {
    match n {
        n if n >= 1_000_000 => format!("{},{:03},{:03}", n / 1_000_000, n / 1000 % 1000, n % 1000),
        n if n >= 1000 => format!("{},{:03}", n / 1000, n % 1000),
        n => n.to_string(),
    }
}

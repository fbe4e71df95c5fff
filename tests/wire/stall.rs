//! A reader that stops reading costs nobody anything and loses nothing.

use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde_json::json;

use crate::http::{Connection, new_session, prompt};
use crate::recording::Score;
use crate::server::House;
use crate::sse::{Kept, Stream};

const MIB: usize = 1024 * 1024;
const TURNS: usize = 10;
/// What is told after the kernel's buffers are full.
const HELD_BACK: usize = 64 * MIB;
/// A development build with one client that does not read. What it is not told waits on the disk.
const MEMORY: u64 = 300 * MIB as u64;

/// Ten turns, each with 8 MiB of text and of a command's output.
fn big_turns() -> String {
    let mut score = Score::new();
    let piece = "0123456789abcdef".repeat(2000);
    score.turn(1, |score| {
        score.fact("step_started", &json!({ "message": "msg_a" }));
        for _ in 0..128 {
            score.fact("text_appended", &json!({ "part": "prt_a", "text": piece }));
        }
        score.fact(
            "tool_changed",
            &json!({ "call": "call_1", "name": "bash", "kind": "execute", "title": "yes", "status": "running" }),
        );
        for _ in 0..128 {
            score.fact("output_appended", &json!({ "call": "call_1", "text": piece }));
        }
        score.fact("tool_changed", &json!({ "call": "call_1", "status": "completed" }));
    });
    score.text()
}

/// The most that the kernel keeps of what a stalled client was sent.
fn kernel_buffers(receive: usize) -> usize {
    let send = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").unwrap();
    // Twice what was asked for: the kernel's own book-keeping counts.
    send.split_whitespace().last().unwrap().parse::<usize>().unwrap() + 2 * receive
}

fn read_turns(stream: &mut Stream, mut each: impl FnMut()) -> Kept {
    let (mut kept, mut ended) = (Kept::default(), 0);
    while ended < TURNS {
        let event = stream.next_told().expect("the stream goes on");
        kept.take(&event);
        if event.windows(19).any(|part| part == br#""type":"turn_ended""#.as_slice()) {
            ended += 1;
            each();
        }
    }
    kept
}

#[test]
fn a_reader_that_stops_gets_everything_and_slows_nobody() {
    let house = House::new();
    let agent = house.plays(&big_turns());
    let server = house.serve(&["--agent", &agent, "--pace", "max"]);
    let (address, session) = (server.address, new_session(server.address));
    let path = format!("/v1/sessions/{session}/events");

    let connection = Connection::open(address).unwrap();
    set_socket_recv_buffer_size(connection.socket(), 64 * 1024).unwrap();
    let mut stalled = Stream::on(connection, address, "GET", &path, None, &[]).unwrap();
    let first = stalled.next_told().unwrap();
    // From here on it reads nothing until the other has everything.
    let mut lively = Stream::open(address, &path, None).unwrap();
    for _ in 0..TURNS {
        prompt(address, &session);
    }
    let whole = read_turns(&mut lively, || {});
    let held_back = whole.bytes.len() - kernel_buffers(64 * 1024);
    assert!(held_back > HELD_BACK, "only {held_back} bytes waited for the reader that stalled");
    let peak = server.peak_memory();
    assert!(peak < MEMORY, "the server took {} MiB", peak / MIB as u64);

    let mut late = Kept::default();
    late.take(&first);
    let rest = read_turns(&mut stalled, || {});
    late.bytes.extend(rest.bytes);
    whole.assert_same(&late, "the lively reader and the one that stalled");
    println!(
        "{} MiB told, {} MiB of it held back; the server took {} MiB, and {} MiB after the stalled reader had all",
        whole.bytes.len() / MIB,
        held_back / MIB,
        peak / MIB as u64,
        server.peak_memory() / MIB as u64
    );
    assert!(server.peak_memory() < MEMORY, "catching up took {} MiB", server.peak_memory() / MIB as u64);
}

//! `tolka check`: streams of files, pipes and live servers, judged.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Output, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use tolka_dialect::Dialect;

use crate::cli::{code, stderr, stdout};
use crate::convert::golden;
use crate::http::{new_session, post, prompt};
use crate::recording::{endless_turn, short_turn};
use crate::server::{House, free_port, send, tolka};

fn start(args: &[&str]) -> Child {
    let mut command = tolka();
    command.arg("check").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn check(args: &[&str], input: &[u8]) -> Output {
    let mut child = start(args);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _ = writing.join().unwrap();
    output
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{} {}", stdout(output), stderr(output)))
}

/// The rules that were broken, with the lines.
fn broken(report: &Value) -> Vec<(u64, String)> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| (finding["line"].as_u64().unwrap(), finding["rule"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn golden_streams_are_clean() {
    for dialect in Dialect::ALL {
        for name in ["demo", "claude-cancel", "copilot"] {
            let judged = check(&["--dialect", dialect.name(), "-"], &golden(name, dialect));
            assert_eq!(code(&judged), 0, "{name} in {dialect}: {}{}", stdout(&judged), stderr(&judged));
            assert!(stdout(&judged).ends_with("Clean: nothing breaks the rules.\n"), "{}", stdout(&judged));
        }
    }
}

const PACKET: &str = r#"{"_meta":null,"content":{"_meta":null,"annotations":null,"text":"Hi","type":"text"},"sessionUpdate":"agent_message_chunk","type":"agent_message_chunk","timestamp":"2100-01-01T00:00:00.005000+00:00"}"#;
const END: &str =
    r#"{"_meta":{},"stopReason":"end_turn","type":"prompt_response","timestamp":"2100-01-01T00:00:00.005000+00:00"}"#;

fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

#[test]
fn findings_are_told_with_line_rule_and_section_and_summed_up() {
    let house = House::new();
    let spoilt = [event(PACKET), event("{\"type\":"), event(END)].concat();
    std::fs::write(house.workspace().join("spoilt.sse"), spoilt).unwrap();
    let judged = house.run(&["check", "--dialect", "onyx", "spoilt.sse"]);
    assert_eq!((code(&judged), stderr(&judged).as_str()), (1, ""));
    let printed = stdout(&judged);
    let lines: Vec<&str> = printed.lines().collect();
    let report = json(&house.run(&["check", "--dialect", "onyx", "--json", "spoilt.sse"]));
    let [finding] = report["findings"].as_array().unwrap().as_slice() else { panic!("{report}") };
    let text = |field: &str| finding[field].as_str().unwrap();
    assert_eq!(
        lines,
        [
            &format!("line 4    {}  {}", text("rule"), text("problem")),
            &format!("          {} [{}]", text("demand"), text("section")),
            "",
            "spoilt.sse as onyx: 2 events (1 agent_message_chunk, 1 prompt_response).",
            &format!("1 finding against 1 rule: 1 {}.", text("rule")),
        ]
    );
    let finding = finding.clone();
    assert_eq!(finding["line"], 4);
    assert_eq!(
        report,
        json!({
            "dialect": "onyx",
            "source": "spoilt.sse",
            "events": { "agent_message_chunk": 1, "prompt_response": 1 },
            "ended": "whole",
            "findings": [finding],
            "omitted": {},
            "clean": false,
        })
    );
}

#[test]
fn many_findings_of_one_rule_are_counted() {
    let spoilt = [event("[]").repeat(25), event(END)].concat();
    let judged = check(&["--dialect", "onyx", "-"], spoilt.as_bytes());
    let printed = stdout(&judged);
    let listed = |printed: &str| printed.lines().filter(|line| line.starts_with("line ")).count();
    assert_eq!(listed(&printed), 20, "{printed}");
    assert!(printed.contains("… and 5 more of "), "{printed}");
    assert!(printed.contains("25 findings against 1 rule: 25 "), "{printed}");
    assert_eq!(printed.matches(" [0").count(), 1, "the demand is told once: {printed}");
    assert_eq!(listed(&stdout(&check(&["--dialect", "onyx", "--all", "-"], spoilt.as_bytes()))), 25);
}

#[test]
fn what_a_program_is_told_is_bounded() {
    let long = format!("{{\"type\":\"{}\"}}", "x".repeat(100_000));
    let spoilt = [event("[]").repeat(1002), event(&long), event(END)].concat();
    let report = json(&check(&["--dialect", "onyx", "--json", "-"], spoilt.as_bytes()));
    let rule = &report["findings"][0]["rule"];
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.iter().filter(|finding| finding["rule"] == *rule).count(), 1000);
    assert_eq!(report["omitted"], json!({ rule.as_str().unwrap(): 2 }));
    let longest = findings.iter().map(|finding| finding["problem"].as_str().unwrap().chars().count()).max();
    assert_eq!(longest, Some(201), "a problem is cut");
    assert!(report["events"].as_object().unwrap().keys().all(|name| name.len() <= 200));
}

#[test]
fn lines_that_end_in_crlf_are_found_once() {
    for dialect in ["agentsmithy", "onyx", "opencode"] {
        let stream = String::from_utf8(golden("demo", dialect.parse().unwrap())).unwrap().replace('\n', "\r\n");
        let report = json(&check(&["--dialect", dialect, "--json", "-"], stream.as_bytes()));
        let clean = json(&check(&["--dialect", dialect, "--json", "-"], &golden("demo", dialect.parse().unwrap())));
        assert_eq!(report["events"], clean["events"], "{dialect}: the events are read all the same");
        let lines: Vec<u64> = broken(&report).iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1], "{dialect}: it is told once: {report}");
    }
}

#[test]
fn what_cannot_be_judged_is_another_exit_code() {
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    for (args, problem) in [
        (&["--dialect", "onyx", "missing.sse"] as &[&str], "missing.sse"),
        (&["--dialect", "onyx", "-"], "there is no event in -"),
        (&["-"], "say it with --dialect"),
        (&["--dialect", "onyx", &nobody], "cannot reach"),
        (&["--dialect", "onyx", "--post", "{}", "-"], "go with a URL"),
        (&["--dialect", "klingon", "-"], "no dialect is called `klingon`"),
        (&["--header", "no colon", &nobody], "a header is written"),
    ] {
        let judged = check(args, b"");
        assert_eq!((code(&judged), stdout(&judged).as_str()), (2, ""), "{args:?}");
        assert!(stderr(&judged).contains(problem), "{args:?}: {}", stderr(&judged));
    }
}

#[test]
fn findings_of_a_stream_come_while_it_goes_on_and_ctrl_c_sums_up() {
    // Only if it hangs does it take so long.
    let mut child = start(&["--for", "60", "-"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all([event(PACKET), event("nonsense")].concat().as_bytes()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.starts_with("line 4 "), "{line}");
    send(child.id(), Signal::INT);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    let summary = "stdin as onyx (guessed): 1 event (1 agent_message_chunk). It was left before its end.\n1 finding";
    assert!(rest.contains(summary), "{rest}");
    assert!(rest.ends_with("another profile of the family; try --dialect onyx-current.\n"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(stdin);
}

#[test]
fn a_live_server_of_ours_is_clean_in_every_dialect() {
    let house = House::new();
    let server = house.serve(&["--agent", &house.plays(&short_turn()), "--pace", "max"]);
    let session = new_session(server.address);
    let turn = prompt(server.address, &session);
    let base = format!("http://{}/v1/sessions/{session}/events", server.address);
    for dialect in Dialect::ALL {
        let judged =
            check(&["--dialect", dialect.name(), "--json", &format!("{base}?dialect={dialect}&turn={turn}")], b"");
        let report = json(&judged);
        assert_eq!((&report["dialect"], &report["ended"]), (&json!(dialect.name()), &json!("whole")), "{report}");
        // Here every dialect has positions to resume from. AgentSmithy's own route leaves them out.
        let unwanted = report["findings"].as_array().unwrap().iter().filter(|finding| finding["rule"] != "id-line");
        assert_eq!(unwanted.count(), 0, "{report}");
        assert_eq!(report["clean"], dialect != Dialect::AgentSmithy, "{report}");
        assert_eq!(code(&judged), i32::from(dialect == Dialect::AgentSmithy), "{report}");
    }
    let send = format!("http://{}/api/build/sessions/{session}/send-message", server.address);
    let (steps, chat) = (format!("{send}?packets=steps"), format!("http://{}/api/chat", server.address));
    let plain = r#"{"content":"hello"}"#;
    let dialog = r#"{"messages":[{"role":"user","content":"hello"}]}"#;
    for (dialect, url, post, stdin) in [
        ("onyx", &send, plain, ""),
        ("onyx", &send, "-", plain),
        ("onyx-steps", &steps, plain, ""),
        ("agentsmithy", &chat, dialog, ""),
    ] {
        let judged = check(&["--dialect", dialect, "--json", "--post", post, url], stdin.as_bytes());
        let report = json(&judged);
        assert_eq!((code(&judged), &report["clean"], &report["source"]), (0, &json!(true), &json!(url)), "{report}");
        let is_told = |name: &str| report["events"].get(name).is_some();
        assert!(is_told("prompt_response") || is_told("done"), "{report}");
    }
}

#[test]
fn a_feed_that_does_not_end_is_left() {
    let house = House::new();
    let server = house.serve(&["--agent", &house.plays(&endless_turn()), "--token", "secret"]);
    let auth = [("Authorization", "Bearer secret"), ("Content-Type", "application/json")];
    let call = |path: &str, body: &Value| {
        let body = body.to_string();
        crate::http::call(server.address, "POST", path, &auth, body.as_bytes()).json()
    };
    let session = call("/v1/sessions", &json!({}))["id"].as_str().unwrap().to_owned();
    call(&format!("/v1/sessions/{session}/prompt"), &json!({ "text": "Go on." }));
    let url = format!("http://{}/v1/sessions/{session}/events?dialect=opencode", server.address);
    let enough = check(&["--dialect", "opencode", "--json", "--token", "secret", "--events", "5", &url], b"");
    let report = json(&enough);
    let events: u64 = report["events"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((events, &report["ended"], code(&enough)), (5, &json!("left"), 0), "{report}");
    let header = "Authorization: Bearer secret";
    let timed = check(&["--dialect", "opencode", "--header", header, "--for", "0.5", &url], b"");
    assert_eq!(code(&timed), 0, "{}", stdout(&timed));
    assert!(stdout(&timed).contains("It was left before its end."), "{}", stdout(&timed));
    let refused = json(&check(&["--dialect", "opencode", "--json", &url], b""));
    assert_eq!((broken(&refused), &refused["ended"]), (vec![(0, "http-status".to_owned())], &json!("unheard")));
}

/// Answers one request with these bytes and closes.
fn answering(response: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = BufReader::new(socket.try_clone().unwrap()).lines();
        while request.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        socket.write_all(response.as_bytes()).unwrap();
    });
    address
}

#[test]
fn an_answer_that_is_no_stream_is_a_finding_of_its_own() {
    let house = House::new();
    let server = house.serve(&["--agent", &house.plays(&short_turn())]);
    let missing = format!("http://{}/v1/sessions/ses_none/events", server.address);
    let judged = check(&["--dialect", "tolka", &missing], b"");
    assert_eq!(code(&judged), 1);
    let printed = stdout(&judged);
    assert!(printed.starts_with("response  http-status  the status is 404 Not Found: {"), "{printed}");
    assert!(printed.contains("The answer is no stream."), "{printed}");
    post(server.address, "/v1/sessions", &json!({}));
    let list = format!("http://{}/v1/sessions", server.address);
    let report = json(&check(&["--dialect", "tolka", "--json", &list], b""));
    assert_eq!(broken(&report), [(0, "http-content-type".to_owned())], "{report}");

    for (response, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\ndata: []\n\n", &[0, 1][..]),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\ndata: []\n\n", &[1]),
        ("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", &[0]),
    ] {
        let url = format!("http://{}/", answering(response));
        let report = json(&check(&["--dialect", "opencode", "--json", &url], b""));
        let lines: Vec<u64> = broken(&report).iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, expected, "{response}: {report}");
    }
    let cut =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\ndata: {\"type\":\"x\"}\n\n";
    let report = json(&check(&["--dialect", "opencode", "--json", &format!("http://{}/", answering(cut))], b""));
    assert_eq!(report["ended"], "broken", "{report}");
}

//! Streams as they are written, and what is wrong with them. Each stream is read whole and byte by byte.

use super::*;
use crate::sse::LIMIT;

const BARE: Rule = Rule { name: "bare", section: "", demand: "" };
const CRLF: Rule = Rule { name: "crlf", section: "", demand: "" };
const EVENT: Rule = Rule { name: "event", section: "", demand: "" };
const DATA: Rule = Rule { name: "data", section: "", demand: "" };
const JSON: Rule = Rule { name: "json", section: "", demand: "" };
const CUT: Rule = Rule { name: "cut", section: "", demand: "" };

const STRICT: Manners = Manners {
    bare: Some(&BARE),
    crlf: Some(&CRLF),
    id: None,
    event: Some((&EVENT, &["message"])),
    data: Some(&DATA),
    blank: None,
    json: &JSON,
    cut: &CUT,
};
const FREE: Manners =
    Manners { bare: None, crlf: None, id: None, event: None, data: None, blank: None, json: &JSON, cut: &CUT };

type Read = (Vec<(u64, String)>, Vec<(u64, &'static str)>);

/// The events and the findings, each with its line.
fn read_in(manners: &'static Manners, limit: usize, stream: &[u8]) -> Read {
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut lines = Lines::new(manners, limit);
        let (mut events, mut found) = (Vec::new(), Vec::new());
        pieces.for_each(|piece| lines.feed(piece, &mut events, &mut found));
        lines.finish(&mut events, &mut found);
        let events: Vec<_> = events.into_iter().map(|event| (event.line, event.body.to_string())).collect();
        (events, found.into_iter().map(|finding| (finding.line, finding.rule.name)).collect())
    };
    let whole: Read = read(&mut std::iter::once(stream));
    assert_eq!(read(&mut stream.chunks(1)), whole, "byte by byte");
    whole
}

fn read(stream: &str) -> Read {
    read_in(&STRICT, LIMIT, stream.as_bytes())
}

fn one(line: u64) -> Vec<(u64, String)> {
    vec![(line, "{}".to_owned())]
}

#[test]
fn an_event_stands_at_its_first_line() {
    assert_eq!(read("\n\nevent: message\nid: 1\ndata: {}\n\n"), (one(3), vec![]));
    assert_eq!(read("id: 4.0\ndata: {}\n\n"), (one(1), vec![]));
    assert_eq!(read(": hi\n\nretry: 5\n\ndata: {}\n\n"), (one(5), vec![]));
}

#[test]
fn line_ends_of_all_kinds_are_read_and_told_of_once() {
    let lf = "event: message\ndata: {}\n\ndata: {}\n\n";
    let both = vec![(1, "{}".to_owned()), (4, "{}".to_owned())];
    assert_eq!(read(lf), (both.clone(), vec![]));
    assert_eq!(read(&lf.replace('\n', "\r")), (both.clone(), vec![(1, "crlf")]));
    assert_eq!(read(&lf.replace('\n', "\r\n")), (both.clone(), vec![(1, "crlf")]));
    assert_eq!(read_in(&FREE, LIMIT, lf.replace('\n', "\r\n").as_bytes()), (both, vec![]));
}

#[test]
fn data_is_one_line_that_nothing_hides() {
    assert_eq!(read("data: {\ndata: }\n\n"), (one(1), vec![(2, "data")]));
    assert_eq!(read("data:{}\n\n"), (one(1), vec![(1, "data")]));
    assert_eq!(read(": hi\ndata: {}\n\n"), (one(1), vec![(2, "data")]));
    assert_eq!(read("event: other\ndata: {}\n\n"), (one(1), vec![(1, "event")]));
    assert_eq!(read("{}\n{}\n"), ([one(1), one(2)].concat(), vec![(1, "bare"), (2, "bare")]));
    assert_eq!(read_in(&FREE, LIMIT, b"{}\n{}"), ([one(1), one(2)].concat(), vec![]));
}

#[test]
fn a_byte_order_mark_is_told_and_passed_over() {
    assert_eq!(read("\u{feff}data: {}\n\n"), (one(1), vec![(1, "data")]));
    assert_eq!(read_in(&FREE, LIMIT, "\u{feff}{}\n".as_bytes()), (one(1), vec![(1, "json")]));
    assert_eq!(read("data: {}\n\n\u{feff}: hi\n\n"), (one(1), vec![(3, "data")]));
}

#[test]
fn what_is_no_stream_is_not_taken_for_an_empty_one() {
    assert_eq!(read("<html>\n<body>\n</html>\n\n"), (vec![], vec![(1, "data")]));
    assert_eq!(read("dat: {}\ndata: {}\n\n"), (one(1), vec![(1, "data")]));
    assert_eq!(read_in(&FREE, LIMIT, b"  {}\n"), (vec![], vec![(1, "json")]));
}

#[test]
fn data_is_an_object_in_utf_8() {
    assert_eq!(read("event: message\ndata: []\n\n"), (vec![], vec![(1, "json")]));
    assert_eq!(read("data: {]\n\ndata: {}\n\n"), (one(3), vec![(1, "json")]));
    let (events, found) = read_in(&STRICT, LIMIT, b"data: {\"a\":\"\xff\"}\n\n");
    assert_eq!((events.len(), found), (1, vec![(1, "json")]));
}

#[test]
fn a_stream_ends_between_events() {
    assert_eq!(read("data: {}\n\n: keep"), (one(1), vec![]));
    assert_eq!(read("data: {}\n\ndata: {}\n"), (one(1), vec![(3, "cut")]));
    assert_eq!(read("data: {}\n\nevent: message\ndata: {"), (one(1), vec![(4, "cut")]));
    assert_eq!(read("data: {}\n\nevent: message\n"), (one(1), vec![(3, "cut")]));
    assert_eq!(read_in(&FREE, LIMIT, b"{}\n{\"a\":"), (one(1), vec![(2, "cut")]));
    assert_eq!(read_in(&FREE, LIMIT, b"{}\n{]"), (one(1), vec![(2, "json")]));
}

#[test]
fn what_is_too_long_is_told_once_and_passed_over() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(40));
    let lines = format!("{{}}\n{long}\n{{}}\n");
    assert_eq!(read_in(&FREE, 30, lines.as_bytes()), ([one(1), one(3)].concat(), vec![(2, "json")]));
    let events = format!("data: {{}}\n\nevent: message\ndata: {long}\ndata: {long}\n\ndata: {{}}\n\n");
    assert_eq!(read_in(&STRICT, 30, events.as_bytes()), ([one(1), one(7)].concat(), vec![(4, "json")]));
    // Many short lines are a long event too.
    let many = format!("data: {{\n{}\ndata: {{}}\n\n", "data: \"a\"\n".repeat(20));
    let (read, found) = read_in(&STRICT, 30, many.as_bytes());
    assert_eq!((read, found.iter().filter(|(_, rule)| *rule == "json").count()), (one(23), 1));
    assert_eq!(read_in(&STRICT, 30, format!("data: {}", "x".repeat(60)).as_bytes()), (vec![], vec![(1, "json")]));
}

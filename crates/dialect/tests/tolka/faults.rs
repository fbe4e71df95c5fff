//! A good journal, spoilt in one place at a time: the judge says where and which rule, and nothing else.

use serde_json::{Value, json};

use crate::law::findings;

/// A turn with a step, a text, a call, a permission and a question. Fact `n` stands in line `n`, which is also its seq.
const GOOD: &str = r#"
{"v":1,"session":"ses_1","seq":1,"time":1,"cause":"client","type":"session_created","data":{"workspace":"/w","agent":"demo","title":"New"}}
{"v":1,"session":"ses_1","seq":2,"time":2,"cause":"client","type":"prompt_queued","data":{"turn":"trn_1","message":"msg_1","content":[]}}
{"v":1,"session":"ses_1","seq":3,"time":3,"cause":"client","type":"prompt_queued","data":{"turn":"trn_2","message":"msg_2","content":[]}}
{"v":1,"session":"ses_1","seq":4,"time":3,"cause":"tolka","type":"turn_started","data":{"turn":"trn_1"}}
{"v":1,"session":"ses_1","seq":5,"time":4,"cause":"agent","type":"step_started","data":{"message":"msg_3"}}
{"v":1,"session":"ses_1","seq":6,"time":5,"cause":"agent","type":"text_appended","data":{"part":"prt_1","text":"Look."}}
{"v":1,"session":"ses_1","seq":7,"time":6,"cause":"agent","type":"tool_changed","data":{"call":"call_1","name":"bash"}}
{"v":1,"session":"ses_1","seq":8,"time":7,"cause":"agent","type":"permission_asked","data":{"request":"per_1","call":"call_1","permission":"bash","title":"Run","options":[{"id":"y","name":"Yes","kind":"allow_once"}]}}
{"v":1,"session":"ses_1","seq":9,"time":8,"cause":"client","type":"permission_answered","data":{"request":"per_1","option":"y","by":"ada"}}
{"v":1,"session":"ses_1","seq":10,"time":9,"cause":"agent","type":"output_appended","data":{"call":"call_1","text":"a"}}
{"v":1,"session":"ses_1","seq":11,"time":10,"cause":"agent","type":"tool_changed","data":{"call":"call_1","status":"completed"}}
{"v":1,"session":"ses_1","seq":12,"time":11,"cause":"agent","type":"question_asked","data":{"request":"que_1","questions":[{"question":"Which?","header":"Colour","options":[]}]}}
{"v":1,"session":"ses_1","seq":13,"time":12,"cause":"client","type":"question_answered","data":{"request":"que_1","answers":[["Red"]],"by":"ada"}}
{"v":1,"session":"ses_1","seq":14,"time":13,"cause":"agent","type":"step_ended","data":{"message":"msg_3","finish":"stop"}}
{"v":1,"session":"ses_1","seq":15,"time":14,"cause":"agent","type":"turn_ended","data":{"turn":"trn_1","stop":"end_turn"}}
{"v":1,"session":"ses_1","seq":16,"time":15,"cause":"client","type":"prompt_dropped","data":{"turn":"trn_2"}}
"#;

fn good() -> Vec<Value> {
    GOOD.trim().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn judged(facts: &[Value]) -> Vec<(u64, &'static str)> {
    let stream: String = facts.iter().map(|fact| format!("{fact}\n")).collect();
    findings(stream.as_bytes()).iter().map(|finding| (finding.line, finding.rule.name)).collect()
}

/// Gives every fact the seq of its line.
fn renumbered(facts: &mut [Value]) {
    (1..).zip(facts).for_each(|(seq, fact)| fact["seq"] = json!(seq));
}

/// Puts a copy of line `from` after line `to`.
fn again(facts: &mut Vec<Value>, from: usize, to: usize) {
    let mut fact = facts[from - 1].clone();
    fact["time"] = facts[to - 1]["time"].clone();
    facts.insert(to, fact);
    renumbered(facts);
}

fn remove(facts: &mut Vec<Value>, line: usize) {
    facts.remove(line - 1);
    renumbered(facts);
}

type Fault = (&'static str, fn(&mut Vec<Value>), &'static [(u64, &'static str)]);

const FAULTS: &[Fault] = &[
    ("a gap", |f| drop(f.remove(5)), &[(6, "seq")]),
    ("a fact told twice", |f| f.insert(6, f[5].clone()), &[(7, "seq")]),
    ("time that runs back", |f| f[5]["time"] = json!(1), &[(6, "time")]),
    ("a newer version", |f| f[5]["v"] = json!(99), &[(6, "version")]),
    ("no version", |f| drop(f[5].as_object_mut().unwrap().remove("v")), &[(6, "envelope")]),
    ("a time in words", |f| f[5]["time"] = json!("now"), &[(6, "envelope")]),
    ("a cause of nobody's", |f| f[5]["cause"] = json!("user"), &[(6, "envelope")]),
    ("data that is a list", |f| f[5]["data"] = json!([]), &[(6, "envelope")]),
    ("an event of nobody's", |f| f[5]["type"] = json!("text_removed"), &[(6, "unknown-event")]),
    ("data without its field", |f| drop(f[5]["data"].as_object_mut().unwrap().remove("text")), &[(6, "data")]),
    ("a stop of nobody's", |f| f[14]["data"]["stop"] = json!("done"), &[(15, "data")]),
    (
        "data before its type",
        |f| {
            let data = f[5]["type"].take();
            f[5].as_object_mut().unwrap().shift_remove("type");
            f[5]["type"] = data;
        },
        &[(6, "data")],
    ),
    ("created twice", |f| again(f, 1, 1), &[(2, "created-first")]),
    ("a turn that starts twice", |f| again(f, 4, 4), &[(5, "turn")]),
    (
        "a turn inside a turn",
        |f| {
            again(f, 4, 5);
            f[5]["data"]["turn"] = json!("trn_3");
            f[15]["data"]["turn"] = json!("trn_3");
        },
        &[(6, "turn")],
    ),
    ("a turn that ends twice", |f| again(f, 15, 15), &[(16, "turn")]),
    ("a turn that has no end", |f| remove(f, 15), &[(15, "turn-ends")]),
    ("the end of another turn", |f| f[14]["data"]["turn"] = json!("trn_9"), &[(15, "turn")]),
    ("text after the end", |f| again(f, 6, 15), &[(16, "in-turn")]),
    ("a step that did not start", |f| remove(f, 5), &[(13, "step")]),
    ("news of an ended call", |f| again(f, 7, 11), &[(12, "call-ended")]),
    ("output of an ended call", |f| again(f, 10, 11), &[(12, "call-ended")]),
    ("asked twice", |f| again(f, 8, 8), &[(9, "asked-once")]),
    ("answered twice", |f| again(f, 9, 9), &[(10, "answer")]),
    ("an answer to nothing", |f| remove(f, 8), &[(8, "answer")]),
    (
        "an answer after the turn",
        |f| {
            let answer = f.remove(8);
            f.insert(14, answer);
            f[14]["time"] = json!(14);
            renumbered(f);
        },
        &[(15, "answer")],
    ),
    ("an answer that was not offered", |f| f[8]["data"]["option"] = json!("maybe"), &[(9, "answer")]),
    ("an answer of the other kind", |f| f[12]["data"]["request"] = json!("per_1"), &[(13, "answer")]),
    ("answers to more than was asked", |f| f[12]["data"]["answers"] = json!([["Red"], []]), &[(13, "answer")]),
    ("dropped, and never queued", |f| remove(f, 3), &[(15, "queued-first")]),
    ("dropped after it started", |f| f[15]["data"]["turn"] = json!("trn_1"), &[(16, "queued-first")]),
    (
        "started after it was dropped",
        |f| {
            again(f, 4, 16);
            f[16]["data"]["turn"] = json!("trn_2");
            again(f, 15, 17);
            f[17]["data"]["turn"] = json!("trn_2");
            f[17]["time"] = json!(15);
        },
        &[(17, "queued-first")],
    ),
];

#[test]
fn each_fault_is_found_where_it_is() {
    assert_eq!(judged(&good()), []);
    for (name, spoil, expected) in FAULTS {
        let mut facts = good();
        spoil(&mut facts);
        assert_eq!(judged(&facts), *expected, "{name}");
    }
}

#[test]
fn sessions_are_judged_apart() {
    let mut facts = good();
    let others = good().into_iter().map(|mut fact| {
        fact["session"] = json!("ses_2");
        fact
    });
    let both: Vec<_> = facts.iter().cloned().zip(others).flat_map(|(one, other)| [one, other]).collect();
    assert_eq!(judged(&both), []);
    facts.truncate(6);
    assert_eq!(judged(&facts), [(6, "turn-ends")]);
}

#[test]
fn a_stream_with_positions_is_read_too() {
    let stream: String = good().iter().map(|fact| format!("id: {}.0\ndata: {fact}\n\n", fact["seq"])).collect();
    assert_eq!(findings(format!("id: 0.0\n\n{stream}").as_bytes()), vec![]);
    assert_eq!(findings(&stream.as_bytes()[..40]).len(), 1);
}

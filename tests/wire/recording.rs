//! Recordings made to measure, in our own format.

use serde_json::{Value, json};

pub(crate) struct Score {
    lines: Vec<String>,
    /// In µs, as facts have it.
    time: u64,
}

impl Score {
    pub(crate) fn new() -> Self {
        let mut score = Score { lines: Vec::new(), time: 1_000_000 };
        score.fact("session_created", &json!({ "workspace": "/w", "agent": "a", "title": "t" }));
        score
    }

    pub(crate) fn fact(&mut self, kind: &str, data: &Value) {
        let (seq, time) = (self.lines.len() + 1, self.time);
        let cause = if matches!(kind, "session_created" | "prompt_queued") { "client" } else { "agent" };
        let fact =
            json!({ "v": 1, "session": "ses_r", "seq": seq, "time": time, "cause": cause, "type": kind, "data": data });
        self.lines.push(fact.to_string());
    }

    /// What follows comes so much later.
    pub(crate) fn wait(&mut self, micros: u64) {
        self.time += micros;
    }

    pub(crate) fn turn(&mut self, number: usize, tell: impl FnOnce(&mut Score)) {
        let turn = format!("trn_{number}");
        let content = json!([{ "type": "text", "text": "go" }]);
        self.fact("prompt_queued", &json!({ "turn": turn, "message": format!("msg_u{number}"), "content": content }));
        self.fact("turn_started", &json!({ "turn": turn }));
        tell(self);
        self.fact("turn_ended", &json!({ "turn": turn, "stop": "end_turn" }));
    }

    pub(crate) fn text(self) -> String {
        self.lines.join("\n")
    }
}

/// A turn of many small facts of every kind that streams are made of, `gap` µs apart.
pub(crate) fn busy_turn(steps: usize, gap: u64) -> String {
    let mut score = Score::new();
    score.turn(1, |score| {
        for step in 0..steps {
            let (message, call) = (format!("msg_a{step}"), format!("call_{step}"));
            let mut tell = |kind: &str, data: Value| {
                score.wait(gap);
                score.fact(kind, &data);
            };
            tell("step_started", json!({ "message": message }));
            for piece in 0..8 {
                tell("thought_appended", json!({ "part": format!("prt_t{step}"), "text": format!("thought {piece} ") }));
            }
            for piece in 0..16 {
                tell("text_appended", json!({ "part": format!("prt_x{step}"), "text": format!("wörd {piece}\n") }));
            }
            tell("tool_changed", json!({ "call": call, "name": "bash", "kind": "execute", "title": "bash", "status": "pending" }));
            tell("tool_changed", json!({ "call": call, "status": "running", "input": { "command": "make", "step": step } }));
            for line in 0..8 {
                tell("output_appended", json!({ "call": call, "text": format!("line {line} of step {step}: {}\n", "x".repeat(120)) }));
            }
            tell("tool_changed", json!({ "call": call, "status": "completed", "output": { "output": "done", "metadata": { "exit": 0 } } }));
            let plan = json!([{ "content": format!("step {step}"), "status": "in_progress", "priority": "high" }]);
            tell("plan_set", json!({ "entries": plan }));
            tell("usage_set", json!({ "used": step, "size": 1000 }));
            let usage = json!({ "input": 10, "output": step });
            tell("step_ended", json!({ "message": message, "finish": "tool_calls", "usage": usage }));
        }
    });
    score.text()
}

/// A turn that says one word, waits, and would say more after an hour.
pub(crate) fn endless_turn() -> String {
    let mut score = Score::new();
    score.turn(1, |score| {
        score.fact("step_started", &json!({ "message": "msg_a" }));
        score.fact("text_appended", &json!({ "part": "prt_a", "text": "Well, " }));
        score.fact(
            "tool_changed",
            &json!({ "call": "call_1", "name": "bash", "kind": "execute", "title": "sleep", "status": "running" }),
        );
        score.wait(3_600_000_000);
        score.fact("text_appended", &json!({ "part": "prt_b", "text": "never said" }));
    });
    score.text()
}

/// A turn that is over at once.
pub(crate) fn short_turn() -> String {
    let mut score = Score::new();
    score.turn(1, |score| {
        score.fact("step_started", &json!({ "message": "msg_a" }));
        score.fact("text_appended", &json!({ "part": "prt_a", "text": "Hello." }));
        score.fact("step_ended", &json!({ "message": "msg_a", "finish": "stop" }));
    });
    score.text()
}

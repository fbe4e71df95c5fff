//! Sessions put into a journal as the session's actor would have: with their marks, heads and tips.

use std::sync::Arc;

use tolka_facts::event::*;
use tolka_facts::{Block, CallId, Draft, Event, Fact, MessageId, PartId, SessionId, Time, Tip, ToolStatus, TurnId};
use tolka_journal::{Append, Journal, Kept, Mark};

use crate::house::House;

/// Under another name, as sessions begin, after so many facts that say nothing and a turn that says nothing.
pub(crate) fn renamed(facts: Vec<Fact>, session: &str, late: usize) -> Vec<Fact> {
    let created = SessionCreated {
        workspace: "/w".into(),
        agent: "replay".into(),
        title: "Seeded".into(),
        mode: None,
        model: None,
        parent: None,
    };
    let mut stage = Stage::new(session);
    stage.tell(created);
    if late > 0 {
        (0..late).for_each(|_| stage.tell(ModeSet { mode: "plan".into() }));
        let turn = TurnId::from("trn_idle");
        stage.tell(TurnStarted { turn: turn.clone(), checkpoint: None });
        stage.tell(TurnEnded { turn, stop: Stop::EndTurn, usage: None, cost: None, meta: None });
    }
    // Rewinds name places.
    let (before, places) = (stage.facts.len() as u64, starts(&facts));
    let moved = |from: u64| places.iter().position(|start| *start == Some(from)).map(|at| before + at as u64 + 1);
    for fact in facts {
        let mut event = fact.event;
        if let Event::Rewound(Rewound { from, .. }) | Event::RewindStarted(RewindStarted { from, .. }) = &mut event {
            *from = from.and_then(moved);
        }
        stage.tell(event);
    }
    stage.facts
}

/// Of every fact, its place if it starts a turn.
pub(crate) fn starts(facts: &[Fact]) -> Vec<Option<u64>> {
    facts.iter().map(|fact| matches!(fact.event, Event::TurnStarted(_)).then_some(fact.seq)).collect()
}

/// A tip is kept after every so many facts.
pub(crate) async fn seeded(house: &House, facts: &[Fact], keep_every: u64) {
    seeded_after(house, facts, 0, keep_every).await;
}

/// Those that come after the first few, which are there.
pub(crate) async fn seeded_after(house: &House, facts: &[Fact], there: usize, keep_every: u64) {
    let (there, facts) = facts.split_at(there);
    let mut tip = Tip::default();
    there.iter().for_each(|fact| tip.apply(fact));
    for batch in facts.chunks(256) {
        let mut append = Append::default();
        for fact in batch {
            tip.apply(fact);
            append.marks.extend(Mark::of(fact, &tip).map(|mark| (mark.to_string(), fact.seq)));
            append.facts.push(Arc::new(fact.clone()));
            if fact.seq.is_multiple_of(keep_every) {
                append.tip = Some(Kept { seq: tip.seq, idle: tip.is_idle(), state: serde_json::to_vec(&tip).unwrap() });
            }
        }
        append.head = Some(tip.head.clone());
        house.journal.append(append).await.unwrap();
    }
}

struct Stage {
    session: SessionId,
    facts: Vec<Fact>,
}

impl Stage {
    fn new(session: &str) -> Self {
        Stage { session: SessionId::from(session), facts: Vec::new() }
    }

    fn tell(&mut self, event: impl Into<Event>) {
        let seq = self.facts.len() as u64 + 1;
        let time = Time::from_micros(1_794_702_342_312_000 + seq * 400);
        self.facts.push(Draft::agent(event).stamp(self.session.clone(), seq, time));
    }

    fn prompt(&mut self, n: usize) {
        self.tell(PromptQueued {
            turn: TurnId::from(format!("trn_{n}")),
            message: MessageId::from(format!("msg_{n}")),
            content: vec![Block::text(format!("prompt {n}"))],
            key: None,
            agent: None,
            model: None,
            context: None,
            steers: None,
        });
    }

    fn call(&mut self, call: &str, status: ToolStatus) {
        self.tell(ToolChanged {
            name: Some("bash".into()),
            title: Some(call.into()),
            status: Some(status),
            ..ToolChanged::of(CallId::from(call))
        });
    }
}

/// Turns of so many pieces of text each. The prompts of the last two come before all turns, a prompt is dropped, one of
/// the first messages is hidden at the end, and the last turn is open.
pub(crate) fn long(session: &str, turns: usize, pieces: usize) -> Vec<Fact> {
    let mut stage = Stage { session: session.into(), facts: renamed(Vec::new(), session, 0) };
    let early = turns.saturating_sub(2);
    (early..turns).for_each(|n| stage.prompt(n));
    stage.prompt(turns);
    for n in 0..turns {
        if n < early {
            stage.prompt(n);
        }
        stage.tell(TurnStarted { turn: TurnId::from(format!("trn_{n}")), checkpoint: None });
        stage.call(&format!("call_{n}"), ToolStatus::Running);
        for piece in 0..pieces {
            let part = PartId::from(format!("prt_{n}_{}", piece * 3 / pieces));
            stage.tell(TextAppended { part, text: format!("piece {piece} of turn {n} and some more words, ") });
        }
        stage.call(&format!("call_{n}"), if n % 2 == 0 { ToolStatus::Completed } else { ToolStatus::Failed });
        stage.tell(TextAppended { part: PartId::from(format!("prt_{n}_end")), text: "done".into() });
        if n + 1 < turns {
            let turn = TurnId::from(format!("trn_{n}"));
            stage.tell(TurnEnded { turn, stop: Stop::EndTurn, usage: None, cost: None, meta: None });
        }
    }
    stage.tell(PromptDropped { turn: TurnId::from(format!("trn_{turns}")) });
    stage.tell(MessageHidden { message: MessageId::from("msg_1") });
    stage.facts
}

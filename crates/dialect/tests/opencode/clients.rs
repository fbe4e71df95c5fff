//! Three clients as they are written, each of which must end up with the right text.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::Value;
use tolka_dialect::{Dialect, opencode::Profile};
use tolka_facts::event::*;
use tolka_facts::{Draft, Event, MessageId, NoBlobs, PartId, Tip, TurnId, compaction_message};

use crate::runs;
use crate::support::{Run, cases};

/// What a client holds of the texts and thoughts of agents, in the order of their first sight.
#[derive(Default)]
struct Held {
    order: Vec<String>,
    texts: HashMap<String, String>,
    prompts: Vec<Value>,
}

impl Held {
    fn of(&mut self, part: &Value) -> &mut String {
        let id = part.as_str().unwrap().to_owned();
        if !self.texts.contains_key(&id) {
            self.order.push(id.clone());
        }
        self.texts.entry(id).or_default()
    }

    /// The part, if it is text or thought that an agent said.
    fn said<'a>(&mut self, event: &'a Value) -> Option<&'a Value> {
        let properties = &event["properties"];
        if event["type"] == "message.updated" && properties["info"]["role"] == "user" {
            self.prompts.push(properties["info"]["id"].clone());
        }
        let part = &properties["part"];
        let is_text = part["type"] == "text" || part["type"] == "reasoning";
        (event["type"] == "message.part.updated" && is_text && !self.prompts.contains(&part["messageID"]))
            .then_some(part)
    }

    fn texts(&self) -> Vec<&str> {
        self.order.iter().map(|id| self.texts[id].as_str()).collect()
    }
}

type Client = fn(&mut Held, &Value);

/// OpenCode's of today: a part replaces, a delta appends to a part that is known.
fn today(held: &mut Held, event: &Value) {
    if let Some(part) = held.said(event) {
        let text = part["text"].as_str().unwrap().to_owned();
        *held.of(&part["id"]) = text;
    }
    let properties = &event["properties"];
    if event["type"] == "message.part.delta" && held.texts.contains_key(properties["partID"].as_str().unwrap()) {
        held.of(&properties["partID"]).push_str(properties["delta"].as_str().unwrap());
    }
}

/// Document 004's: appends the `delta` of a part and looks at nothing else.
fn documented(held: &mut Held, event: &Value) {
    if let Some(part) = held.said(event) {
        let delta = event["properties"]["delta"].as_str().unwrap_or_default();
        held.of(&part["id"]).push_str(delta);
    }
}

/// One that adds up `message.part.delta` and nothing else.
fn deltas(held: &mut Held, event: &Value) {
    let properties = &event["properties"];
    if event["type"] == "message.part.delta" {
        held.of(&properties["partID"]).push_str(properties["delta"].as_str().unwrap());
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Right {
    /// After every fact, exactly.
    Always,
    /// A prefix after every event, all of it when the part ends.
    InTheEnd,
}

fn holds(run: &Run, profile: Profile, client: Client, right: Right) -> Result<(), TestCaseError> {
    let (mut held, mut tip, mut truth) = (Held::default(), Tip::default(), Vec::<(u64, String)>::new());
    for (fact, frames) in run.facts.iter().zip(run.told(Dialect::OpenCode(profile))) {
        tip.apply(fact);
        let open = tip.turn.as_ref().and_then(|turn| turn.text.as_ref());
        if let Some(open) = open {
            match truth.iter_mut().find(|(first, _)| *first == open.first_seq) {
                Some((_, text)) => *text = open.text.to_string(),
                None => truth.push((open.first_seq, open.text.to_string())),
            }
        }
        if let (Event::CompactionEnded(ended), Some(_)) = (&fact.event, compaction_message(fact, &tip)) {
            truth.extend(ended.summary.iter().map(|summary| (fact.seq, summary.text(&NoBlobs).into_owned())));
        }
        for frame in frames {
            client(&mut held, &serde_json::from_slice(&frame).unwrap());
            for (at, (text, (_, truth))) in held.texts().iter().zip(&truth).enumerate() {
                prop_assert!(truth.starts_with(text), "text {at} in fact {}", fact.seq);
            }
        }
        let texts = held.texts();
        prop_assert_eq!(texts.len(), truth.len(), "in fact {}", fact.seq);
        for (text, (first, truth)) in texts.iter().zip(&truth) {
            let is_open = open.is_some_and(|open| open.first_seq == *first);
            if right == Right::Always || !is_open {
                prop_assert_eq!(*text, truth, "in fact {}", fact.seq);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn todays_client_is_right_after_every_fact(run in runs::run()) {
        for profile in [Profile::Superset, Profile::Current, Profile::Documented] {
            holds(&run, profile, today, Right::Always)?;
        }
    }

    #[test]
    fn the_documents_client_holds_a_prefix_and_ends_whole(run in runs::run()) {
        holds(&run, Profile::Superset, documented, Right::InTheEnd)?;
        holds(&run, Profile::Documented, documented, Right::Always)?;
    }

    #[test]
    fn a_client_of_deltas_alone_ends_whole(run in runs::run()) {
        for profile in [Profile::Superset, Profile::Current] {
            holds(&run, profile, deltas, Right::Always)?;
        }
    }
}

#[test]
fn all_three_clients_read_a_long_answer() {
    let run = long_answer(4000);
    holds(&run, Profile::Superset, today, Right::Always).unwrap();
    holds(&run, Profile::Superset, documented, Right::InTheEnd).unwrap();
    holds(&run, Profile::Superset, deltas, Right::Always).unwrap();
}

/// One answer of so many pieces of five bytes.
pub(crate) fn long_answer(pieces: usize) -> Run {
    let turn = TurnId::from("trn_1");
    let message = MessageId::from("msg_1dc988afd001DPMXhH7oZhirdI");
    let prompt = PromptQueued {
        turn: turn.clone(),
        message: MessageId::from("msg_1dc987a8d001xf0DoSxU0b7oQD"),
        content: Vec::new(),
        key: None,
        agent: None,
        model: None,
        context: None,
        steers: None,
    };
    let mut drafts = vec![
        Draft::client(prompt),
        Draft::agent(TurnStarted { turn: turn.clone(), checkpoint: None }),
        Draft::agent(StepStarted { message, model: None }),
    ];
    let part = PartId::from("prt_1");
    drafts.extend(
        (0..pieces).map(|n| Draft::agent(TextAppended { part: part.clone(), text: format!("{:04} ", n % 10_000) })),
    );
    drafts.push(Draft::agent(TurnEnded { turn, stop: Stop::EndTurn, usage: None, cost: None, meta: None }));
    Run::stamped(drafts)
}

use tolka_facts::event::{Finish, StepEnded, StepStarted};
use tolka_facts::{Draft, Event, MessageId, Time, Tip, derived_id};

/// Steps where the wire that is read told none: without them words and calls belong to no message. One begins
/// with the first of them, and another where words follow a finished call, as [`crate::acp::Interpreter`] has it.
#[derive(Debug, Default)]
pub(super) struct Steps {
    tool_finished: bool,
}

impl Steps {
    /// What goes before `event`.
    pub(super) fn before(&self, event: &Event, tip: &Tip, time: Time) -> Vec<Draft> {
        let Some(turn) = &tip.turn else { return Vec::new() };
        let open = turn.step.as_ref().map(|step| &step.message);
        let start = || {
            // Decoders number what they make from 0 of each place; a 1 is never one of theirs.
            let message = MessageId::from(derived_id("msg", time, tip.seq + 1, 1));
            Draft::tolka(StepStarted { message, model: None })
        };
        let end = |message: &MessageId, finish| {
            Draft::tolka(StepEnded { message: message.clone(), finish, usage: None, cost: None, kept: None })
        };
        match (event, open) {
            (Event::TextAppended(_) | Event::ThoughtAppended(_), None) => vec![start()],
            (Event::TextAppended(_) | Event::ThoughtAppended(_), Some(message)) if self.tool_finished => {
                vec![end(message, Finish::ToolCalls), start()]
            }
            (Event::ToolChanged(e), None) if !turn.ended_calls.contains(&e.call) => vec![start()],
            (Event::TurnEnded(e), Some(message)) => vec![end(message, e.stop.into())],
            _ => Vec::new(),
        }
    }

    pub(super) fn after(&mut self, event: &Event, tip: &Tip) {
        match event {
            Event::StepStarted(_) => self.tool_finished = false,
            Event::ToolChanged(e) => self.tool_finished |= tip.tool(&e.call).is_some_and(|tool| !tool.is_open()),
            _ => {}
        }
    }
}

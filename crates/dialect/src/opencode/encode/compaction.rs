//! A summary is a message of the agent's, in answer to one that asks for it: a person's, or one of nobody's if there had to
//! be a summary.

use serde_json::json;
use tolka_facts::event::{CompactionEnded, CompactionStarted};
use tolka_facts::{MessageId, OpenText, PartId, Rope, Time, Voice, compaction_message, derived_id};

use super::super::info::Tokens;
use super::super::wire;
use super::{Asked, Compaction, Telling};

/// What OpenCode calls the agent that summarises.
const AGENT: &str = "compaction";

impl Telling<'_> {
    pub(super) fn compaction_started(&mut self, e: &CompactionStarted) {
        let Some(turn) = &self.tip.turn else { return };
        let created = self.fact.time;
        let message = match compaction_message(self.fact, self.tip) {
            Some(message) => {
                let (agent, model) = (turn.mode.clone(), turn.model.clone());
                self.asked_message(&Asked { message: message.clone(), created, agent, model }, None);
                message
            }
            None => turn.message.clone(),
        };
        let part = json!({
            "id": self.part_id(),
            "sessionID": self.session(),
            "messageID": message,
            "type": "compaction",
            "auto": e.automatic,
        });
        self.part(&part);
        self.told.compaction = Some(Compaction { message, created });
    }

    pub(super) fn compaction_ended(&mut self, e: &CompactionEnded) {
        let asked = self.told.compaction.take();
        if e.error.is_some() {
            return;
        }
        if let (Some(turn), Some(message)) = (&self.tip.turn, compaction_message(self.fact, self.tip)) {
            let usual = || Compaction { message: turn.asked_message().clone(), created: self.fact.time };
            let asked = asked.unwrap_or_else(usual);
            self.summary(&message, &asked, e);
        }
        self.event("session.compacted", json!({ "sessionID": self.session() }));
    }

    fn summary(&mut self, message: &MessageId, asked: &Compaction, e: &CompactionEnded) {
        self.summary_message(message, asked, e, None);
        let mut text = Rope::default();
        text.push(&e.summary.as_ref().map(|summary| summary.text(self.blobs)).unwrap_or_default());
        let part = PartId::from(self.part_id());
        let (message_id, first_seq) = (message.clone(), self.fact.seq);
        self.whole_text(&OpenText {
            part,
            voice: Voice::Text,
            message: message_id,
            first_seq,
            started: asked.created,
            text,
        });
        self.summary_message(message, asked, e, Some(self.fact.time));
    }

    fn summary_message(&mut self, id: &MessageId, asked: &Compaction, e: &CompactionEnded, completed: Option<Time>) {
        let head = &self.tip.head;
        let turn = self.tip.turn.as_ref();
        let model = wire::model(head, turn.and_then(|turn| turn.model.as_ref()));
        let usage = completed.and(e.usage).unwrap_or_default();
        let mut info = json!({
            "id": id,
            "sessionID": self.session(),
            "role": "assistant",
            "parentID": asked.message,
            "modelID": model.id,
            "providerID": model.provider,
            "mode": AGENT,
            "agent": AGENT,
            "summary": true,
            "path": { "cwd": head.workspace, "root": head.workspace },
            "time": { "created": asked.created.millis() },
            "cost": completed.and(e.cost).unwrap_or_default(),
            "tokens": Tokens::counted(usage),
        });
        if let Some(completed) = completed {
            info["time"]["completed"] = json!(completed.millis());
            info["finish"] = json!("stop");
        }
        self.event("message.updated", json!({ "sessionID": self.session(), "info": info }));
    }

    fn part_id(&self) -> String {
        derived_id("prt", self.fact.time, self.fact.seq, 0)
    }
}

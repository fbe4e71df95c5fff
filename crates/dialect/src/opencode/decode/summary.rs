//! A summary of the session: a message of the agent's that answers one with a part of type `compaction`. It is no step, and
//! what it says is the summary.

use tolka_facts::Draft;
use tolka_facts::event::{CompactionEnded, Usage};

use super::failure;
use super::message::AssistantMessage;
use super::session::{Seen, Session};

/// Longer than any summary.
const LONGEST: usize = 1 << 20;

/// A summary as it grows.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Its parts of text, by their ids.
    texts: Vec<(String, String)>,
    usage: Option<Usage>,
    cost: Option<f64>,
}

impl Summary {
    /// What a part says now.
    pub(super) fn tell(&mut self, part: &str, text: &str) {
        if let Some((_, known)) = self.texts.iter_mut().find(|(id, _)| id == part) {
            known.clear();
        }
        self.append(part, text);
    }

    /// What a part says more.
    pub(super) fn append(&mut self, part: &str, text: &str) {
        if self.size() + text.len() > LONGEST {
            return;
        }
        match self.texts.iter_mut().find(|(id, _)| id == part) {
            Some((_, known)) => known.push_str(text),
            None => self.texts.push((part.to_owned(), text.to_owned())),
        }
    }

    fn size(&self) -> usize {
        self.texts.iter().map(|(id, text)| id.len() + text.len()).sum()
    }

    fn text(self) -> Option<String> {
        let text = self.texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n");
        (!text.is_empty()).then_some(text)
    }
}

impl Session {
    /// Whether a message is the summary that is being made, or was.
    pub(super) fn is_summary(&self, message: &str) -> bool {
        self.messages.get(message) == Some(&Seen::Summary)
    }

    pub(super) fn summary_message(&mut self, message: &AssistantMessage, out: &mut Vec<Draft>) {
        if self.messages.get(&message.id).is_none() {
            self.need_turn(Some(&message.parent_id), out);
            self.messages.insert(&message.id, Seen::Summary);
            self.summary = Some(Summary::default());
        }
        let Some(summary) = &mut self.summary else { return };
        summary.usage = message.tokens.usage();
        summary.cost = (message.cost != 0.0).then_some(message.cost);
        if let (Some(error), Some(_)) = (&message.error, message.time.completed) {
            self.end_compaction(Some(failure::failed(Some(error)).message), out);
        }
    }

    pub(super) fn compacted(&mut self, out: &mut Vec<Draft>) {
        self.end_compaction(None, out);
    }

    fn end_compaction(&mut self, error: Option<String>, out: &mut Vec<Draft>) {
        let id = self.compaction.take().unwrap_or_else(|| self.id.clone());
        let summary = self.summary.take().unwrap_or_default();
        let (usage, cost) = (summary.usage, summary.cost);
        let summary = summary.text().filter(|_| error.is_none()).map(Into::into);
        out.push(Draft::agent(CompactionEnded { id, summary, error, keeps: None, usage, cost }));
    }
}

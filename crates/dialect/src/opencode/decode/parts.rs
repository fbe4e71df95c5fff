//! Parts of messages: a prompt's content, text and thought piece by piece, tool calls.

use serde_json::{Value, json};
use tolka_facts::event::{CompactionStarted, TextAppended, ThoughtAppended};
use tolka_facts::{Block, Cause, Draft, PartId};

use super::call::{Call, Leftover};
use super::event::{PartDelta, PartUpdated};
use super::foreign;
use super::grown::{Grown, Growth};
use super::part::{CompactionPart, FilePart, Part, ReasoningPart, TextPart, ToolPart};
use super::session::{Held, Run, Seen, Session};
use crate::opencode::blocks_from_parts;

/// More pieces than any prompt has.
const BLOCKS: usize = 4096;

/// A part of text as an event tells it whole.
struct Told<'a> {
    message: &'a str,
    id: &'a str,
    is_thought: bool,
    text: &'a str,
    delta: Option<&'a str>,
}

impl Session {
    pub(super) fn part(&mut self, update: &PartUpdated, raw: &str, out: &mut Vec<Draft>) {
        let Some((_, message, id)) = update.part.place() else { return out.push(unsaid(&update.part, raw)) };
        if let Part::Compaction(part) = &update.part {
            return self.compaction_part(part, out);
        }
        if self.messages.get(message) == Some(&Seen::User) {
            return self.prompt_part(id, &update.part, raw, out);
        }
        if self.is_summary(message) {
            return self.summary_part(&update.part);
        }
        let delta = update.delta.as_deref();
        match &update.part {
            Part::Text(TextPart { text, .. }) => {
                self.text(&Told { message, id, is_thought: false, text, delta }, raw, out);
            }
            Part::Reasoning(ReasoningPart { text, .. }) => {
                self.text(&Told { message, id, is_thought: true, text, delta }, raw, out);
            }
            Part::Tool(part) => self.tool(part, raw, out),
            // The step itself is told by its message.
            Part::StepStart(_) | Part::StepFinish(_) => {}
            Part::File(_)
            | Part::Patch(_)
            | Part::Compaction(_)
            | Part::Subtask(_)
            | Part::Agent(_)
            | Part::Snapshot(_)
            | Part::Retry(_)
            | Part::Other(_) => out.push(unsaid(&update.part, raw)),
        }
    }

    pub(super) fn delta(&mut self, delta: &PartDelta, raw: &str, out: &mut Vec<Draft>) {
        if self.is_summary(&delta.message_id) {
            self.summary.iter_mut().for_each(|summary| summary.append(&delta.part_id, &delta.delta));
            return;
        }
        let is_text = delta.field == "text" && self.messages.get(&delta.message_id) != Some(&Seen::User);
        if !is_text {
            return out.push(foreign("message.part.delta", raw));
        }
        self.need_step(&delta.message_id, out);
        let can_tell = self.can_tell(&delta.message_id);
        let run = self.run(&delta.part_id, false);
        run.grown.push(&delta.delta);
        if !can_tell {
            out.push(foreign("message.part.delta", raw));
        } else if !delta.delta.is_empty() {
            out.push(run.append(&delta.delta));
        }
    }

    /// The whole text is the truth, however it came to be; `delta` counts only where a server sends nothing else.
    fn text(&mut self, told: &Told<'_>, raw: &str, out: &mut Vec<Draft>) {
        self.need_step(told.message, out);
        let can_tell = self.can_tell(told.message);
        let run = self.run(told.id, told.is_thought);
        let growth = match told.delta {
            Some(delta) if told.text.is_empty() && !delta.is_empty() => {
                run.grown.push(delta);
                Growth::More(delta)
            }
            _ => run.grown.tell(told.text),
        };
        match growth {
            Growth::Same => {}
            _ if !can_tell => out.push(foreign("message.part.updated", raw)),
            Growth::More(more) => out.push(run.append(more)),
            Growth::Replaced => {
                run.replaced += 1;
                run.is_thought = told.is_thought;
                run.told = PartId::from(format!("{}~{}", told.id, run.replaced));
                out.push(foreign("message.part.updated", raw));
                if !told.text.is_empty() {
                    out.push(run.append(told.text));
                }
            }
        }
    }

    fn run(&mut self, id: &str, is_thought: bool) -> &mut Run {
        if self.runs.get(id).is_none() {
            let run = Run { grown: Grown::default(), is_thought, told: PartId::from(id), replaced: 0 };
            self.runs.insert(id, run);
        }
        self.runs.get_mut(id).expect("it was inserted above, and the newest is never dropped")
    }

    fn tool(&mut self, part: &ToolPart, raw: &str, out: &mut Vec<Draft>) {
        self.need_step(&part.message_id, out);
        if self.turn.is_none() || self.calls.get(&part.call_id).is_some_and(Call::has_ended) {
            return out.push(foreign("message.part.updated/tool", raw));
        }
        if self.calls.get(&part.call_id).is_none() {
            self.calls.insert(&part.call_id, Call::default());
        }
        let left = self.calls.get_mut(&part.call_id).map(|call| call.tell(part, out));
        if left == Some(Leftover::Unsaid) {
            out.push(foreign("message.part.updated/tool", raw));
        }
    }

    /// A part of a message that was never announced belongs to a step that began before we listened.
    fn need_step(&mut self, message: &str, out: &mut Vec<Draft>) {
        if self.messages.get(message).is_none() {
            self.need_turn(None, out);
            self.open_step(message, None, Cause::Tolka, out);
        }
    }

    /// Text goes to the open step; the text of another one would land in the wrong message.
    fn can_tell(&self, message: &str) -> bool {
        self.turn.is_some() && self.step().is_none_or(|step| step.message == message)
    }

    /// What it thought, and where its step begins and ends, is no part of a summary.
    fn summary_part(&mut self, part: &Part) {
        if let (Part::Text(TextPart { id, text, .. }), Some(summary)) = (part, &mut self.summary) {
            summary.tell(id, text);
        }
    }

    fn compaction_part(&mut self, part: &CompactionPart, out: &mut Vec<Draft>) {
        self.compaction = Some(part.id.clone());
        let started = Draft::agent(CompactionStarted { id: part.id.clone(), automatic: part.auto });
        match &mut self.held {
            Some(Held::Prompt(held)) if held.beside.len() < BLOCKS => held.beside.push(started),
            _ => out.push(started),
        }
    }

    fn prompt_part(&mut self, id: &str, part: &Part, raw: &str, out: &mut Vec<Draft>) {
        let Some(Held::Prompt(held)) = &mut self.held else {
            // The prompt was told; a part that comes later cannot change it.
            return out.push(unsaid(part, raw));
        };
        let known = held.blocks.iter().position(|(known, _)| known == id);
        match (block(part), known) {
            (Some(block), Some(at)) => held.blocks[at].1 = block,
            (Some(block), None) if held.blocks.len() < BLOCKS => held.blocks.push((id.to_owned(), block)),
            _ if held.beside.len() < BLOCKS => held.beside.push(unsaid(part, raw)),
            _ => {}
        }
    }
}

impl Run {
    fn append(&self, text: &str) -> Draft {
        let (part, text) = (self.told.clone(), text.to_owned());
        if self.is_thought {
            Draft::agent(ThoughtAppended { part, text })
        } else {
            Draft::agent(TextAppended { part, text })
        }
    }
}

fn block(part: &Part) -> Option<Block> {
    let input: Value = match part {
        Part::Text(TextPart { text, .. }) => return Some(Block::text(text.as_str())),
        Part::File(FilePart { mime, filename, url, .. }) => {
            json!({ "type": "file", "mime": mime, "filename": filename, "url": url })
        }
        Part::Agent(part) => json!({ "type": "agent", "name": part.name }),
        Part::Subtask(part) => json!({
            "type": "subtask",
            "prompt": part.prompt,
            "description": part.description,
            "agent": part.agent,
        }),
        _ => return None,
    };
    blocks_from_parts(Some(&json!([input]))).ok()?.pop()
}

fn unsaid(part: &Part, raw: &str) -> Draft {
    foreign(&format!("message.part.updated/{}", part.kind()), raw)
}

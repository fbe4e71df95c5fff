//! Packets back to facts: ours, or those of a server that we read.
//!
//! The stream has neither the prompt nor ids for its turns and its runs of text, so those are made from the place in the
//! stream. The starts and ends of segments say only where a run begins; they become facts with what stands in them.
//! What the state holds is about the open turn.

mod turn;

use serde_json::Value;
use tolka_facts::event::{
    Failed, FailureKind, FileChanged, Finish, Foreign, ModeSet, PermissionAnswered, PermissionAsked, PlanSet,
    StepEnded, StepStarted, Stop, TextAppended, ThoughtAppended, TurnEnded, Usage,
};
use tolka_facts::{CallId, Cause, Draft, Event, Json, MessageId, PartId, RequestId, Voice};

use super::words::{StepStatus, THINKING, UNKNOWN_CODE};
use super::{artifact, plan, words};
use crate::onyx::fields::{self, Fields};
use crate::onyx::{INTERRUPTED, stamp};
use crate::sse::read_all;
use crate::{DecodeError, Heard, SseEvent, SseReader};
use turn::{OpenTurn, Step, options_or_default};

const ORIGIN: &str = "onyx-steps";

#[derive(Debug, Default)]
pub struct Decoder {
    reader: SseReader,
    turn: Option<OpenTurn>,
    /// Ids made so far.
    made: u64,
}

/// What a packet tells.
enum Told {
    Event(Box<Event>),
    /// A fact that other facts will carry: where a segment starts or ends.
    Mark,
    /// We have no word for it, or it lacks what makes it a packet of its type.
    Foreign,
}

impl<E: Into<Event>> From<E> for Told {
    fn from(event: E) -> Self {
        Told::Event(Box::new(event.into()))
    }
}

impl crate::Decoder for Decoder {
    /// An event that cannot be read is told and skipped; those after it are read all the same.
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.feed(bytes, &mut events);
        self.events(&events, out).and(read)
    }

    fn finish(&mut self, out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.finish(&mut events);
        self.events(&events, out).and(read)
    }
}

impl Decoder {
    fn events(&mut self, events: &[SseEvent], out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        read_all(events, |event| {
            let raw = Json::parse(&event.data)?;
            let mut drafts = Vec::new();
            self.packet(&raw, &mut drafts);
            out.extend(Heard::all(drafts, None, stamp::read(&raw)));
            Ok::<_, serde_json::Error>(())
        })
    }

    fn packet(&mut self, raw: &Json, out: &mut Vec<Draft>) {
        // JSON that is no object is no packet either.
        let fields = Fields::parse(raw.get()).unwrap_or_default();
        let kind = fields.text(&["type"]).unwrap_or_default();
        let before = out.len();
        let draft = match self.read(&kind, &fields, out) {
            Told::Mark => None,
            Told::Foreign => Some(Draft::agent(Foreign { origin: ORIGIN.to_owned(), what: kind })),
            Told::Event(event) => {
                let is_answer = matches!(*event, Event::PermissionAnswered(_));
                Some(Draft::new(if is_answer { Cause::Client } else { Cause::Agent }, *event))
            }
        };
        let failure = match draft.as_ref().map(|draft| &draft.event) {
            Some(Event::Failed(failed)) => Some(failed.message == INTERRUPTED),
            _ => None,
        };
        out.extend(draft);
        if let Some(first) = out[before..].iter_mut().find(|draft| draft.cause != Cause::Tolka) {
            first.raw = Some(raw.clone());
        }
        if let Some(interrupted) = failure
            && let Some(OpenTurn { id: turn, .. }) = self.turn.take()
        {
            let stop = if interrupted { Stop::Interrupted } else { Stop::Failed };
            out.push(Draft::tolka(TurnEnded { turn, stop, usage: None, cost: None, meta: None }));
        }
    }

    fn read(&mut self, kind: &str, fields: &Fields, out: &mut Vec<Draft>) -> Told {
        let told = match kind {
            "step_start" => self.step_start(fields, out),
            "step_delta" => self.step_delta(fields, out),
            "step_end" => self.step_end(fields, out),
            "tool_start" => self.open_turn(out).tool_start(fields).map(Told::from),
            "tool_progress" => self.open_turn(out).tool_progress(fields, out).map(Told::from),
            "tool_end" => self.open_turn(out).tool_end(fields).map(Told::from),
            "output_start" | "output_end" => {
                if let Some(turn) = &mut self.turn {
                    turn.run = None;
                }
                Some(Told::Mark)
            }
            "output_delta" => fields.text(&["content"]).map(|text| {
                let part = self.part(Voice::Text, out);
                TextAppended { part, text }.into()
            }),
            "plan" => {
                let told = fields.list(&["entries"], plan::read_entry).filter(|entries| !entries.is_empty());
                let lines = || fields.text(&["plan"]).map(|lines| plan::read_lines(&lines));
                told.or_else(lines).map(|entries| PlanSet { entries }.into())
            }
            "mode_update" => fields.text(&["mode"]).map(|mode| ModeSet { mode }.into()),
            "done" => {
                self.open_turn(out);
                self.turn.take().map(|turn| done(turn, fields).into())
            }
            "error" => Some(failed(fields).into()),
            "file_write" => fields.text(&["path"]).map(|path| file_changed(path, fields).into()),
            "artifact_created" => {
                fields.read::<Value>(&["artifact"]).and_then(|artifact| artifact::read(&artifact)).map(Told::from)
            }
            "permission_request" => self.permission_request(fields, out),
            "permission_response" => self.permission_response(fields),
            _ => None,
        };
        told.unwrap_or(Told::Foreign)
    }

    fn step_start(&mut self, fields: &Fields, out: &mut Vec<Draft>) -> Option<Told> {
        let id = fields.text(&["step_id"])?;
        let turn = self.open_turn(out);
        turn.run = None;
        turn.has_called = false;
        if fields.text(&["step_name"]).as_deref() == Some(THINKING) {
            turn.step = Some(Step::Thinking(id));
            return Some(Told::Mark);
        }
        turn.step = Some(Step::Model(id.clone()));
        Some(StepStarted { message: MessageId::from(id), model: None }.into())
    }

    /// A thought in a step that is no call of the model, or in one whose start was not told, goes by the step's id.
    fn step_delta(&mut self, fields: &Fields, out: &mut Vec<Draft>) -> Option<Told> {
        let (id, text) = (fields.text(&["step_id"])?, fields.text(&["content"])?);
        let turn = self.open_turn(out);
        let part = match &turn.step {
            Some(Step::Model(open)) if *open == id => self.part(Voice::Thought, out),
            _ => {
                turn.run = None;
                PartId::from(id)
            }
        };
        Some(ThoughtAppended { part, text }.into())
    }

    fn step_end(&mut self, fields: &Fields, out: &mut Vec<Draft>) -> Option<Told> {
        let id = fields.text(&["step_id"])?;
        let turn = self.open_turn(out);
        turn.run = None;
        if let Some(Step::Thinking(_)) = turn.step.take_if(|step| *step == Step::Thinking(id.clone())) {
            return Some(Told::Mark);
        }
        turn.step = None;
        let finish = match StepStatus::read(&fields.text(&["status"]).unwrap_or_default()) {
            StepStatus::Failed => Finish::Error,
            StepStatus::Cancelled => Finish::Cancelled,
            StepStatus::Completed if turn.has_called => Finish::ToolCalls,
            StepStatus::Completed => Finish::Stop,
        };
        Some(StepEnded { message: MessageId::from(id), finish, usage: None, cost: None, kept: None }.into())
    }

    fn permission_request(&mut self, fields: &Fields, out: &mut Vec<Draft>) -> Option<Told> {
        let request = RequestId::from(fields.text(&["request_id"])?);
        let options = options_or_default(fields);
        self.open_turn(out).asks.insert(request.clone(), options.clone());
        let asked = PermissionAsked {
            request,
            call: fields.text(&["tool_call_id"]).map(CallId::from),
            permission: fields.text(&["operation"]).unwrap_or_default(),
            title: fields.text(&["description"]).unwrap_or_default(),
            patterns: Vec::new(),
            metadata: None,
            options,
        };
        Some(asked.into())
    }

    fn permission_response(&mut self, fields: &Fields) -> Option<Told> {
        let request = RequestId::from(fields.text(&["request_id"])?);
        let asked = self.turn.as_mut().and_then(|turn| turn.asks.remove(&request));
        let option = match fields.has("option_id") {
            true => fields.text(&["option_id"]),
            false => {
                // The document's own packets choose between two.
                let approved: bool = fields.read(&["approved"])?;
                let options = asked.unwrap_or_else(turn::default_options);
                options.into_iter().find(|option| option.kind.allows() == approved).map(|option| option.id)
            }
        };
        let reason = fields.text(&["reason"]);
        Some(PermissionAnswered { request, option, by: "client".to_owned(), reason }.into())
    }
}

fn done(turn: OpenTurn, fields: &Fields) -> TurnEnded {
    let usage = fields.read::<Value>(&["usage"]).filter(Value::is_object).map(|usage| {
        let tokens = |name: &str| usage[name].as_u64().unwrap_or_default();
        Usage { input: tokens("input_tokens"), output: tokens("output_tokens"), ..Usage::default() }
    });
    let stop = fields::stop(&fields.text(&["stop_reason"]).unwrap_or_default());
    TurnEnded { turn: turn.id, stop, usage, cost: None, meta: None }
}

fn failed(fields: &Fields) -> Failed {
    Failed {
        kind: FailureKind::Agent,
        message: fields.text(&["message"]).unwrap_or_default(),
        code: fields.code().filter(|code| *code != UNKNOWN_CODE),
        retryable: false,
        details: None,
    }
}

/// The size is not kept: a fact names it only beside the content, and the wire does not carry that.
fn file_changed(path: String, fields: &Fields) -> FileChanged {
    FileChanged {
        path,
        operation: words::read_operation(&fields.text(&["operation"]).unwrap_or_default()),
        before: None,
        after: None,
        added: 0,
        removed: 0,
        call: fields.text(&["tool_call_id"]).map(CallId::from),
        diff: None,
    }
}

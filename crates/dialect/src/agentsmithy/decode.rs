//! Events back to facts: ours, or those of a server that we read.
//!
//! The wire has no ids but the dialog's, so those of turns, runs and calls are made from the place in the stream; and it
//! does not tell how a call ends, so that is made up and says so. Segments may overlap, as today's server lets them.

mod calls;

use serde::Deserialize;
use tolka_facts::event::{
    CompactionEnded, CompactionStarted, Failed, FailureKind, Foreign, PermissionAsked, PromptQueued, QuestionAsked,
    Stop, TextAppended, ThoughtAppended, TurnEnded, TurnStarted,
};
use tolka_facts::{Block, CallId, Draft, Event, Json, MessageId, PartId, SessionId, Time, TurnId, Voice, derived_id};

use super::ask;
use super::encode::INTERRUPTED;
use super::tools::Call;
use crate::sse::read_all;
use crate::{DecodeError, Heard, SseEvent, SseReader};
use calls::OpenCalls;

#[derive(Debug, Default)]
pub struct Decoder {
    reader: SseReader,
    dialog: Option<SessionId>,
    turn: Option<TurnId>,
    /// How the turn will end, once an `error` has told.
    failure: Option<Stop>,
    /// The run of text that the next piece of this voice belongs to.
    run: Option<(Voice, PartId)>,
    summary: Option<String>,
    calls: OpenCalls,
    /// Ids made so far.
    made: u64,
}

/// Every field that an event of the document has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    r#type: String,
    dialog_id: Option<SessionId>,
    content: Option<String>,
    checkpoint: Option<String>,
    name: Option<String>,
    args: Option<Json>,
    file: Option<String>,
    diff: Option<String>,
    error: Option<String>,
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
            self.packet(&raw, out);
            Ok::<_, serde_json::Error>(())
        })
    }

    fn packet(&mut self, raw: &Json, out: &mut Vec<Heard>) {
        // A known type with a field of another shape is no event of the document.
        let fields = raw.read::<Fields>().unwrap_or_else(|| Fields { r#type: type_of(raw), ..Fields::default() });
        let mut drafts = Vec::new();
        if fields.dialog_id.is_some() && fields.dialog_id != self.dialog {
            self.abandon_turn(&mut drafts);
            out.extend(Heard::all(std::mem::take(&mut drafts), self.dialog.as_ref(), None));
            self.dialog.clone_from(&fields.dialog_id);
        }
        let checkpoint = fields.checkpoint.clone();
        match self.event(fields, &mut drafts) {
            Some(Event::PromptQueued(prompt)) => {
                let started = TurnStarted { turn: prompt.turn.clone(), checkpoint };
                drafts.extend([Draft::client(prompt).with_raw(raw.clone()), Draft::tolka(started)]);
            }
            Some(event) => drafts.push(Draft::agent(event).with_raw(raw.clone())),
            None => {}
        }
        out.extend(Heard::all(drafts, self.dialog.as_ref(), None));
    }

    /// `None` for an event whose place says it all, as that of the end of a segment does.
    fn event(&mut self, fields: Fields, out: &mut Vec<Draft>) -> Option<Event> {
        match fields.r#type.as_str() {
            "file_edit" | "tool_call" => {}
            "user" | "chat_start" | "chat" | "chat_end" | "reasoning_start" | "reasoning" | "reasoning_end"
            | "summary_start" | "summary_end" | "error" | "done" => self.calls.end(out),
            _ => return Some(foreign(fields)),
        }
        Some(match (fields.r#type.as_str(), &fields) {
            ("user", Fields { content: Some(content), .. }) => {
                self.abandon_turn(out);
                let (turn, message) = (TurnId::from(self.id("trn")), MessageId::from(self.id("msg")));
                self.turn = Some(turn.clone());
                let content = vec![Block::text(content.as_str())];
                PromptQueued {
                    turn,
                    message,
                    content,
                    key: None,
                    agent: None,
                    model: None,
                    context: None,
                    steers: None,
                }
                .into()
            }
            ("chat_start" | "reasoning_start", _) => {
                self.start_turn(out);
                self.run = None;
                return None;
            }
            ("chat_end", _) => return self.end_run(Voice::Text),
            ("reasoning_end", _) => return self.end_run(Voice::Thought),
            ("chat", Fields { content: Some(text), .. }) => {
                let part = self.part(Voice::Text, out);
                TextAppended { part, text: text.clone() }.into()
            }
            ("reasoning", Fields { content: Some(text), .. }) => {
                let part = self.part(Voice::Thought, out);
                ThoughtAppended { part, text: text.clone() }.into()
            }
            ("summary_start", _) => {
                self.start_turn(out);
                let id = self.id("cmp");
                self.summary = Some(id.clone());
                CompactionStarted { id, automatic: true }.into()
            }
            ("summary_end", _) => {
                self.start_turn(out);
                let id = self.summary.take().unwrap_or_else(|| self.id("cmp"));
                CompactionEnded { id, summary: None, error: None, keeps: None, usage: None, cost: None }.into()
            }
            ("tool_call", Fields { name: Some(name), args, .. }) => {
                self.start_turn(out);
                self.run = None;
                let call = Call { name: name.clone(), args: args.clone().unwrap_or_default() };
                self.tool_call(&call, out)
            }
            ("file_edit", Fields { file: Some(file), diff, .. }) => {
                self.start_turn(out);
                self.run = None;
                self.calls.file_changed(file, diff.as_deref()).into()
            }
            ("error", Fields { error: Some(error), .. }) => {
                self.start_turn(out);
                self.failure = Some(if error == INTERRUPTED { Stop::Interrupted } else { Stop::Failed });
                let (kind, message) = (FailureKind::Agent, error.clone());
                Failed { kind, message, code: None, retryable: false, details: None }.into()
            }
            ("done", _) => {
                let turn = self.start_turn(out);
                self.end_turn();
                let stop = self.failure.take().unwrap_or(Stop::EndTurn);
                TurnEnded { turn, stop, usage: None, cost: None, meta: None }.into()
            }
            _ => foreign(fields),
        })
    }

    fn tool_call(&mut self, call: &Call, out: &mut Vec<Draft>) -> Event {
        if call.name == ask::PERMISSION
            && let Some(args) = call.args.read::<ask::PermissionArgs>()
        {
            return PermissionAsked::from(args).into();
        }
        if call.name == ask::QUESTION
            && let Some(args) = call.args.read::<ask::QuestionArgs>()
        {
            return QuestionAsked::from(args).into();
        }
        let id = CallId::from(self.id("call"));
        self.calls.open(id, call, out).into()
    }

    fn id(&mut self, prefix: &str) -> String {
        self.made += 1;
        derived_id(prefix, Time::default(), self.made, 0)
    }

    /// A stream that does not begin with `user` implies the start of its turn.
    fn start_turn(&mut self, out: &mut Vec<Draft>) -> TurnId {
        if let Some(turn) = &self.turn {
            return turn.clone();
        }
        let turn = TurnId::from(self.id("trn"));
        self.turn = Some(turn.clone());
        out.push(Draft::tolka(TurnStarted { turn: turn.clone(), checkpoint: None }));
        turn
    }

    fn end_turn(&mut self) {
        (self.turn, self.run, self.summary) = (None, None, None);
    }

    /// Another turn begins and this one was never ended: its stream was cut.
    fn abandon_turn(&mut self, out: &mut Vec<Draft>) {
        self.calls.end(out);
        if let Some(turn) = self.turn.take() {
            self.end_turn();
            let stop = self.failure.take().unwrap_or(Stop::Interrupted);
            out.push(Draft::tolka(TurnEnded { turn, stop, usage: None, cost: None, meta: None }));
        }
    }

    fn end_run(&mut self, voice: Voice) -> Option<Event> {
        self.run.take_if(|(open, _)| *open == voice);
        None
    }

    fn part(&mut self, voice: Voice, out: &mut Vec<Draft>) -> PartId {
        self.start_turn(out);
        match &self.run {
            Some((open, part)) if *open == voice => part.clone(),
            _ => {
                let part = PartId::from(self.id("prt"));
                self.run = Some((voice, part.clone()));
                part
            }
        }
    }
}

fn foreign(fields: Fields) -> Event {
    Foreign { origin: "agentsmithy".to_owned(), what: fields.r#type }.into()
}

fn type_of(raw: &Json) -> String {
    raw.value()["type"].as_str().unwrap_or_default().to_owned()
}

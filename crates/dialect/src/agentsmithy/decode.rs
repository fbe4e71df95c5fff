//! Events back to facts: ours, or those of a server that we read.
//!
//! The wire has no ids but the dialog's, so those of turns, runs and calls are made from the place in the stream; and it
//! does not tell how a call ends, so that is made up and says so. Segments may overlap, as today's server lets them.

use serde::Deserialize;
use tolka_facts::event::{
    CompactionEnded, CompactionStarted, Failed, FailureKind, FileChanged, FileOperation, Foreign, PermissionAsked,
    PromptQueued, QuestionAsked, Stop, TextAppended, ThoughtAppended, ToolChanged, TurnEnded, TurnStarted,
};
use tolka_facts::{
    Block, Body, CallId, Draft, Event, Json, MessageId, PartId, SessionId, Time, ToolStatus, TurnId, Voice, derived_id,
};

use super::encode::INTERRUPTED;
use super::patch;
use super::tools::{self, Call};
use crate::{DecodeError, Heard, SseEvent, SseReader};

/// Calls that wait for the word of their file. A turn that names more at once ends the oldest.
const OPEN_CALLS: usize = 64;

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
    calls: Vec<OpenCall>,
    /// Ids made so far.
    made: u64,
}

#[derive(Debug)]
struct OpenCall {
    id: CallId,
    path: Option<String>,
    removes: bool,
    /// It is there to change a file, and no `file_edit` has told so yet.
    awaits_edit: bool,
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
        let mut first_problem = None;
        for event in events {
            match Json::parse(&event.data) {
                Ok(raw) => self.packet(&raw, out),
                Err(e) if first_problem.is_none() => {
                    first_problem = Some(DecodeError { line: event.line, problem: e.to_string() });
                }
                Err(_) => {}
            }
        }
        first_problem.map_or(Ok(()), Err)
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
        if let Told::Event(event) = self.event(fields, &mut drafts) {
            let draft = match event {
                Event::PromptQueued(_) => Draft::client(event),
                event => Draft::agent(event),
            };
            let started = match &draft.event {
                Event::PromptQueued(e) => Some(TurnStarted { turn: e.turn.clone(), checkpoint: checkpoint(raw) }),
                _ => None,
            };
            drafts.push(draft.with_raw(raw.clone()));
            drafts.extend(started.map(Draft::tolka));
        }
        out.extend(Heard::all(drafts, self.dialog.as_ref(), None));
    }

    fn event(&mut self, fields: Fields, out: &mut Vec<Draft>) -> Told {
        match fields.r#type.as_str() {
            "file_edit" | "tool_call" => {}
            "user" | "chat_start" | "chat" | "chat_end" | "reasoning_start" | "reasoning" | "reasoning_end"
            | "summary_start" | "summary_end" | "error" | "done" => self.end_calls(out),
            _ => return foreign(fields),
        }
        match (fields.r#type.as_str(), &fields) {
            ("user", Fields { content: Some(content), .. }) => {
                self.abandon_turn(out);
                let (turn, message) = (TurnId::from(self.id("trn")), MessageId::from(self.id("msg")));
                self.turn = Some(turn.clone());
                let content = vec![Block::text(content.as_str())];
                PromptQueued { turn, message, content, key: None, agent: None, model: None, context: None }.into()
            }
            ("chat_start" | "reasoning_start", _) => {
                self.start_turn(out);
                self.run = None;
                Told::Nothing
            }
            ("chat_end", _) => self.end_run(Voice::Text),
            ("reasoning_end", _) => self.end_run(Voice::Thought),
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
                CompactionEnded { id, summary: None, error: None }.into()
            }
            ("tool_call", Fields { name: Some(name), args, .. }) => {
                self.start_turn(out);
                self.run = None;
                self.tool_call(Call { name: name.clone(), args: args.clone().unwrap_or_default() }, out).into()
            }
            ("file_edit", Fields { file: Some(file), diff, .. }) => {
                self.start_turn(out);
                self.run = None;
                self.file_edit(file, diff.as_deref()).into()
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
        }
    }

    fn tool_call(&mut self, call: Call, out: &mut Vec<Draft>) -> Event {
        if call.name == tools::PERMISSION
            && let Some(args) = call.args.read::<tools::PermissionArgs>()
        {
            return PermissionAsked::from(args).into();
        }
        if call.name == tools::QUESTION
            && let Some(args) = call.args.read::<tools::QuestionArgs>()
        {
            return QuestionAsked::from(args).into();
        }
        // Calls may run side by side; the word of a file may then come after the next call.
        let is_full = self.calls.len() >= OPEN_CALLS;
        let calls = std::mem::take(&mut self.calls);
        for (at, open) in calls.into_iter().enumerate() {
            match open.awaits_edit && !(is_full && at == 0) {
                true => self.calls.push(open),
                false => out.push(open.end()),
            }
        }
        let id = CallId::from(self.id("call"));
        let (name, kind, input) = call.ours();
        self.calls.push(OpenCall {
            id: id.clone(),
            path: call.text("path"),
            removes: call.removes_a_file(),
            awaits_edit: call.edits_a_file(),
        });
        let (name, kind, status, input) = (Some(name), Some(kind), Some(ToolStatus::Running), Some(input));
        ToolChanged { name, kind, status, input, ..ToolChanged::of(id) }.into()
    }

    fn file_edit(&mut self, file: &str, diff: Option<&str>) -> FileChanged {
        let fits = |call: &OpenCall| call.awaits_edit && call.path.as_deref().is_some_and(|path| is_same(path, file));
        let by_path = self.calls.iter().rposition(fits);
        let at = by_path.or_else(|| self.calls.iter().rposition(|call| call.awaits_edit));
        let last = self.calls.len().checked_sub(1);
        let mut call = at.or(last).and_then(|at| self.calls.get_mut(at));
        let patch = diff.and_then(|diff| patch::read(diff).ok());
        let operation = match &patch {
            Some(patch) if patch.makes_a_file => FileOperation::Create,
            Some(patch) if patch.removes_a_file => FileOperation::Delete,
            None if call.as_ref().is_some_and(|call| call.removes) => FileOperation::Delete,
            _ => FileOperation::Update,
        };
        call.iter_mut().for_each(|call| call.awaits_edit = false);
        FileChanged {
            path: file.to_owned(),
            operation,
            before: None,
            after: None,
            added: patch.as_ref().map_or(0, |patch| patch.added),
            removed: patch.as_ref().map_or(0, |patch| patch.removed),
            call: call.map(|call| call.id.clone()),
            diff: diff.map(Body::from),
        }
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
        self.end_calls(out);
        if let Some(turn) = self.turn.take() {
            self.end_turn();
            let stop = self.failure.take().unwrap_or(Stop::Interrupted);
            out.push(Draft::tolka(TurnEnded { turn, stop, usage: None, cost: None, meta: None }));
        }
    }

    fn end_calls(&mut self, out: &mut Vec<Draft>) {
        out.extend(self.calls.drain(..).map(OpenCall::end));
    }

    fn end_run(&mut self, voice: Voice) -> Told {
        self.run.take_if(|(open, _)| *open == voice);
        Told::Nothing
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

impl OpenCall {
    /// Such a call ends with a `file_edit` if it ends well, says the document; of the others nobody can tell.
    fn end(self) -> Draft {
        let (status, error) = match self.awaits_edit {
            true => (ToolStatus::Failed, Some("No file was changed.".into())),
            false => (ToolStatus::Completed, None),
        };
        Draft::tolka(ToolChanged { status: Some(status), error, ..ToolChanged::of(self.id) })
    }
}

/// What an event tells.
enum Told {
    Event(Event),
    /// Its place says it all, as that of the end of a segment does.
    Nothing,
}

impl<T: Into<Event>> From<T> for Told {
    fn from(event: T) -> Self {
        Told::Event(event.into())
    }
}

fn foreign(fields: Fields) -> Told {
    Foreign { origin: "agentsmithy".to_owned(), what: fields.r#type }.into()
}

fn type_of(raw: &Json) -> String {
    raw.value()["type"].as_str().unwrap_or_default().to_owned()
}

fn checkpoint(raw: &Json) -> Option<String> {
    raw.read::<Fields>().and_then(|fields| fields.checkpoint)
}

/// A call may name its file from the workspace on.
fn is_same(path: &str, file: &str) -> bool {
    let path = path.strip_prefix("./").unwrap_or(path);
    let rest = file.strip_suffix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

//! Everything that can happen. Past tense, self-contained, and readable for ever: a field may be added
//! as an option, never renamed, never removed, never given another meaning.

mod values;

use serde::{Deserialize, Serialize};

pub use values::*;

use crate::{
    ArtifactId, BlobRef, Block, Body, CallId, Json, Location, MessageId, PartId, RequestId, SessionId, ToolContent,
    ToolKind, ToolStatus, TurnId,
};

/// Declares the events: for each a struct, a variant that holds it, and its name on the wire.
macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $name:literal { $($(#[$attr:meta])* $field:ident : $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            #[cfg_attr(test, derive(ts_rs::TS))]
            pub struct $variant { $($(#[$attr])* pub $field: $type),* }

            impl From<$variant> for Event {
                fn from(event: $variant) -> Event {
                    Event::$variant(event)
                }
            }
        )*

        #[derive(Debug, Clone, PartialEq)]
        pub enum Event { $($variant($variant)),* }

        impl Event {
            /// Every name, in the order of this file; documentation and tests walk it.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            pub fn name(&self) -> &'static str {
                match self { $(Event::$variant(_) => $name),* }
            }

            pub(crate) fn serialize_data<S: serde::ser::SerializeStruct>(&self, out: &mut S) -> Result<(), S::Error> {
                match self { $(Event::$variant(data) => out.serialize_field("data", data)),* }
            }

            pub(crate) fn write_data(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
                match self { $(Event::$variant(data) => serde_json::to_writer(out, data)),* }
            }

            /// Each by its name, for the types that clients are given.
            #[cfg(test)]
            pub(crate) fn visit_types(mut visit: impl FnMut(&str, &str), seen: &mut impl ts_rs::TypeVisitor) {
                $(
                    seen.visit::<$variant>();
                    visit($name, stringify!($variant));
                )*
            }

            /// `None` for a name that this version does not know.
            pub(crate) fn deserialize_data<'de, M: serde::de::MapAccess<'de>>(
                name: &str,
                map: &mut M,
            ) -> Option<Result<Event, M::Error>> {
                match name {
                    $($name => Some(map.next_value().map(Event::$variant)),)*
                    _ => None,
                }
            }
        }
    };
}

events! {
    SessionCreated = "session_created" {
        /// The folder the agent works in.
        workspace: String,
        agent: String,
        title: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] mode: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] model: Option<Model>,
        #[serde(skip_serializing_if = "Option::is_none", default)] parent: Option<Parent>,
    }
    /// What is named changed; the rest stayed.
    SessionChanged = "session_changed" {
        #[serde(skip_serializing_if = "Option::is_none", default)] title: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] mode: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] model: Option<Model>,
        #[serde(skip_serializing_if = "Option::is_none", default)] agent: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] archived: Option<bool>,
    }
    SessionDeleted = "session_deleted" {}

    /// A client asked for a turn. It waits here, durable, until the session is free.
    PromptQueued = "prompt_queued" {
        turn: TurnId,
        message: MessageId,
        content: Vec<Block>,
        /// The client's own name for this request: the same key twice is one turn.
        #[serde(skip_serializing_if = "Option::is_none", default)] key: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] agent: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] model: Option<Model>,
        /// What the client knows beside the prompt: open file, selection, attachments.
        #[serde(skip_serializing_if = "Option::is_none", default)] context: Option<Json>,
        /// The turn that it is meant for, which was running or about to. Should that end first, it is a prompt like any
        /// other.
        #[serde(skip_serializing_if = "Option::is_none", default)] steers: Option<TurnId>,
    }
    /// Taken out of the queue before it started.
    PromptDropped = "prompt_dropped" { turn: TurnId }
    TurnStarted = "turn_started" {
        turn: TurnId,
        #[serde(skip_serializing_if = "Option::is_none", default)] checkpoint: Option<String>,
    }
    TurnEnded = "turn_ended" {
        turn: TurnId,
        stop: Stop,
        #[serde(skip_serializing_if = "Option::is_none", default)] usage: Option<Usage>,
        #[serde(skip_serializing_if = "Option::is_none", default)] cost: Option<f64>,
        /// `_meta` of the agent's answer, for dialects that pass it on.
        #[serde(skip_serializing_if = "Option::is_none", default)] meta: Option<Json>,
    }
    /// One call of the model inside a turn.
    StepStarted = "step_started" {
        message: MessageId,
        #[serde(skip_serializing_if = "Option::is_none", default)] model: Option<Model>,
    }
    StepEnded = "step_ended" {
        message: MessageId,
        finish: Finish,
        #[serde(skip_serializing_if = "Option::is_none", default)] usage: Option<Usage>,
        #[serde(skip_serializing_if = "Option::is_none", default)] cost: Option<f64>,
        /// What the model's provider wants back with the next request, part by part: signatures and the like. For minds;
        /// no client of another wire is told.
        #[serde(skip_serializing_if = "Option::is_none", default)] kept: Option<Json>,
    }

    TextAppended = "text_appended" { part: PartId, text: String }
    ThoughtAppended = "thought_appended" { part: PartId, text: String }

    /// A tool call began or changed; the fold merges the updates of one call.
    ToolChanged = "tool_changed" {
        call: CallId,
        #[serde(skip_serializing_if = "Option::is_none", default)] name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] kind: Option<ToolKind>,
        #[serde(skip_serializing_if = "Option::is_none", default)] title: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] status: Option<ToolStatus>,
        #[serde(skip_serializing_if = "Option::is_none", default)] input: Option<Json>,
        #[serde(skip_serializing_if = "Option::is_none", default)] output: Option<Json>,
        #[serde(skip_serializing_if = "Option::is_none", default)] content: Option<Vec<ToolContent>>,
        #[serde(skip_serializing_if = "Option::is_none", default)] locations: Option<Vec<Location>>,
        #[serde(skip_serializing_if = "Option::is_none", default)] error: Option<Body>,
        #[serde(skip_serializing_if = "Option::is_none", default)] meta: Option<Json>,
        /// The session of the subagent that works for the call. Only what makes such sessions tells it; what an agent of
        /// somebody else's says of itself stands in `meta`.
        #[serde(skip_serializing_if = "Option::is_none", default)] subagent: Option<SessionId>,
    }
    InputAppended = "input_appended" { call: CallId, text: String }
    OutputAppended = "output_appended" { call: CallId, text: String }

    PlanSet = "plan_set" { entries: Vec<PlanEntry> }
    ModeSet = "mode_set" { mode: String }
    CommandsSet = "commands_set" { commands: Vec<Command> }
    /// How full the context is, and what the session has cost so far, with what was done for it by subagents.
    UsageSet = "usage_set" {
        used: u64,
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none", default)] cost: Option<Cost>,
        /// What its subagents have used since this was told last. It is part of the cost, and counts among the session's
        /// tokens.
        #[serde(skip_serializing_if = "Option::is_none", default)] subagents: Option<Usage>,
    }
    Noticed = "noticed" {
        severity: Severity,
        title: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] description: Option<String>,
    }

    FileChanged = "file_changed" {
        path: String,
        operation: FileOperation,
        #[serde(skip_serializing_if = "Option::is_none", default)] before: Option<BlobRef>,
        #[serde(skip_serializing_if = "Option::is_none", default)] after: Option<BlobRef>,
        added: u64,
        removed: u64,
        /// The call that changed it; this fact then stands before the one that ends the call.
        #[serde(skip_serializing_if = "Option::is_none", default)] call: Option<CallId>,
        /// A unified diff, where whoever told of the change gave one.
        #[serde(skip_serializing_if = "Option::is_none", default)] diff: Option<Body>,
    }
    ArtifactSaved = "artifact_saved" {
        id: ArtifactId,
        kind: ArtifactKind,
        name: String,
        path: String,
        mime: String,
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none", default)] preview: Option<String>,
    }

    PermissionAsked = "permission_asked" {
        request: RequestId,
        #[serde(skip_serializing_if = "Option::is_none", default)] call: Option<CallId>,
        /// What is asked for, as rules name it: `bash`, `edit`, …
        permission: String,
        title: String,
        #[serde(skip_serializing_if = "Vec::is_empty", default)] patterns: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] metadata: Option<Json>,
        options: Vec<PermissionOption>,
    }
    PermissionAnswered = "permission_answered" {
        request: RequestId,
        /// `None`: nobody chose; the turn was cancelled or the server stopped.
        #[serde(skip_serializing_if = "Option::is_none", default)] option: Option<String>,
        by: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] reason: Option<String>,
    }
    QuestionAsked = "question_asked" {
        request: RequestId,
        #[serde(skip_serializing_if = "Option::is_none", default)] call: Option<CallId>,
        questions: Vec<Question>,
    }
    QuestionAnswered = "question_answered" {
        request: RequestId,
        /// One list of chosen labels per question. `None`: rejected.
        #[serde(skip_serializing_if = "Option::is_none", default)] answers: Option<Vec<Vec<String>>>,
        by: String,
    }

    CompactionStarted = "compaction_started" { id: String, automatic: bool }
    CompactionEnded = "compaction_ended" {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] summary: Option<Body>,
        #[serde(skip_serializing_if = "Option::is_none", default)] error: Option<String>,
        /// The first message that the model goes on to see as it is; of those before it, only the summary. `None`: none.
        #[serde(skip_serializing_if = "Option::is_none", default)] keeps: Option<MessageId>,
        /// What making the summary took, also where it came to nothing.
        #[serde(skip_serializing_if = "Option::is_none", default)] usage: Option<Usage>,
        #[serde(skip_serializing_if = "Option::is_none", default)] cost: Option<f64>,
    }

    /// A command goes on while the session does: a development server, for one.
    ProcessStarted = "process_started" {
        process: String,
        command: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] call: Option<CallId>,
    }
    ProcessEnded = "process_ended" {
        process: String,
        /// `None`: a signal ended it, or nobody saw how it ended.
        #[serde(skip_serializing_if = "Option::is_none", default)] code: Option<i32>,
        /// Who ended it. `None`: it ended by itself.
        #[serde(skip_serializing_if = "Option::is_none", default)] by: Option<String>,
    }

    /// The workspace was saved. The snapshot before a turn is told by the fact that starts it.
    CheckpointSaved = "checkpoint_saved" {
        checkpoint: String,
        files: u64,
        #[serde(skip_serializing_if = "Option::is_none", default)] moment: Option<Moment>,
        /// The turn that it was saved after.
        #[serde(skip_serializing_if = "Option::is_none", default)] turn: Option<TurnId>,
        /// What the turn changed, by its commands too.
        #[serde(skip_serializing_if = "Option::is_none", default)] changes: Option<Changes>,
        /// What has changed since the session began, or since its changes were last approved.
        #[serde(skip_serializing_if = "Option::is_none", default)] total: Option<Changes>,
        /// Sessions whose turns ran in the same folder meanwhile: what nobody told may be theirs.
        #[serde(skip_serializing_if = "Vec::is_empty", default)] beside: Vec<SessionId>,
        /// The turn was cut off, and nobody saw when: what changed may be anybody's who came since.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)] late: bool,
        /// The turn told of every file that it changed: what it did not tell is somebody else's, who worked meanwhile.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)] tells: bool,
    }
    /// Logged before anything is touched: a restore that is cut off is taken up from here.
    RewindStarted = "rewind_started" {
        /// The files go back to it. `None`: they stay.
        #[serde(skip_serializing_if = "Option::is_none", default)] checkpoint: Option<String>,
        /// The conversation goes back to before this prompt. `None`: it stays.
        #[serde(skip_serializing_if = "Option::is_none", default)] message: Option<MessageId>,
        /// The files as they are now.
        #[serde(skip_serializing_if = "Option::is_none", default)] before: Option<String>,
        /// Where the first turn that is taken back started.
        #[serde(skip_serializing_if = "Option::is_none", default)] from: Option<u64>,
        #[serde(skip_serializing_if = "Overwrite::is_nothing", default)] overwrite: Overwrite,
        /// Which [`Rewound`] fact this takes back.
        #[serde(skip_serializing_if = "Option::is_none", default)] undoes: Option<u64>,
        /// All that was not approved goes.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)] resets: bool,
    }
    /// Fields are as in [`RewindStarted`]. What it hides can be taken back until the next turn starts.
    Rewound = "rewound" {
        #[serde(skip_serializing_if = "Option::is_none", default)] checkpoint: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] message: Option<MessageId>,
        /// Paths that were written or removed; of very many the first.
        files: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] before: Option<String>,
        /// The files as they were when it was done.
        #[serde(skip_serializing_if = "Option::is_none", default)] after: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] from: Option<u64>,
        /// What is not as it was at the checkpoint, and why.
        #[serde(skip_serializing_if = "Vec::is_empty", default)] kept: Vec<KeptFile>,
        /// `None` with a checkpoint: it was given up in its middle, and nobody knows what it wrote.
        #[serde(skip_serializing_if = "Option::is_none", default)] changes: Option<Changes>,
        #[serde(skip_serializing_if = "Option::is_none", default)] total: Option<Changes>,
        #[serde(skip_serializing_if = "std::ops::Not::not", default)] resets: bool,
    }
    /// The last rewind was taken back, or all from the one on that `RewindStarted` names.
    Unrewound = "unrewound" {
        /// The files went back to it.
        #[serde(skip_serializing_if = "Option::is_none", default)] checkpoint: Option<String>,
        files: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] before: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)] after: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty", default)] kept: Vec<KeptFile>,
        #[serde(skip_serializing_if = "Option::is_none", default)] changes: Option<Changes>,
        #[serde(skip_serializing_if = "Option::is_none", default)] total: Option<Changes>,
    }
    MessageHidden = "message_hidden" { message: MessageId }

    /// Something went wrong that the person should know. Inside a turn it is why the turn fails.
    Failed = "failed" {
        kind: FailureKind,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] code: Option<i64>,
        retryable: bool,
        #[serde(skip_serializing_if = "Option::is_none", default)] details: Option<Json>,
    }
    /// What an agent said and we have no word for; the envelope's `raw` has it whole.
    Foreign = "foreign" { origin: String, what: String }

    InstanceDisposed = "instance_disposed" { directory: String }
    VersionChanged = "version_changed" { version: String }
    UpdateFound = "update_found" { version: String }
    BranchChanged = "branch_changed" {
        directory: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] branch: Option<String>,
    }
    PtyChanged = "pty_changed" {
        id: String,
        change: PtyChange,
        #[serde(skip_serializing_if = "Option::is_none", default)] info: Option<Json>,
    }
    /// Clients of a family that has a current session, one for all of them, work in this one from now on.
    SessionChosen = "session_chosen" {
        #[serde(skip_serializing_if = "Option::is_none", default)] session: Option<SessionId>,
    }
    /// A prompt that waited became part of the turn that runs; it will have none of its own.
    PromptSteered = "prompt_steered" {
        turn: TurnId,
        /// The turn that took it.
        into: TurnId,
    }
    /// The model could not be asked, or broke off; it is asked again after the delay.
    RetryScheduled = "retry_scheduled" {
        /// From 1.
        attempt: u64,
        delay_ms: u64,
        message: String,
        /// What the provider answered, where it did: an HTTP status.
        #[serde(skip_serializing_if = "Option::is_none", default)] code: Option<i64>,
    }
    /// A rewind that began was not carried out: nothing has changed. Only where the snapshots themselves are gone nobody
    /// can say so; then `message` tells that.
    RewindFailed = "rewind_failed" { message: String }
    /// A person agreed to what was changed up to here.
    Approved = "approved" {
        checkpoint: String,
        #[serde(skip_serializing_if = "Option::is_none", default)] message: Option<String>,
    }
    /// A restore in another session of the same folder wrote or removed files that this one may know.
    FilesMoved = "files_moved" { by: SessionId, changes: Changes }
    /// The last of the facts that a fork begins with: what came before was copied from another session.
    SessionForked = "session_forked" {
        from: SessionId,
        /// The last fact of it that counts here.
        seq: u64,
        /// The files that it began with.
        #[serde(skip_serializing_if = "Option::is_none", default)] checkpoint: Option<String>,
    }
}

impl ToolChanged {
    /// A change of this call that changes nothing yet; the caller names what did.
    pub fn of(call: CallId) -> Self {
        ToolChanged {
            call,
            name: None,
            kind: None,
            title: None,
            status: None,
            input: None,
            output: None,
            content: None,
            locations: None,
            error: None,
            meta: None,
            subagent: None,
        }
    }
}

impl CheckpointSaved {
    /// A snapshot of which nothing more is known.
    pub fn of(checkpoint: String, files: u64) -> Self {
        let (moment, turn, changes, total) = (None, None, None, None);
        CheckpointSaved {
            checkpoint,
            files,
            moment,
            turn,
            changes,
            total,
            beside: Vec::new(),
            late: false,
            tells: false,
        }
    }
}

impl Rewound {
    /// Conversation and files went back to before a prompt whose turn started at a place, and no file had to change for it.
    pub fn to(message: MessageId, from: u64, checkpoint: String) -> Self {
        Rewound {
            checkpoint: Some(checkpoint),
            message: Some(message),
            files: Vec::new(),
            before: None,
            after: None,
            from: Some(from),
            kept: Vec::new(),
            changes: None,
            total: None,
            resets: false,
        }
    }
}

impl Unrewound {
    /// The last rewind was taken back, and no file had to change for it.
    pub fn to(checkpoint: String) -> Self {
        Unrewound {
            checkpoint: Some(checkpoint),
            files: Vec::new(),
            before: None,
            after: None,
            kept: Vec::new(),
            changes: None,
            total: None,
        }
    }
}

impl Event {
    /// Moves every long value out to `put`; see [`Body::spill`].
    pub fn spill(&mut self, put: &mut dyn FnMut(&[u8])) {
        match self {
            Event::PromptQueued(e) => {
                e.content.iter_mut().flat_map(Block::bodies_mut).for_each(|body| body.spill(put));
                e.context.iter_mut().for_each(|json| json.spill(put));
            }
            Event::ToolChanged(e) => {
                [&mut e.input, &mut e.output, &mut e.meta].into_iter().flatten().for_each(|json| json.spill(put));
                e.error.iter_mut().for_each(|body| body.spill(put));
                for content in e.content.iter_mut().flatten() {
                    match content {
                        ToolContent::Content { block } => block.bodies_mut().for_each(|body| body.spill(put)),
                        ToolContent::Diff { old, new, .. } => {
                            old.iter_mut().for_each(|body| body.spill(put));
                            new.spill(put);
                        }
                        ToolContent::Terminal { .. } => {}
                    }
                }
            }
            Event::PermissionAsked(e) => e.metadata.iter_mut().for_each(|json| json.spill(put)),
            Event::FileChanged(e) => e.diff.iter_mut().for_each(|body| body.spill(put)),
            Event::CompactionEnded(e) => e.summary.iter_mut().for_each(|body| body.spill(put)),
            Event::Failed(e) => e.details.iter_mut().for_each(|json| json.spill(put)),
            Event::StepEnded(e) => e.kept.iter_mut().for_each(|json| json.spill(put)),
            Event::TurnEnded(e) => e.meta.iter_mut().for_each(|json| json.spill(put)),
            _ => {}
        }
    }
}

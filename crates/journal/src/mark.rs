//! Marks: places in a session that have a name, so that they are found without reading the facts around them.

use std::fmt;

use tolka_facts::{CallId, Event, Fact, MessageId, RequestId, Time, Tip, TurnId, compaction_message, compaction_name};

/// The names of marks, in one place for those who set and those who seek them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark<'a> {
    /// Where the prompt of a turn was queued.
    Prompt(&'a TurnId),
    /// Where the prompt with this message was.
    Message(&'a MessageId),
    /// Where the step with this message started.
    Step(&'a MessageId),
    /// Where a compaction is told as a message, which has its name from this place.
    Summary {
        time: Time,
        seq: u64,
    },
    /// Where the prompt with this key was.
    Key(&'a str),
    TurnStart(&'a TurnId),
    TurnEnd(&'a TurnId),
    /// Where the turn that was open took the prompt of this one, which never starts.
    Steered(&'a TurnId),
    /// Where a permission or a question was asked.
    Ask(&'a RequestId),
    /// Where a permission or a question was answered.
    Answer(&'a RequestId),
    /// Where a tool call ended. Agents name their calls themselves; should one use a name again, the last call counts.
    CallEnd(&'a CallId),
    /// Where what is at this path was first saved as an artifact; a folder's path ends with a slash.
    Artifact(&'a str),
    /// That an artifact was saved by the fact at this place, for the first time or again. What the last save of a path
    /// was depends on where one looks from, so there is no mark that moves for it.
    Save(u64),
    /// That the agent told its commands by the fact at this place; like saves, they are looked for from anywhere.
    Commands(u64),
    /// Where a message was hidden. It was told before, and nothing shows it again: hiding it once more says nothing, and
    /// whoever looks from between must find the first.
    Hidden(&'a MessageId),
    /// That messages were taken back by the fact at this place.
    Rewound(u64),
    /// That the fact at this place names a snapshot of the workspace.
    Point(u64),
    /// Where a snapshot was first named.
    Checkpoint(&'a str),
    /// Where a session was last chosen, in the server's own journal.
    Chosen,
}

/// What marks are named for. Those of a kind can be listed in the order of what they stand at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    Prompt,
    Message,
    Step,
    Key,
    TurnStart,
    TurnEnd,
    Steered,
    Ask,
    Answer,
    CallEnd,
    Artifact,
    Save,
    Commands,
    Hidden,
    Rewound,
    Point,
    Checkpoint,
    Chosen,
}

impl MarkKind {
    /// Marks of these kinds stand where they were set last, all others where they were set first: a request key that
    /// was used stays where it was used.
    const MOVING: [MarkKind; 2] = [MarkKind::CallEnd, MarkKind::Chosen];

    /// What the names of its marks start with. The first colon ends it: an index goes by that.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            MarkKind::Prompt => "prompt:",
            MarkKind::Message => "message:",
            MarkKind::Step => "step:",
            MarkKind::Key => "key:",
            MarkKind::TurnStart => "turn:",
            MarkKind::TurnEnd => "end:",
            MarkKind::Steered => "steered:",
            MarkKind::Ask => "asked:",
            MarkKind::Answer => "answered:",
            MarkKind::CallEnd => "call:",
            MarkKind::Artifact => "artifact:",
            MarkKind::Save => "save:",
            MarkKind::Commands => "commands:",
            MarkKind::Hidden => "hidden:",
            MarkKind::Rewound => "rewound:",
            MarkKind::Point => "point:",
            MarkKind::Checkpoint => "checkpoint:",
            MarkKind::Chosen => "chosen:",
        }
    }
}

/// Whether the mark of this name is of a kind that moves.
pub(crate) fn moves(name: &str) -> bool {
    MarkKind::MOVING.iter().any(|kind| name.starts_with(kind.prefix()))
}

impl<'a> Mark<'a> {
    /// The marks that a fact sets, all at its own place. The tip is the session's after the fact.
    pub fn of(fact: &'a Fact, tip: &Tip) -> impl Iterator<Item = Mark<'a>> + use<'a> {
        let one = |mark| [Some(mark), None, None];
        let here = fact.event.checkpoints().here;
        let (point, checkpoint) = (here.map(|_| Mark::Point(fact.seq)), here.map(Mark::Checkpoint));
        let marks = match &fact.event {
            Event::PromptQueued(e) => {
                [Some(Mark::Prompt(&e.turn)), Some(Mark::Message(&e.message)), e.key.as_deref().map(Mark::Key)]
            }
            Event::StepStarted(e) => one(Mark::Step(&e.message)),
            Event::CompactionStarted(_) | Event::CompactionEnded(_) => {
                let summary = Mark::Summary { time: fact.time, seq: fact.seq };
                [compaction_message(fact, tip).map(|_| summary), None, None]
            }
            Event::TurnStarted(e) => [Some(Mark::TurnStart(&e.turn)), point, checkpoint],
            Event::CheckpointSaved(_) | Event::Approved(_) | Event::SessionForked(_) => [point, checkpoint, None],
            // A point in any case: from there on the files may be others.
            Event::Unrewound(_) => [Some(Mark::Point(fact.seq)), checkpoint, None],
            Event::TurnEnded(e) => one(Mark::TurnEnd(&e.turn)),
            Event::PromptSteered(e) => one(Mark::Steered(&e.turn)),
            // An update that comes late changes nothing, and a tip does not know its call.
            Event::ToolChanged(e) if tip.tool(&e.call).is_some_and(|tool| !tool.is_open()) => {
                one(Mark::CallEnd(&e.call))
            }
            Event::ArtifactSaved(e) => [Some(Mark::Artifact(&e.path)), Some(Mark::Save(fact.seq)), None],
            Event::CommandsSet(_) => one(Mark::Commands(fact.seq)),
            Event::PermissionAsked(e) => one(Mark::Ask(&e.request)),
            Event::QuestionAsked(e) => one(Mark::Ask(&e.request)),
            Event::PermissionAnswered(e) => one(Mark::Answer(&e.request)),
            Event::QuestionAnswered(e) => one(Mark::Answer(&e.request)),
            Event::MessageHidden(e) => one(Mark::Hidden(&e.message)),
            Event::Rewound(_) => [Some(Mark::Rewound(fact.seq)), Some(Mark::Point(fact.seq)), checkpoint],
            Event::SessionChosen(_) => one(Mark::Chosen),
            _ => [None; 3],
        };
        marks.into_iter().flatten()
    }

    fn kind(&self) -> MarkKind {
        match self {
            Mark::Prompt(_) => MarkKind::Prompt,
            Mark::Message(_) => MarkKind::Message,
            // Its message is listed among those of steps.
            Mark::Step(_) | Mark::Summary { .. } => MarkKind::Step,
            Mark::Key(_) => MarkKind::Key,
            Mark::TurnStart(_) => MarkKind::TurnStart,
            Mark::TurnEnd(_) => MarkKind::TurnEnd,
            Mark::Steered(_) => MarkKind::Steered,
            Mark::Ask(_) => MarkKind::Ask,
            Mark::Answer(_) => MarkKind::Answer,
            Mark::CallEnd(_) => MarkKind::CallEnd,
            Mark::Artifact(_) => MarkKind::Artifact,
            Mark::Save(_) => MarkKind::Save,
            Mark::Commands(_) => MarkKind::Commands,
            Mark::Hidden(_) => MarkKind::Hidden,
            Mark::Rewound(_) => MarkKind::Rewound,
            Mark::Point(_) => MarkKind::Point,
            Mark::Checkpoint(_) => MarkKind::Checkpoint,
            Mark::Chosen => MarkKind::Chosen,
        }
    }
}

impl fmt::Display for Mark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().prefix())?;
        match self {
            Mark::Prompt(turn) | Mark::TurnStart(turn) | Mark::TurnEnd(turn) | Mark::Steered(turn) => turn.fmt(f),
            Mark::Message(message) | Mark::Step(message) | Mark::Hidden(message) => message.fmt(f),
            Mark::Summary { time, seq } => compaction_name(*time, *seq).fmt(f),
            Mark::Ask(request) | Mark::Answer(request) => request.fmt(f),
            Mark::CallEnd(call) => call.fmt(f),
            Mark::Key(name) | Mark::Artifact(name) | Mark::Checkpoint(name) => f.write_str(name),
            Mark::Save(seq) | Mark::Commands(seq) | Mark::Rewound(seq) | Mark::Point(seq) => seq.fmt(f),
            Mark::Chosen => Ok(()),
        }
    }
}

use std::sync::Arc;

use tolka_facts::{MessageId, RequestId, SessionId, TurnId};
use tolka_journal::JournalError;
use tolka_workspace::CheckpointError;

/// What can go wrong for a client. Each says what to do about it where something can be done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SessionError {
    #[error("Session not found: {0}")]
    NotFound(SessionId),
    #[error("no agent is called `{name}` here; there are: {known}")]
    UnknownAgent { name: String, known: String },
    #[error("`{agent}` has no mode `{name}`; it has: {known}")]
    UnknownMode { name: String, agent: String, known: String },
    #[error("`{agent}` has no model `{name}`; it has: {known}")]
    UnknownModel { name: String, agent: String, known: String },
    #[error("the prompt is empty; send at least one block of content")]
    EmptyPrompt,
    #[error("`{0}` summarises no sessions; the agents that do bring their own models")]
    CannotCompact(String),
    #[error("what to heed in a summary may have {most} bytes, not {given}")]
    LongInstructions { given: usize, most: usize },
    #[error("{waiting} prompts are waiting already; wait for one to finish, cancel, or drop one from the queue")]
    QueueFull { waiting: usize },
    #[error("no prompt {0} is waiting in the queue")]
    NotQueued(TurnId),
    #[error("{0} was answered before; the first answer counts")]
    AlreadyAnswered(RequestId),
    #[error("nothing called {0} waits for an answer")]
    NotAsked(RequestId),
    #[error("`{given}` is not one of the options: {known}")]
    NoSuchOption { given: String, known: String },
    #[error("{given} answers were given to {asked} questions; give one list per question")]
    WrongAnswers { given: usize, asked: usize },
    #[error("the server is shutting down, or takes this session up again; try again in a moment")]
    ShuttingDown,
    #[error("a prompt must hold its content itself, not a reference to what was stored before")]
    Reference,
    #[error("the key of a prompt may have {most} bytes, not {given}")]
    LongKey { given: usize, most: usize },
    #[error("the key of a prompt must not begin with `{0}`: such keys are the server's own; take another")]
    OwnKey(&'static str),
    #[error("the picture in block {block} of the prompt cannot be used: {problem}")]
    BadPicture { block: usize, problem: String },
    #[error("a turn runs, or a restore; wait for its end or cancel it, then try again")]
    Busy,
    #[error(
        "the turn of {0} has not begun: it waits for its checkpoint, or for what comes before it; wait too, or drop it from \
         the queue"
    )]
    Waiting(MessageId),
    #[error("no message {0} is in this session")]
    NoSuchMessage(MessageId),
    #[error("{0} is no checkpoint of this session")]
    NoSuchCheckpoint(String),
    #[error("there is no checkpoint to go back to: {0}")]
    NoCheckpoint(String),
    #[error("there is nothing to take back: no rewind was made, or a turn has started since")]
    NothingToUndo,
    #[error(
        "the rewind at {0} is not the last one: it was taken back, or followed by another rewind or a turn; look again"
    )]
    NotTheLast(u64),
    #[error("the session is there already")]
    AlreadyThere,
    #[error("{0} is being removed with its last session; choose another folder")]
    FolderGoes(String),
    #[error("checkpoints are switched off on this server")]
    CheckpointsOff,
    #[error("what was restored cannot be known or taken back: {0}; look at the files")]
    HalfDone(String),
    #[error(transparent)]
    Checkpoint(#[from] Arc<CheckpointError>),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

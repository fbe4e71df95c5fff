//! The memory: facts in order, durable before anybody sees them, and the blobs they refer to.
//!
//! [`Journal`] is all that the rest of the system knows of storage. It assumes no single process:
//! appending compares and sets, and places in the feed of all sessions are numbers that only the
//! journal gives out. [`Sqlite`] is the one that ships; `tests/journal/conformance.rs` is written
//! against the trait and holds for any other.

mod mark;
mod sqlite;
mod tip;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;
use tolka_facts::{Fact, Hash, Head, SessionId, Time};

pub use mark::{Mark, MarkKind};
pub use sqlite::{Owner, Sqlite, SqliteOptions};
pub use tip::{TIP, tip_at};

/// What a call to the journal gives when it is done. Boxed, so that a journal can be a trait object; its
/// price is nothing beside a disk.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, JournalError>> + Send + 'a>>;

pub trait Journal: std::fmt::Debug + Send + Sync + 'static {
    /// Appends facts, all or none, durable when it returns and visible no earlier.
    ///
    /// The facts are of one session, gapless, and the first one's `seq` is one above the session's
    /// last: else [`JournalError::Conflict`], and nothing has changed. Who stops waiting does not take it back: it
    /// may still be appended. What can be done without the journal (writing the facts out) is done by the call, the rest
    /// when it is first polled: so a next batch can be made ready while one is on its way.
    fn append(&self, batch: Append) -> Pending<'static, ()>;

    /// Up to `limit` facts after a place of the scope, in order; fewer only at the end or when a page is full.
    fn read(&self, scope: &Scope, after: u64, limit: usize) -> Pending<'_, Vec<Entry>>;

    /// What [`Journal::read`] would give, if memory has it. `None`: ask the disk.
    fn recent(&self, scope: &Scope, after: u64, limit: usize) -> Option<Vec<Entry>>;

    /// The scope's last place, and every later one as it becomes durable. It ends when the session is purged or the
    /// journal dropped. The first watch of a session may look at the disk, briefly.
    fn watch(&self, scope: &Scope) -> watch::Receiver<u64>;

    /// The `seq` that a mark stands at; [`Mark`] has the names in use.
    fn mark(&self, session: &SessionId, name: &str) -> Pending<'_, Option<u64>>;

    /// Whether any session has such a mark. It takes a look per session.
    fn is_marked(&self, name: &str) -> Pending<'_, bool>;

    /// Where marks of a kind stand, the latest first: up to `limit` of those before `seq`. What it takes does not grow
    /// with the session.
    fn marks(&self, session: &SessionId, kind: MarkKind, before: u64, limit: usize) -> Pending<'_, Vec<u64>>;

    /// Keeps a state of a fold, to start from later. Losing one costs time, nothing else.
    fn keep(&self, session: &SessionId, name: &str, state: Kept) -> Pending<'_, ()>;

    /// The latest kept state at or before `seq`; with `idle`, the latest that was idle.
    fn kept(&self, session: &SessionId, name: &str, seq: u64, idle: bool) -> Pending<'_, Option<Kept>>;

    /// A blob. It blocks on the disk: call it where that is fine.
    fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>, JournalError>;

    fn session(&self, session: &SessionId) -> Pending<'_, Option<SessionRow>>;

    /// Sessions that are not deleted, the latest changed first, as their heads tell it.
    fn sessions(&self, query: SessionQuery) -> Pending<'_, Vec<SessionRow>>;

    /// The folders that have sessions, in the order of their names.
    fn workspaces(&self) -> Pending<'_, Vec<Workspace>>;

    /// Removes a deleted session whole: facts, marks, states, and the blobs that nobody else refers to.
    fn purge(&self, session: &SessionId) -> Pending<'_, Purged>;

    /// Names this journal. A place that another journal gave out means nothing here.
    fn epoch(&self) -> &str;
}

/// Whose facts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One session's; places are its `seq`.
    Session(SessionId),
    /// Everybody's, in the order they became durable; places are the journal's own, ascending, with gaps.
    All,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The place in the scope that was read.
    pub place: u64,
    pub fact: Arc<Fact>,
}

/// One atomic change of a session's journal.
#[derive(Debug, Default)]
pub struct Append {
    pub facts: Vec<Arc<Fact>>,
    /// What the facts refer to; durable with them.
    pub blobs: Vec<(Hash, Vec<u8>)>,
    /// Names that can be looked up in one step: where a turn began and ended, which request key was used. The first to
    /// set one wins, unless it is of a kind that moves, like [`Mark::CallEnd`]; then the last does.
    pub marks: Vec<(String, u64)>,
    /// What lists show of the session after these facts.
    pub head: Option<Head>,
    /// The session's tip after these facts, where it is time to keep one; kept under [`TIP`].
    pub tip: Option<Kept>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub seq: u64,
    pub idle: bool,
    pub state: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    pub head: Head,
    /// Its last `seq`.
    pub seq: u64,
    pub standing: Standing,
}

/// Where a session stands in lists. It means the same after the session has changed or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    updated: Time,
    /// Which of those that changed at once.
    num: u64,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.updated.micros(), self.num)
    }
}

impl std::str::FromStr for Standing {
    type Err = NoStanding;

    fn from_str(text: &str) -> Result<Self, NoStanding> {
        let (updated, num) = text.split_once('.').ok_or(NoStanding)?;
        let number = |text: &str| text.parse().map_err(|_| NoStanding);
        Ok(Standing { updated: Time::from_micros(number(updated)?), num: number(num)? })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a standing; those that lists give are two numbers with a dot between")]
pub struct NoStanding;

#[derive(Debug, Clone, Default)]
pub struct SessionQuery {
    /// Only sessions of this folder.
    pub workspace: Option<String>,
    /// Fewer come only at the end. 0 means all.
    pub limit: usize,
    /// Only sessions that stand behind this; for paging.
    pub after: Option<Standing>,
    /// Only those whose title has these words in it, in whatever case.
    pub titled: Option<String>,
    /// Deleted ones too, for the purge.
    pub deleted: bool,
    /// Only those in which a turn is open, prompts wait or processes run; for a start. Of a file that an older version wrote it may give
    /// others too.
    pub open: bool,
    pub kin: Kin,
    /// Not those that were put away.
    pub unarchived: bool,
    /// Only those that were changed at this time or later.
    pub since: Time,
}

/// A folder that has sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub path: String,
    /// As old as its first session.
    pub created: Time,
    /// As fresh as the one that changed last.
    pub updated: Time,
}

/// Whose sessions, as to where they come from.
#[derive(Debug, Clone, Default)]
pub enum Kin {
    #[default]
    All,
    /// Those that come from no other.
    Roots,
    /// All but those of subagents, which are told inside the sessions that they work for.
    NoSubagents,
    ChildrenOf(SessionId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Purged {
    pub facts: u64,
    pub blobs: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    #[error("session {session} stands at {actual}, not at {expected}: somebody else appended")]
    Conflict { session: SessionId, expected: u64, actual: u64 },
    #[error("not an append: {detail}")]
    Malformed { detail: String },
    #[error(
        "{path} cannot grow: the disk is full, or --max-bytes is reached; make room, what was acknowledged is safe"
    )]
    DiskFull { path: String },
    #[error("{path} is damaged: {detail}; restore it from a backup, or move it away to start afresh")]
    Damaged { path: String, detail: String },
    #[error("the data folder {path} is in use by {owner}; stop it or choose another folder with --data")]
    InUse { path: String, owner: String },
    #[error("the data folder {path} cannot be used: {detail}; make it writable or choose another with --data")]
    Unusable { path: String, detail: String },
    #[error("{path} was written by a newer version of Tolka (format {found}, this one reads up to {known})")]
    TooNew { path: String, found: u32, known: u32 },
    #[error("no session {session}")]
    NoSession { session: SessionId },
    #[error("session {session} is not deleted, so it is not purged")]
    NotDeleted { session: SessionId },
    #[error("the journal has been closed")]
    Closed,
    #[error("{path}: {detail}")]
    Storage { path: String, detail: String },
}

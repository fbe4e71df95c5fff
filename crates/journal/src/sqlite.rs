//! A journal in one SQLite file: a thread that writes, a few connections that read, the last facts in memory.
//!
//! Invariant: what anybody can see has been synced to the disk. The writer publishes after its commit, and
//! SQLite (WAL, `synchronous = FULL`) shows a commit to other connections after its sync. SQLite, because a
//! single file that survives power cuts, needs no service and can be read with a common tool is what a person's
//! own machine wants.

mod batch;
mod fault;
mod live;
mod lock;
mod purge;
mod queries;
mod queue;
mod reader;
mod ring;
mod rows;
mod schema;
mod upgrade;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{oneshot, watch};
use tolka_facts::{Hash, SessionId};

pub use self::lock::Owner;

use self::batch::Batch;
use self::fault::{Fault, Site};
use self::live::Live;
use self::lock::Lock;
use self::queue::Queue;
use self::reader::Readers;
use self::writer::{Reply, Request, Work};
use crate::{
    Append, Entry, Journal, JournalError, Kept, MarkKind, Pending, Purged, Scope, SessionQuery, SessionRow, Workspace,
};

#[derive(Debug, Clone, Default)]
pub struct SqliteOptions {
    /// The data folder; made, for its user alone, where it is missing.
    pub dir: PathBuf,
    /// What others who want the folder are told about this process; see [`Sqlite::announce`].
    pub owner: String,
    /// The most that the file may grow to, without its log of some MiB. Above it, appends fail as on a full disk.
    pub max_bytes: Option<u64>,
}

impl SqliteOptions {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        SqliteOptions { dir: dir.into(), ..SqliteOptions::default() }
    }
}

#[derive(Debug)]
pub struct Sqlite {
    shared: Arc<Shared>,
    readers: Arc<Readers>,
    epoch: String,
    /// What is given up by closing. A `std` mutex: only opening, announcing and closing touch it.
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    writer: Option<JoinHandle<()>>,
    lock: Option<Lock>,
}

/// What the writer's thread and the callers have in common.
#[derive(Debug)]
struct Shared {
    site: Site,
    queue: Queue<Request>,
    live: Live,
}

impl Shared {
    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, JournalError> {
        let (reply, answer) = oneshot::channel();
        self.queue.push(request(reply)).await?;
        answer.await.unwrap_or(Err(JournalError::Closed))
    }
}

impl Sqlite {
    /// Opens or creates a journal; some milliseconds, however large it is. One of an older format is read whole, once.
    pub fn open(options: &SqliteOptions) -> Result<Arc<Self>, JournalError> {
        let site = Site::new(&options.dir);
        Sqlite::open_at(site.clone(), options).map_err(|fault| site.explain_folder(fault))
    }

    fn open_at(site: Site, options: &SqliteOptions) -> Result<Arc<Self>, Fault> {
        schema::make_folder(&site)?;
        let lock = Lock::take(&site.dir, &options.owner)?;
        let conn = schema::open_writer(&site, options.max_bytes)?;
        let epoch = schema::epoch(&conn)?;
        let last_place = schema::last_place(&conn)?;
        let readers = Arc::new(Readers::new(site.clone()));
        let shared = Arc::new(Shared { site, queue: Queue::new(), live: Live::new(last_place) });
        let writer = Some(writer::start(conn, Arc::clone(&shared), last_place)?);
        Ok(Arc::new(Sqlite { shared, readers, epoch, held: Mutex::new(Held { writer, lock: Some(lock) }) }))
    }

    /// Tells those who find the folder in use who uses it: for a server, where it listens. One line.
    pub fn announce(&self, text: &str) -> Result<(), JournalError> {
        let held = self.held();
        let lock = held.lock.as_ref().ok_or(JournalError::Closed)?;
        lock.announce(text).map_err(|error| self.shared.site.explain(error.into()))
    }

    /// Who has a data folder open, if anybody has it open now.
    pub fn owner_of(dir: &Path) -> Result<Option<Owner>, JournalError> {
        Owner::of(dir).map_err(|error| Site::new(dir).explain_folder(error.into()))
    }

    /// Writes what was asked for, folds the log into the file and lets go of the folder. It blocks meanwhile;
    /// whoever asks for something later gets [`JournalError::Closed`].
    pub fn close(&self) {
        self.shared.queue.close();
        // Before the writer, so that its connection is the last one, which clears the log away.
        self.readers.close();
        let mut held = self.held();
        if let Some(writer) = held.writer.take()
            && writer.join().is_err()
        {
            tracing::error!(path = %self.shared.site.db.display(), "the journal's writer has panicked");
        }
        held.lock = None;
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // The writer's thread holds no `Sqlite`, so this never waits for itself.
        self.close();
    }
}

impl Journal for Sqlite {
    fn append(&self, batch: Append) -> Pending<'static, ()> {
        let (shared, batch) = (Arc::clone(&self.shared), Batch::prepare(batch));
        Box::pin(async move {
            let Some(batch) = batch? else { return Ok(()) };
            shared.ask(|reply| Request::Write(Work::Append(Box::new(batch)), reply)).await
        })
    }

    fn read(&self, scope: &Scope, after: u64, limit: usize) -> Pending<'_, Vec<Entry>> {
        let scope = scope.clone();
        Box::pin(self.readers.run(move |conn| queries::facts(conn, &scope, after, limit)))
    }

    fn recent(&self, scope: &Scope, after: u64, limit: usize) -> Option<Vec<Entry>> {
        self.shared.live.recent(scope, after, limit)
    }

    fn watch(&self, scope: &Scope) -> watch::Receiver<u64> {
        let session = match scope {
            Scope::All => return self.shared.live.watch_feed(),
            Scope::Session(session) => session,
        };
        self.shared.live.watch_session(session, || {
            // One look into an index: less than handing it to another thread would take.
            let head = self.readers.run_here(|conn| queries::head(conn, session));
            head.inspect_err(|error| tracing::warn!(%error, %session, "a session's head was not found")).ok()
        })
    }

    fn mark(&self, session: &SessionId, name: &str) -> Pending<'_, Option<u64>> {
        let (session, name) = (session.clone(), name.to_owned());
        Box::pin(self.readers.run(move |conn| queries::mark(conn, &session, &name)))
    }

    fn is_marked(&self, name: &str) -> Pending<'_, bool> {
        let name = name.to_owned();
        Box::pin(self.readers.run(move |conn| queries::is_marked(conn, &name)))
    }

    fn marks(&self, session: &SessionId, kind: MarkKind, before: u64, limit: usize) -> Pending<'_, Vec<u64>> {
        let session = session.clone();
        Box::pin(self.readers.run(move |conn| queries::marks(conn, &session, kind, before, limit)))
    }

    fn keep(&self, session: &SessionId, name: &str, kept: Kept) -> Pending<'_, ()> {
        let work = Work::Keep { session: session.clone(), name: name.to_owned(), kept };
        Box::pin(self.shared.ask(|reply| Request::Write(work, reply)))
    }

    fn kept(&self, session: &SessionId, name: &str, seq: u64, idle: bool) -> Pending<'_, Option<Kept>> {
        let (session, name) = (session.clone(), name.to_owned());
        Box::pin(self.readers.run(move |conn| queries::kept(conn, &session, &name, seq, idle)))
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>, JournalError> {
        self.readers.run_here(|conn| queries::blob(conn, hash))
    }

    fn session(&self, session: &SessionId) -> Pending<'_, Option<SessionRow>> {
        let session = session.clone();
        Box::pin(self.readers.run(move |conn| queries::session(conn, &session)))
    }

    fn sessions(&self, query: SessionQuery) -> Pending<'_, Vec<SessionRow>> {
        Box::pin(self.readers.run(move |conn| queries::sessions(conn, &query)))
    }

    fn workspaces(&self) -> Pending<'_, Vec<Workspace>> {
        Box::pin(self.readers.run(queries::workspaces))
    }

    fn purge(&self, session: &SessionId) -> Pending<'_, Purged> {
        let session = session.clone();
        Box::pin(self.shared.ask(|reply| Request::Purge(session, reply)))
    }

    fn epoch(&self) -> &str {
        &self.epoch
    }
}

//! The connections that read, and who may use them when.
//!
//! Reads never wait for the writer, nor it for them. They run on the runtime's blocking threads; a permit first,
//! so that a thousand readers who fell behind wait as tasks and not as threads.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::fault::{Fault, Site};
use super::schema;
use crate::JournalError;

/// Reading a page is mostly decoding JSON: more than the cores of a small machine gain nothing, and each
/// connection has a cache of its own.
const CONNECTIONS: usize = 4;
/// One less, so that those who cannot await ([`crate::Journal::blob`]) wait for one page at most.
const TASKS: usize = CONNECTIONS - 1;

#[derive(Debug)]
pub(super) struct Readers {
    site: Site,
    /// A `std` mutex: held to take a connection out or put it back, never over a read.
    pool: Mutex<Pool>,
    returned: Condvar,
    tasks: Arc<Semaphore>,
}

#[derive(Debug)]
struct Pool {
    idle: Vec<Connection>,
    /// Idle and lent ones. They are opened when first needed, which keeps the start fast.
    open: usize,
    closed: bool,
}

impl Readers {
    pub(super) fn new(site: Site) -> Self {
        let pool = Pool { idle: Vec::new(), open: 0, closed: false };
        Readers { site, pool: Mutex::new(pool), returned: Condvar::new(), tasks: Arc::new(Semaphore::new(TASKS)) }
    }

    pub(super) async fn run<T, F>(self: &Arc<Self>, read: F) -> Result<T, JournalError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        // It goes with the work, not with whoever waits for it: clients that leave must not let threads pile up.
        let permit = Arc::clone(&self.tasks).acquire_owned().await.map_err(|_| JournalError::Closed)?;
        let readers = Arc::clone(self);
        // It fails only when the runtime is shutting down, which ends this task too.
        let work = move || {
            let _permit = permit;
            readers.run_here(read)
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| JournalError::Closed)?
    }

    /// On this thread, which it blocks.
    pub(super) fn run_here<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, JournalError> {
        let lent = self.lend()?;
        lent.connection
            .as_ref()
            .map_or(Err(JournalError::Closed), |connection| read(connection).map_err(|fault| self.site.explain(fault)))
    }

    pub(super) fn close(&self) {
        self.tasks.close();
        let mut pool = self.pool();
        pool.closed = true;
        pool.open -= pool.idle.len();
        pool.idle.clear();
        drop(pool);
        self.returned.notify_all();
    }

    fn lend(&self) -> Result<Lent<'_>, JournalError> {
        let mut pool = self.pool();
        loop {
            if pool.closed {
                return Err(JournalError::Closed);
            }
            if let Some(connection) = pool.idle.pop() {
                return Ok(Lent { readers: self, connection: Some(connection) });
            }
            if pool.open < CONNECTIONS {
                pool.open += 1;
                drop(pool);
                // From here on its place is given back whatever happens.
                let mut lent = Lent { readers: self, connection: None };
                lent.connection = Some(schema::open_reader(&self.site).map_err(|fault| self.site.explain(fault))?);
                return Ok(lent);
            }
            pool = self.returned.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No code that runs under this lock can panic half way, so a poisoned one is as good as any.
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Lent<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut pool = self.readers.pool();
        match self.connection.take() {
            Some(connection) if !pool.closed => pool.idle.push(connection),
            _ => pool.open -= 1,
        }
        drop(pool);
        self.readers.returned.notify_one();
    }
}

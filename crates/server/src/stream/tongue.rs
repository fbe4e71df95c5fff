//! One task per channel that somebody reads: it encodes each fact once, and all readers at the head
//! share the bytes. It ends with its last reader.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tolka_journal::Journal;

use super::chunk::Chunk;
use super::{Channel, Cursor, Follow, Voice};

/// What a channel keeps for readers that are a little behind; further back they read the journal.
const KEPT: usize = 1024 * 1024;
const PAGE: usize = 256;

/// The tongues in use.
#[derive(Clone)]
pub(crate) struct Tongues {
    journal: Arc<dyn Journal>,
    /// When memory is short: connections that have not moved since this moment should go.
    pressure: watch::Sender<Option<Instant>>,
    /// A std mutex: held for a look-up, never over an await.
    open: Arc<Mutex<HashMap<Channel, Weak<Tongue>>>>,
}

pub(super) struct Tongue {
    log: Mutex<Log>,
    /// The place up to which the log tells; readers wait on it. The task has its other end, so that it closes
    /// when the task does: the session was purged, or the journal cannot be read.
    head: watch::Receiver<u64>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Log {
    chunks: VecDeque<Arc<Chunk>>,
    /// The place before the oldest chunk.
    start: u64,
    to: u64,
    bytes: usize,
}

impl Tongues {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        Tongues { journal, pressure: watch::Sender::new(None), open: Arc::default() }
    }

    pub(super) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Set to a moment when memory is short: a connection whose client has taken nothing since then is cut off, and comes
    /// back at its position when it can.
    pub(crate) fn pressure(&self) -> watch::Receiver<Option<Instant>> {
        self.pressure.subscribe()
    }

    pub(super) fn join(&self, channel: &Channel) -> Arc<Tongue> {
        // Before the lock: it may look at the disk.
        let start = *self.journal.watch(&channel.scope()).borrow();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tongue) = open.get(channel).and_then(Weak::upgrade).filter(|tongue| !tongue.has_ended()) {
            return tongue;
        }
        open.retain(|_, tongue| tongue.strong_count() > 0);
        let (told, head) = watch::channel(start);
        let tongue = Arc::new(Tongue {
            log: Mutex::new(Log { chunks: VecDeque::new(), start, to: start, bytes: 0 }),
            head,
            task: Mutex::new(None),
        });
        let task = tokio::spawn(tell(self.journal.clone(), channel.clone(), told, Arc::downgrade(&tongue)));
        *tongue.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        open.insert(channel.clone(), Arc::downgrade(&tongue));
        tongue
    }
}

impl std::fmt::Debug for Tongues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tongues")
    }
}

async fn tell(journal: Arc<dyn Journal>, channel: Channel, head: watch::Sender<u64>, tongue: Weak<Tongue>) {
    let mut follow = Follow::new(journal.clone(), channel.scope(), *head.borrow());
    let mut voice = Voice::new(journal, channel);
    loop {
        let told = match follow.next(PAGE).await {
            Ok(entries) if entries.is_empty() => return,
            Ok(entries) => voice.speak(&entries, Cursor::whole(0)).await,
            Err(error) => Err(error),
        };
        let Some(tongue) = tongue.upgrade() else { return };
        match told {
            Ok(chunks) => {
                head.send_replace(tongue.publish(chunks));
            }
            Err(error) => {
                // Readers find that it ended, fall back to reading for themselves, and meet the error there.
                tracing::error!(%error, "a channel cannot go on");
                return;
            }
        }
    }
}

impl Tongue {
    /// Gives the place up to which the log tells now.
    fn publish(&self, chunks: Vec<Chunk>) -> u64 {
        let mut log = self.log();
        for chunk in chunks {
            log.bytes += chunk.weight();
            log.to = chunk.to;
            log.chunks.push_back(Arc::new(chunk));
        }
        while log.bytes > KEPT
            && log.chunks.len() > 1
            && let Some(oldest) = log.chunks.pop_front()
        {
            log.bytes -= oldest.weight();
            log.start = oldest.to;
        }
        log.to
    }

    /// The chunk that tells the fact after `place`, if the log has it.
    pub(super) fn chunk_after(&self, place: u64) -> Found {
        let log = self.log();
        if place < log.start {
            return Found::Behind;
        }
        if place >= log.to {
            return Found::AtHead;
        }
        let at = log.chunks.partition_point(|chunk| chunk.to <= place);
        log.chunks.get(at).cloned().map_or(Found::AtHead, Found::Chunk)
    }

    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.head.clone()
    }

    fn has_ended(&self) -> bool {
        self.head.is_closed()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) enum Found {
    Chunk(Arc<Chunk>),
    AtHead,
    Behind,
}

impl Drop for Tongue {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

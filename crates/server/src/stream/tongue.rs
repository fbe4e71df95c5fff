//! One task per channel that somebody reads: it encodes each fact once, and all readers at the head
//! share the bytes. It ends with its last reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tolka_journal::{Entry, JournalError};

use super::budget::WRITE;
use super::chunk::{Chunk, Rest};
use super::waiters::{Ticket, Waiters};
use super::{Channel, Cursor, Follow, Tongues, Until, Voice};

const PAGE: usize = 256;
/// After this much silence its readers are at the head, or read for themselves: the log has no more use, and what
/// the voice knows is made again from the journal.
const QUIET: Duration = Duration::from_secs(10);

pub(super) struct Tongue {
    channel: Arc<Channel>,
    tongues: Tongues,
    /// A std mutex: readers hold it to copy a pointer, the task to add a chunk.
    log: Mutex<Log>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Log {
    chunks: VecDeque<Chunk>,
    /// The place before the oldest chunk.
    start: u64,
    to: u64,
    weight: usize,
    told_at: Instant,
    /// What the voice remembers. It is no chunk and makes nobody wait: what is told live cannot do without it.
    remembered: usize,
    waiters: Waiters,
    /// The session was purged, or the journal cannot be read.
    ended: bool,
}

impl Tongue {
    pub(super) fn start(tongues: &Tongues, channel: &Arc<Channel>, at: u64) -> Arc<Self> {
        tongues.budget().channel_opened();
        let log = Log {
            chunks: VecDeque::new(),
            start: at,
            to: at,
            weight: 0,
            told_at: Instant::now(),
            remembered: 0,
            waiters: Waiters::default(),
            ended: false,
        };
        let tongue = Arc::new(Tongue {
            channel: channel.clone(),
            tongues: tongues.clone(),
            log: Mutex::new(log),
            task: Mutex::new(None),
        });
        let task = tokio::spawn(tell(tongues.clone(), channel.clone(), at, Ends(Arc::downgrade(&tongue))));
        *tongue.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        tongue
    }

    /// Wakes all who wait for it.
    fn publish(&self, chunk: Chunk, remembered: usize) {
        let mut log = self.log();
        log.remembered = remembered;
        log.weight += chunk.weight();
        log.to = chunk.to;
        log.told_at = Instant::now();
        log.chunks.push_back(chunk);
        // The newest stays: its readers are about to come for it.
        let old = log.trim(self.tongues.budget().share(), 1);
        let waiters = log.waiters.all();
        drop(log);
        drop(old);
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Keeps no more than this.
    pub(super) fn trim(&self, most: usize) {
        let old = self.log().trim(most, 0);
        drop(old);
    }

    /// Nothing is kept, and nothing remembered.
    fn fall_quiet(&self) {
        let mut log = self.log();
        log.remembered = 0;
        let old = log.trim(0, 0);
        drop(log);
        drop(old);
    }

    pub(super) fn remembered(&self) -> usize {
        self.log().remembered
    }

    pub(super) fn log_has(&self, cursor: Cursor) -> bool {
        let log = self.log();
        !log.ended && cursor.before() >= log.start
    }

    pub(super) fn told_at(&self) -> Instant {
        self.log().told_at
    }

    pub(super) fn has_ended(&self) -> bool {
        self.log().ended
    }

    fn end(&self) {
        let mut log = self.log();
        log.ended = true;
        let waiters = log.waiters.all();
        drop(log);
        waiters.into_iter().for_each(Waker::wake);
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// Takes the oldest chunks out; they are dropped outside of the lock.
    fn trim(&mut self, most: usize, least_chunks: usize) -> Vec<Chunk> {
        let mut old = Vec::new();
        while self.weight > most
            && self.chunks.len() > least_chunks
            && let Some(oldest) = self.chunks.pop_front()
        {
            self.weight -= oldest.weight();
            self.start = oldest.to;
            old.push(oldest);
        }
        old
    }

    /// The chunk that tells the fact after `place`.
    fn chunk_after(&self, place: u64) -> Option<&Chunk> {
        // Most readers want the newest.
        let newest_only = self.chunks.len().checked_sub(2).is_none_or(|at| self.chunks[at].to <= place);
        if newest_only {
            return self.chunks.back();
        }
        self.chunks.get(self.chunks.partition_point(|chunk| chunk.to <= place))
    }
}

impl Drop for Tongue {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
        self.tongues.budget().channel_closed();
        self.tongues.forget(&self.channel);
    }
}

/// A reader's ear at a tongue.
pub(super) struct Listener {
    tongue: Arc<Tongue>,
    ticket: Option<Ticket>,
}

impl Listener {
    pub(super) fn new(tongue: Arc<Tongue>) -> Self {
        Listener { tongue, ticket: None }
    }

    /// What the next chunk has for a reader; waits at the head. `None`: the log does not have it, read the journal.
    pub(super) fn poll(&mut self, cursor: Cursor, until: &Until, cx: &Context<'_>) -> Poll<Option<Rest>> {
        let (mut log, place) = (self.tongue.log(), cursor.before());
        if place < log.start {
            return Poll::Ready(None);
        }
        if place < log.to {
            return Poll::Ready(log.chunk_after(place).map(|chunk| chunk.rest(cursor, until)));
        }
        if log.ended {
            return Poll::Ready(None);
        }
        log.waiters.wait(&mut self.ticket, cx.waker());
        Poll::Pending
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.tongue.log().waiters.leave(ticket);
        }
    }
}

/// Says that the task has ended, however it did.
struct Ends(Weak<Tongue>);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(tongue) = self.0.upgrade() {
            tongue.end();
        }
    }
}

async fn tell(tongues: Tongues, channel: Arc<Channel>, at: u64, tongue: Ends) {
    let mut follow = Follow::new(tongues.journal().clone(), channel.scope(), at);
    let mut voice = Voice::new(&tongues, channel);
    let mut gathered_until = Instant::now();
    loop {
        let Ok(is_more_to_come) = timeout(QUIET, follow.arrived()).await else {
            let Some(tongue) = tongue.0.upgrade() else { return };
            voice.forget();
            tongue.fall_quiet();
            drop(tongue);
            if !follow.arrived().await {
                return;
            }
            continue;
        };
        if !is_more_to_come {
            return;
        }
        if !tongues.gather().is_zero() {
            sleep_until(gathered_until).await;
        }
        if let Err(error) = tell_all(&tongues, &mut follow, &mut voice, &tongue.0).await {
            // Readers find that it ended, fall back to reading for themselves, and meet the error there.
            tracing::error!(%error, "a channel cannot go on");
            return;
        }
        gathered_until = Instant::now() + tongues.gather();
    }
}

/// Tells what is there now.
async fn tell_all(
    tongues: &Tongues,
    follow: &mut Follow,
    voice: &mut Voice,
    tongue: &Weak<Tongue>,
) -> Result<(), JournalError> {
    loop {
        let page = follow.ready(PAGE).await?;
        if page.is_empty() {
            return Ok(());
        }
        let mut rest: &[Entry] = &page;
        while !rest.is_empty() {
            let turn = tongues.turn(&tongues.budget().live).await;
            let chunk = voice.speak(rest, Cursor::whole(0), WRITE).await?;
            drop(turn);
            rest = &rest[rest.partition_point(|entry| entry.place <= chunk.to)..];
            let Some(tongue) = tongue.upgrade() else { return Ok(()) };
            tongue.publish(chunk, voice.weight());
            drop(tongue);
            voice.keep_states().await;
        }
    }
}

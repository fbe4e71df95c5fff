//! The one thread that writes: it takes what has gathered, commits it at once, publishes, answers.
//!
//! Whatever waits while a commit runs becomes the next group, so a lone append never waits for company and a
//! crowd shares one sync. A request is judged before anything of it is written, so a refusal leaves its group
//! untouched; when the disk fails, the group is taken back and its requests are tried one by one, so that what
//! cannot be written harms nothing else.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;
use tolka_facts::SessionId;

use super::Shared;
use super::batch::Batch;
use super::fault::Fault;
use super::live::Published;
use super::purge::Job;
use super::rows::{self, Known};
use crate::{JournalError, Kept, Purged};

/// One commit holds no more: an answer should not wait for more than some milliseconds of writing.
const GROUP_FACTS: usize = 256;
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Sessions whose place in the file is remembered; above it all are forgotten, and asked for again.
const KNOWN_SESSIONS: usize = 4096;

pub(super) type Reply<T> = oneshot::Sender<Result<T, JournalError>>;

#[derive(Debug)]
pub(super) enum Request {
    Write(Work, Reply<()>),
    Purge(SessionId, Reply<Purged>),
}

#[derive(Debug)]
pub(super) enum Work {
    /// Boxed, so that a request that waits is small.
    Append(Box<Batch>),
    Keep {
        session: SessionId,
        name: String,
        kept: Kept,
    },
}

impl Work {
    fn weight(&self) -> (usize, usize) {
        match self {
            Work::Append(batch) => (batch.facts().len(), batch.bytes()),
            Work::Keep { kept, .. } => (1, kept.state.len()),
        }
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    pub(super) conn: Connection,
    pub(super) shared: Arc<Shared>,
    pub(super) sessions: HashMap<SessionId, Known>,
    pub(super) last_place: u64,
    pub(super) purges: VecDeque<Job>,
}

impl Writer {
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let _ended = Ended(&shared);
        self.resume_purges();
        while let Some(requests) = shared.queue.take(self.purges.is_empty(), group_limit()) {
            let mut group = Vec::with_capacity(requests.len());
            let mut purge = None;
            for request in requests {
                match request {
                    Request::Write(work, reply) => group.push((work, reply)),
                    Request::Purge(session, reply) => purge = Some((session, reply)),
                }
            }
            self.write(group);
            if let Some((session, reply)) = purge {
                self.begin_purge(&session, reply);
            }
            self.step_purge();
        }
        // What is in the log is durable; leaving it there only makes the next start read it.
        if let Err(error) = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            tracing::debug!(%error, "the log was not folded into the journal at the end");
        }
    }

    fn write(&mut self, group: Vec<(Work, Reply<()>)>) {
        if group.is_empty() {
            return;
        }
        match self.commit(&group) {
            Ok(verdicts) => self.answer(group, verdicts),
            Err(fault) => {
                // Places that were given out for nothing are gaps, which readers know.
                self.sessions.clear();
                if let [_] = &group[..] {
                    let error = self.shared.site.explain(fault);
                    group.into_iter().for_each(|(_, reply)| drop(reply.send(Err(error.clone()))));
                } else {
                    group.into_iter().for_each(|alone| self.write(vec![alone]));
                }
            }
        }
    }

    /// All of the group in one transaction. Per request: the place of its first fact, or why it is refused.
    fn commit(&mut self, group: &[(Work, Reply<()>)]) -> Result<Vec<Result<u64, JournalError>>, Fault> {
        let is_delete = |work: &Work| matches!(work, Work::Append(batch) if batch.is_delete());
        if let [(work, _)] = group
            && is_delete(work)
        {
            return self.with_reserve(|writer| writer.commit_within(group));
        }
        self.commit_within(group)
    }

    /// A deletion is how room is made, so it may go some pages beyond the quota.
    fn with_reserve<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        const RESERVE: i64 = 64;
        let most: i64 = self.conn.pragma_query_value(None, "max_page_count", |row| row.get(0))?;
        let set =
            |conn: &Connection, pages: i64| conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
        set(&self.conn, most.saturating_add(RESERVE).min(i64::from(u32::MAX - 1)))?;
        let done = work(self);
        // SQLite leaves it at the file's size if that is larger by now; a purge brings it back down.
        set(&self.conn, most)?;
        done
    }

    fn commit_within(&mut self, group: &[(Work, Reply<()>)]) -> Result<Vec<Result<u64, JournalError>>, Fault> {
        self.transaction(|writer| {
            let judge = |verdict| match verdict {
                Ok(place) => Ok(Ok(place)),
                Err(Fault::Refused(error)) => Ok(Err(error)),
                Err(fault) => Err(fault),
            };
            group.iter().map(|(work, _)| judge(writer.write_one(work))).collect()
        })
    }

    fn write_one(&mut self, work: &Work) -> Result<u64, Fault> {
        match work {
            Work::Append(batch) => self.append(batch),
            Work::Keep { session, name, kept } => {
                let known = self.known(session)?;
                let known = known.ok_or_else(|| JournalError::NoSession { session: session.clone() })?;
                rows::insert_state(&self.conn, known.num, name, kept)?;
                Ok(0)
            }
        }
    }

    fn append(&mut self, batch: &Batch) -> Result<u64, Fault> {
        let known = self.known(&batch.session)?;
        let (actual, expected) = (known.map_or(0, |known| known.seq), batch.first().seq - 1);
        if actual != expected {
            return Err(JournalError::Conflict { session: batch.session.clone(), expected, actual }.into());
        }
        let num = rows::upsert_session(&self.conn, batch, known.map(|known| known.num))?;
        let first_place = self.last_place + 1;
        rows::insert_facts(&self.conn, batch, num, first_place)?;
        rows::insert_blobs(&self.conn, batch, num)?;
        rows::insert_marks(&self.conn, &batch.marks, num)?;
        if let Some(tip) = &batch.tip {
            rows::insert_state(&self.conn, num, crate::TIP, tip)?;
        }
        self.last_place += batch.facts().len() as u64;
        self.sessions.insert(batch.session.clone(), Known { num, seq: batch.last_seq() });
        Ok(first_place)
    }

    fn known(&mut self, session: &SessionId) -> Result<Option<Known>, Fault> {
        if let Some(known) = self.sessions.get(session) {
            return Ok(Some(*known));
        }
        let known = rows::find_session(&self.conn, session)?;
        if self.sessions.len() >= KNOWN_SESSIONS {
            self.sessions.clear();
        }
        self.sessions.extend(known.map(|known| (session.clone(), known)));
        Ok(known)
    }

    /// Publishes, then answers: who is told that its fact is durable finds everybody able to read it.
    fn answer(&self, group: Vec<(Work, Reply<()>)>, verdicts: Vec<Result<u64, JournalError>>) {
        let published = group.iter().zip(&verdicts).filter_map(|((work, _), verdict)| match (work, verdict) {
            (Work::Append(batch), Ok(first_place)) => Some(Published {
                facts: batch.facts(),
                sizes: batch.bodies().map(<[u8]>::len).collect(),
                first_place: *first_place,
            }),
            _ => None,
        });
        self.shared.live.publish(published);
        for ((_, reply), verdict) in group.into_iter().zip(verdicts) {
            // Who no longer waits does not want to know.
            let _ = reply.send(verdict.map(|_| ()));
        }
    }

    /// Everything that `body` writes, or nothing of it.
    pub(super) fn transaction<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        rows::run(&self.conn, "BEGIN IMMEDIATE")?;
        let outcome = body(self).and_then(|value| {
            rows::run(&self.conn, "COMMIT")?;
            Ok(value)
        });
        if outcome.is_err() && !self.conn.is_autocommit() {
            // SQLite takes some transactions back by itself; this one it did not.
            let _ = rows::run(&self.conn, "ROLLBACK");
        }
        outcome
    }

    pub(super) fn explain(&self, fault: Fault) -> JournalError {
        self.shared.site.explain(fault)
    }
}

/// Where a group ends. A purge is always the last of its group: what was asked for before it is written before it.
fn group_limit() -> impl FnMut(&Request) -> bool {
    let (mut facts, mut bytes) = (0, 0);
    move |request| match request {
        Request::Purge(..) => true,
        Request::Write(work, _) => {
            let weight = work.weight();
            facts += weight.0;
            bytes += weight.1;
            facts >= GROUP_FACTS || bytes >= GROUP_BYTES
        }
    }
}

/// Should the thread ever end early, everybody who waits for it is told rather than left waiting.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}

/// The thread; it owns the connection until it ends.
pub(super) fn start(conn: Connection, shared: Arc<Shared>, last_place: u64) -> io::Result<JoinHandle<()>> {
    let writer = Writer { conn, shared, sessions: HashMap::new(), last_place, purges: VecDeque::new() };
    thread::Builder::new().name("journal".into()).spawn(move || writer.run())
}

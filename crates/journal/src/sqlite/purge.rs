//! Removes a deleted session whole, a piece at a time, so that others' appends go on between the pieces.
//!
//! The first step takes the session's row away and notes its number: from then on nobody finds it, and a process
//! that dies half way goes on when it is next started. The last steps give the space back to the file system.

use rusqlite::{OptionalExtension, params};
use tolka_facts::SessionId;

use super::fault::Fault;
use super::schema::{integer, natural};
use super::writer::{Reply, Writer};
use crate::{JournalError, Purged};

/// Each some milliseconds of work: what an append may have to wait for.
const FACTS: i64 = 1024;
const BLOBS: i64 = 32;
const PAGES: i64 = 256;

#[derive(Debug)]
pub(super) struct Job {
    num: i64,
    stage: Stage,
    done: Purged,
    /// `None` when an earlier process was asked.
    reply: Option<Reply<Purged>>,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Facts,
    Blobs,
    Rest,
    Space,
}

impl Writer {
    pub(super) fn begin_purge(&mut self, session: &SessionId, reply: Reply<Purged>) {
        match self.transaction(|writer| writer.hide(session)) {
            Ok(num) => {
                self.sessions.remove(session);
                self.shared.live.forget(session);
                self.purges.push_back(Job { num, stage: Stage::Facts, done: Purged::default(), reply: Some(reply) });
                // A purge that failed earlier, for want of space perhaps, gets another chance.
                self.resume_purges();
            }
            Err(fault) => drop(reply.send(Err(self.explain(fault)))),
        }
    }

    fn hide(&mut self, session: &SessionId) -> Result<i64, Fault> {
        let mut find = self.conn.prepare_cached("SELECT num, deleted FROM sessions WHERE id = ?1")?;
        let found = find.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        match found {
            None => Err(JournalError::NoSession { session: session.clone() }.into()),
            Some((_, false)) => Err(JournalError::NotDeleted { session: session.clone() }.into()),
            Some((num, true)) => {
                let conn = &self.conn;
                conn.prepare_cached("DELETE FROM sessions WHERE num = ?1")?.execute([num])?;
                conn.prepare_cached("INSERT INTO purging(session) VALUES (?1)")?.execute([num])?;
                // The facts know the last place only as long as they are there.
                conn.prepare_cached("INSERT OR REPLACE INTO meta(name, value) VALUES ('last_place', ?1)")?
                    .execute([integer(self.last_place)])?;
                Ok(num)
            }
        }
    }

    /// Takes up what the file says is unfinished and nobody works on.
    pub(super) fn resume_purges(&mut self) {
        let unfinished = || -> Result<Vec<i64>, Fault> {
            let mut list = self.conn.prepare_cached("SELECT session FROM purging")?;
            Ok(list.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
        };
        match unfinished() {
            Ok(unfinished) => {
                for num in unfinished {
                    if self.purges.iter().all(|job| job.num != num) {
                        let job = Job { num, stage: Stage::Facts, done: Purged::default(), reply: None };
                        self.purges.push_back(job);
                    }
                }
            }
            Err(fault) => tracing::warn!(error = %self.explain(fault), "unfinished purges were not found"),
        }
    }

    /// One piece of the first job. One that fails stays noted in the file.
    pub(super) fn step_purge(&mut self) {
        let Some(mut job) = self.purges.pop_front() else { return };
        let answer = match self.purge_piece(&mut job) {
            Ok(true) => Ok(job.done),
            Ok(false) => return self.purges.push_front(job),
            Err(fault) => Err(self.explain(fault)),
        };
        match (job.reply, answer) {
            // Who no longer waits does not want to know.
            (Some(reply), answer) => drop(reply.send(answer)),
            (None, Err(error)) => tracing::warn!(%error, "a purge could not be finished; it is tried again later"),
            (None, Ok(_)) => {}
        }
    }

    /// Whether the job is done.
    fn purge_piece(&mut self, job: &mut Job) -> Result<bool, Fault> {
        match job.stage {
            Stage::Facts => {
                let (facts, bytes) = self.transaction(|writer| writer.purge_facts(job.num))?;
                job.done.facts += facts;
                job.done.bytes += bytes;
                if facts == 0 {
                    job.stage = Stage::Blobs;
                }
            }
            Stage::Blobs => {
                let (refs, blobs, bytes) = self.transaction(|writer| writer.purge_blobs(job.num))?;
                job.done.blobs += blobs;
                job.done.bytes += bytes;
                if refs == 0 {
                    job.stage = Stage::Rest;
                }
            }
            Stage::Rest => {
                self.transaction(|writer| {
                    for table in ["marks", "states", "purging"] {
                        let sql = format!("DELETE FROM {table} WHERE session = ?1");
                        writer.conn.prepare_cached(&sql)?.execute([job.num])?;
                    }
                    Ok(())
                })?;
                job.stage = Stage::Space;
            }
            Stage::Space => return self.give_space_back(),
        }
        Ok(false)
    }

    fn purge_facts(&mut self, num: i64) -> Result<(u64, u64), Fault> {
        let mut weigh = self.conn.prepare_cached(
            "SELECT count(*), coalesce(sum(size), 0), coalesce(max(seq), 0) FROM
             (SELECT seq, length(body) AS size FROM facts WHERE session = ?1 ORDER BY seq LIMIT ?2)",
        )?;
        let (facts, bytes, last): (i64, i64, i64) =
            weigh.query_row([num, FACTS], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        self.conn.prepare_cached("DELETE FROM facts WHERE session = ?1 AND seq <= ?2")?.execute([num, last])?;
        Ok((natural(facts), natural(bytes)))
    }

    fn purge_blobs(&mut self, num: i64) -> Result<(usize, u64, u64), Fault> {
        let mut list = self.conn.prepare_cached("SELECT blob FROM blob_refs WHERE session = ?1 LIMIT ?2")?;
        let refs = list.query_map([num, BLOBS], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        let mut unrefer = self.conn.prepare_cached("DELETE FROM blob_refs WHERE session = ?1 AND blob = ?2")?;
        let mut remove = self.conn.prepare_cached(
            "DELETE FROM blobs WHERE num = ?1 AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob = ?1) RETURNING size",
        )?;
        let (mut blobs, mut bytes) = (0, 0);
        for blob in &refs {
            unrefer.execute(params![num, blob])?;
            if let Some(size) = remove.query_row([blob], |row| row.get(0)).optional()? {
                blobs += 1;
                bytes += natural(size);
            }
        }
        Ok((refs.len(), blobs, bytes))
    }

    /// Moves the last pages into the holes and cuts the end off. Whether nothing is left to do.
    fn give_space_back(&mut self) -> Result<bool, Fault> {
        // This statement frees one page per row that is asked of it.
        let mut vacuum = self.conn.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
        drop(pages);
        let free: i64 = self.conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
        if free > 0 {
            return Ok(false);
        }
        // The file shrinks when the log is folded into it. Passive: no reader is waited for; if one is in the
        // way, the next checkpoint does it.
        self.conn.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |_| Ok(()))?;
        Ok(true)
    }
}

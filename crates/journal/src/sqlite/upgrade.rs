//! From format 1, which a file keeps until all of it is done: whoever is killed meanwhile leaves it as it was, and the
//! next start does it again.

use std::time::Instant;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tolka_facts::{SessionId, Tip};

use super::fault::{Fault, Site};
use super::schema::{FORMAT, INDEXES, last_place};
use super::{queries, rows};
use crate::{JournalError, Mark, Scope};

const PAGE: usize = 512;
/// A start that reads more facts than this is one that somebody waits for, and is told why.
const LONG: u64 = 100_000;

/// What format 2 added to the tables. The heads know it; a session whose head cannot be read may be one that a restart
/// has to take up.
const COLUMNS: &str = "
    ALTER TABLE sessions ADD COLUMN open INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN subagent INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET
        open = coalesce(json_extract(CAST(head AS TEXT), '$.busy'), 0)
            OR coalesce(json_extract(CAST(head AS TEXT), '$.queued'), 0) > 0,
        archived = coalesce(json_extract(CAST(head AS TEXT), '$.archived'), 0),
        parent = coalesce(json_extract(CAST(head AS TEXT), '$.parent.session'), ''),
        subagent = coalesce(json_extract(CAST(head AS TEXT), '$.parent.kind') = 'subagent', 0)
        WHERE json_valid(CAST(head AS TEXT));
";

/// Marks that move had one prefix, `last:`, and each kind has its own now. Facts would tell these again, but not behind
/// one that is damaged.
const MARKS: &str = "
    UPDATE marks SET name = substr(name, 6) WHERE name GLOB 'last:call:*';
    UPDATE marks SET name = 'chosen:' WHERE name = 'last:chosen';
";

/// Format 1 knew fewer marks, so its facts are read once. The log grows with the marks, which are few, and not with the
/// facts.
pub(super) fn bring_up(conn: &Connection, site: &Site) -> Result<(), Fault> {
    let (begun, facts) = (Instant::now(), last_place(conn)?);
    let path = site.db.display();
    if facts > LONG {
        tracing::warn!(%path, facts, "the journal is of an older format; it is read once to bring it up");
    }
    let upgrade = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
    upgrade.execute_batch(COLUMNS)?;
    upgrade.execute_batch(MARKS)?;
    for (num, session) in sessions(&upgrade)? {
        mark(&upgrade, site, num, session)?;
    }
    upgrade.execute_batch(&format!("{INDEXES} PRAGMA user_version = {FORMAT};"))?;
    upgrade.commit()?;
    let seconds = begun.elapsed().as_secs_f32();
    if facts > LONG {
        tracing::warn!(%path, seconds, "the journal has been brought up to format {FORMAT}");
    } else {
        tracing::info!(%path, seconds, "the journal has been brought up to format {FORMAT}");
    }
    Ok(())
}

fn sessions(conn: &Connection) -> Result<Vec<(i64, SessionId)>, Fault> {
    let mut select = conn.prepare("SELECT num, id FROM sessions ORDER BY num")?;
    let all = select.query_map([], |row| Ok((row.get(0)?, SessionId::from(row.get::<_, String>(1)?))))?;
    Ok(all.collect::<Result<_, _>>()?)
}

fn mark(conn: &Connection, site: &Site, num: i64, session: SessionId) -> Result<(), Fault> {
    let (scope, mut tip, mut limit) = (Scope::Session(session), Tip::default(), PAGE);
    loop {
        let page = match queries::facts(conn, &scope, tip.seq, limit).map_err(|fault| site.explain(fault)) {
            // Up to the damaged one, then.
            Err(JournalError::Damaged { .. }) if limit > 1 => {
                limit = 1;
                continue;
            }
            // Whoever reads there is told of it. It is no reason to keep others from their sessions.
            Err(error @ JournalError::Damaged { .. }) => {
                tracing::warn!(%error, "what follows in this session is not marked anew");
                return Ok(());
            }
            page => page?,
        };
        if page.is_empty() {
            return Ok(());
        }
        let mut marks = Vec::new();
        for entry in &page {
            tip.apply(&entry.fact);
            marks.extend(Mark::of(&entry.fact, &tip).map(|mark| (mark.to_string(), entry.place)));
        }
        rows::insert_marks(conn, &marks, num)?;
    }
}

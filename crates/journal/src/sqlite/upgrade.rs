//! From an older format, which a file keeps until all of it is done: whoever is killed meanwhile leaves it as it was, and
//! the next start does it again.

use std::collections::HashSet;
use std::time::Instant;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tolka_facts::{SessionId, Tip};

use super::fault::{Fault, Site};
use super::schema::{FORMAT, INDEXES, integer, last_place};
use super::{queries, rows};
use crate::{JournalError, Kept, Mark, Scope, TIP};

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

/// Tips of format 2 did not know what changes are counted from. They are made anew where they stand; behind a damaged fact
/// an older one is better than none.
const TIPS: &str = "UPDATE states SET name = ?1 WHERE name = 'tip.2'";

/// Older formats knew fewer marks, so their facts are read once. The log grows with marks and tips, which are few, and not
/// with the facts.
pub(super) fn bring_up(conn: &Connection, site: &Site, found: u32) -> Result<(), Fault> {
    let (begun, facts) = (Instant::now(), last_place(conn)?);
    let path = site.db.display();
    if facts > LONG {
        tracing::warn!(%path, facts, "the journal is of an older format; it is read once to bring it up");
    }
    let upgrade = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
    if found == 1 {
        upgrade.execute_batch(&format!("{COLUMNS} {MARKS} {INDEXES}"))?;
    }
    upgrade.execute(TIPS, [TIP])?;
    for (num, session) in sessions(&upgrade)? {
        read(&upgrade, site, num, session)?;
    }
    upgrade.execute_batch(&format!("PRAGMA user_version = {FORMAT};"))?;
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

/// The places that a session has tips of.
fn tips(conn: &Connection, num: i64) -> Result<HashSet<i64>, Fault> {
    let mut select = conn.prepare_cached("SELECT seq FROM states WHERE session = ?1 AND name = ?2")?;
    let all = select.query_map(params![num, TIP], |row| row.get(0))?;
    Ok(all.collect::<Result<_, _>>()?)
}

/// Sets marks and tips of a session as if they always had been.
fn read(conn: &Connection, site: &Site, num: i64, session: SessionId) -> Result<(), Fault> {
    let kept = tips(conn, num)?;
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
            if kept.contains(&integer(tip.seq)) {
                rows::insert_state(conn, num, TIP, &state(&tip))?;
            }
        }
        rows::insert_marks(conn, &marks, num)?;
    }
}

fn state(tip: &Tip) -> Kept {
    // A tip has string keys only, and writing to a Vec cannot fail.
    Kept { seq: tip.seq, idle: tip.is_idle(), state: serde_json::to_vec(tip).unwrap_or_default() }
}

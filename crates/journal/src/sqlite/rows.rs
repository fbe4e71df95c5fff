//! What the writer puts into the tables. Statements are prepared once and cached by SQLite's wrapper.

use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension, Statement, params};
use tolka_facts::{Head, SessionId};

use super::batch::{Batch, HeadRow};
use super::fault::Fault;
use super::schema::{integer, natural};
use crate::Kept;
use crate::mark::moves;

/// A session that the file has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) num: i64,
    pub(super) seq: u64,
}

pub(super) fn run(conn: &Connection, sql: &str) -> Result<usize, Fault> {
    Ok(conn.prepare_cached(sql)?.execute([])?)
}

pub(super) fn find_session(conn: &Connection, session: &SessionId) -> Result<Option<Known>, Fault> {
    let mut find = conn.prepare_cached(
        "SELECT num, seq, coalesce((SELECT max(seq) FROM facts WHERE session = num), 0) FROM sessions WHERE id = ?1",
    )?;
    let found = find
        .query_row([session.as_str()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
        .optional()?;
    match found {
        Some((_, told, last)) if last < told => {
            Err(Fault::Damage(format!("session {session} was at {told} and has only {last} facts")))
        }
        Some((num, _, last)) => Ok(Some(Known { num, seq: natural(last) })),
        None => Ok(None),
    }
}

/// The session's row after the batch: made by its first one, changed by one that tells a head.
pub(super) fn upsert_session(conn: &Connection, batch: &Batch, num: Option<i64>) -> Result<i64, Fault> {
    let unnamed;
    let head = match (&batch.head, num) {
        (Some(head), _) => head,
        (None, Some(num)) => return Ok(num),
        (None, None) => {
            let time = batch.first().time;
            unnamed =
                HeadRow::new(&Head { id: batch.session.clone(), created: time, updated: time, ..Head::default() });
            &unnamed
        }
    };
    let seq = integer(batch.last_seq());
    let HeadRow { workspace, deleted, open, archived, parent, subagent, json, .. } = head;
    let (updated, crc) = (integer(head.updated), crc(json));
    if let Some(num) = num {
        conn.prepare_cached(
            "UPDATE sessions SET seq = ?2, workspace = ?3, updated = ?4, deleted = ?5, crc = ?6, head = ?7, open = ?8,
             archived = ?9, parent = ?10, subagent = ?11 WHERE num = ?1",
        )?
        .execute(params![num, seq, workspace, updated, deleted, crc, json, open, archived, parent, subagent])?;
        return Ok(num);
    }
    conn.prepare_cached(
        "INSERT INTO sessions(id, seq, workspace, updated, deleted, crc, head, open, archived, parent, subagent)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        batch.session.as_str(),
        seq,
        workspace,
        updated,
        deleted,
        crc,
        json,
        open,
        archived,
        parent,
        subagent
    ])?;
    Ok(conn.last_insert_rowid())
}

/// Many rows by one statement: SQLite then stays at the end of the table and of the index, where each next row belongs,
/// and does not look for it from the root; a fact of a large batch takes half the instructions.
pub(super) fn insert_facts(conn: &Connection, batch: &Batch, num: i64, first_place: u64) -> Result<(), Fault> {
    let bodies: Vec<&[u8]> = batch.bodies().collect();
    let (runs, rest) = bodies.as_chunks::<RUN>();
    let mut place = (first_place, batch.first().seq);
    if !runs.is_empty() {
        let mut insert = conn.prepare_cached(&INSERT_RUN)?;
        for run in runs {
            insert_rows(&mut insert, num, &mut place, run)?;
        }
    }
    if !rest.is_empty() {
        let mut insert = conn.prepare_cached(&INSERT_ONE)?;
        for body in rest {
            insert_rows(&mut insert, num, &mut place, &[body])?;
        }
    }
    Ok(())
}

/// Rows of one statement. More gain little: what is left is writing the rows.
const RUN: usize = 16;
static INSERT_RUN: LazyLock<String> = LazyLock::new(|| insert_sql(RUN));
static INSERT_ONE: LazyLock<String> = LazyLock::new(|| insert_sql(1));

/// `OR FAIL`, so that SQLite need not be able to take back this statement alone: an error takes back the transaction.
fn insert_sql(rows: usize) -> String {
    let row = |n: usize| format!("(?1 + {n}, ?2, ?3 + {n}, ?{}, ?{})", 4 + 2 * n, 5 + 2 * n);
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!("INSERT OR FAIL INTO facts(place, session, seq, crc, body) VALUES {}", rows.join(", "))
}

fn insert_rows(
    insert: &mut Statement<'_>,
    num: i64,
    (place, seq): &mut (u64, u64),
    bodies: &[&[u8]],
) -> Result<(), Fault> {
    insert.raw_bind_parameter(1, integer(*place))?;
    insert.raw_bind_parameter(2, num)?;
    insert.raw_bind_parameter(3, integer(*seq))?;
    for (n, body) in bodies.iter().enumerate() {
        insert.raw_bind_parameter(4 + 2 * n, crc(body))?;
        insert.raw_bind_parameter(5 + 2 * n, *body)?;
    }
    insert.raw_execute()?;
    *place += bodies.len() as u64;
    *seq += bodies.len() as u64;
    Ok(())
}

pub(super) fn insert_blobs(conn: &Connection, batch: &Batch, num: i64) -> Result<(), Fault> {
    if batch.refs.is_empty() {
        return Ok(());
    }
    let mut insert = conn.prepare_cached(
        "INSERT INTO blobs(hash, size, crc, content) VALUES (?1, ?2, ?3, ?4) ON CONFLICT(hash) DO NOTHING",
    )?;
    for (hash, content) in &batch.blobs {
        insert.execute(params![hash.as_str(), integer(content.len() as u64), crc(content), content])?;
    }
    let mut refer = conn.prepare_cached(
        "INSERT INTO blob_refs(session, blob) SELECT ?1, num FROM blobs WHERE hash = ?2
         ON CONFLICT(session, blob) DO NOTHING",
    )?;
    for hash in &batch.refs {
        refer.execute(params![num, hash])?;
    }
    Ok(())
}

/// The first one to set a mark wins, unless it is one that moves; that one moves on and never back.
pub(super) fn insert_marks(conn: &Connection, marks: &[(String, u64)], num: i64) -> Result<(), Fault> {
    if marks.is_empty() {
        return Ok(());
    }
    let mut insert = conn.prepare_cached(
        "INSERT INTO marks(session, name, seq) VALUES (?1, ?2, ?3)
         ON CONFLICT(session, name) DO UPDATE SET seq = excluded.seq WHERE ?4 AND excluded.seq > seq",
    )?;
    for (name, seq) in marks {
        insert.execute(params![num, name, integer(*seq), moves(name)])?;
    }
    Ok(())
}

pub(super) fn insert_state(conn: &Connection, num: i64, name: &str, kept: &Kept) -> Result<(), Fault> {
    conn.prepare_cached(
        "INSERT INTO states(session, name, seq, idle, crc, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT(session, name, seq) DO UPDATE SET idle = excluded.idle, crc = excluded.crc, state = excluded.state",
    )?
    .execute(params![num, name, integer(kept.seq), kept.idle, crc(&kept.state), kept.state])?;
    Ok(())
}

pub(super) fn crc(bytes: &[u8]) -> i64 {
    i64::from(crc32fast::hash(bytes))
}

//! What the writer puts into the tables. Statements are prepared once and cached by SQLite's wrapper.

use rusqlite::{Connection, OptionalExtension, params};
use tolka_facts::{Head, SessionId};

use super::batch::{Batch, HeadRow};
use super::fault::Fault;
use super::schema::{integer, natural};
use crate::{Kept, moves};

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

pub(super) fn insert_facts(conn: &Connection, batch: &Batch, num: i64, first_place: u64) -> Result<(), Fault> {
    let mut insert =
        conn.prepare_cached("INSERT INTO facts(place, session, seq, crc, body) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (n, body) in (0..).zip(batch.bodies()) {
        insert.execute(params![integer(first_place + n), num, integer(batch.first().seq + n), crc(body), body])?;
    }
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

/// The first one to set a mark wins, unless it is one that moves.
pub(super) fn insert_marks(conn: &Connection, batch: &Batch, num: i64) -> Result<(), Fault> {
    if batch.marks.is_empty() {
        return Ok(());
    }
    let mut insert = conn.prepare_cached(
        "INSERT INTO marks(session, name, seq) VALUES (?1, ?2, ?3)
         ON CONFLICT(session, name) DO UPDATE SET seq = excluded.seq WHERE ?4",
    )?;
    for (name, seq) in &batch.marks {
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

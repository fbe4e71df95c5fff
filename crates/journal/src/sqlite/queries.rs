//! What readers ask, and the distrust with which the answers are read.
//!
//! A page of SQLite's has no checksum, so every body is checked against its own, and every fact against the place
//! it was found at: damage is told by the session and `seq` it hit, never passed on as data.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter, types::Value};
use tolka_facts::{Fact, Hash, Head, SessionId, Time};

use super::fault::Fault;
use super::ring::Room;
use super::rows::crc;
use super::schema::{integer, natural};
use crate::{Entry, Kept, Kin, MarkKind, Scope, SessionQuery, SessionRow, Standing, Workspace};

pub(super) fn facts(conn: &Connection, scope: &Scope, after: u64, limit: usize) -> Result<Vec<Entry>, Fault> {
    match scope {
        Scope::Session(session) => session_facts(conn, session, after, limit),
        Scope::All => all_facts(conn, after, limit),
    }
}

fn session_facts(conn: &Connection, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Entry>, Fault> {
    // One statement is one snapshot: the session's row tells how many facts there must be at least.
    let mut select = conn.prepare_cached(
        "SELECT s.seq, f.seq, f.crc, f.body FROM sessions s LEFT JOIN facts f ON f.session = s.num AND f.seq > ?2
         WHERE s.id = ?1 ORDER BY f.seq LIMIT ?3",
    )?;
    let mut rows = select.query(params![session.as_str(), integer(after), integer(limit as u64)])?;
    let (mut page, mut room) = (Vec::new(), Room::new(limit));
    let (mut last, mut told) = (after, 0);
    while let Some(row) = rows.next()? {
        told = natural(row.get(0)?);
        let Some(seq) = row.get::<_, Option<i64>>(1)?.map(natural) else { break };
        if seq != last + 1 {
            return Err(Fault::Damage(format!("session {session}, fact {} is missing", last + 1)));
        }
        let whose = || format!("session {session}, fact {seq}");
        let body = checked(row, 2, 3).map_err(|fault| at(fault, &whose))?;
        if !room.takes(body.len()) {
            return Ok(page);
        }
        let fact = decode(body, &whose)?;
        if fact.session != *session || fact.seq != seq {
            return Err(Fault::Damage(format!("{}: fact {} of {} stands there", whose(), fact.seq, fact.session)));
        }
        page.push(Entry { place: seq, fact });
        last = seq;
    }
    if page.len() < limit && last < told {
        return Err(Fault::Damage(format!("session {session}, fact {} is missing", last + 1)));
    }
    Ok(page)
}

fn all_facts(conn: &Connection, after: u64, limit: usize) -> Result<Vec<Entry>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT place, crc, body, session, seq FROM facts
         WHERE place > ?1 AND session NOT IN (SELECT session FROM purging) ORDER BY place LIMIT ?2",
    )?;
    let mut rows = select.query(params![integer(after), integer(limit as u64)])?;
    let (mut page, mut room) = (Vec::new(), Room::new(limit));
    while let Some(row) = rows.next()? {
        let (place, num, seq) = (natural(row.get(0)?), row.get(3)?, natural(row.get(4)?));
        let whose = || format!("session {}, fact {seq} (place {place})", session_id(conn, num));
        let body = checked(row, 1, 2).map_err(|fault| at(fault, &whose))?;
        if !room.takes(body.len()) {
            break;
        }
        let fact = decode(body, &whose)?;
        if fact.seq != seq {
            return Err(Fault::Damage(format!("{}: fact {} stands there", whose(), fact.seq)));
        }
        page.push(Entry { place, fact });
    }
    Ok(page)
}

/// Only for the text of an error.
fn session_id(conn: &Connection, num: i64) -> String {
    let found = conn.query_row("SELECT id FROM sessions WHERE num = ?1", [num], |row| row.get(0));
    found.unwrap_or_else(|_| format!("number {num}"))
}

fn decode(body: &[u8], whose: &dyn Fn() -> String) -> Result<Arc<Fact>, Fault> {
    Fact::from_json(body).map(Arc::new).map_err(|error| Fault::Damage(format!("{}: {error}", whose())))
}

/// A body that is what was written.
fn checked<'a>(row: &'a Row<'_>, sum: usize, body: usize) -> Result<&'a [u8], Fault> {
    let (sum, body): (i64, _) = (row.get(sum)?, row.get_ref(body)?);
    let body = body.as_blob().map_err(|error| Fault::Damage(error.to_string()))?;
    if crc(body) == sum { Ok(body) } else { Err(Fault::Damage("its checksum is wrong".into())) }
}

fn at(fault: Fault, whose: &dyn Fn() -> String) -> Fault {
    match fault {
        Fault::Damage(detail) => Fault::Damage(format!("{}: {detail}", whose())),
        Fault::Sql(error @ (rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::IntegralValueOutOfRange(..))) => {
            Fault::Damage(format!("{}: {error}", whose()))
        }
        other => other,
    }
}

/// The last `seq`; 0 for a session that there is not.
pub(super) fn head(conn: &Connection, session: &SessionId) -> Result<u64, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT coalesce(max(seq), 0) FROM facts WHERE session = (SELECT num FROM sessions WHERE id = ?1)",
    )?;
    Ok(natural(select.query_row([session.as_str()], |row| row.get(0))?))
}

pub(super) fn mark(conn: &Connection, session: &SessionId, name: &str) -> Result<Option<u64>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT seq FROM marks WHERE session = (SELECT num FROM sessions WHERE id = ?1) AND name = ?2",
    )?;
    Ok(select.query_row(params![session.as_str(), name], |row| row.get(0)).optional()?.map(natural))
}

pub(super) fn is_marked(conn: &Connection, name: &str) -> Result<bool, Fault> {
    // Nothing but its number is asked of a session, so that an index has it and heads are not read.
    let mut select = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM sessions s
         WHERE EXISTS (SELECT 1 FROM marks m WHERE m.session = s.num AND m.name = ?1))",
    )?;
    Ok(select.query_row([name], |row| row.get(0))?)
}

pub(super) fn marks(
    conn: &Connection,
    session: &SessionId,
    kind: MarkKind,
    before: u64,
    limit: usize,
) -> Result<Vec<u64>, Fault> {
    // The words of the index, so that it is used: the latest of a kind are its last entries.
    let mut select = conn.prepare_cached(
        "SELECT seq FROM marks WHERE session = (SELECT num FROM sessions WHERE id = ?1)
         AND substr(name, 1, instr(name, ':')) = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4",
    )?;
    let values = params![session.as_str(), kind.prefix(), integer(before), integer(limit as u64)];
    let seqs = select.query_map(values, |row| row.get(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(seqs.into_iter().map(natural).collect())
}

/// A state that does not match its checksum is passed over: an earlier one costs time, a wrong one the truth.
pub(super) fn kept(
    conn: &Connection,
    session: &SessionId,
    name: &str,
    seq: u64,
    idle: bool,
) -> Result<Option<Kept>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT seq, idle, crc, state FROM states
         WHERE session = (SELECT num FROM sessions WHERE id = ?1) AND name = ?2 AND seq <= ?3 AND idle >= ?4
         ORDER BY seq DESC",
    )?;
    let mut rows = select.query(params![session.as_str(), name, integer(seq), idle])?;
    while let Some(row) = rows.next()? {
        let seq = natural(row.get(0)?);
        match checked(row, 2, 3) {
            Ok(state) => return Ok(Some(Kept { seq, idle: row.get(1)?, state: state.to_vec() })),
            Err(_) => tracing::warn!(%session, name, seq, "a kept state is damaged; an earlier one is used"),
        }
    }
    Ok(None)
}

pub(super) fn blob(conn: &Connection, hash: &Hash) -> Result<Option<Vec<u8>>, Fault> {
    let mut select = conn.prepare_cached("SELECT crc, content FROM blobs WHERE hash = ?1")?;
    let mut rows = select.query([hash.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let content = checked(row, 0, 1).map_err(|fault| at(fault, &|| format!("blob {}", hash.as_str())))?;
    Ok(Some(content.to_vec()))
}

const SESSION: &str =
    "SELECT crc, head, coalesce((SELECT max(seq) FROM facts WHERE session = num), 0), id, updated, num FROM sessions";

fn session_row(row: &Row<'_>) -> Result<SessionRow, Fault> {
    let id: String = row.get(3)?;
    let whose = || format!("the head of session {id}");
    let json = checked(row, 0, 1).map_err(|fault| at(fault, &whose))?;
    let head = serde_json::from_slice(json).map_err(|error| Fault::Damage(format!("{}: {error}", whose())))?;
    let standing = Standing { updated: Time::from_micros(natural(row.get(4)?)), num: natural(row.get(5)?) };
    Ok(SessionRow { head, seq: natural(row.get(2)?), standing })
}

pub(super) fn session(conn: &Connection, session: &SessionId) -> Result<Option<SessionRow>, Fault> {
    let mut select = conn.prepare_cached(&format!("{SESSION} WHERE id = ?1"))?;
    let mut rows = select.query([session.as_str()])?;
    rows.next()?.map(session_row).transpose()
}

pub(super) fn sessions(conn: &Connection, query: &SessionQuery) -> Result<Vec<SessionRow>, Fault> {
    let (mut sql, mut values) = (SESSION.to_owned(), Vec::<Value>::new());
    if query.open {
        // Left to itself, SQLite goes through all that a folder has.
        sql += " INDEXED BY sessions_open";
    }
    // The server's own journal is no session of anybody's.
    sql += " WHERE id NOT GLOB 'srv_*'";
    if !query.deleted {
        sql += " AND deleted = 0";
    }
    if query.open {
        sql += " AND open = 1";
    }
    match &query.kin {
        Kin::All => {}
        Kin::Roots => sql += " AND parent = ''",
        Kin::NoSubagents => sql += " AND subagent = 0",
        Kin::ChildrenOf(parent) => {
            // The words of the index, so that it is used.
            sql += " AND parent <> '' AND parent = ?";
            values.push(parent.to_string().into());
        }
    }
    if query.unarchived {
        sql += " AND archived = 0";
    }
    if query.since > Time::default() {
        sql += " AND updated >= ?";
        values.push(integer(query.since.micros()).into());
    }
    if let Some(workspace) = &query.workspace {
        sql += " AND workspace = ?";
        values.push(workspace.clone().into());
    }
    if let Some(after) = &query.after {
        sql += " AND (updated, num) < (?, ?)";
        values.extend([integer(after.updated.micros()).into(), integer(after.num).into()]);
    }
    sql += " ORDER BY updated DESC, num DESC";
    let limit = if query.limit == 0 { usize::MAX } else { query.limit };
    let titled = query.titled.as_ref().map(|words| words.to_lowercase());
    let is_wanted =
        |row: &SessionRow| titled.as_ref().is_none_or(|words| row.head.title.to_lowercase().contains(words));
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query(params_from_iter(values))?;
    let mut list = Vec::new();
    // Counted here and not by SQLite, which does not know who is left out.
    while list.len() < limit
        && let Some(row) = rows.next()?
    {
        match session_row(row) {
            Ok(session) if is_wanted(&session) => list.push(session),
            Ok(_) => {}
            // One that is damaged must not hide the others; whoever opens it learns of it.
            Err(Fault::Damage(detail)) => tracing::error!(detail, "a session is left out of a list"),
            Err(fault) => return Err(fault),
        }
    }
    Ok(list)
}

/// What was deleted since still tells how old a folder is: the index then has all that is asked, and no row is read but the
/// first of each folder.
pub(super) fn workspaces(conn: &Connection) -> Result<Vec<Workspace>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT f.workspace, f.updated, s.head FROM
             (SELECT workspace, min(num) AS first, max(updated) AS updated FROM sessions
              WHERE workspace <> '' GROUP BY workspace) f
         JOIN sessions s ON s.num = f.first
         WHERE EXISTS (SELECT 1 FROM sessions WHERE workspace = f.workspace AND deleted = 0)
         ORDER BY f.workspace",
    )?;
    let mut rows = select.query([])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        let updated = Time::from_micros(natural(row.get(1)?));
        let head = serde_json::from_slice::<Head>(row.get_ref(2)?.as_blob().unwrap_or_default());
        let created = head.map_or(updated, |head| head.created);
        list.push(Workspace { path: row.get(0)?, created, updated });
    }
    Ok(list)
}

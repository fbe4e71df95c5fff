//! The file: its tables, its settings, and how a connection to it is opened.
//!
//! Facts are stored by place, so an append always lands at the end of one tree; a session's own order is an
//! index. Every body carries a checksum, because SQLite guards its log with one but not its pages. Opening
//! reads a handful of rows however many facts there are.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::fault::{Fault, Site};
use super::upgrade;
use crate::JournalError;

/// The format that this build writes, in the file's `user_version`.
pub(super) const FORMAT: u32 = 3;
const PAGE_SIZE: u64 = 4096;
const WRITING: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Nobody in this process waits for a lock of SQLite's; a backup tool beside it may hold one for a moment.
const FOREIGN_LOCK: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE meta(name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;

    -- `num` is never given twice: facts of a purged session may outlive its row. `seq` is the last one when
    -- `head` was told; the facts know the present one, which saves every append a page.
    CREATE TABLE sessions(
        num INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL,
        workspace TEXT NOT NULL, updated INTEGER NOT NULL, deleted INTEGER NOT NULL,
        crc INTEGER NOT NULL, head BLOB NOT NULL, open INTEGER NOT NULL DEFAULT 1,
        archived INTEGER NOT NULL DEFAULT 0, parent TEXT NOT NULL DEFAULT '', subagent INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX sessions_by_time ON sessions(updated, num);
    CREATE INDEX sessions_by_workspace ON sessions(workspace, updated, num);

    -- The writer gives out places itself: AUTOINCREMENT would write a second table on every insert.
    CREATE TABLE facts(
        place INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL,
        crc INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE UNIQUE INDEX facts_by_session ON facts(session, seq);

    CREATE TABLE blobs(
        num INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, size INTEGER NOT NULL,
        crc INTEGER NOT NULL, content BLOB NOT NULL);
    CREATE TABLE blob_refs(session INTEGER, blob INTEGER, PRIMARY KEY(session, blob)) WITHOUT ROWID;
    CREATE INDEX blob_refs_by_blob ON blob_refs(blob);

    CREATE TABLE marks(session INTEGER, name TEXT, seq INTEGER NOT NULL, PRIMARY KEY(session, name)) WITHOUT ROWID;

    -- States are kept for ever, so that any place can be resumed. They grow with the facts, not with the readers:
    -- one of bounded size per name and some hundred facts, which is a fraction of what the facts take.
    CREATE TABLE states(
        num INTEGER PRIMARY KEY, session INTEGER NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL,
        idle INTEGER NOT NULL, crc INTEGER NOT NULL, state BLOB NOT NULL, UNIQUE(session, name, seq));

    -- Sessions whose row is gone and whose facts are still being removed.
    CREATE TABLE purging(session INTEGER PRIMARY KEY);
";

/// What format 2 added: sessions that a restart has to take up, children, and marks in their order.
pub(super) const INDEXES: &str = "
    CREATE INDEX sessions_open ON sessions(updated, num) WHERE open = 1;
    CREATE INDEX sessions_by_parent ON sessions(parent) WHERE parent <> '';
    CREATE INDEX marks_by_kind ON marks(session, substr(name, 1, instr(name, ':')), seq);
";

/// Makes the folder, private to its user, where it is missing.
pub(super) fn make_folder(site: &Site) -> Result<(), Fault> {
    Ok(fs::DirBuilder::new().recursive(true).mode(0o700).create(&site.dir)?)
}

pub(super) fn open_writer(site: &Site, max_bytes: Option<u64>) -> Result<Connection, Fault> {
    if !site.db.try_exists()? {
        make_file(site)?;
    }
    let conn = Connection::open_with_flags(&site.db, WRITING)?;
    conn.busy_timeout(FOREIGN_LOCK)?;
    let found: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > FORMAT {
        let path = site.db.display().to_string();
        return Err(JournalError::TooNew { path, found, known: FORMAT }.into());
    }
    if found == 0 {
        shape(&conn)?;
    }
    keep_log(&conn, site)?;
    // 2 MiB of cache hold the ends of all trees that live sessions write to. The log goes back to the size of a
    // few checkpoints after a large batch.
    conn.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA cache_size = -2048; PRAGMA cell_size_check = ON;
         PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 8388608;",
    )?;
    conn.set_prepared_statement_cache_capacity(64);
    match found {
        0 => create(&conn)?,
        1 | 2 => upgrade::bring_up(&conn, site, found)?,
        _ => {}
    }
    if let Some(bytes) = max_bytes {
        let pages = i64::try_from(bytes / PAGE_SIZE).unwrap_or(i64::MAX).max(1);
        conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(conn)
}

/// A new file is filled under another name, synced once and then given its own: it is there whole or not at all. In place
/// SQLite takes ten syncs for the same, which is most of the time of a first start.
fn make_file(site: &Site) -> Result<(), Fault> {
    let fresh = site.db.with_extension("db.new");
    // SQLite gives its other files the mode of this one. What a crash left of an earlier attempt goes.
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    let conn = Connection::open_with_flags(&fresh, WRITING)?;
    shape(&conn)?;
    conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
    create(&conn)?;
    keep_log(&conn, site)?;
    conn.close().map_err(|(_, error)| error)?;
    file.sync_all()?;
    // Logs of a file that is gone are worth nothing, and would be taken for this one's.
    for log in ["db-wal", "db-journal"] {
        match fs::remove_file(site.db.with_extension(log)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    fs::rename(&fresh, &site.db)?;
    Ok(File::open(&site.dir)?.sync_all()?)
}

/// Settled by the first page that is written.
fn shape(conn: &Connection) -> Result<(), Fault> {
    Ok(conn.execute_batch(&format!("PRAGMA page_size = {PAGE_SIZE}; PRAGMA auto_vacuum = INCREMENTAL;"))?)
}

fn keep_log(conn: &Connection, site: &Site) -> Result<(), Fault> {
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(site.storage(&format!("this file system cannot hold a write-ahead log (got {mode})")).into())
}

/// All or nothing, also where a file without tables is found.
fn create(conn: &Connection) -> Result<(), Fault> {
    let random = getrandom::u64().map_err(|error| std::io::Error::other(error.to_string()))?;
    conn.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} {INDEXES} INSERT INTO meta VALUES ('epoch', '{random:016x}'); PRAGMA user_version = {FORMAT}; COMMIT;"
    ))?;
    Ok(())
}

pub(super) fn open_reader(site: &Site) -> Result<Connection, Fault> {
    let conn =
        Connection::open_with_flags(&site.db, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(FOREIGN_LOCK)?;
    // Pages are in the kernel's cache; half a MiB saves the upper levels of the trees.
    conn.execute_batch("PRAGMA cache_size = -512; PRAGMA cell_size_check = ON;")?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(conn)
}

pub(super) fn epoch(conn: &Connection) -> Result<String, Fault> {
    let found = conn.query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0)).optional()?;
    found.ok_or_else(|| Fault::Damage("it has no epoch".into()))
}

/// The last place that was ever given out, also if its fact has been purged.
pub(super) fn last_place(conn: &Connection) -> Result<u64, Fault> {
    let last: i64 = conn.query_row(
        "SELECT max(coalesce((SELECT max(place) FROM facts), 0),
                    coalesce((SELECT value FROM meta WHERE name = 'last_place'), 0))",
        [],
        |row| row.get(0),
    )?;
    Ok(natural(last))
}

/// SQLite counts in 63 bits; no place, `seq` or size of ours comes near, and a cursor that a client made up
/// is as good as the largest.
pub(super) fn integer(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// What [`integer`] wrote. A negative one can only be damage, and no reader finds a place before the first.
pub(super) fn natural(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

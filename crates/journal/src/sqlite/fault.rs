//! What can go wrong inside, and what it is called outside.
//!
//! SQLite reports a full disk and a damaged file in several ways; all of them are sorted here, once, so
//! that a caller can act on [`JournalError`] without knowing that there is an SQLite. Errors are named,
//! not logged: whoever handles one logs it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::JournalError;

#[derive(Debug)]
pub(super) enum Fault {
    Sql(rusqlite::Error),
    Io(io::Error),
    /// The file says something that cannot be true.
    Damage(String),
    /// Nothing is broken; the request cannot be granted.
    Refused(JournalError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sql(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Io(error)
    }
}

impl From<JournalError> for Fault {
    fn from(error: JournalError) -> Self {
        Fault::Refused(error)
    }
}

/// Where a journal lies; every error names it.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) dir: PathBuf,
    pub(super) db: PathBuf,
}

/// Less room than this beside an I/O error means that the disk is full: SQLite tells `ENOSPC` as such only
/// for plain writes, not for syncing, growing the shared memory or creating a file.
const NO_ROOM: u64 = 256 * 1024;

impl Site {
    pub(super) fn new(dir: &Path) -> Self {
        Site { dir: dir.to_owned(), db: dir.join("journal.db") }
    }

    fn path(&self) -> String {
        self.db.display().to_string()
    }

    pub(super) fn explain(&self, fault: Fault) -> JournalError {
        match fault {
            Fault::Refused(error) => error,
            Fault::Damage(detail) => JournalError::Damaged { path: self.path(), detail },
            Fault::Io(error) if error.kind() == io::ErrorKind::StorageFull => self.full(),
            Fault::Io(error) => self.storage(&error),
            Fault::Sql(error) => self.explain_sql(&error),
        }
    }

    /// As whoever starts is told: what they chose is the folder, and they can choose another.
    pub(super) fn explain_folder(&self, fault: Fault) -> JournalError {
        match self.explain(fault) {
            JournalError::Storage { detail, .. } => {
                JournalError::Unusable { path: self.dir.display().to_string(), detail }
            }
            other => other,
        }
    }

    fn explain_sql(&self, error: &rusqlite::Error) -> JournalError {
        let damaged = || JournalError::Damaged { path: self.path(), detail: error.to_string() };
        match error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DiskFull => self.full(),
                ErrorCode::SystemIoFailure | ErrorCode::CannotOpen if self.has_no_room() => self.full(),
                // The tables' constraints hold for everything that the writer lets through.
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation => damaged(),
                _ => self.storage(error),
            },
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..) => damaged(),
            _ => self.storage(error),
        }
    }

    fn full(&self) -> JournalError {
        JournalError::DiskFull { path: self.path() }
    }

    pub(super) fn storage(&self, detail: &dyn std::fmt::Display) -> JournalError {
        JournalError::Storage { path: self.path(), detail: detail.to_string() }
    }

    fn has_no_room(&self) -> bool {
        rustix::fs::statvfs(&self.dir).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < NO_ROOM)
    }
}

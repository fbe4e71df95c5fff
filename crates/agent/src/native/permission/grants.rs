//! What people have allowed always: a small file of the data folder, private to its owner.
//!
//! It is read whenever it is asked and written whole, so that what one session was given another has, and what was
//! taken back is gone at once, whoever did it. A file that cannot be understood gives nothing and is never written over:
//! it is put aside first.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tolka_facts::{Hash, SessionId, Time};

use super::wildcard;

const FILE: &str = "grants.json";
const LOCK: &str = "grants.lock";
const VERSION: u32 = 1;

/// Something that was allowed always.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: String,
    /// It counts in this folder and in no other.
    pub workspace: PathBuf,
    pub permission: String,
    pub pattern: String,
    pub granted: Time,
    /// Where it was given.
    pub session: SessionId,
}

#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error("{} cannot be read: {error}; nothing counts as allowed until it can", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{} is not a file of ours ({problem}); nothing counts as allowed until it is mended or removed", path.display())]
    Broken { path: PathBuf, problem: String },
    #[error("{} cannot be written: {error}", path.display())]
    Unwritable { path: PathBuf, error: io::Error },
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    grants: Vec<Grant>,
}

#[derive(Debug)]
pub struct Grants {
    data: PathBuf,
    /// For those of this process; the lock file is for other processes. Held while a small file is written.
    writing: Mutex<()>,
}

impl Grants {
    /// Nothing is read before it is needed.
    pub fn new(data: &Path) -> Self {
        Grants { data: data.to_owned(), writing: Mutex::default() }
    }

    /// All of them, the oldest first. A file that cannot be read is said in the log and counts as empty.
    pub fn list(&self) -> Vec<Grant> {
        self.read().unwrap_or_else(|error| {
            tracing::warn!(%error, "grants");
            Vec::new()
        })
    }

    /// Those of the file, or why it cannot be told.
    pub fn read(&self) -> Result<Vec<Grant>, GrantError> {
        let path = self.file();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(GrantError::Unreadable { path, error }),
            Ok(text) => text,
        };
        let broken = |problem: String| GrantError::Broken { path: path.clone(), problem };
        let stored: Stored = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        match stored.version {
            VERSION => Ok(stored.grants),
            other => Err(broken(format!("version {other}, and this build knows {VERSION}"))),
        }
    }

    /// Whether somebody allowed this always.
    pub fn matches(&self, workspace: &Path, permission: &str, subject: &str) -> bool {
        self.list().iter().any(|grant| {
            grant.workspace == workspace && grant.permission == permission && wildcard::matches(&grant.pattern, subject)
        })
    }

    /// Remembers it; what is remembered already stays as it is.
    pub fn add(
        &self,
        workspace: &Path,
        permission: &str,
        pattern: &str,
        session: &SessionId,
    ) -> Result<Grant, GrantError> {
        let _held = self.hold()?;
        let mut grants = match self.read() {
            Err(GrantError::Broken { problem, .. }) => {
                let aside = self.put_aside()?;
                tracing::warn!(%problem, aside = %aside.display(), "grants were broken and are put aside");
                Vec::new()
            }
            read => read?,
        };
        let is_it =
            |grant: &&Grant| grant.workspace == workspace && grant.permission == permission && grant.pattern == pattern;
        if let Some(known) = grants.iter().find(is_it) {
            return Ok(known.clone());
        }
        let grant = Grant {
            id: id(workspace, permission, pattern),
            workspace: workspace.to_owned(),
            permission: permission.to_owned(),
            pattern: pattern.to_owned(),
            granted: Time::now(),
            session: session.clone(),
        };
        grants.push(grant.clone());
        self.write(grants)?;
        Ok(grant)
    }

    /// Takes one back. `false`: there is none of that id.
    pub fn revoke(&self, id: &str) -> Result<bool, GrantError> {
        let _held = self.hold()?;
        let mut grants = self.read()?;
        let before = grants.len();
        grants.retain(|grant| grant.id != id);
        if grants.len() == before {
            return Ok(false);
        }
        self.write(grants)?;
        Ok(true)
    }

    fn file(&self) -> PathBuf {
        self.data.join(FILE)
    }

    fn unwritable(&self, error: io::Error) -> GrantError {
        GrantError::Unwritable { path: self.file(), error }
    }

    /// Nobody else changes the file while this is held.
    fn hold(&self) -> Result<(std::sync::MutexGuard<'_, ()>, File), GrantError> {
        // It guards no data of its own that a panic could leave half done.
        let held = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.data)?;
            let lock =
                OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.data.join(LOCK))?;
            lock.lock()?;
            Ok(lock)
        };
        Ok((held, open().map_err(|error| self.unwritable(error))?))
    }

    fn write(&self, grants: Vec<Grant>) -> Result<(), GrantError> {
        let new = self.data.join(format!("{FILE}.new"));
        let write = || {
            // Left by somebody who died while writing; the lock says that nobody writes it now.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(&Stored { version: VERSION, grants })?)?;
            file.sync_all()?;
            fs::rename(&new, self.file())?;
            File::open(&self.data)?.sync_all()
        };
        write().map_err(|error| self.unwritable(error))
    }

    fn put_aside(&self) -> Result<PathBuf, GrantError> {
        let aside = self.data.join(format!("{FILE}.broken-{}", Time::now().millis()));
        fs::rename(self.file(), &aside).map_err(|error| self.unwritable(error))?;
        Ok(aside)
    }
}

/// Short enough to be typed. What is granted is in the list once, so what it is names it.
fn id(workspace: &Path, permission: &str, pattern: &str) -> String {
    let all = [workspace.as_os_str().as_encoded_bytes(), permission.as_bytes(), pattern.as_bytes()].join(&0);
    format!("gra_{}", &Hash::of(&all).as_str()[..12])
}

//! A snapshot's files in a folder of their own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::checkpoint::files::{self, blocking};
use crate::checkpoint::git::{Git, Halt};
use crate::checkpoint::modes::Modes;
use crate::checkpoint::place::Place;
use crate::checkpoint::{CheckpointError, Checkpoints, opened, seed};

/// How long it may take.
const WRITING: Duration = Duration::from_secs(300);

/// What the folder is called until all is in it.
const UNFINISHED: &str = "tolka-unfinished";

impl Checkpoints {
    /// Writes the files of a snapshot into a folder that is empty or not there yet. How many. All of them or none: until
    /// the last is written they are in a folder beside it, whose name says so.
    pub async fn check_out(&self, workspace: &Path, commit: &str, into: &Path) -> Result<u64, CheckpointError> {
        // To be dropped with this future, which ends git.
        let (_wanted, halt) = Halt::within(WRITING);
        let store = self.reader(workspace, &[commit], &halt).await?.git;
        let tree = format!("{commit}^{{tree}}");
        if store.run(&["cat-file", "-e", &tree], b"", &halt).await.is_err() {
            return Err(CheckpointError::Unknown { commit: commit.to_owned() });
        }
        let (given, origin) = (into.to_owned(), store.dir.clone());
        let site = blocking(move || Site::prepare(&given)).await?;
        let git = Git { dir: store.dir, index: site.index(), workspace: site.files() };
        let written = async {
            git.run(&["read-tree", &tree], b"", &halt).await?;
            git.run(&["checkout-index", "--all", "--quiet"], b"", &halt).await
        };
        let done = match written.await {
            Ok(_) => Modes::of(&git, &[commit], &halt).await,
            Err(error) => Err(error),
        };
        let count = blocking(move || match done {
            Ok(modes) => site.finish(modes.first()),
            Err(error) => {
                // What cannot be removed says by its name that nobody needs it.
                let _ = files::remove_folder(&site.unfinished);
                Err(match error {
                    CheckpointError::Git { words, .. } => {
                        CheckpointError::Storage { path: site.into, error: io::Error::other(words) }
                    }
                    error => error,
                })
            }
        });
        let count = count.await?;
        self.hold_as(&origin, into, &halt).await?;
        Ok(count)
    }

    /// What the origin of a folder saves though it is ignored is saved there too.
    async fn hold_as(&self, origin: &Path, folder: &Path, halt: &Halt) -> Result<(), CheckpointError> {
        let (origin, folder, data) = (origin.to_owned(), folder.to_owned(), self.data.clone());
        let found = blocking(move || {
            let mut held = seed::held(&origin);
            held.retain(|path| folder.join(OsStr::from_bytes(path)).symlink_metadata().is_ok());
            if held.is_empty() { Ok(None) } else { Ok(Some((Place::find(&folder, &data)?, held))) }
        });
        let Some((place, held)) = found.await? else { return Ok(()) };
        let shared = self.shared(&place);
        let mut store = halt.wait(shared.lock()).await?;
        opened(&mut store, place, self.caps, &self.run, halt).await?.hold_on(held).await
    }
}

struct Site {
    into: PathBuf,
    unfinished: PathBuf,
}

impl Site {
    fn prepare(into: &Path) -> Result<Self, CheckpointError> {
        let into = std::path::absolute(into).map_err(CheckpointError::storage(into))?;
        match fs::read_dir(&into).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => {
                let error = io::ErrorKind::DirectoryNotEmpty.into();
                return Err(CheckpointError::Storage { path: into, error });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(CheckpointError::Storage { path: into, error }),
        }
        let mut name = OsString::from(".");
        name.push(into.file_name().ok_or_else(|| CheckpointError::TooWide { path: into.clone() })?);
        let unfinished = into.with_file_name(name).with_added_extension(UNFINISHED);
        files::remove_folder(&unfinished)?;
        let site = Site { into, unfinished };
        let folder = site.files();
        // Until each file has its mode, nobody else comes in.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&site.unfinished);
        made.and_then(|()| fs::create_dir(&folder)).map_err(CheckpointError::storage(folder))?;
        Ok(site)
    }

    fn files(&self) -> PathBuf {
        self.unfinished.join("files")
    }

    fn index(&self) -> PathBuf {
        self.unfinished.join("index")
    }

    fn finish(self, modes: Option<&Modes>) -> Result<u64, CheckpointError> {
        let count = files::entries(&self.index()).map_err(CheckpointError::storage(self.index()))?;
        let folder = self.files();
        // The innermost first, since an outer one may be closed.
        let mut odd = modes.into_iter().flat_map(|modes| modes.files().chain(modes.folders().rev()));
        let set = |(path, mode)| fs::set_permissions(folder.join(path), fs::Permissions::from_mode(mode));
        let placed = odd.try_for_each(set).and_then(|()| sync(&folder)).and_then(|()| {
            if let Ok(about) = fs::metadata(&self.into) {
                fs::set_permissions(&folder, about.permissions())?;
            }
            // It takes the place of an empty folder, and of no other.
            fs::rename(&folder, &self.into)
        });
        let removed = files::remove_folder(&self.unfinished);
        placed.map_err(CheckpointError::storage(self.into))?;
        removed.map(|()| count)
    }
}

#[cfg(target_os = "linux")]
fn sync(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(fs::File::open(folder)?)?)
}

#[cfg(not(target_os = "linux"))]
fn sync(_folder: &Path) -> io::Result<()> {
    Ok(())
}

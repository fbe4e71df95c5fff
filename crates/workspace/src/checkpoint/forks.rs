//! Folders for forks that work on files of their own: `forks/<session>/<name of the workspace>` in the data folder.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::Duration;

use tolka_facts::{Hash, SessionId};

use super::files::blocking;
use super::{CheckpointError, Checkpoints};

const FORKS: &str = "forks";

/// For a git that outlives its server, and goes on to write, to be done.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

impl Checkpoints {
    /// Where the files of a fork will be, by its real name. Nothing is made there yet.
    pub async fn fork_folder(&self, session: &SessionId, workspace: &str) -> Result<PathBuf, CheckpointError> {
        let (data, id) = (self.data.clone(), plain(session));
        let name = Path::new(workspace).file_name().map_or_else(|| "workspace".into(), ToOwned::to_owned);
        blocking(move || {
            let forks = data.join(FORKS);
            make(&forks).map_err(CheckpointError::storage(&forks))?;
            Ok(data.canonicalize().map_err(CheckpointError::storage(&data))?.join(FORKS).join(id).join(name))
        })
        .await
    }

    /// Makes the folder that [`Checkpoints::fork_folder`] gave, for its user alone. What it lies in must be folders.
    pub async fn make_fork_folder(&self, folder: &Path) -> Result<(), CheckpointError> {
        let folder = folder.to_owned();
        blocking(move || {
            let made = make(&folder).and_then(|()| match folder.canonicalize()? == folder {
                true => Ok(()),
                false => Err(io::Error::other("there is a link on the way to it")),
            });
            made.map_err(CheckpointError::storage(&folder))
        })
        .await
    }

    /// The folder in `forks` that a workspace lies in, if it does.
    pub async fn fork_of(&self, workspace: &Path) -> Option<PathBuf> {
        let forks = tokio::fs::canonicalize(&self.data).await.ok()?.join(FORKS);
        let mut inside = workspace.strip_prefix(&forks).ok()?.components();
        match (inside.next()?, inside.next()?) {
            (Component::Normal(session), Component::Normal(_)) => Some(forks.join(session)),
            _ => None,
        }
    }

    /// Removes a folder that [`Checkpoints::fork_of`] gave. Links in it are removed, not followed; where it is itself a
    /// link nothing happens.
    pub async fn remove_fork(&self, folder: &Path) -> Result<(), CheckpointError> {
        let folder = folder.to_owned();
        blocking(move || {
            let is_real = folder.canonicalize().is_ok_and(|real| real == folder);
            if !is_real {
                return Ok(());
            }
            let mut removed = fs::remove_dir_all(&folder);
            for _ in 0..TRIES {
                match &removed {
                    Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => thread::sleep(PAUSE),
                    _ => break,
                }
                removed = fs::remove_dir_all(&folder);
            }
            removed.map_err(CheckpointError::storage(&folder))
        })
        .await
    }

    /// The sessions that folders in `forks` were made for, by the names of the folders.
    pub async fn forks(&self) -> Result<Vec<SessionId>, CheckpointError> {
        let forks = self.data.join(FORKS);
        let listed = move || match fs::read_dir(&forks) {
            Ok(entries) => {
                Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().as_ref().into()).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(CheckpointError::Storage { path: forks, error }),
        };
        blocking(listed).await
    }
}

fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Every id that Tolka makes is a good name for a folder; others might lead elsewhere.
fn plain(session: &SessionId) -> String {
    let name = session.as_str();
    match !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        true => name.to_owned(),
        false => Hash::of(name.as_bytes()).as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[tokio::test]
    async fn only_the_folder_of_a_fork_goes_and_never_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (data, kept) = (folder.path().canonicalize().unwrap().join("data"), folder.path().join("kept"));
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join("file"), "mine").unwrap();
        let checkpoints = Checkpoints::new(&data);
        let [one, other] = ["ses_1", "../ses/2"].map(SessionId::from);
        let (one, other) = (
            checkpoints.fork_folder(&one, "/home/u/project").await.unwrap(),
            checkpoints.fork_folder(&other, "/").await.unwrap(),
        );
        assert_eq!(one, data.join("forks/ses_1/project"));
        assert!(other.starts_with(data.join("forks")) && other.ends_with("workspace"), "{}", other.display());
        for folder in [&one, &other] {
            checkpoints.make_fork_folder(folder).await.unwrap();
        }
        fs::write(one.join("file"), "a copy").unwrap();
        symlink(&kept, one.join("link")).unwrap();
        assert_eq!(checkpoints.fork_of(&one.join("deeper")).await, Some(data.join("forks/ses_1")));
        for outside in [&kept, &data, &data.join("forks"), &data.join("forks/ses_1")] {
            assert_eq!(checkpoints.fork_of(outside).await, None, "{}", outside.display());
        }
        checkpoints.remove_fork(&data.join("forks/ses_1")).await.unwrap();
        assert!(!one.exists() && other.exists());

        symlink(&kept, data.join("forks/ses_1")).unwrap();
        checkpoints.remove_fork(&data.join("forks/ses_1")).await.unwrap();
        assert!(checkpoints.make_fork_folder(&one).await.is_err());
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "mine");
    }
}

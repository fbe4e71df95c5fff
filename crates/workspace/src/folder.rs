//! Reading beneath a folder and never out of it.
//!
//! The folder is opened once, and every path is looked up from there by the kernel: links that stay
//! inside are followed, a link or a `..` that leads out is refused, and nothing can be swapped between
//! the check and the opening. Where the kernel cannot do that, `walk` looks up name by name.

mod walk;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

pub(crate) use walk::{Missing, Place, THROUGH, WalkError, is_git, is_repository};

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{} cannot be opened: {error}", path.display())]
    Closed { path: PathBuf, error: io::Error },
    #[error("nothing is at {path} in the workspace")]
    NotFound { path: String },
    #[error("{path} leads out of the workspace; name something inside it, by a path from its root")]
    Outside { path: String },
    #[error("{path} is a link; name what it leads to, by a path without links")]
    IsLink { path: String },
    #[error("{path} is not a folder")]
    IsFile { path: String },
    #[error("{path} is a folder; name a file in it")]
    IsFolder { path: String },
    #[error("{path} is neither a file nor a folder")]
    NoContent { path: String },
    #[error("{path} cannot be read: {error}")]
    Unreadable { path: String, error: io::Error },
}

/// A folder that can be read from, and whose files can be found only beneath it.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// What is done about a link at the very end of a path; those on the way are followed while they stay inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Followed,
    Refused,
}

#[derive(Debug)]
pub(crate) enum Found {
    File(File, u64),
    Folder(Folder),
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Folder {
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let opened = openat(CWD, path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        opened.map(Folder).map_err(|error| FolderError::Closed { path: path.to_owned(), error: error.into() })
    }

    /// A file and its size.
    pub fn read(&self, path: &str) -> Result<(File, u64), FolderError> {
        match self.find(path)? {
            Found::File(file, size) => Ok((file, size)),
            Found::Folder(_) => Err(FolderError::IsFolder { path: path.to_owned() }),
        }
    }

    /// A file and its size, if the file itself is there and not a link: a link may have been put in its place.
    pub fn read_itself(&self, path: &str) -> Result<(File, u64), FolderError> {
        match self.look_up(path, LastLink::Refused)? {
            Found::File(file, size) => Ok((file, size)),
            Found::Folder(_) => Err(FolderError::IsFolder { path: path.to_owned() }),
        }
    }

    /// A folder in this one, itself and not a link; nothing outside of it can be found from there.
    pub fn enter(&self, path: &str) -> Result<Folder, FolderError> {
        match self.look_up(path, LastLink::Refused)? {
            Found::Folder(folder) => Ok(folder),
            Found::File(..) => Err(FolderError::IsFile { path: path.to_owned() }),
        }
    }

    pub(crate) fn find(&self, path: &str) -> Result<Found, FolderError> {
        self.look_up(path, LastLink::Followed)
    }

    /// A file itself, by a path of any bytes; `None` for what is no file.
    pub(crate) fn file_itself(&self, path: &Path) -> io::Result<Option<File>> {
        let found = beneath(self.0.as_fd(), path, LastLink::Refused)?;
        let is_file = FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::RegularFile;
        Ok(is_file.then(|| found.into()))
    }

    fn look_up(&self, path: &str, last: LastLink) -> Result<Found, FolderError> {
        let named = || path.to_owned();
        let failed = |error: Errno| match error {
            Errno::NOENT | Errno::NOTDIR => FolderError::NotFound { path: named() },
            Errno::LOOP if last == LastLink::Refused => FolderError::IsLink { path: named() },
            Errno::XDEV | Errno::LOOP => FolderError::Outside { path: named() },
            // What a socket, and a device without a driver, say.
            Errno::NXIO | Errno::NODEV => FolderError::NoContent { path: named() },
            error => FolderError::Unreadable { path: named(), error: error.into() },
        };
        let relative = relative(path).ok_or_else(|| FolderError::Outside { path: named() })?;
        let found = beneath(self.0.as_fd(), &relative, last).map_err(failed)?;
        let about = fstat(&found).map_err(failed)?;
        match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => Ok(Found::File(found.into(), u64::try_from(about.st_size).unwrap_or_default())),
            FileType::Directory => Ok(Found::Folder(Folder(found))),
            _ => Err(FolderError::NoContent { path: named() }),
        }
    }

    /// Bytes of all files beneath. Links count for nothing: what they lead to may be elsewhere.
    pub(crate) fn size(&self) -> io::Result<u64> {
        let mut sum = 0;
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            if [&b"."[..], b".."].contains(&name.to_bytes()) {
                continue;
            }
            let about = match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
                // It went meanwhile.
                Err(Errno::NOENT) => continue,
                about => about?,
            };
            match FileType::from_raw_mode(about.st_mode) {
                FileType::RegularFile => sum += u64::try_from(about.st_size).unwrap_or_default(),
                FileType::Directory => {
                    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
                    sum += Folder(openat(&self.0, name, flags, Mode::empty())?).size()?;
                }
                _ => {}
            }
        }
        Ok(sum)
    }
}

/// The path without its dots; `None` for one that is absolute or goes up.
pub(crate) fn relative(path: &str) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    if parts.as_os_str().is_empty() {
        parts.push(".");
    }
    Some(parts)
}

/// A pipe without a writer must not hold the opening up.
pub(crate) const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

#[cfg(target_os = "linux")]
fn beneath(root: BorrowedFd<'_>, path: &Path, last: LastLink) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let flags = match last {
        LastLink::Followed => READ,
        LastLink::Refused => READ | OFlags::NOFOLLOW,
    };
    // The kernel asks to try again when something was renamed during the look-up.
    for _ in 0..100 {
        match openat2(root, path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
            Err(Errno::AGAIN) => {}
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => return walk::open(root, path, last),
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn beneath(root: BorrowedFd<'_>, path: &Path, last: LastLink) -> rustix::io::Result<OwnedFd> {
    walk::open(root, path, last)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_named_itself_is_no_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("made/deep")).unwrap();
        fs::write(dir.path().join("secret"), "x").unwrap();
        fs::write(dir.path().join("made/file"), "y").unwrap();
        symlink("../secret", dir.path().join("made/out")).unwrap();
        symlink("../file", dir.path().join("made/deep/in")).unwrap();
        symlink("made", dir.path().join("link")).unwrap();
        let root = Folder::open(dir.path()).unwrap();
        assert!(root.read("made/out").is_ok(), "it stays in the whole folder");
        assert!(root.read_itself("made/file").is_ok());
        assert!(matches!(root.read_itself("made/out"), Err(FolderError::IsLink { .. })));
        assert!(matches!(root.read_itself("made"), Err(FolderError::IsFolder { .. })));
        for link in ["link", "link/"] {
            assert!(matches!(root.enter(link), Err(FolderError::IsLink { .. })), "{link}");
        }
        assert!(matches!(root.enter("secret"), Err(FolderError::IsFile { .. })));
        let made = root.enter("made/").unwrap();
        assert!(made.read("deep/in").is_ok());
        assert!(matches!(made.read("out"), Err(FolderError::Outside { .. })));
        assert!(matches!(made.read("../secret"), Err(FolderError::Outside { .. })));
    }

    #[test]
    fn without_the_kernels_help_links_are_followed_only_inside() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/file"), "x").unwrap();
        symlink("a", dir.path().join("inside")).unwrap();
        symlink("/etc", dir.path().join("outside")).unwrap();
        symlink("../..", dir.path().join("a/up")).unwrap();
        symlink("../inside/../a/b/../b/file", dir.path().join("a/link")).unwrap();
        symlink("round", dir.path().join("round")).unwrap();
        let root = Folder::open(dir.path()).unwrap();
        let step = |path: &str, last| walk::open(root.0.as_fd(), Path::new(path), last).map(drop);
        let followed = |path| step(path, LastLink::Followed);
        for path in ["a/b/file", ".", "inside", "inside/b/file", "a/link"] {
            assert_eq!(followed(path), Ok(()), "{path}");
        }
        assert_eq!(followed("a/none"), Err(Errno::NOENT));
        assert_eq!(followed("a/b/file/x"), Err(Errno::NOTDIR));
        for out in ["outside", "outside/passwd", "a/up/x"] {
            assert_eq!(followed(out), Err(Errno::XDEV), "{out}");
        }
        assert_eq!(followed("round"), Err(Errno::LOOP));
        assert_eq!(step("a/link", LastLink::Refused), Err(Errno::LOOP));
    }
}

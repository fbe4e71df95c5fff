//! What the index must learn to be the workspace again.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::batch::Present;
use super::files::blocking;
use super::git::{Git, Halt, Output};
use super::{Caps, CheckpointError, LeftOut};
use crate::files::is_leftover;

/// Git's name for a file without content; it need not be stored to stand in an index.
const EMPTY: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
const NOTHING: &str = "0000000000000000000000000000000000000000";
/// Git's words for a folder that it may not read, which is no error to it: it goes on as if the folder were empty.
const CLOSED: &str = "could not open directory";

/// Paths as git gives and takes them: bytes, from the workspace's root.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// New or changed.
    pub(super) present: Vec<Present>,
    /// How many of those the index does not know.
    pub(super) new: u64,
    /// In the index and no longer in the workspace, or ignored by now.
    pub(super) absent: Vec<Vec<u8>>,
    /// Of those, the ones that are ignored by now.
    pub(super) ignored: Vec<Vec<u8>>,
    /// Folders that the index knows no file of and that have a repository of their own, or may have, each with its
    /// slash. Git does not look into them.
    pub(super) nested: Vec<Vec<u8>>,
    /// Neither in the index nor to be learnt.
    pub(super) left_out: Vec<LeftOut>,
}

/// Of one workspace.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) own_data: Option<PathBuf>,
    pub(super) caps: Caps,
    /// Saved though they are ignored.
    pub(super) held: Arc<[Vec<u8>]>,
}

impl Listing {
    pub(super) async fn take(git: &Git, scope: &Scope, halt: &Halt) -> Result<Self, CheckpointError> {
        let hidden: Vec<OsString> = scope.own_data.as_deref().map(pattern).into_iter().collect();
        let args = |which: &[&str]| -> Vec<OsString> {
            let fixed = ["ls-files", "-z", "--exclude-standard"].iter().chain(which).map(OsString::from);
            fixed.chain(hidden.iter().flat_map(|pattern| [OsString::from("-x"), pattern.clone()])).collect()
        };
        let (others, ignored) = (args(&["--others"]), args(&["--cached", "--ignored"]));
        let (others, ignored, changed) = tokio::join!(
            git.run(&others, b"", halt),
            git.run(&ignored, b"", halt),
            git.run(&["diff-files", "-z", "--ignore-submodules=all"], b"", halt),
        );
        let (others, ignored, changed) = (others?, ignored?, changed?);
        // It complains of files that it may not even look at, and takes them for unchanged.
        let known = match changed.warnings.is_empty() {
            true => None,
            false => Some(git.run(&["ls-files", "-z", "--cached"], b"", halt).await?),
        };
        let (workspace, largest, held) = (git.workspace.clone(), scope.caps.largest_file, scope.held.clone());
        blocking(move || {
            let mut eyes = Eyes { workspace: workspace.clone(), folders: HashMap::new() };
            let mut listing = Listing { left_out: closed(&workspace, &others.warnings)?, ..Listing::default() };
            let mut ignored: HashSet<&[u8]> = ignored.items().collect();
            // Those that the index has lost are not among the others: they are ignored.
            let lost: Vec<&[u8]> = held.iter().map(Vec::as_slice).filter(|path| !ignored.remove(path)).collect();
            for path in others.items().filter(|path| !is_ours(path)) {
                listing.sort_other(path, eyes.look(path), largest);
            }
            for path in lost {
                // What is in a folder is ignored as the file was.
                match eyes.look(path) {
                    Ok(found) if found.is_dir() => {}
                    looked => listing.sort_other(path, looked, largest),
                }
            }
            listing.new = listing.present.len() as u64;
            // Items come in pairs: what changed, then the path.
            let paths = changed.items().skip(1).step_by(2).filter(|path| !ignored.contains(path));
            for path in paths {
                listing.sort_known(path, eyes.look(path), largest);
            }
            for path in known.iter().flat_map(Output::items).filter(|path| !ignored.contains(path)) {
                if let looked @ Err(_) = eyes.look(path) {
                    listing.sort_known(path, looked, largest);
                }
            }
            listing.ignored = ignored.into_iter().map(<[u8]>::to_owned).collect();
            listing.absent.extend(listing.ignored.iter().cloned());
            Ok(listing)
        })
        .await
    }

    /// A path that the index does not know.
    fn sort_other(&mut self, path: &[u8], looked: io::Result<Metadata>, largest: u64) {
        match looked {
            Ok(found) if found.is_dir() => self.nested.push([path.strip_suffix(b"/").unwrap_or(path), b"/"].concat()),
            Ok(found) if found.is_file() && found.len() > largest => {
                self.left_out.push(LeftOut::too_large(path, found.len()));
            }
            Ok(found) if found.is_file() || found.is_symlink() => {
                self.present.push(Present { path: path.to_owned(), size: found.len() });
            }
            // A pipe or the like, or gone meanwhile.
            Ok(_) => {}
            Err(error) if is_gone(&error) => {}
            Err(_) => self.left_out.push(LeftOut::unreadable(path, 0)),
        }
    }

    /// A path that the index knows and that may have changed.
    fn sort_known(&mut self, path: &[u8], looked: io::Result<Metadata>, largest: u64) {
        let before = self.present.len() + self.nested.len();
        // If a file became a folder that is a repository, git would not look into it.
        self.sort_other(path, looked, largest);
        // What the index said of it must not stay.
        if self.present.len() + self.nested.len() == before {
            self.absent.push(path.to_owned());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.present.is_empty() && self.absent.is_empty()
    }

    /// For `update-index --index-info`: a file that does not exist in each nested repository. Where the index knows a
    /// file, git takes the folder for one like any other and lists what is in it; the next listing has the made-up
    /// file among the absent.
    pub(super) fn seeds(&self) -> Vec<u8> {
        lines(&self.nested, |path| [format!("100644 {EMPTY}\t").as_bytes(), path, b".tolka-seed"].concat())
    }
}

/// For `update-index --index-info`.
pub(super) fn removals(paths: &[Vec<u8>]) -> Vec<u8> {
    lines(paths, |path| [format!("0 {NOTHING}\t").as_bytes(), path].concat())
}

/// Looks at paths, and never by way of a link: git does not follow those.
struct Eyes {
    workspace: PathBuf,
    /// Whether a folder is where its path says.
    folders: HashMap<PathBuf, bool>,
}

impl Eyes {
    fn look(&mut self, path: &[u8]) -> io::Result<Metadata> {
        let full = self.workspace.join(OsStr::from_bytes(path));
        let folder = full.parent().unwrap_or(&self.workspace);
        let is_direct = match self.folders.get(folder) {
            Some(is_direct) => *is_direct,
            None => {
                // One that cannot be looked at is no link.
                let is_direct = folder.canonicalize().map_or(true, |real| real == folder);
                self.folders.insert(folder.to_owned(), is_direct);
                is_direct
            }
        };
        if is_direct { fs::symlink_metadata(full) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What a write of ours that was cut off has left there.
fn is_ours(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    std::str::from_utf8(name).is_ok_and(is_leftover)
}

/// The folders that git could not read.
fn closed(workspace: &Path, warnings: &str) -> Result<Vec<LeftOut>, CheckpointError> {
    let mut folders = Vec::new();
    for words in warnings.lines().filter(|line| line.contains(CLOSED)) {
        let quoted = words.split_once('\'').and_then(|(_, rest)| rest.rsplit_once("': "));
        match quoted.map(|(folder, _)| (folder, fs::read_dir(workspace.join(folder)))) {
            Some((folder, Err(error))) if !is_gone(&error) => {
                folders.push(LeftOut::unreadable(folder.trim_end_matches('/').as_bytes(), 0));
            }
            // It is gone or open by now, or its name was told in a way that cannot be read: what is in it is not known.
            _ => return Err(CheckpointError::Unreadable { words: words.trim_start_matches("warning: ").to_owned() }),
        }
    }
    Ok(folders)
}

fn lines(paths: &[Vec<u8>], line: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    paths.iter().flat_map(|path| [line(path), vec![0]].concat()).collect()
}

/// The pattern that matches this folder and no other. On the command line, where no `.gitignore` can overrule it.
fn pattern(folder: &Path) -> OsString {
    let mut pattern = vec![b'/'];
    for byte in folder.as_os_str().as_bytes() {
        if b"\\*?[".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern.push(b'/');
    OsString::from_vec(pattern)
}

/// A path for people.
pub(super) fn shown(path: &[u8]) -> String {
    PathBuf::from(OsStr::from_bytes(path)).display().to_string()
}

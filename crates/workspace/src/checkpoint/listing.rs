//! What the index must learn to be the workspace again.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::CheckpointError;
use super::batch::Present;
use super::files::blocking;
use super::git::{Git, Halt, Output};
use crate::files::is_leftover;

/// Git's name for a file without content; it need not be stored to stand in an index.
const EMPTY: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
const NOTHING: &str = "0000000000000000000000000000000000000000";
/// Git's words for a folder that it may not read, which is no error to it: it goes on as if the folder were empty.
const CLOSED: &str = "could not open directory";
/// What it says after the path of a file that it may not even look at, and takes for unchanged.
const HIDDEN: &str = ": Permission denied";

/// Paths as git gives and takes them: bytes, from the workspace's root.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// New or changed.
    pub(super) present: Vec<Present>,
    /// In the index and no longer in the workspace, or ignored by now.
    pub(super) absent: Vec<Vec<u8>>,
    /// Folders that the index knows no file of and that have a repository of their own, or may have, each with its
    /// slash. Git does not look into them.
    pub(super) nested: Vec<Vec<u8>>,
}

impl Listing {
    pub(super) async fn take(git: &Git, own_data: Option<&Path>, halt: &Halt) -> Result<Self, CheckpointError> {
        let hidden: Vec<OsString> = own_data.map(pattern).into_iter().collect();
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
        if let Some(words) = others.warnings.lines().find(|line| line.contains(CLOSED)) {
            return Err(CheckpointError::Unreadable { words: words.trim_start_matches("warning: ").to_owned() });
        }
        if let Some(words) = changed.warnings.lines().find(|line| line.ends_with(HIDDEN)) {
            return Err(CheckpointError::Unreadable { words: words.to_owned() });
        }
        let workspace = git.workspace.clone();
        blocking(move || Ok(Listing::sort(&workspace, &others, &ignored, &changed))).await
    }

    /// Blocks: it looks at each file that is new or changed.
    fn sort(workspace: &Path, others: &Output, ignored: &Output, changed: &Output) -> Self {
        let mut listing = Listing::default();
        let look = |path| std::fs::symlink_metadata(workspace.join(OsStr::from_bytes(path)));
        for path in others.items() {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            if std::str::from_utf8(name).is_ok_and(is_leftover) {
                continue;
            }
            if path.ends_with(b"/") {
                listing.nested.push(path.to_owned());
            } else {
                // What is wrong with one that cannot be looked at, git finds out when it takes it in.
                let size = look(path).map_or(0, |found| found.len());
                listing.present.push(Present { path: path.to_owned(), size });
            }
        }
        // Items come in pairs: what changed, then the path.
        let mut items = changed.items();
        while let (Some(_), Some(path)) = (items.next(), items.next()) {
            match look(path) {
                Ok(found) if found.is_file() || found.is_symlink() => {
                    listing.present.push(Present { path: path.to_owned(), size: found.len() });
                }
                // A file became a folder. If that is a repository, git would not look into it.
                Ok(found) if found.is_dir() => listing.nested.push([path, b"/"].concat()),
                _ => listing.absent.push(path.to_owned()),
            }
        }
        let ignored: std::collections::HashSet<&[u8]> = ignored.items().collect();
        listing.present.retain(|present| !ignored.contains(present.path.as_slice()));
        listing.absent.extend(ignored.into_iter().map(<[u8]>::to_owned));
        listing
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

    /// For `update-index --index-info`.
    pub(super) fn removals(&self) -> Vec<u8> {
        lines(&self.absent, |path| [format!("0 {NOTHING}\t").as_bytes(), path].concat())
    }
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

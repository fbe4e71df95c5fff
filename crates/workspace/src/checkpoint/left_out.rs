//! Files that a snapshot does not hold, though nothing ignores them. Its commit names them: a restore must not take
//! one for a file that was not there.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

use super::CheckpointError;
use super::git::{Git, Halt};
use super::modes::Modes;

/// A commit's message names them all, so there must be an end to it.
const MOST: usize = 10_000;

const TRAILER: &str = "Left-Out: ";

/// What would not stand in one line of a message as it is.
const ODD: &AsciiSet = &CONTROLS.add(b'%').add(b' ');

/// A file that no snapshot holds, or a folder that could not be looked into: then it stands for all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// From the workspace on.
    pub path: PathBuf,
    pub size: u64,
    pub why: LeftOutWhy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOutWhy {
    TooLarge,
    Unreadable,
}

impl LeftOut {
    pub(super) fn too_large(path: &[u8], size: u64) -> Self {
        LeftOut { path: exact(path), size, why: LeftOutWhy::TooLarge }
    }

    pub(super) fn unreadable(path: &[u8], size: u64) -> Self {
        LeftOut { path: exact(path), size, why: LeftOutWhy::Unreadable }
    }

    fn line(&self) -> String {
        let why = match self.why {
            LeftOutWhy::TooLarge => "too-large",
            LeftOutWhy::Unreadable => "unreadable",
        };
        format!("{TRAILER}{why} {} {}\n", self.size, encoded(&self.path))
    }

    fn of_line(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix(TRAILER)?.splitn(3, ' ');
        let why = match words.next()? {
            "too-large" => LeftOutWhy::TooLarge,
            "unreadable" => LeftOutWhy::Unreadable,
            _ => return None,
        };
        let size = words.next()?.parse().ok()?;
        let path = path_of(words.next()?);
        Some(LeftOut { path, size, why })
    }
}

/// In the order of their paths, each once, and none beneath a folder that is left out itself.
pub(super) fn sorted(mut all: Vec<LeftOut>) -> Result<Vec<LeftOut>, CheckpointError> {
    all.sort_by(|a, b| a.path.cmp(&b.path));
    let mut kept: Vec<LeftOut> = Vec::new();
    for one in all {
        if kept.last().is_none_or(|last| !one.path.starts_with(&last.path)) {
            kept.push(one);
        }
    }
    match kept.len() > MOST {
        true => Err(CheckpointError::TooManyLeftOut { first: kept.swap_remove(0).path, count: kept.len() as u64 + 1 }),
        false => Ok(kept),
    }
}

/// For the end of a commit's message.
pub(super) fn trailers(all: &[LeftOut]) -> String {
    all.iter().map(LeftOut::line).collect()
}

/// What a commit says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct About {
    /// The name of its tree.
    pub(super) tree: String,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) modes: Modes,
}

impl About {
    pub(super) async fn read(git: &Git, commit: &str, halt: &Halt) -> Result<Self, CheckpointError> {
        let output = git.run(&["cat-file", "commit", commit], b"", halt).await?;
        let unknown = || CheckpointError::Unknown { commit: commit.to_owned() };
        About::of(&String::from_utf8_lossy(&output.out)).ok_or_else(unknown)
    }

    pub(super) fn of(object: &str) -> Option<Self> {
        let (head, message) = object.split_once("\n\n")?;
        let tree = head.lines().next()?.strip_prefix("tree ")?.to_owned();
        // The first line is for people, and may say anything.
        let left_out = message.lines().skip(1).filter_map(LeftOut::of_line).collect();
        let mut modes = Modes::default();
        message.lines().skip(1).for_each(|line| modes.take(line));
        Some(About { tree, left_out, modes })
    }
}

/// A path that stands in one line, whatever it is made of.
pub(super) fn encoded(path: &Path) -> impl std::fmt::Display {
    percent_encode(path.as_os_str().as_bytes(), ODD)
}

/// The path that was encoded.
pub(super) fn path_of(encoded: &str) -> PathBuf {
    exact(&percent_decode(encoded.as_bytes()).collect::<Vec<_>>())
}

fn exact(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_commit_gives_back_what_it_was_told(
            files in prop::collection::vec((prop::collection::vec(1_u8..=255, 1..12), any::<u64>(), any::<bool>()), 0..6),
        ) {
            let left_out = files.iter().map(|(path, size, is_large)| match is_large {
                true => LeftOut::too_large(path, *size),
                false => LeftOut::unreadable(path, *size),
            }).collect::<Vec<_>>();
            let object = format!("tree abc\nauthor x\n\nLeft-Out: unreadable 1 words\n\nTaken-At: 1\n{}", trailers(&left_out));
            prop_assert_eq!(About::of(&object), Some(About { tree: "abc".to_owned(), left_out, modes: Modes::default() }));
        }
    }

    #[test]
    fn a_folder_stands_for_what_is_in_it() {
        let all = ["b/c", "a-b", "b", "a/x", "b/c/d", "a/x"].map(|path| LeftOut::unreadable(path.as_bytes(), 0));
        let kept = sorted(all.to_vec()).unwrap();
        assert_eq!(kept.iter().map(|one| one.path.to_str().unwrap()).collect::<Vec<_>>(), ["a/x", "a-b", "b"]);
    }

    #[test]
    fn there_is_an_end_to_what_a_commit_names() {
        let all = (0..=MOST).map(|n| LeftOut::unreadable(format!("f{n}").as_bytes(), 0)).collect();
        let error = sorted(all).unwrap_err();
        assert!(matches!(error, CheckpointError::TooManyLeftOut { count: 10_001, .. }), "{error}");
    }
}

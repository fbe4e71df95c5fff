//! What the `.gitignore` files in a snapshot hide.
//!
//! A snapshot says nothing of files that were hidden when it was taken. If rules change, files come into sight that may
//! have been there for long: they have not been made by whoever changed the rules.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::checkpoint::CheckpointError;
use crate::checkpoint::changes::{Kind, files};
use crate::checkpoint::contents::objects;
use crate::checkpoint::git::{Git, Halt};

const NAME: &str = ".gitignore";

/// Of rules that people write.
const LONGEST: u64 = 1 << 20;

pub(in crate::checkpoint) fn is_rules(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == NAME)
}

/// By the folder that they are in.
#[derive(Debug, Default)]
pub(in crate::checkpoint) struct Rules(HashMap<PathBuf, Gitignore>);

impl Rules {
    pub(in crate::checkpoint) async fn of(git: &Git, commit: &str, halt: &Halt) -> Result<Self, CheckpointError> {
        let mut found = files(git, commit, halt).await?;
        // Git follows no link there.
        found.retain(|(path, entry)| is_rules(path) && entry.kind != Kind::Link);
        let names: Vec<&str> = found.iter().map(|(_, entry)| entry.blob.as_str()).collect();
        let texts = objects(git, &names, halt).await?;
        let folder = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Rules(found.iter().zip(texts).map(|((path, _), text)| (folder(path), rules(&text))).collect()))
    }

    /// Those that are in a workspace now, as far as they are about these paths. Blocks.
    pub(in crate::checkpoint) fn around(workspace: &Path, paths: &[PathBuf]) -> Self {
        let folders: HashSet<&Path> = paths.iter().flat_map(|path| path.ancestors().skip(1)).collect();
        let read = |folder: &Path| {
            let path = workspace.join(folder).join(NAME);
            // Git follows no link there, and a pipe would be waited for.
            let is_plain = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
            let text = if is_plain { fs::read(path).ok()? } else { return None };
            Some((folder.to_owned(), rules(&text)))
        };
        Rules(folders.into_iter().filter_map(read).collect())
    }

    pub(in crate::checkpoint) fn hidden(&self, paths: &[PathBuf]) -> Vec<Vec<u8>> {
        let hidden = paths.iter().filter(|path| self.hide(path));
        hidden.map(|path| path.as_os_str().as_bytes().to_owned()).collect()
    }

    /// Whether a file at this path is not seen: by a rule for it, or for a folder above, in which nothing is seen then.
    pub(in crate::checkpoint) fn hide(&self, path: &Path) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mut folders: Vec<&Path> =
            path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()).collect();
        folders.reverse();
        folders.into_iter().any(|folder| self.hide_itself(folder, true)) || self.hide_itself(path, false)
    }

    /// The rules nearest to it decide.
    fn hide_itself(&self, path: &Path, is_folder: bool) -> bool {
        for folder in path.ancestors().skip(1) {
            let (Some(rules), Ok(rest)) = (self.0.get(folder), path.strip_prefix(folder)) else { continue };
            match rules.matched(rest, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn rules(text: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in String::from_utf8_lossy(text).lines() {
        // A line that is no pattern hides nothing, for git too.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rules_decide_and_nothing_is_seen_in_a_hidden_folder() {
        let of = |pairs: &[(&str, &str)]| {
            Rules(pairs.iter().map(|(folder, text)| (PathBuf::from(folder), rules(text.as_bytes()))).collect())
        };
        let rules = of(&[("", "*.log\n/data/\nbuild\n!keep.log\n"), ("sub", "!x.log\nown\n"), ("data", "!*\n")]);
        for hidden in
            ["a.log", "deep/er/a.log", "data/a", "data/deep/a", "build", "x/build/y", "sub/own", "sub/z/own/q"]
        {
            assert!(rules.hide(Path::new(hidden)), "{hidden}");
        }
        for seen in ["a", "keep.log", "sub/x.log", "sub/data/a", "own", "sub/deep/x.log"] {
            assert!(!rules.hide(Path::new(seen)), "{seen}");
        }
    }
}

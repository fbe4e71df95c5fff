//! What files held, one after the other out of one git: never more than a few are in memory.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::checkpoint::CheckpointError;
use crate::checkpoint::changes::{Entry, Kind};
use crate::checkpoint::git::Git;
use crate::checkpoint::modes::Mode;

/// A file or link of a snapshot.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) kind: Kind,
    pub(super) mode: Mode,
    pub(super) bytes: Arc<[u8]>,
}

impl Content {
    /// Both are files that hold the same.
    pub(super) fn is_same_but_mode(&self, other: &Content) -> bool {
        self.kind != Kind::Link && other.kind != Kind::Link && self.bytes == other.bytes
    }
}

/// They come in the order in which they were asked for. Dropped, git is ended.
pub(super) struct Blobs {
    git: Child,
    out: BufReader<ChildStdout>,
    asking: Option<JoinHandle<()>>,
}

impl Blobs {
    pub(super) fn ask(git: &Git, names: String) -> Result<Self, CheckpointError> {
        let mut command = git.command(&["cat-file", "--batch", "--buffer"]);
        let mut child = command.as_std_mut().stderr(Stdio::null()).spawn().map_err(|error| failed(&error))?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(&"it has no pipes"));
        };
        // A thread: git stops listening while nobody takes what it says. One that ends early is heard of by its words.
        let asking = std::thread::spawn(move || drop(stdin.write_all(names.as_bytes())));
        Ok(Blobs { git: child, out: BufReader::with_capacity(256 << 10, stdout), asking: Some(asking) })
    }

    /// The next one, which must be this.
    pub(super) fn next(&mut self, entry: &Entry) -> Result<Content, CheckpointError> {
        let mut line = String::new();
        self.out.read_line(&mut line).map_err(|error| failed(&error))?;
        let size = match line.trim_end().split(' ').collect::<Vec<_>>()[..] {
            [name, "blob", size] if name == entry.blob => size.parse::<u64>().ok(),
            _ => None,
        };
        let size = size.ok_or_else(|| failed(&format_args!("{} is missing", entry.blob)))?;
        let mut bytes = Vec::new();
        self.out.by_ref().take(size + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        match bytes.pop() {
            Some(b'\n') if bytes.len() as u64 == size => {
                Ok(Content { kind: entry.kind, mode: entry.mode, bytes: bytes.into() })
            }
            _ => Err(failed(&io::Error::from(io::ErrorKind::UnexpectedEof))),
        }
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        // It has said all, or nobody wants the rest.
        let _ = self.git.kill();
        let _ = self.git.wait();
        if let Some(asking) = self.asking.take() {
            let _ = asking.join();
        }
    }
}

fn failed(words: &dyn std::fmt::Display) -> CheckpointError {
    CheckpointError::Git { command: "cat-file".to_owned(), words: words.to_string() }
}

//! What the tools of a session know of files: which content of each the model has seen, and what was in those that
//! were changed. It is forgotten with the process; then a file must be read again before it is written over.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tolka_facts::Hash;
use tolka_workspace::changes::Mark;
use tolka_workspace::limits;
use tolka_workspace::obeyed::Obeyed;

use super::change::Content;

/// Files whose content is remembered as seen. Beyond that all are forgotten, which costs a read each.
const SEEN: usize = 10_000;

/// Hosts that are told as refused in one session; a flood of them is no news.
const REFUSED: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// A std mutex: held for a look-up, never over an await.
    inner: Mutex<Inner>,
    /// That not all of the workspace is looked at is told once.
    is_partial_told: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    /// By path from the workspace on.
    seen: HashMap<String, Hash>,
    contents: HashMap<String, Kept>,
    bytes: usize,
    /// Hosts that people were told commands were refused.
    refused: HashSet<String>,
    /// As it was when last looked at, while something runs that may change it between two commands.
    obeyed: Option<Obeyed>,
}

#[derive(Debug)]
struct Kept {
    content: Content,
    mark: Mark,
}

impl Memory {
    /// Whether it is to be told that changes of files may be missed: the first time.
    pub(super) fn tells_partial(&self) -> bool {
        !self.is_partial_told.swap(true, Ordering::Relaxed)
    }

    /// Whether that a command was refused this host has not been told yet.
    pub(super) fn is_news(&self, host: &str) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.refused.len() < REFUSED && inner.refused.insert(host.to_owned())
    }

    /// What git obeyed when last looked at; `None`: nothing ran since that could have changed it.
    pub(super) fn watched(&self) -> Option<Obeyed> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).obeyed.clone()
    }

    pub(super) fn watch(&self, obeyed: Option<Obeyed>) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).obeyed = obeyed;
    }

    /// The model knows that this is in the file: it has read it, or made it so.
    pub(super) fn has_seen(&self, path: &str, content: &Content) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.seen.len() >= SEEN {
            inner.seen.clear();
        }
        inner.seen.insert(path.to_owned(), content.blob.hash.clone());
    }

    pub(super) fn is_seen(&self, path: &str, content: &Content) -> bool {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.seen.get(path) == Some(&content.blob.hash)
    }

    /// This is in the file at `file`, as of now.
    pub(super) fn keep(&self, path: &str, content: &Content, file: &Path) {
        let Some(mark) = Mark::at(file).filter(|mark| mark.size() == content.blob.size) else { return };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        // All are forgotten then, which costs a diff each.
        if inner.bytes + content.bytes.len() > limits::TOGETHER {
            inner.contents.clear();
            inner.bytes = 0;
        }
        inner.bytes += content.bytes.len();
        let kept = Kept { content: content.clone(), mark };
        if let Some(old) = inner.contents.insert(path.to_owned(), kept) {
            inner.bytes -= old.content.bytes.len();
        }
    }

    /// What is in the files that nobody else has touched since it was kept, by path from the workspace on.
    pub(super) fn kept(&self, workspace: &Path) -> HashMap<String, Content> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let is_so = |path: &str, kept: &Kept| Mark::at(&workspace.join(path)) == Some(kept.mark);
        let sound = inner.contents.iter().filter(|(path, kept)| is_so(path, kept));
        sound.map(|(path, kept)| (path.clone(), kept.content.clone())).collect()
    }
}

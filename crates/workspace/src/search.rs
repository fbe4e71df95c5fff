//! Finding files and text in a workspace: ripgrep's own parts, in this process. `.gitignore` is honoured, links are not
//! followed, and a search that is dropped stops.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("`{pattern}` is no pattern: {problem}")]
    Pattern { pattern: String, problem: String },
    #[error("{0} is not there, or leads out of the workspace")]
    Folder(String),
    #[error("the search was stopped")]
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found<T> {
    pub items: Vec<T>,
    /// There were more.
    pub is_cut: bool,
}

/// A place where a pattern was found. Paths are from the workspace on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub path: String,
    pub line: u64,
    pub text: String,
}

/// What is looked for, and where.
#[derive(Debug, Clone)]
pub struct Query<'a> {
    pub workspace: &'a Path,
    /// A folder, or for [`grep`] a file, from the workspace on; `.` is all of it.
    pub within: &'a str,
    pub pattern: &'a str,
    /// Only files that match this glob are looked into.
    pub include: Option<&'a str>,
    /// At most so many.
    pub limit: usize,
    /// Set from outside to stop.
    pub stop: Arc<AtomicBool>,
}

/// Files whose paths match a glob, the latest changed first.
pub fn glob(_query: &Query<'_>) -> Result<Found<String>, SearchError> {
    Err(SearchError::Stopped)
}

/// Lines that match a regular expression, by file, the latest changed file first.
pub fn grep(_query: &Query<'_>) -> Result<Found<Hit>, SearchError> {
    Err(SearchError::Stopped)
}

/// What is in a folder, by name; folders end in `/`. `recursive` goes into them.
pub fn list(_workspace: &Path, _within: &str, _recursive: bool, _limit: usize) -> Result<Found<String>, SearchError> {
    Err(SearchError::Stopped)
}

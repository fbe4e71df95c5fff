//! Finding files and text in a workspace: ripgrep's own parts, in this process.
//!
//! `.gitignore` is honoured, also where there is no repository; hidden files are found, a repository's own folder is
//! not. Links are not followed, so nothing outside is met. A search that is dropped stops.

mod grep;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use globset::{GlobBuilder, GlobMatcher};

use crate::names::shown;
use walk::{Meeting, Start};

pub use grep::grep;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("`{pattern}` is no pattern: {problem}")]
    Pattern { pattern: String, problem: String },
    #[error("{path} cannot be searched: {problem}")]
    Folder { path: String, problem: String },
    #[error("{0} is a file; name a folder")]
    IsFile(String),
    #[error("the search was stopped")]
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found<T> {
    pub items: Vec<T>,
    /// There were more.
    pub is_cut: bool,
}

/// A place where a pattern was found. Paths are from the workspace on; what no line of text can hold is quoted.
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
pub fn glob(query: &Query<'_>) -> Result<Found<String>, SearchError> {
    let start = Start::of(query.workspace, query.within)?;
    start.folder_only(query.within)?;
    let wanted = Wanted::of(query.pattern, &start)?;
    let included = query.include.map(|glob| Wanted::of(glob, &start)).transpose()?;
    let mut files = walk::files(&start, &query.stop, |path| {
        wanted.takes(path, &start) && included.as_ref().is_none_or(|glob| glob.takes(path, &start))
    })?;
    files.sort_by(Meeting::latest_first);
    let items = files.iter().take(query.limit).map(|file| shown(&file.path)).collect();
    Ok(Found { items, is_cut: files.len() > query.limit })
}

/// What is in a folder, by name; folders end in `/`. `recursive` goes into them.
pub fn list(workspace: &Path, within: &str, recursive: bool, limit: usize) -> Result<Found<String>, SearchError> {
    let start = Start::of(workspace, within)?;
    start.folder_only(within)?;
    walk::list(&start, if recursive { None } else { Some(1) }, limit)
}

/// A glob as people mean it.
enum Wanted {
    /// Without a slash: of the name, in any folder.
    Name(GlobMatcher),
    /// Of the path from where the search starts.
    FromStart(GlobMatcher),
    /// It was absolute: of the path from the workspace on.
    FromRoot(GlobMatcher),
}

impl Wanted {
    fn of(pattern: &str, start: &Start) -> Result<Self, SearchError> {
        let build = |glob: &str| {
            let built = GlobBuilder::new(glob).literal_separator(true).empty_alternates(true).build();
            built.map(|glob| glob.compile_matcher()).map_err(|error| SearchError::Pattern {
                pattern: pattern.to_owned(),
                problem: error.kind().to_string(),
            })
        };
        if pattern.starts_with('/') {
            let below = |root: &PathBuf| pattern.strip_prefix(root.to_str()?)?.strip_prefix('/');
            return match start.names.iter().find_map(below) {
                Some(rest) => Ok(Wanted::FromRoot(build(rest)?)),
                None => Err(SearchError::Pattern {
                    pattern: pattern.to_owned(),
                    problem: "it is of files outside the workspace".to_owned(),
                }),
            };
        }
        let bare = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = build(bare)?;
        Ok(if bare.contains('/') { Wanted::FromStart(glob) } else { Wanted::Name(glob) })
    }

    fn takes(&self, path: &Path, start: &Start) -> bool {
        match self {
            Wanted::Name(glob) => path.file_name().is_some_and(|name| glob.is_match(name)),
            Wanted::FromStart(glob) => glob.is_match(start.path_from_start(path)),
            Wanted::FromRoot(glob) => glob.is_match(start.path_from_root(path)),
        }
    }
}

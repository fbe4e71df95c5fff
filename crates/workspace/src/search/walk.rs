//! Going through the files of a workspace.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder, WalkState};

use super::{Found, SearchError};
use crate::files::{FileError, Files, is_leftover};
use crate::folder::Folder;
use crate::names::shown;

/// More do not pay: the walk waits for the same few locks, and others work on this machine too.
const THREADS: usize = 2;

/// Where a search starts.
#[derive(Debug)]
pub(super) struct Start {
    /// The workspace, by its names: as given, and without links.
    pub(super) names: [PathBuf; 2],
    /// What is named, without links.
    at: PathBuf,
    pub(super) is_file: bool,
    /// Files are opened from here and not by their paths: something may be swapped while a search runs.
    pub(super) folder: Folder,
}

/// A file that was met and wanted.
#[derive(Debug)]
pub(super) struct Meeting<T> {
    /// From the workspace on.
    pub(super) path: PathBuf,
    pub(super) changed: SystemTime,
    pub(super) value: T,
}

impl<T> Meeting<T> {
    pub(super) fn latest_first(&self, other: &Self) -> Ordering {
        other.changed.cmp(&self.changed).then_with(|| self.path.cmp(&other.path))
    }
}

impl Start {
    pub(super) fn of(workspace: &Path, within: &str) -> Result<Self, SearchError> {
        let outside = |error: FileError| SearchError::Folder { path: within.to_owned(), problem: error.to_string() };
        let files = Files::open(workspace).map_err(outside)?;
        let relative = files.relative(within).map_err(outside)?;
        let (at, is_file) = files.real_path(&relative).map_err(outside)?;
        let names = [files.root().to_owned(), files.real.clone()];
        Ok(Start { names, at, is_file, folder: files.folder })
    }

    pub(super) fn root(&self) -> &Path {
        &self.names[1]
    }

    /// From the workspace on, of what was met.
    pub(super) fn path_from_root<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(self.root()).unwrap_or(path)
    }

    /// From where the search starts on.
    pub(super) fn path_from_start<'p>(&self, path: &'p Path) -> &'p Path {
        match path.strip_prefix(&self.at) {
            Ok(rest) if !rest.as_os_str().is_empty() => rest,
            _ => path.file_name().map_or(path, Path::new),
        }
    }

    pub(super) fn folder_only(&self, within: &str) -> Result<(), SearchError> {
        if self.is_file { Err(SearchError::IsFile(within.to_owned())) } else { Ok(()) }
    }
}

/// Every file and folder from the start on. `meet` is called from several threads; what it says `true` to goes on.
pub(super) fn walk(
    start: &Start,
    depth: Option<usize>,
    stop: &AtomicBool,
    meet: impl Fn(&DirEntry) -> bool + Sync,
) -> Result<(), SearchError> {
    // From the workspace's root on, for the sake of its `.gitignore`; those above are not the workspace's.
    let base = start.at.strip_prefix(start.root()).map_or(0, |path| path.components().count());
    if !go(start, start.root(), depth.map(|depth| depth + base), stop, &meet) {
        // What is ignored can still be asked for by name.
        go(start, &start.at, depth, stop, &meet);
    }
    if stop.load(Relaxed) { Err(SearchError::Stopped) } else { Ok(()) }
}

/// Whether the start was reached.
fn go(
    start: &Start,
    from: &Path,
    depth: Option<usize>,
    stop: &AtomicBool,
    meet: &(impl Fn(&DirEntry) -> bool + Sync),
) -> bool {
    let at = start.at.clone();
    let (base, root) = (from.to_owned(), start.root().to_owned());
    let mut builder = WalkBuilder::new(&base);
    let way = Way { at, root };
    builder.standard_filters(false).git_ignore(true).ignore(true).require_git(false).follow_links(false);
    builder.max_depth(depth).threads(THREADS).filter_entry(move |entry| way.leads(entry));
    let reached = AtomicBool::new(false);
    builder.build_parallel().run(|| {
        Box::new(|entry| {
            if stop.load(Relaxed) {
                return WalkState::Quit;
            }
            // What cannot be read is not found, as with any search.
            let Ok(entry) = entry else { return WalkState::Continue };
            if entry.path() == start.at {
                reached.store(true, Relaxed);
            }
            let is_wanted = entry.path().starts_with(&start.at) && (start.is_file || entry.path() != start.at);
            if is_wanted && !meet(&entry) { WalkState::Quit } else { WalkState::Continue }
        })
    });
    reached.into_inner()
}

/// What the walk goes into.
struct Way {
    at: PathBuf,
    root: PathBuf,
}

impl Way {
    fn leads(&self, entry: &DirEntry) -> bool {
        let path = entry.path();
        let name = entry.file_name();
        // The workspace itself may lie in folders of any name.
        let is_skipped = path != self.root && (name == ".git" || name.to_str().is_some_and(is_leftover));
        !is_skipped && (path.starts_with(&self.at) || self.at.starts_with(path))
    }
}

/// All files that are wanted, in no order. What is given to `wanted` is the path from the start on.
pub(super) fn files(
    start: &Start,
    stop: &AtomicBool,
    wanted: impl Fn(&Path) -> bool + Sync,
) -> Result<Vec<Meeting<()>>, SearchError> {
    let met = Mutex::new(Vec::new());
    walk(start, None, stop, |entry| {
        if entry.file_type().is_some_and(|kind| kind.is_file()) && wanted(entry.path()) {
            let changed = entry.metadata().ok().and_then(|about| about.modified().ok());
            let path = start.path_from_root(entry.path()).to_owned();
            let meeting = Meeting { path, changed: changed.unwrap_or(SystemTime::UNIX_EPOCH), value: () };
            met.lock().unwrap_or_else(PoisonError::into_inner).push(meeting);
        }
        true
    })?;
    Ok(met.into_inner().unwrap_or_else(PoisonError::into_inner))
}

pub(super) fn list(start: &Start, depth: Option<usize>, limit: usize) -> Result<Found<String>, SearchError> {
    let met = Mutex::new(Vec::new());
    walk(start, depth, &AtomicBool::new(false), |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let path = entry.path().strip_prefix(&start.at).unwrap_or(entry.path()).to_owned();
        met.lock().unwrap_or_else(PoisonError::into_inner).push((path, is_folder));
        true
    })?;
    let mut met = met.into_inner().unwrap_or_else(PoisonError::into_inner);
    met.sort();
    let name = |(path, is_folder): &(PathBuf, bool)| format!("{}{}", shown(path), if *is_folder { "/" } else { "" });
    Ok(Found { items: met.iter().take(limit).map(name).collect(), is_cut: met.len() > limit })
}

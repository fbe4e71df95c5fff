//! Lines that match a regular expression.
//!
//! Hits of the latest changed files come first, so a file that is older than enough others with hits is not looked into.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};

use super::walk::{Meeting, Start, walk};
use super::{Found, Hit, Query, SearchError, Wanted};
use crate::names::shown;

/// Characters of a line that are shown.
const LONGEST_LINE: usize = 2000;
/// A file with a longer line than this is no text that anybody reads.
const HEAP_LIMIT: usize = 16 * 1024 * 1024;

/// Lines that match a regular expression, by file, the latest changed file first.
pub fn grep(query: &Query<'_>) -> Result<Found<Hit>, SearchError> {
    let start = Start::of(query.workspace, query.within)?;
    let matcher = matcher(query.pattern)?;
    let included = query.include.map(|glob| Wanted::of(glob, &start)).transpose()?;
    let best = Mutex::new(Best { files: Vec::new(), hits: 0, limit: query.limit, oldest: None });
    walk(&start, None, &query.stop, |entry| {
        let path = entry.path();
        let is_wanted = || included.as_ref().is_none_or(|glob| glob.takes(path, &start));
        if entry.file_type().is_some_and(|kind| kind.is_file()) && is_wanted() {
            look(&start, start.path_from_root(path), &matcher, query, &best);
        }
        true
    })?;
    let mut best = best.into_inner().unwrap_or_else(PoisonError::into_inner);
    best.prune();
    let hits = best.files.iter().flat_map(|file| file.value.iter().map(|(line, text)| (&file.path, *line, text)));
    let items = hits.take(query.limit).map(|(path, line, text)| Hit { path: shown(path), line, text: text.clone() });
    Ok(Found { items: items.collect(), is_cut: best.hits > query.limit })
}

fn matcher(pattern: &str) -> Result<RegexMatcher, SearchError> {
    RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .build(pattern)
        .map_err(|error| SearchError::Pattern { pattern: pattern.to_owned(), problem: error.to_string() })
}

fn look(start: &Start, path: &Path, matcher: &RegexMatcher, query: &Query<'_>, best: &Mutex<Best>) {
    let best = || best.lock().unwrap_or_else(PoisonError::into_inner);
    // It went meanwhile, or may not be read.
    let Ok(Some(file)) = start.folder.file_itself(path) else { return };
    let changed = file.metadata().ok().and_then(|about| about.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
    if best().oldest.is_some_and(|oldest| changed < oldest) {
        return;
    }
    let mut lines = Lines { hits: Vec::new(), is_binary: false };
    // One more than is wanted tells that there are more.
    let most = u64::try_from(query.limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP_LIMIT))
        .max_matches(Some(most))
        .build();
    let text = Stoppable { file, stop: &query.stop };
    if searcher.search_reader(matcher, text, &mut lines).is_ok() && !lines.is_binary && !lines.hits.is_empty() {
        best().add(Meeting { path: path.to_owned(), changed, value: lines.hits });
    }
}

/// The latest files with hits: as many as are needed, and not many more, however much is found.
struct Best {
    files: Vec<Meeting<Vec<(u64, String)>>>,
    hits: usize,
    limit: usize,
    /// What was changed before cannot be shown any more.
    oldest: Option<SystemTime>,
}

impl Best {
    fn add(&mut self, file: Meeting<Vec<(u64, String)>>) {
        self.hits += file.value.len();
        self.files.push(file);
        if self.hits > self.limit.saturating_mul(4).saturating_add(1000) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        self.files.sort_by(Meeting::latest_first);
        let (mut sum, mut kept) = (0, 0);
        while kept < self.files.len() && sum <= self.limit {
            sum += self.files[kept].value.len();
            kept += 1;
        }
        self.files.truncate(kept);
        self.hits = sum;
        if sum > self.limit {
            self.oldest = self.files.last().map(|file| file.changed);
        }
    }
}

/// Hits of one file.
struct Lines {
    hits: Vec<(u64, String)>,
    is_binary: bool,
}

impl Sink for Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.hits.push((found.line_number().unwrap_or_default(), line(found.bytes())));
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_binary |= end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// Without its end, and not longer than anybody reads.
fn line(bytes: &[u8]) -> String {
    // A character has at most four bytes; what is beyond is not even decoded.
    let head = &bytes[..bytes.len().min(4 * (LONGEST_LINE + 1))];
    let text = String::from_utf8_lossy(head);
    let text = text.trim_end_matches(['\n', '\r']);
    match text.char_indices().nth(LONGEST_LINE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A long file must not hold up a search that is to stop.
struct Stoppable<'a> {
    file: File,
    stop: &'a AtomicBool,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

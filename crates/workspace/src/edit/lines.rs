//! Where a run of lines stands in a text, by ever looser likeness. Shared by edits and patches.
//!
//! A search is linear in the text: lines are compared by the hash of what a likeness leaves of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;

/// How alike lines must be. Later ones take all that the earlier ones do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    Exact,
    /// But for white space at the end.
    Trailing,
    /// But for white space on both ends.
    Indent,
    /// Any run of white space is as good as another.
    Spaces,
    /// Typographic quotes, dashes and spaces are as good as plain ones.
    Signs,
}

impl Likeness {
    pub(crate) const ALL: [Likeness; 5] =
        [Likeness::Exact, Likeness::Trailing, Likeness::Indent, Likeness::Spaces, Likeness::Signs];

    fn of(self, line: &str) -> Cow<'_, str> {
        match self {
            Likeness::Exact => Cow::Borrowed(line),
            Likeness::Trailing => Cow::Borrowed(line.trim_end()),
            Likeness::Indent => Cow::Borrowed(line.trim()),
            Likeness::Spaces => Cow::Owned(line.split_whitespace().collect::<Vec<_>>().join(" ")),
            Likeness::Signs => {
                let plain: String = line.chars().map(plain).collect();
                Cow::Owned(plain.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn hash(self, line: &str) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(self.of(line).as_ref())
    }
}

/// The sign that a keyboard has for it.
pub(super) fn plain(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

#[derive(Debug, Clone, Copy)]
struct Line {
    start: usize,
    /// Without its line end.
    end: usize,
    next: usize,
}

/// A text by its lines.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    lines: Vec<Line>,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let mut lines = Vec::with_capacity(text.len() / 32);
        let mut start = 0;
        for piece in text.split_inclusive('\n') {
            let next = start + piece.len();
            let bare = piece.strip_suffix('\n').map_or(piece, |bare| bare.strip_suffix('\r').unwrap_or(bare));
            lines.push(Line { start, end: start + bare.len(), next });
            start = next;
        }
        Lines { text, lines }
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Without its line end.
    pub(crate) fn line(&self, n: usize) -> &'a str {
        let line = self.lines[n];
        &self.text[line.start..line.end]
    }

    /// Where these lines stand in the text, with the line end of the last.
    pub(crate) fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        let start = self.lines.get(lines.start).map_or(self.text.len(), |line| line.start);
        let end = if lines.is_empty() { start } else { self.lines[lines.end - 1].next };
        start..end
    }

    /// These lines as they are, line ends included.
    pub(crate) fn text(&self, lines: &Range<usize>) -> &'a str {
        &self.text[self.bytes(lines)]
    }

    /// Where the line ends, without its line end.
    pub(crate) fn end(&self, n: usize) -> usize {
        self.lines[n].end
    }

    /// First lines of all places, within these lines, where the wanted lines stand.
    pub(crate) fn find(&self, within: Range<usize>, wanted: &[&str], likeness: Likeness) -> Vec<usize> {
        if wanted.is_empty() || wanted.len() > within.len() {
            return Vec::new();
        }
        let hashes: Vec<u64> = wanted.iter().map(|line| likeness.hash(line)).collect();
        let steps = borders(&hashes);
        let (mut places, mut matched) = (Vec::new(), 0);
        for n in within {
            let hash = likeness.hash(self.line(n));
            while matched > 0 && hashes[matched] != hash {
                matched = steps[matched - 1];
            }
            if hashes[matched] == hash {
                matched += 1;
            }
            if matched == hashes.len() {
                places.push(n + 1 - matched);
                matched = steps[matched - 1];
            }
        }
        // Two lines may have one hash. Where there are two places nothing is replaced anyway.
        match places[..] {
            [only] if !self.stands(only, wanted, likeness) => Vec::new(),
            _ => places,
        }
    }

    fn stands(&self, at: usize, wanted: &[&str], likeness: Likeness) -> bool {
        wanted.iter().enumerate().all(|(n, line)| likeness.of(line) == likeness.of(self.line(at + n)))
    }

    /// The line around which most of the wanted lines stand, if any does.
    pub(crate) fn nearest(&self, wanted: &[&str]) -> Option<usize> {
        let mut places: HashMap<u64, usize> = HashMap::new();
        for (n, line) in wanted.iter().enumerate().filter(|(_, line)| line.trim().len() > 2) {
            places.entry(Likeness::Signs.hash(line)).or_insert(n);
        }
        if places.is_empty() {
            return None;
        }
        let mut votes: HashMap<usize, usize> = HashMap::new();
        for n in 0..self.len() {
            if let Some(at) = places.get(&Likeness::Signs.hash(self.line(n))) {
                *votes.entry(n.saturating_sub(*at)).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(line, votes)| (*votes, std::cmp::Reverse(*line))).map(|(line, _)| line)
    }
}

/// For each beginning of the pattern, how long its longest border is (Knuth, Morris, Pratt).
fn borders(pattern: &[u64]) -> Vec<usize> {
    let mut borders = vec![0; pattern.len()];
    let mut length = 0;
    for n in 1..pattern.len() {
        while length > 0 && pattern[n] != pattern[length] {
            length = borders[length - 1];
        }
        if pattern[n] == pattern[length] {
            length += 1;
        }
        borders[n] = length;
    }
    borders
}

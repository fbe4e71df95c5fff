//! Replacing a piece of text: exactly where it stands, else where it stands but for white space, and never where two
//! places could be meant.
//!
//! Everything outside the replaced place stays byte for byte, a byte order mark and a missing last line end included.
//! Lines that are put in end as those of the place do, since nobody who reads a file sees which it is.

mod ending;
mod fit;
mod lines;
mod loose;

use std::ops::Range;

pub(crate) use ending::{Ending, lf};
pub(crate) use fit::Fit;
pub(crate) use lines::{Likeness, Lines};

use ending::Unified;

/// Windows editors put it before a text; models never see it.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';
/// Line numbers that an error names.
const SHOWN: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    One,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub text: String,
    /// Places that were replaced.
    pub places: usize,
    /// The text was not there to the letter; a place that differs in white space or typographic signs only was taken.
    pub is_tolerant: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the old text is empty; to make a new file, write it")]
    Empty,
    #[error("the old text and the new text are the same; nothing would change")]
    Same,
    #[error("the old text is not in the file{}; read the file again and copy the lines exactly", similar(*.near))]
    NotFound {
        /// The line around which most of it stands, from 1.
        near: Option<usize>,
    },
    #[error(
        "the old text is in the file {count} times ({}); add lines around it until it is in one place, or replace all",
        numbers(.lines, *.count)
    )]
    Ambiguous {
        count: usize,
        /// Where the first of them begin, from 1.
        lines: Vec<usize>,
    },
}

fn similar(line: Option<usize>) -> String {
    line.map(|line| format!(" (the most similar place is around line {line})")).unwrap_or_default()
}

pub(crate) fn numbers(lines: &[usize], count: usize) -> String {
    let named: Vec<_> = lines.iter().map(usize::to_string).collect();
    let more = if count > lines.len() { ", …" } else { "" };
    format!("at lines {}{more}", named.join(", "))
}

/// A place, and what is put there.
#[derive(Debug)]
struct Swap {
    bytes: Range<usize>,
    new: String,
}

pub fn replace(text: &str, old: &str, new: &str, places: Places) -> Result<Edited, EditError> {
    let (mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (&text[..BYTE_ORDER_MARK.len_utf8()], body),
        None => ("", text),
    };
    let bare = |text: &'_ str| -> String { text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).to_owned() };
    let (old, new) = (bare(old), bare(new));
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    if old == new {
        return Err(EditError::Same);
    }
    let (swaps, is_tolerant) = match exact(body, &old, &new, places)? {
        swaps if !swaps.is_empty() => (swaps, false),
        _ if places == Places::All => return Err(not_found(body, &old)),
        _ => (vec![loose::find(body, &old, &new)?.ok_or_else(|| not_found(body, &old))?], true),
    };
    let edited = swapped(mark, body, &swaps);
    if edited == text {
        return Err(EditError::Same);
    }
    Ok(Edited { text: edited, places: swaps.len(), is_tolerant })
}

fn swapped(mark: &str, body: &str, swaps: &[Swap]) -> String {
    let grown: usize = swaps.iter().map(|swap| swap.new.len()).sum();
    let mut out = String::with_capacity(mark.len() + body.len() + grown);
    out.push_str(mark);
    let mut at = 0;
    for swap in swaps {
        out.push_str(&body[at..swap.bytes.start]);
        out.push_str(&swap.new);
        at = swap.bytes.end;
    }
    out.push_str(&body[at..]);
    out
}

/// Where the text stands to the letter, line ends aside.
fn exact(body: &str, old: &str, new: &str, places: Places) -> Result<Vec<Swap>, EditError> {
    let (old_lf, new_lf) = (lf(old), lf(new));
    if old_lf == new_lf {
        // Line ends are what is to change.
        let found = all(body, old, places)?;
        return Ok(found.into_iter().map(|bytes| Swap { bytes, new: new.to_owned() }).collect());
    }
    let unified = Unified::of(body);
    let found = all(&unified.text, &old_lf, places)?;
    let mut most = None;
    let swap = |bytes: Range<usize>| {
        let bytes = unified.original(&bytes);
        let ending = Ending::of(&body[bytes.clone()]).or_else(|| *most.get_or_insert_with(|| Ending::of(body)));
        Swap { new: ending.map_or(new.into(), |ending| ending.write(new)).into_owned(), bytes }
    };
    Ok(found.into_iter().map(swap).collect())
}

fn all(text: &str, old: &str, places: Places) -> Result<Vec<Range<usize>>, EditError> {
    let Some(first) = text.find(old) else { return Ok(Vec::new()) };
    let range = |at: usize| at..at + old.len();
    if places == Places::One {
        // Two places may overlap.
        let beyond = first + old.chars().next().map_or(1, char::len_utf8);
        let Some(second) = text[beyond..].find(old).map(|at| beyond + at) else { return Ok(vec![range(first)]) };
        let apart = text.matches(old).count();
        let places = match apart {
            1 => vec![first, second],
            _ => text.match_indices(old).take(SHOWN).map(|(at, _)| at).collect(),
        };
        return Err(EditError::Ambiguous { count: apart.max(2), lines: line_numbers(text, &places) });
    }
    Ok(text.match_indices(old).map(|(at, _)| range(at)).collect())
}

/// Numbers of the lines of these places, which are in order.
fn line_numbers(text: &str, places: &[usize]) -> Vec<usize> {
    let (mut at, mut line) = (0, 1);
    let mut number = |place: usize| {
        line += text.as_bytes()[at..place].iter().filter(|byte| **byte == b'\n').count();
        at = place;
        line
    };
    places.iter().map(|place| number(*place)).collect()
}

fn not_found(body: &str, old: &str) -> EditError {
    let wanted: Vec<&str> = old.lines().collect();
    EditError::NotFound { near: Lines::of(body).nearest(&wanted).map(|line| line + 1) }
}

#[cfg(test)]
mod tests;

//! Which kind of patch a text is, without what is around it.

use super::{Patch, PatchError, begin, unified};

/// A line of the patch, and its number in the text as it was given, from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) text: &'a str,
}

pub(super) fn parse(text: &str) -> Result<Patch, PatchError> {
    let lines: Vec<Line<'_>> = text.split('\n').enumerate().map(|(n, text)| Line { number: n + 1, text }).collect();
    let lines = bare(&lines);
    let files = match lines.iter().position(|line| line.text.trim() == "*** Begin Patch") {
        Some(at) => begin::files(&lines[at + 1..])?,
        None if lines.iter().any(|line| starts_file(line.text)) => unified::files(lines)?,
        None => {
            let problem = "it has neither `*** Begin Patch` nor the `---` and `+++` lines of a unified diff";
            return Err(PatchError(problem.to_owned()));
        }
    };
    match files.is_empty() {
        true => Err(PatchError("it changes no file".to_owned())),
        false => Ok(Patch { files }),
    }
}

fn starts_file(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with("diff --git ")
}

/// Without a fence or a here-document around it.
fn bare<'l, 'a>(lines: &'l [Line<'a>]) -> &'l [Line<'a>] {
    let is_blank = |line: &Line<'_>| line.text.trim().is_empty();
    let Some(first) = lines.iter().position(|line| !is_blank(line)) else { return &[] };
    // A space alone is an empty line that stays.
    let last = lines.iter().rposition(|line| !without_cr(line.text).is_empty()).map_or(lines.len(), |at| at + 1);
    let lines = &lines[first..last];
    let (head, tail) = (lines[0].text.trim(), lines[lines.len() - 1].text.trim());
    let ending = match head.split_once("<<") {
        Some((_, word)) => word.trim_start_matches('-').trim().trim_matches(['\'', '"']),
        None if head.starts_with("```") || head.starts_with("~~~") => &head[..3],
        None => return lines,
    };
    match lines {
        [_, inner @ .., _] if tail == ending => bare(inner),
        [_, inner @ ..] => inner,
        [] => lines,
    }
}

/// A line of a hunk, without the CR of a line end: files are compared without it too.
pub(super) fn without_cr(text: &str) -> &str {
    text.strip_suffix('\r').unwrap_or(text)
}

/// `-12,3 +14,5` of a hunk's head: where the old lines start and how many they are. `None` if it is no such thing.
pub(super) fn old_range(head: &str) -> Option<(usize, usize)> {
    let old = head.trim().strip_prefix('-')?.split_whitespace().next()?;
    match old.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((old.parse().ok()?, 1)),
    }
}

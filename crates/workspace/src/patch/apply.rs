//! Putting hunks into a text.

use std::ops::Range;

use super::parse::without_cr;
use super::{Hunk, LastEnd, PatchError};
use crate::edit::{BYTE_ORDER_MARK, Ending, Fit, Likeness, Lines, numbers};

/// Line numbers that an error names.
const SHOWN: usize = 10;

/// A hunk where it belongs.
struct Placed<'h> {
    hunk: &'h Hunk,
    lines: Range<usize>,
    old: &'h [String],
    new: &'h [String],
}

/// The text with all hunks applied, or why not; a hunk that fits in two places is refused.
pub fn apply(text: &str, hunks: &[Hunk]) -> Result<String, PatchError> {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let lines = Lines::of(body);
    let mut placed: Vec<Placed<'_>> = Vec::new();
    let mut cursor = 0;
    for (n, hunk) in hunks.iter().enumerate() {
        let place = place(&lines, hunk, cursor, &placed)
            .map_err(|problem| PatchError(format!("change {} of {}: {problem}", n + 1, hunks.len())))?;
        cursor = place.lines.end;
        placed.push(place);
    }
    placed.sort_by_key(|place| (place.lines.start, place.lines.end));
    if let Some(pair) = placed.windows(2).find(|pair| pair[0].lines.end > pair[1].lines.start) {
        return Err(PatchError(format!("two of its changes are of line {}", pair[1].lines.start + 1)));
    }
    let mut out = text[..text.len() - body.len()].to_owned();
    out.reserve(body.len());
    let mark = out.len();
    let (most, mut at) = (Ending::of(body), 0);
    for place in &placed {
        let bytes = lines.bytes(&place.lines);
        out.push_str(&body[at..bytes.start]);
        put(&mut out, mark, &lines, place, Ending::of(&body[bytes.clone()]).or(most).unwrap_or(Ending::Lf));
        at = bytes.end;
    }
    out.push_str(&body[at..]);
    if let Some(last) = placed.last().filter(|last| last.lines.end == lines.len()) {
        end(&mut out, mark, body, last.hunk.last_end);
    }
    Ok(out)
}

fn put(out: &mut String, mark: usize, lines: &Lines<'_>, place: &Placed<'_>, ending: Ending) {
    let line_end = match ending {
        Ending::Lf => "\n",
        Ending::CrLf => "\r\n",
    };
    let found = place.lines.clone().map(|n| lines.line(n));
    let fit = Fit::of(place.old.iter().map(String::as_str).zip(found));
    let (head, tail) = same(place);
    if out.len() > mark && !out.ends_with('\n') {
        out.push_str(line_end);
    }
    // What stays is the file's own, line ends included.
    out.push_str(lines.text(&(place.lines.start..place.lines.start + head)));
    for line in &place.new[head..place.new.len() - tail] {
        if out.len() > mark && !out.ends_with('\n') {
            out.push_str(line_end);
        }
        out.push_str(&fit.apply(without_cr(line)));
        out.push_str(line_end);
    }
    out.push_str(lines.text(&(place.lines.end - tail..place.lines.end)));
}

/// How many lines stay at the beginning and at the end of a hunk.
fn same(place: &Placed<'_>) -> (usize, usize) {
    let (old, new) = (place.old, place.new);
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    (head, tail)
}

/// Gives the last line its end, or takes it.
fn end(out: &mut String, mark: usize, body: &str, last_end: LastEnd) {
    let is_wanted = match last_end {
        LastEnd::Kept => body.is_empty() || body.ends_with('\n'),
        LastEnd::Added => true,
        LastEnd::Removed => false,
    };
    match (out.ends_with('\n'), is_wanted) {
        (true, false) => {
            out.pop();
            if out.ends_with('\r') {
                out.pop();
            }
        }
        (false, true) if out.len() > mark => {
            out.push_str(if Ending::of(body) == Some(Ending::CrLf) { "\r\n" } else { "\n" });
        }
        _ => {}
    }
}

fn place<'h>(lines: &Lines<'_>, hunk: &'h Hunk, cursor: usize, placed: &[Placed<'_>]) -> Result<Placed<'h>, String> {
    if hunk.old.is_empty() {
        let at = insertion(lines, hunk, cursor)?;
        return Ok(Placed { hunk, lines: at..at, old: &hunk.old, new: &hunk.new });
    }
    if let Some(at) = find(lines, hunk, &hunk.old, cursor, placed)? {
        return Ok(Placed { hunk, lines: at..at + hunk.old.len(), old: &hunk.old, new: &hunk.new });
    }
    // Models like to end a change with an empty line that is not there.
    if let ([old @ .., old_end], [new @ .., new_end]) = (&hunk.old[..], &hunk.new[..])
        && old_end.is_empty()
        && new_end.is_empty()
        && !old.is_empty()
        && let Some(at) = find(lines, hunk, old, cursor, placed)?
    {
        return Ok(Placed { hunk, lines: at..at + old.len(), old, new });
    }
    let wanted: Vec<&str> = hunk.old.iter().map(String::as_str).collect();
    let near = lines.nearest(&wanted).map(|line| format!("; the most similar place is around line {}", line + 1));
    let first = hunk.old.iter().find(|line| !line.trim().is_empty()).map_or("", |line| line.trim());
    Err(format!(
        "its lines from `{}` on are not in the file{}; read the file again and copy the lines exactly",
        first.chars().take(80).collect::<String>(),
        near.unwrap_or_default()
    ))
}

/// Where lines go that say nothing of what stands there.
fn insertion(lines: &Lines<'_>, hunk: &Hunk, cursor: usize) -> Result<usize, String> {
    match (&after_near(lines, hunk, cursor)[..], hunk.line) {
        ([at], _) => Ok(*at),
        ([], _) if !hunk.near.is_empty() => Err(format!("`{}` is not in the file", hunk.near.join("` … `"))),
        ([], Some(line)) => Ok(line.min(lines.len())),
        ([], None) => Ok(lines.len()),
        (places, _) => Err(ambiguous(places)),
    }
}

fn find(
    lines: &Lines<'_>,
    hunk: &Hunk,
    old: &[String],
    cursor: usize,
    placed: &[Placed<'_>],
) -> Result<Option<usize>, String> {
    let wanted: Vec<&str> = old.iter().map(String::as_str).collect();
    let near = after_near(lines, hunk, cursor);
    // White space alone stands everywhere.
    let is_blank = wanted.iter().all(|line| line.trim().is_empty());
    for likeness in if is_blank { &Likeness::ALL[..1] } else { &Likeness::ALL[..] } {
        let all = lines.find(0..lines.len(), &wanted, *likeness);
        let is_free = |at: &usize| placed.iter().all(|p| p.lines.end <= *at || at + wanted.len() <= p.lines.start);
        let after: Vec<usize> = all.iter().copied().filter(|at| *at >= cursor).collect();
        let mut places = match after.is_empty() {
            true => all.into_iter().filter(is_free).collect(),
            false => after,
        };
        if hunk.is_last && places.iter().any(|at| at + wanted.len() == lines.len()) {
            places.retain(|at| at + wanted.len() == lines.len());
        }
        if let Some(told) = hunk.line.and_then(|line| line.checked_sub(1)).filter(|told| places.contains(told)) {
            return Ok(Some(told));
        }
        if places.len() > 1 && !near.is_empty() {
            let firsts = near.iter().filter_map(|from| places.iter().copied().find(|at| at >= from));
            let mut firsts: Vec<usize> = firsts.collect();
            firsts.dedup();
            places = if firsts.is_empty() { places } else { firsts };
        }
        match places[..] {
            [] => {}
            [at] => return Ok(Some(at)),
            ref places => return Err(ambiguous(places)),
        }
    }
    Ok(None)
}

fn ambiguous(places: &[usize]) -> String {
    let shown: Vec<usize> = places.iter().take(SHOWN).map(|line| line + 1).collect();
    let numbers = numbers(&shown, places.len());
    format!("it fits in {} places ({numbers}); add lines around it until it fits in one", places.len())
}

/// Lines behind each place where the lines that say where to look stand, one after the other.
fn after_near(lines: &Lines<'_>, hunk: &Hunk, cursor: usize) -> Vec<usize> {
    let Some((last, outer)) = hunk.near.split_last() else { return Vec::new() };
    let mut from = cursor;
    for near in outer {
        from = lines.find(from..lines.len(), &[near], Likeness::Signs).first().map_or(from, |at| at + 1);
    }
    let found = lines.find(from..lines.len(), &[last], Likeness::Signs);
    // Within the first of the outer ones, the first is meant.
    let meant = if outer.is_empty() { found.len() } else { found.len().min(1) };
    found[..meant].iter().map(|at| at + 1).collect()
}

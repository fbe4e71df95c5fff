//! A unified diff that `git apply` takes, made from the two texts of a file.
//!
//! Lines end at LF alone, as git has it: a CR before one belongs to the line. The cost is bounded by the texts and not
//! by a clock, so that every telling of a change is the same.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Both texts together. What is longer nobody reads as a diff.
const TEXT_LIMIT: u64 = 1024 * 1024;
/// Lines of one side times lines of the other that are compared, at most; beyond that the lines between the first and
/// the last difference are told as replaced, which is true as well. Texts that are all different never come here: a
/// line that only one side has is not compared.
const WORK_LIMIT: usize = 16_000_000;
const CONTEXT: usize = 3;

/// What a diff says of the file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Created,
    Updated,
    Deleted,
}

/// Whether texts of these sizes are worth reading for a diff.
pub(super) fn fits(before: u64, after: u64) -> bool {
    before.saturating_add(after) <= TEXT_LIMIT
}

/// `None` if nothing changed, or if the texts are too long or no texts.
pub(super) fn unified(path: &str, fate: Fate, before: &str, after: &str) -> Option<String> {
    if !fits(before.len() as u64, after.len() as u64) || before.contains('\0') || after.contains('\0') {
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let runs = runs(&old, &new);
    let hunks = hunks(&runs);
    if hunks.is_empty() && fate == Fate::Updated {
        return None;
    }
    let mut out = header(path, fate, hunks.is_empty());
    for hunk in &hunks {
        write_hunk(hunk, &old, &new, &mut out);
    }
    Some(out)
}

/// The lines above the hunks. Only a file that is made or removed empty needs git's own: it has no hunk.
pub(super) fn header(path: &str, fate: Fate, is_empty: bool) -> String {
    let (a, b) = (name("a/", path), name("b/", path));
    let both = || format!("diff --git {} {}", a.trim_end_matches('\t'), b.trim_end_matches('\t'));
    match (fate, is_empty) {
        (Fate::Created, true) => format!("{}\nnew file mode 100644\n", both()),
        (Fate::Deleted, true) => format!("{}\ndeleted file mode 100644\n", both()),
        (Fate::Created, false) => format!("--- /dev/null\n+++ {b}\n"),
        (Fate::Deleted, false) => format!("--- {a}\n+++ /dev/null\n"),
        (Fate::Updated, _) => format!("--- {a}\n+++ {b}\n"),
    }
}

/// As git writes it: quoted where a sign would end the line or the name, and a tab behind a name with a space in it.
fn name(prefix: &str, path: &str) -> String {
    let needs_quotes = |c: char| c.is_ascii_control() || c == '"' || c == '\\';
    if !path.contains(needs_quotes) {
        let tab = if path.contains(' ') { "\t" } else { "" };
        return format!("{prefix}{path}{tab}");
    }
    let mut out = format!("\"{prefix}");
    for c in path.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_ascii_control() => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\{:03o}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Lines of the old text and the lines of the new one that stand in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    old: Range<usize>,
    new: Range<usize>,
}

fn runs(old: &[&str], new: &[&str]) -> Vec<Run> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let mut runs = Vec::new();
    let (mut at_old, mut at_new) = (head, head);
    for (same_old, same_new) in matches(&old[head..old_end], &new[head..new_end]) {
        let (same_old, same_new) = (head + same_old, head + same_new);
        if same_old > at_old || same_new > at_new {
            runs.push(Run { old: at_old..same_old, new: at_new..same_new });
        }
        (at_old, at_new) = (same_old + 1, same_new + 1);
    }
    if old_end > at_old || new_end > at_new {
        runs.push(Run { old: at_old..old_end, new: at_new..new_end });
    }
    runs
}

/// Pairs of places that hold the same line, in order.
fn matches(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let mut known: HashMap<&str, (u32, Sides)> = HashMap::new();
    for (lines, side) in [(old, Sides::Old), (new, Sides::New)] {
        for line in lines {
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let (_, sides) = known.entry(line).or_insert((next, side));
            if *sides != side {
                *sides = Sides::Both;
            }
        }
    }
    let shared = |lines: &[&str]| -> Vec<(u32, usize)> {
        let numbered = lines.iter().enumerate().map(|(at, line)| (known[line], at));
        numbered.filter(|((_, sides), _)| *sides == Sides::Both).map(|((id, _), at)| (id, at)).collect()
    };
    let (old, new) = (shared(old), shared(new));
    if old.len().saturating_mul(new.len()) > WORK_LIMIT {
        return Vec::new();
    }
    let ids = |side: &[(u32, usize)]| -> Vec<u32> { side.iter().map(|(id, _)| *id).collect() };
    let mut pairs = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &ids(&old), &ids(&new)) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            pairs.extend((0..len).map(|n| (old[old_index + n].1, new[new_index + n].1)));
        }
    }
    pairs
}

/// Which of the texts have a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    Old,
    New,
    Both,
}

/// Runs that are so close that their contexts touch, together.
fn hunks(runs: &[Run]) -> Vec<&[Run]> {
    runs.chunk_by(|one, next| next.old.start - one.old.end <= 2 * CONTEXT).collect()
}

fn write_hunk(hunk: &[Run], old: &[&str], new: &[&str], out: &mut String) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let before = first.old.start.min(CONTEXT);
    let after = (old.len() - last.old.end).min(CONTEXT);
    let old_lines = first.old.start - before..last.old.end + after;
    let new_lines = first.new.start - before..last.new.end + after;
    // Writing to a String cannot fail.
    let _ = writeln!(out, "@@ -{} +{} @@", place(&old_lines), place(&new_lines));
    let mut at = old_lines.start;
    for run in hunk {
        write_lines(' ', &old[at..run.old.start], out);
        write_lines('-', &old[run.old.clone()], out);
        write_lines('+', &new[run.new.clone()], out);
        at = run.old.end;
    }
    write_lines(' ', &old[at..old_lines.end], out);
}

/// A range without lines is named by the line before it.
fn place(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn write_lines(sign: char, lines: &[&str], out: &mut String) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

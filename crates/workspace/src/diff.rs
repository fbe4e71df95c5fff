//! What changed between two texts, as people and `git apply` read it.
//!
//! Lines end at LF alone, as git has it. The work is bounded: texts that are too different to be compared in time are
//! told as replaced, which is true as well.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// Nobody waits longer for a nicer diff.
const TIME_LIMIT: Duration = Duration::from_millis(250);
const CONTEXT: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// Unified, `a/<path>` and `b/<path>`, with `/dev/null` where there is no file. Empty if nothing changed.
    pub text: String,
    pub added: u64,
    pub removed: u64,
}

/// `None`: there is no file then.
pub fn unified(path: &str, before: Option<&str>, after: Option<&str>) -> Diff {
    let is_binary = [before, after].into_iter().flatten().any(|text| text.contains('\0'));
    if before == after {
        return Diff::default();
    }
    if is_binary {
        let (a, b) = names(path, before.is_some(), after.is_some());
        return Diff {
            text: format!("Binary files {} and {} differ\n", a.trim_end(), b.trim_end()),
            ..Diff::default()
        };
    }
    let old: Vec<&str> = before.unwrap_or_default().split_inclusive('\n').collect();
    let new: Vec<&str> = after.unwrap_or_default().split_inclusive('\n').collect();
    let mut diff = Diff { text: header(path, before, after), added: 0, removed: 0 };
    for group in group_diff_ops(operations(&old, &new), CONTEXT) {
        write_hunk(&mut diff, &group, &old, &new);
    }
    diff
}

fn operations<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<DiffOp> {
    // An edit leaves most of a file alone, and what is the same at both ends need not be numbered.
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    // Numbers compare faster than lines.
    let mut known: HashMap<&'a str, usize> = HashMap::new();
    let mut numbers = |lines: &[&'a str]| -> Vec<usize> {
        let number = |line: &&'a str| {
            let next = known.len();
            *known.entry(line).or_insert(next)
        };
        lines.iter().map(number).collect()
    };
    let (old, new) = (numbers(old), numbers(new));
    let same = |old_index, new_index, len| DiffOp::Equal { old_index, new_index, len };
    let mut operations = vec![same(0, 0, head)];
    operations.extend(
        capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + TIME_LIMIT))
            .into_iter()
            .map(|operation| moved(operation, head)),
    );
    operations.push(same(head + old.len(), head + new.len(), tail));
    operations.retain(|operation| !operation.old_range().is_empty() || !operation.new_range().is_empty());
    operations
}

/// The operation, so many lines further down in both texts.
fn moved(operation: DiffOp, by: usize) -> DiffOp {
    match operation {
        DiffOp::Equal { old_index, new_index, len } => {
            DiffOp::Equal { old_index: old_index + by, new_index: new_index + by, len }
        }
        DiffOp::Delete { old_index, old_len, new_index } => {
            DiffOp::Delete { old_index: old_index + by, old_len, new_index: new_index + by }
        }
        DiffOp::Insert { old_index, new_index, new_len } => {
            DiffOp::Insert { old_index: old_index + by, new_index: new_index + by, new_len }
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => {
            DiffOp::Replace { old_index: old_index + by, old_len, new_index: new_index + by, new_len }
        }
    }
}

fn write_hunk(diff: &mut Diff, group: &[DiffOp], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let range = |start: usize, end: usize| match end - start {
        // An empty side is named by the line before it.
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        diff.text,
        "@@ -{} +{} @@",
        range(first.old_range().start, last.old_range().end),
        range(first.new_range().start, last.new_range().end)
    );
    for op in group {
        if let DiffOp::Equal { .. } = op {
            old[op.old_range()].iter().for_each(|line| push(&mut diff.text, ' ', line));
            continue;
        }
        diff.removed += op.old_range().len() as u64;
        diff.added += op.new_range().len() as u64;
        old[op.old_range()].iter().for_each(|line| push(&mut diff.text, '-', line));
        new[op.new_range()].iter().for_each(|line| push(&mut diff.text, '+', line));
    }
}

fn push(out: &mut String, sign: char, line: &str) {
    out.push(sign);
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push_str("\n\\ No newline at end of file\n");
    }
}

/// The lines above the hunks. Only a file that is made or removed empty needs git's own: it has no hunk.
fn header(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let (a, b) = names(path, before.is_some(), after.is_some());
    match (before, after) {
        (None, Some("")) => format!("{}new file mode 100644\n", git_line(path)),
        (Some(""), None) => format!("{}deleted file mode 100644\n", git_line(path)),
        _ => format!("--- {a}\n+++ {b}\n"),
    }
}

/// What git begins a diff with that says more than what lines differ.
pub(crate) fn git_line(path: &str) -> String {
    let (a, b) = (name("a/", path), name("b/", path));
    format!("diff --git {} {}\n", a.trim_end_matches('\t'), b.trim_end_matches('\t'))
}

fn names(path: &str, was: bool, is: bool) -> (String, String) {
    let nothing = || "/dev/null".to_owned();
    let a = if was { name("a/", path) } else { nothing() };
    let b = if is { name("b/", path) } else { nothing() };
    (a, b)
}

/// As git writes it: quoted where a sign would end the line or the name, and a tab behind a name with a space in it.
fn name(prefix: &str, path: &str) -> String {
    if !path.contains(|c: char| c.is_ascii_control() || c == '"' || c == '\\') {
        return format!("{prefix}{path}{}", if path.contains(' ') { "\t" } else { "" });
    }
    let mut out = format!("\"{prefix}");
    for c in path.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_ascii_control() => drop(write!(out, "\\{:03o}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

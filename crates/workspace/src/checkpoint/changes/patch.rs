//! A change as git shows it: with its modes and links, where there is more to say of them than that a file is a file.

use super::raw::{Difference, Entry, Kind};
use crate::diff::{git_line, unified};

const PLAIN: u32 = 0o100_644;
const LINK: u32 = 0o120_000;
/// Digits of a name.
const SHORT: usize = 7;

/// `None` of what is no text, if there is nothing else to show.
pub(super) fn patch(
    path: &str,
    Difference { was, is, .. }: &Difference,
    before: Option<&str>,
    after: Option<&str>,
    is_text: bool,
) -> Option<String> {
    let is_same = matches!((was, is), (Some(was), Some(is)) if was.blob == is.blob);
    if !is_text && !is_same {
        return None;
    }
    let lines = |before: Option<&str>, after: Option<&str>| {
        let text = unified(path, before, after).text;
        // One that is empty says only that it came or went.
        if text.starts_with("--- ") { text } else { String::new() }
    };
    let head = git_line(path);
    Some(match (was.as_ref().map(mode), is.as_ref().map(mode)) {
        (None | Some(PLAIN), None | Some(PLAIN)) => unified(path, before, after).text,
        (None, Some(mode)) => format!("{head}new file mode {mode:o}\n{}", lines(None, after)),
        (Some(mode), None) => format!("{head}deleted file mode {mode:o}\n{}", lines(before, None)),
        // To git one went and another came.
        (Some(old), Some(new)) if (old == LINK) != (new == LINK) => format!(
            "{head}deleted file mode {old:o}\n{}{head}new file mode {new:o}\n{}",
            lines(before, None),
            lines(None, after)
        ),
        (Some(old), Some(new)) if old != new => {
            let lines = if is_same { String::new() } else { lines(before, after) };
            format!("{head}old mode {old:o}\nnew mode {new:o}\n{lines}")
        }
        (Some(LINK), Some(LINK)) => {
            let short =
                |side: &Option<Entry>| side.as_ref().map_or("", |e| e.blob.get(..SHORT).unwrap_or("")).to_owned();
            format!("{head}index {}..{} {LINK:o}\n{}", short(was), short(is), lines(before, after))
        }
        (Some(_), Some(_)) => lines(before, after),
    })
}

/// As git writes it down, which has two for files. It refuses a patch with any other.
fn mode(entry: &Entry) -> u32 {
    match entry.kind {
        Kind::Link => LINK,
        Kind::Program => 0o100_755,
        Kind::File => PLAIN,
    }
}

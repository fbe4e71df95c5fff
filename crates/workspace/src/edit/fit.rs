//! Lines that take a place, as the place has them, where the old text was given a little differently: a line that was
//! given and stays is the file's own, and new ones are indented as those around them.

use std::collections::HashMap;

/// How lines of the old text were found in the file.
#[derive(Debug)]
pub(crate) struct Fit<'a> {
    /// By the line as given. `None`: it was found in two shapes.
    lines: HashMap<&'a str, Option<&'a str>>,
    indents: HashMap<&'a str, &'a str>,
    /// Of the first line that is not blank: as given, as found.
    first: (&'a str, &'a str),
}

impl<'a> Fit<'a> {
    /// Learns from lines as they were given and as they were found.
    pub(crate) fn of(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut lines, mut indents) = (HashMap::new(), HashMap::new());
        let mut first = None;
        for (given, found) in pairs {
            let line = lines.entry(given).or_insert(Some(found));
            *line = line.filter(|line| *line == found);
            if !given.trim().is_empty() {
                let pair = (indent(given), indent(found));
                indents.entry(pair.0).or_insert(pair.1);
                first.get_or_insert(pair);
            }
        }
        Fit { lines, indents, first: first.unwrap_or_default() }
    }

    /// A new line, as the file would have it.
    pub(crate) fn apply(&self, line: &str) -> String {
        if let Some(Some(found)) = self.lines.get(line) {
            return (*found).to_owned();
        }
        if line.trim().is_empty() {
            return line.to_owned();
        }
        let given = indent(line);
        format!("{}{}", self.found(given), &line[given.len()..])
    }

    fn found(&self, given: &str) -> String {
        let shorter = given.char_indices().map(|(at, _)| &given[..at]).rev();
        for start in std::iter::once(given).chain(shorter) {
            if let Some(found) = self.indents.get(start) {
                return format!("{found}{}", converted(&given[start.len()..], start, found));
            }
        }
        // Less than any that is known: the block was moved as a whole.
        let (before, after) = self.first;
        match (after.strip_suffix(before), before.strip_suffix(after)) {
            (Some(added), _) => format!("{added}{given}"),
            (None, Some(cut)) => given.strip_prefix(cut).unwrap_or_default().to_owned(),
            (None, None) => given.to_owned(),
        }
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// Further indentation, in tabs where spaces were found as tabs, or the other way round.
fn converted(rest: &str, given: &str, found: &str) -> String {
    let is_all = |text: &str, sign: char| !text.is_empty() && text.chars().all(|c| c == sign);
    if is_all(rest, ' ') && is_all(given, ' ') && is_all(found, '\t') && given.len().is_multiple_of(found.len()) {
        let unit = given.len() / found.len();
        if rest.len().is_multiple_of(unit) {
            return "\t".repeat(rest.len() / unit);
        }
    }
    if is_all(rest, '\t') && is_all(given, '\t') && is_all(found, ' ') && found.len().is_multiple_of(given.len()) {
        return " ".repeat(rest.len() * (found.len() / given.len()));
    }
    rest.to_owned()
}

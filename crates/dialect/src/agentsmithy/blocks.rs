//! The text that `replace_in_file` takes: blocks of what to search and what to put there.
//!
//! A line of the text itself may look like a marker, and there is no way to quote one; such texts cannot be written so.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) old: String,
    pub(super) new: String,
}

const SEARCH: &str = "------- SEARCH";
const DIVIDER: &str = "=======";
const REPLACE: &str = "+++++++ REPLACE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Search,
    Divider,
    Replace,
}

/// `None` if a text has a line that would be read as a marker.
pub(super) fn write(replacements: &[Replacement]) -> Option<String> {
    let mut lines = Vec::new();
    for Replacement { old, new } in replacements {
        if old.split('\n').chain(new.split('\n')).any(|line| marker(line).is_some()) {
            return None;
        }
        lines.push(SEARCH);
        lines.extend((!old.is_empty()).then_some(old.as_str()));
        lines.push(DIVIDER);
        lines.extend((!new.is_empty()).then_some(new.as_str()));
        lines.push(REPLACE);
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// `None` if the text is written in another way, as a patch for one.
pub(super) fn read(text: &str) -> Option<Vec<Replacement>> {
    let (mut replacements, mut lines, mut old) = (Vec::new(), Vec::new(), None);
    let mut expected = Marker::Search;
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        let Some(marker) = marker(line) else {
            match (expected, line.trim().is_empty()) {
                (Marker::Search, true) => {}
                (Marker::Search, false) => return None,
                (Marker::Divider | Marker::Replace, _) => lines.push(line),
            }
            continue;
        };
        if marker != expected {
            return None;
        }
        let held = std::mem::take(&mut lines).join("\n");
        expected = match marker {
            Marker::Search => Marker::Divider,
            Marker::Divider => {
                old = Some(held);
                Marker::Replace
            }
            Marker::Replace => {
                replacements.push(Replacement { old: old.take().unwrap_or_default(), new: held });
                Marker::Search
            }
        };
    }
    (expected == Marker::Search && !replacements.is_empty()).then_some(replacements)
}

/// As their reader takes them: three signs or more, and another pair of signs for the outer two.
fn marker(line: &str) -> Option<Marker> {
    let line = line.trim_end();
    let line = line.strip_suffix('>').filter(|rest| rest.ends_with(['H', 'E'])).unwrap_or(line);
    let signs = line.chars().next()?;
    let rest = line.trim_start_matches(signs);
    match (signs, rest, line.len() - rest.len()) {
        ('-' | '<', " SEARCH", 3..) => Some(Marker::Search),
        ('=', "", 3..) => Some(Marker::Divider),
        ('+' | '>', " REPLACE", 3..) => Some(Marker::Replace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_block_is_written_as_their_tool_takes_it() {
        let replacement = Replacement { old: "print(1)".into(), new: "print(2)".into() };
        let text = "------- SEARCH\nprint(1)\n=======\nprint(2)\n+++++++ REPLACE";
        assert_eq!(write(std::slice::from_ref(&replacement)).unwrap(), text);
        assert_eq!(read(text), Some(vec![replacement.clone()]));
        assert_eq!(read("<<< SEARCH>\nprint(1)\n===\nprint(2)\n>>>> REPLACE\n"), Some(vec![replacement]));
        assert_eq!(read("*** Begin Patch\n*** End Patch"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(texts in prop::collection::vec(("[-=+<> SEARCHPL\n\r]{0,24}", "[-=+ REPLAC\n]{0,24}"), 1..4)) {
            let replacements: Vec<_> = texts.into_iter().map(|(old, new)| Replacement { old, new }).collect();
            if let Some(text) = write(&replacements) {
                prop_assert_eq!(read(&text), Some(replacements));
            }
        }
    }
}

//! Finding a text that is not there to the letter: by whole lines, ever looser, then as a piece of lines.
//!
//! A step takes a place only if it is the only one it finds; a step that finds two ends the search, since a looser one
//! would find them too.

use super::{EditError, Ending, Fit, Likeness, Lines, SHOWN, Swap, lf, lines::plain};

pub(super) fn find(body: &str, old: &str, new: &str) -> Result<Option<Swap>, EditError> {
    // White space alone stands everywhere.
    if old.trim().is_empty() {
        return Ok(None);
    }
    let lines = Lines::of(body);
    let wanted: Vec<&str> = old.lines().collect();
    for likeness in Likeness::ALL {
        match lines.find(0..lines.len(), &wanted, likeness)[..] {
            [] => {}
            [at] => return Ok(Some(by_lines(body, &lines, at, &wanted, Texts { old, new }))),
            ref places => return Err(ambiguous(places)),
        }
    }
    piece(body, old, new)
}

fn ambiguous(places: &[usize]) -> EditError {
    EditError::Ambiguous { count: places.len(), lines: places.iter().take(SHOWN).map(|line| line + 1).collect() }
}

#[derive(Clone, Copy)]
struct Texts<'a> {
    old: &'a str,
    new: &'a str,
}

fn by_lines(body: &str, lines: &Lines<'_>, at: usize, wanted: &[&str], texts: Texts<'_>) -> Swap {
    let place = at..at + wanted.len();
    let fit = Fit::of(wanted.iter().enumerate().map(|(n, line)| (*line, lines.line(at + n))));
    let mut bytes = lines.bytes(&place);
    let ends_line = lines.end(place.end - 1) < bytes.end;
    let mut new: Vec<String> = lf(texts.new).split('\n').map(|line| fit.apply(line)).collect();
    match texts.old.ends_with('\n') {
        // The last line of the file may have no end; it gets none.
        true if !ends_line && new.last().is_some_and(String::is_empty) => drop(new.pop()),
        true => {}
        false => bytes.end = lines.end(place.end - 1),
    }
    let ending = Ending::of(&body[bytes.clone()]).or_else(|| Ending::of(body));
    let new = new.join("\n");
    Swap { new: ending.map(|ending| ending.write(&new).into_owned()).unwrap_or(new), bytes }
}

/// A text that begins or ends within a line, where white space or signs differ.
fn piece(body: &str, old: &str, new: &str) -> Result<Option<Swap>, EditError> {
    let (text, starts) = simple(body);
    let (old, _) = simple(old);
    let Some(first) = text.find(&old) else { return Ok(None) };
    let beyond = first + old.chars().next().map_or(1, char::len_utf8);
    if let Some(second) = text[beyond..].find(&old) {
        let places = [first, beyond + second];
        return Err(EditError::Ambiguous {
            count: text.matches(&old).count().max(2),
            lines: super::line_numbers(&text, &places),
        });
    }
    let last = starts[first + old.len() - 1];
    let run = body[last..].len() - body[last..].trim_start_matches(is_space).len();
    let end = if run > 0 { last + run } else { last + body[last..].chars().next().map_or(0, char::len_utf8) };
    let bytes = starts[first]..end;
    let ending = Ending::of(&body[bytes.clone()]).or_else(|| Ending::of(body));
    Ok(Some(Swap { new: ending.map_or(new.into(), |ending| ending.write(new)).into_owned(), bytes }))
}

fn is_space(c: char) -> bool {
    c != '\n' && (c == '\r' || c == '\t' || plain(c) == ' ')
}

/// The text with plain signs, every run of white space as one space and none before a line end; and, for each of its
/// bytes, where that stood.
fn simple(text: &str) -> (String, Vec<usize>) {
    let (mut out, mut starts) = (String::with_capacity(text.len()), Vec::with_capacity(text.len()));
    let mut run: Option<usize> = None;
    for (at, c) in text.char_indices() {
        if is_space(c) {
            run.get_or_insert(at);
            continue;
        }
        if let Some(start) = run.take().filter(|_| c != '\n') {
            out.push(' ');
            starts.push(start);
        }
        let c = plain(c);
        out.push(c);
        starts.extend(std::iter::repeat_n(at, c.len_utf8()));
    }
    if let Some(start) = run {
        out.push(' ');
        starts.push(start);
    }
    (out, starts)
}

//! The body of `*** Begin Patch`.

use super::parse::{Line, old_range, without_cr};
use super::{FilePatch, Hunk, PatchError};

/// The lines after the first one.
pub(super) fn files(lines: &[Line<'_>]) -> Result<Vec<FilePatch>, PatchError> {
    let Some(end) = lines.iter().position(|line| line.text.trim() == "*** End Patch") else {
        return Err(PatchError("`*** End Patch` is missing; it may have been cut off".to_owned()));
    };
    let mut lines = &lines[..end];
    let mut files = Vec::new();
    while let Some((head, rest)) = lines.split_first() {
        let length = rest.iter().position(|line| starts_file(line.text)).unwrap_or(rest.len());
        let (body, after) = rest.split_at(length);
        lines = after;
        let text = head.text.trim_end();
        let path = |prefix: &str| text.strip_prefix(prefix).map(str::trim);
        if let Some(path) = path("*** Add File:") {
            files.push(FilePatch::Add { path: named(path, head)?, content: added(body)? });
        } else if let Some(path) = path("*** Delete File:") {
            let path = named(path, head)?;
            if let Some(line) = body.iter().find(|line| !line.text.trim().is_empty()) {
                return Err(PatchError::at(line.number, "nothing can follow `*** Delete File`"));
            }
            files.push(FilePatch::Delete { path });
        } else if let Some(path) = path("*** Update File:") {
            files.push(updated(named(path, head)?, head, body)?);
        } else if !text.is_empty() {
            let problem = "expected `*** Add File: `, `*** Update File: ` or `*** Delete File: ` and a path";
            return Err(PatchError::at(head.number, problem));
        }
    }
    Ok(files)
}

fn starts_file(line: &str) -> bool {
    ["*** Add File:", "*** Delete File:", "*** Update File:"].iter().any(|head| line.starts_with(head))
}

fn named(path: &str, line: &Line<'_>) -> Result<String, PatchError> {
    match path {
        "" => Err(PatchError::at(line.number, "the path is missing")),
        path => Ok(path.to_owned()),
    }
}

fn added(body: &[Line<'_>]) -> Result<String, PatchError> {
    // Empty lines before the next file are of nobody.
    let length = body.iter().rposition(|line| !line.text.trim().is_empty()).map_or(0, |at| at + 1);
    let mut content = String::new();
    for line in &body[..length] {
        match (line.text.strip_prefix('+'), without_cr(line.text)) {
            (Some(text), _) => content.push_str(text),
            (None, "") => {}
            (None, _) => return Err(PatchError::at(line.number, "every line of a new file starts with `+`")),
        }
        content.push('\n');
    }
    Ok(content)
}

fn updated(path: String, head: &Line<'_>, body: &[Line<'_>]) -> Result<FilePatch, PatchError> {
    let moved = body.first().and_then(|line| Some((line, line.text.strip_prefix("*** Move to:")?)));
    let (to, body) = match moved {
        Some((line, to)) => (Some(named(to.trim(), line)?), &body[1..]),
        None => (None, body),
    };
    let mut reader = Reader::default();
    for line in body {
        reader.read(line)?;
    }
    let hunks = reader.end()?;
    if hunks.is_empty() && to.is_none() {
        return Err(PatchError::at(head.number, "it changes nothing in this file"));
    }
    Ok(FilePatch::Update { path, to, hunks })
}

/// Gathers hunks line by line.
#[derive(Default)]
struct Reader {
    done: Vec<Hunk>,
    open: Hunk,
    /// Empty lines: of the hunk if it goes on, of nobody if not.
    blank: usize,
    /// Where a hunk's head stands that has no lines yet.
    head: Option<usize>,
}

impl Reader {
    fn read(&mut self, line: &Line<'_>) -> Result<(), PatchError> {
        let text = without_cr(line.text);
        if text.trim() == "*** End of File" {
            self.open.is_last = true;
            return self.close();
        }
        if let Some(near) = text.strip_prefix("@@") {
            if self.open != Hunk::default() && self.head.is_none() {
                self.close()?;
            }
            self.head = Some(line.number);
            match old_range(near) {
                Some((start, _)) => self.open.line = Some(start),
                None if near.trim().is_empty() => {}
                None => self.open.near.push(near.trim().trim_end_matches("@@").trim_end().to_owned()),
            }
            return Ok(());
        }
        let (sign, rest) = match text.chars().next() {
            None => {
                self.blank += 1;
                return Ok(());
            }
            Some(sign @ (' ' | '+' | '-')) => (sign, &text[1..]),
            Some(_) => {
                let problem = "a line of a change starts with ` `, `-` or `+`, and a new place with `@@`";
                return Err(PatchError::at(line.number, problem));
            }
        };
        self.head = None;
        for _ in 0..std::mem::take(&mut self.blank) {
            self.open.old.push(String::new());
            self.open.new.push(String::new());
        }
        if sign != '+' {
            self.open.old.push(rest.to_owned());
        }
        if sign != '-' {
            self.open.new.push(rest.to_owned());
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), PatchError> {
        self.blank = 0;
        if let Some(line) = self.head.take() {
            return Err(PatchError::at(line, "no lines follow `@@`"));
        }
        let hunk = std::mem::take(&mut self.open);
        if hunk.old != hunk.new {
            self.done.push(hunk);
        }
        Ok(())
    }

    fn end(mut self) -> Result<Vec<Hunk>, PatchError> {
        self.close()?;
        Ok(self.done)
    }
}

//! Unified diffs, git's and plain ones.

use super::parse::{Line, old_range, without_cr};
use super::{FilePatch, Hunk, LastEnd, PatchError};

pub(super) fn files(lines: &[Line<'_>]) -> Result<Vec<FilePatch>, PatchError> {
    let starts: Vec<usize> = (0..lines.len()).filter(|at| starts_file(lines, *at)).collect();
    if let (true, Some(line)) = (starts.is_empty(), lines.iter().find(|line| line.text.starts_with("--- "))) {
        return Err(PatchError::at(line.number, "a file needs its `--- ` and `+++ ` lines, then `@@`"));
    }
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    starts.iter().zip(ends).map(|(start, end)| file(&lines[*start..end])).collect()
}

/// Whether a file's part starts here. A removed line may look like a head; one is taken for it only with the next head
/// line below, and none above that begins the same part.
fn starts_file(lines: &[Line<'_>], at: usize) -> bool {
    let is = |at: usize, head: &str| lines.get(at).is_some_and(|line| line.text.starts_with(head));
    if is(at, "diff --git ") {
        return true;
    }
    let is_head = is(at, "--- ") && is(at + 1, "+++ ") && (at + 2 >= lines.len() || is(at + 2, "@@"));
    let begins = lines[..at].iter().rposition(|line| line.text.starts_with("diff --git "));
    let is_of_git = begins.is_some_and(|git| !lines[git..at].iter().any(|line| line.text.starts_with("@@")));
    is_head && !is_of_git
}

#[derive(Default)]
struct Head {
    old: Option<Name>,
    new: Option<Name>,
    /// Of `diff --git`, where nothing else names the file.
    git: Option<String>,
    renamed: (Option<String>, Option<String>),
    is_new: bool,
    is_deleted: bool,
}

#[derive(Clone, PartialEq, Eq)]
enum Name {
    Nothing,
    File(String),
}

fn file(lines: &[Line<'_>]) -> Result<FilePatch, PatchError> {
    let first = lines.iter().position(|line| line.text.starts_with("@@")).unwrap_or(lines.len());
    let mut head = Head::default();
    for line in &lines[..first] {
        head.read(line)?;
    }
    let hunks = hunks(&lines[first..])?;
    let start = lines.first().map_or(1, |line| line.number);
    head.file(hunks).map_err(|problem| PatchError::at(start, problem))
}

impl Head {
    fn read(&mut self, line: &Line<'_>) -> Result<(), PatchError> {
        let text = without_cr(line.text);
        let after = |word: &str| text.strip_prefix(word);
        if let Some(names) = after("diff --git ") {
            self.git = git_name(names);
        } else if let Some(name) = after("--- ") {
            self.old = Some(self::name(name));
        } else if let Some(name) = after("+++ ") {
            self.new = Some(self::name(name));
        } else if let Some(name) = after("rename from ") {
            self.renamed.0 = Some(unquoted(name));
        } else if let Some(name) = after("rename to ") {
            self.renamed.1 = Some(unquoted(name));
        } else if after("new file mode").is_some() {
            self.is_new = true;
        } else if after("deleted file mode").is_some() {
            self.is_deleted = true;
        } else if after("GIT binary patch").or(after("Binary files ")).is_some() {
            return Err(PatchError::at(line.number, "it is of a binary file; write the file instead"));
        } else if after("copy from ").is_some() {
            return Err(PatchError::at(line.number, "copies are not known; add the file whole"));
        }
        Ok(())
    }

    fn file(self, hunks: Vec<Hunk>) -> Result<FilePatch, &'static str> {
        if let (Some(path), Some(to)) = self.renamed {
            return Ok(FilePatch::Update { path, to: Some(to), hunks });
        }
        let (old, new) = match (self.old, self.new, self.git) {
            (Some(old), Some(new), _) => stripped(old, new),
            (None, None, Some(git)) if self.is_new => (Name::Nothing, Name::File(git)),
            (None, None, Some(git)) if self.is_deleted => (Name::File(git), Name::Nothing),
            (None, None, Some(_)) => return Err("it changes nothing but the mode; use a command for that"),
            _ => return Err("a file needs both its `--- ` and its `+++ ` line"),
        };
        match (old, new) {
            (Name::Nothing, Name::Nothing) => Err("it names no file"),
            (Name::Nothing, Name::File(path)) => Ok(FilePatch::Add { path, content: content(&hunks) }),
            (Name::File(path), Name::Nothing) => Ok(FilePatch::Delete { path }),
            (Name::File(_), Name::File(_)) if hunks.is_empty() => Err("no `@@` follows its names"),
            (Name::File(path), Name::File(new)) => {
                let to = (new != path).then_some(new);
                Ok(FilePatch::Update { path, to, hunks })
            }
        }
    }
}

fn content(hunks: &[Hunk]) -> String {
    let mut content: String = hunks.iter().flat_map(|hunk| &hunk.new).flat_map(|line| [line, "\n"]).collect();
    if hunks.last().is_some_and(|hunk| hunk.last_end == LastEnd::Removed) {
        content.pop();
    }
    content
}

fn name(text: &str) -> Name {
    // What follows a tab is the time.
    let bare = if text.starts_with('"') { text } else { text.split('\t').next().unwrap_or(text) };
    match bare.trim_end() {
        "/dev/null" => Name::Nothing,
        bare => Name::File(unquoted(bare)),
    }
}

/// Without the `a/` and `b/` that git puts before names; a name alone may be in a folder `a`.
fn stripped(old: Name, new: Name) -> (Name, Name) {
    let cut = |name: &Name, prefix: &str| match name {
        Name::Nothing => Some(Name::Nothing),
        Name::File(path) => path.strip_prefix(prefix).map(|path| Name::File(path.to_owned())),
    };
    match (cut(&old, "a/"), cut(&new, "b/")) {
        (Some(old), Some(new)) => (old, new),
        _ => (old, new),
    }
}

/// The name in `a/name b/name`; `None` if they are two.
fn git_name(names: &str) -> Option<String> {
    if let Some((old, new)) = names.strip_prefix('"').and_then(|rest| rest.split_once("\" \"")) {
        let (old, new) = (unquoted(&format!("\"{old}\"")), unquoted(&format!("\"{new}")));
        return old.strip_prefix("a/").filter(|name| new.strip_prefix("b/") == Some(name)).map(str::to_owned);
    }
    let half = names.get(..names.len() / 2)?.strip_prefix("a/")?;
    let other = names.get(names.len() / 2..)?.strip_prefix(" b/")?;
    (half == other).then(|| half.to_owned())
}

/// A name as git quotes it, unless it is none.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else { return text.to_owned() };
    let mut out = Vec::new();
    let mut rest = inner.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        match (*byte, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            (b'\\', [sign, after @ ..]) => {
                out.push(match sign {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    sign => *sign,
                });
                rest = after;
            }
            (byte, _) => out.push(byte),
        }
    }
    // What is no text names no file that can be reached; it stays as it was written and is not found.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

fn hunks(lines: &[Line<'_>]) -> Result<Vec<Hunk>, PatchError> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut rest = lines;
    while let Some((head, after)) = rest.split_first() {
        let length = after.iter().position(|line| line.text.starts_with("@@")).unwrap_or(after.len());
        let (body, next) = after.split_at(length);
        rest = next;
        let hunk = hunk(head, body)?;
        if hunk.old != hunk.new || hunk.last_end != LastEnd::Kept {
            hunks.push(hunk);
        }
    }
    Ok(hunks)
}

fn hunk(head: &Line<'_>, body: &[Line<'_>]) -> Result<Hunk, PatchError> {
    let range = head.text.trim_start_matches('@').split("@@").next().and_then(old_range);
    let mut hunk = Hunk { line: range.map(|(start, _)| start), ..Hunk::default() };
    let is_told = range.is_some_and(|(_, count)| count > 0);
    // Empty lines at the end are of nobody, unless they were counted.
    let full = body.iter().rposition(|line| !without_cr(line.text).is_empty()).map_or(0, |at| at + 1);
    let old_lines = body[..full].iter().filter(|line| !line.text.starts_with(['+', '\\'])).count();
    let missing = range.filter(|_| is_told).map_or(0, |(_, count)| count.saturating_sub(old_lines));
    let body = &body[..body.len().min(full + missing)];
    let (mut last, mut ends) = (' ', (true, true));
    for line in body {
        // The line end of a new file's line is kept; what is compared has none.
        let text = line.text;
        match text.chars().next() {
            Some(sign @ (' ' | '-' | '+')) => {
                last = sign;
                if sign != '+' {
                    hunk.old.push(without_cr(&text[1..]).to_owned());
                }
                if sign != '-' {
                    hunk.new.push(if is_told { without_cr(&text[1..]) } else { &text[1..] }.to_owned());
                }
            }
            None | Some('\r') => {
                hunk.old.push(String::new());
                hunk.new.push(String::new());
            }
            Some('\\') => match last {
                '-' => ends.0 = false,
                '+' => ends.1 = false,
                _ => ends = (false, false),
            },
            // The end of a mail, or of what git says between files.
            Some(_) if is_trailer(text) => break,
            Some(_) => return Err(PatchError::at(line.number, "a line of a diff starts with ` `, `-` or `+`")),
        }
    }
    if hunk.old.is_empty() && is_told {
        // The lines that it counts are left out; the new ones go before them.
        hunk.line = hunk.line.map(|line| line.saturating_sub(1));
    }
    hunk.last_end = match ends {
        (true, true) | (false, false) => LastEnd::Kept,
        (false, true) => LastEnd::Added,
        (true, false) => LastEnd::Removed,
    };
    hunk.is_last = ends != (true, true);
    Ok(hunk)
}

fn is_trailer(text: &str) -> bool {
    ["index ", "Index: ", "====", "Only in ", "```"].iter().any(|start| text.starts_with(start))
}

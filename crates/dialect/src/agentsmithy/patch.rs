//! Reads a diff as `git apply` does, as far as it can without the file: what it refuses as corrupt, this refuses.

/// A diff that can be applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// It changes one file and names it as git does not, without `a/` and `b/`; its hunks begin at this byte.
    pub(super) bare_hunks: Option<usize>,
    pub(super) makes_a_file: bool,
    pub(super) removes_a_file: bool,
    pub(super) added: u64,
    pub(super) removed: u64,
}

#[derive(Debug, Default)]
struct Reader<'a> {
    files: usize,
    is_prefixed: bool,
    makes_a_file: bool,
    removes_a_file: bool,
    first_hunk: Option<usize>,
    old_name: Option<&'a str>,
    /// Lines that the open hunk still owes.
    old: u64,
    new: u64,
    added: u64,
    removed: u64,
    has_hunk_or_mode: bool,
}

/// Why it cannot be applied, in words. A last line without its end is let pass: the document shows such a diff.
pub(super) fn read(diff: &str) -> Result<Patch, String> {
    let mut reader = Reader { is_prefixed: true, ..Reader::default() };
    let mut at = 0;
    for (n, line) in diff.split_inclusive('\n').enumerate() {
        let text = line.strip_suffix('\n').unwrap_or(line);
        reader.line(text, at).map_err(|problem| format!("{problem} at line {} of the diff", n + 1))?;
        at += line.len();
    }
    if reader.old > 0 || reader.new > 0 {
        return Err("the last hunk has fewer lines than its header says".to_owned());
    }
    if !reader.has_hunk_or_mode {
        return Err("there is no hunk in the diff".to_owned());
    }
    Ok(Patch {
        bare_hunks: reader.first_hunk.filter(|_| reader.files == 1 && !reader.is_prefixed),
        makes_a_file: reader.makes_a_file,
        removes_a_file: reader.removes_a_file,
        added: reader.added,
        removed: reader.removed,
    })
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str, at: usize) -> Result<(), String> {
        if self.old > 0 || self.new > 0 {
            return self.hunk_line(line);
        }
        if let Some(name) = line.strip_prefix("--- ") {
            self.old_name = Some(name);
        } else if let Some((new, old)) = line.strip_prefix("+++ ").zip(self.old_name.take()) {
            self.file(old, new);
        } else if line.starts_with("@@ -") {
            if self.files == 0 {
                return Err("a hunk stands before the names of its file".to_owned());
            }
            (self.old, self.new) = hunk_header(line).ok_or_else(|| "the header of a hunk is no header".to_owned())?;
            self.first_hunk.get_or_insert(at);
            self.has_hunk_or_mode = true;
        } else if line.starts_with("new file mode ") {
            (self.has_hunk_or_mode, self.makes_a_file) = (true, true);
        } else if line.starts_with("deleted file mode ") {
            (self.has_hunk_or_mode, self.removes_a_file) = (true, true);
        } else if line.starts_with("rename from ") || line.starts_with("old mode ") || line == "GIT binary patch" {
            self.has_hunk_or_mode = true;
        }
        Ok(())
    }

    fn file(&mut self, old: &str, new: &str) {
        let is_none = |name: &str| name.split('\t').next() == Some("/dev/null");
        let has = |name: &str, prefix: &str| name.trim_start_matches('"').starts_with(prefix);
        self.files += 1;
        self.makes_a_file |= is_none(old);
        self.removes_a_file |= is_none(new);
        self.is_prefixed &= (is_none(old) || has(old, "a/")) && (is_none(new) || has(new, "b/"));
    }

    fn hunk_line(&mut self, line: &str) -> Result<(), String> {
        let (old, new) = match line.as_bytes().first() {
            // An empty line is a context line whose space was lost; git takes it so.
            Some(b' ') | None => (1, 1),
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            Some(_) => return Err("a line of a hunk begins with none of ` `, `+`, `-`".to_owned()),
        };
        self.removed += u64::from(line.starts_with('-'));
        self.added += u64::from(line.starts_with('+'));
        let left = self.old.checked_sub(old).zip(self.new.checked_sub(new));
        (self.old, self.new) = left.ok_or_else(|| "a hunk has more lines than its header says".to_owned())?;
        Ok(())
    }
}

/// `@@ -1,2 +1 @@`: how many lines of the old and of the new file follow.
fn hunk_header(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| match range.split_once(',') {
        Some((start, count)) => start.parse::<u64>().ok().and(count.parse().ok()),
        None => range.parse::<u64>().ok().and(Some(1)),
    };
    count(old).zip(count(new))
}

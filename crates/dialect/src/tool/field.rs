//! The fields of a tool's input, in every agent's spelling.

use serde_json::{Map, Value};
use tolka_facts::Json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// The file that is read or changed.
    File,
    Content,
    OldText,
    NewText,
    ReplaceAll,
    /// Several replacements, each with an old and a new text of its own.
    Edits,
    Diff,
    Command,
    /// Where a command is run.
    Workdir,
    Timeout,
    /// Where files are looked for.
    Folder,
    Recursive,
    Pattern,
    /// Which files are looked into.
    Include,
    Url,
    Query,
    Count,
}

impl Field {
    /// Ours first. An input that has two of them means the one that stands first here.
    pub(crate) const fn spellings(self) -> &'static [&'static str] {
        match self {
            Field::File => &["filePath", "file_path", "path", "absolute_path"],
            Field::Content => &["content", "contents"],
            Field::OldText => &["oldString", "old_string", "oldText", "old_text", "old_str"],
            Field::NewText => &["newString", "new_string", "newText", "new_text", "new_str"],
            Field::ReplaceAll => &["replaceAll", "replace_all"],
            Field::Edits => &["edits"],
            Field::Diff => &["diff"],
            Field::Command => &["command", "cmd"],
            Field::Workdir => &["workdir", "cwd", "directory"],
            Field::Timeout => &["timeout", "timeout_ms"],
            Field::Folder => &["path", "dir_path"],
            Field::Recursive => &["recursive"],
            Field::Pattern => &["pattern", "regex"],
            Field::Include => &["include", "glob", "file_pattern"],
            Field::Url => &["url"],
            Field::Query => &["query"],
            Field::Count => &["numResults", "num_results"],
        }
    }

    pub(crate) const fn ours(self) -> &'static str {
        self.spellings()[0]
    }

    /// As this input spells it; `None` if it is not there.
    pub(crate) fn spelling_in(self, input: &Map<String, Value>) -> Option<&'static str> {
        self.spellings().iter().copied().find(|spelling| input.contains_key(*spelling))
    }

    pub(crate) fn take(self, input: &mut Map<String, Value>) -> Option<Value> {
        self.spelling_in(input).and_then(|spelling| input.shift_remove(spelling))
    }
}

/// What a field says, if that is text.
pub(crate) fn text(input: &Map<String, Value>, field: Field) -> Option<&str> {
    input.get(field.spelling_in(input)?)?.as_str()
}

/// Whether this name stands between quotes somewhere.
fn is_quoted(name: &str, json: &str) -> bool {
    let quote = |at: usize| json.as_bytes().get(at) == Some(&b'"');
    json.match_indices(name).any(|(at, _)| at > 0 && quote(at - 1) && quote(at + name.len()))
}

/// The input with each of these fields in the spelling beside it. `None` if nothing is spelled otherwise: what needs no
/// change keeps every digit.
pub(crate) fn respelled(input: &Json, spellings: &[(Field, &'static str)]) -> Option<Json> {
    // Inputs may be long, and most need no change.
    let is_otherwise = |(field, theirs): &(Field, &'static str)| {
        let mut others = field.spellings().iter().filter(|spelling| *spelling != theirs);
        others.any(|spelling| is_quoted(spelling, input.get()))
    };
    if !spellings.iter().any(is_otherwise) {
        return None;
    }
    let fields: Map<String, Value> = input.read()?;
    let renamed: Vec<(&str, &str)> = spellings
        .iter()
        .filter(|(_, theirs)| !fields.contains_key(*theirs))
        .filter_map(|(field, theirs)| Some((field.spelling_in(&fields)?, *theirs)))
        .collect();
    if renamed.is_empty() {
        return None;
    }
    let rename = |name: String| match renamed.iter().find(|(told, _)| *told == name) {
        Some((_, theirs)) => (*theirs).to_owned(),
        None => name,
    };
    Some(Json::of(&fields.into_iter().map(|(name, value)| (rename(name), value)).collect::<Map<_, _>>()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OURS: [(Field, &str); 2] = [(Field::File, Field::File.ours()), (Field::OldText, Field::OldText.ours())];

    fn told(input: &Value) -> Option<Value> {
        respelled(&Json::from_value(input), &OURS).map(|input| input.value())
    }

    #[test]
    fn every_spelling_becomes_the_one_that_is_asked_for() {
        for spelling in ["file_path", "path", "absolute_path"] {
            assert_eq!(told(&json!({"x": 1, spelling: "a"})), Some(json!({"x": 1, "filePath": "a"})), "{spelling}");
        }
        assert_eq!(told(&json!({"path": "a", "old_str": "b"})), Some(json!({"filePath": "a", "oldString": "b"})));
    }

    #[test]
    fn nothing_is_overwritten() {
        assert_eq!(told(&json!({"filePath": "a", "path": "b"})), None);
        assert_eq!(told(&json!({"path": "b", "file_path": "a"})), Some(json!({"path": "b", "filePath": "a"})));
        assert_eq!(told(&json!({"x": {"path": "a"}})), None);
        assert_eq!(told(&json!(["path"])), None);
    }
}

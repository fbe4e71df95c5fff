//! The fields of a call's input, read with patience: models misspell names, and write numbers and lists as strings.

use serde_json::{Map, Value};
use tolka_facts::Json;

use super::act::Stop;

/// Ours first; the others are what models were taught elsewhere.
pub(super) const FILE: &[&str] = &["filePath", "file_path", "path", "absolute_path", "filepath", "file"];
pub(super) const CONTENT: &[&str] = &["content", "contents", "text"];
pub(super) const OLD: &[&str] = &["oldString", "old_string", "oldText", "old_text", "old_str"];
pub(super) const NEW: &[&str] = &["newString", "new_string", "newText", "new_text", "new_str"];
pub(super) const ALL: &[&str] = &["replaceAll", "replace_all"];
pub(super) const COMMAND: &[&str] = &["command", "cmd"];
pub(super) const DESCRIPTION: &[&str] = &["description"];
pub(super) const WORKDIR: &[&str] = &["workdir", "cwd", "directory"];
pub(super) const BACKGROUND: &[&str] = &["run_in_background", "runInBackground", "background", "is_background"];
pub(super) const TIMEOUT: &[&str] = &["timeout", "timeout_ms"];
pub(super) const FOLDER: &[&str] = &["path", "dir_path", "directory"];
pub(super) const RECURSIVE: &[&str] = &["recursive"];
pub(super) const PATTERN: &[&str] = &["pattern", "regex", "query"];
pub(super) const INCLUDE: &[&str] = &["include", "glob", "file_pattern"];
pub(super) const PATCH: &[&str] = &["patchText", "patch_text", "patch", "input"];
pub(super) const OFFSET: &[&str] = &["offset", "start_line", "startLine"];
pub(super) const LIMIT: &[&str] = &["limit", "max_lines", "maxLines"];
pub(super) const TODOS: &[&str] = &["todos", "items", "plan"];
pub(super) const QUESTIONS: &[&str] = &["questions"];
pub(super) const KIND: &[&str] = &["kind", "type"];
pub(super) const NAME: &[&str] = &["name", "title"];
pub(super) const URL: &[&str] = &["url", "uri", "link"];
pub(super) const FORMAT: &[&str] = &["format"];
pub(super) const QUERY: &[&str] = &["query", "q", "search"];
pub(super) const COUNT: &[&str] = &["numResults", "num_results", "count", "max_results"];

#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn of(input: &Json) -> Result<Self, Stop> {
        match input.value() {
            Value::Object(fields) => Ok(Fields(fields)),
            // No input at all is an empty one; the fields that are missed say the rest.
            Value::Null => Ok(Fields(Map::new())),
            Value::String(text) if serde_json::from_str::<Map<String, Value>>(&text).is_ok() => {
                Ok(Fields(serde_json::from_str(&text).unwrap_or_default()))
            }
            _ => Err(Stop::failed("the input of a tool is an object; see the tool's schema")),
        }
    }

    fn find(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.0.get(*name)).filter(|value| !value.is_null())
    }

    /// A text, or what can only be meant as one.
    pub(super) fn text(&self, names: &[&str]) -> Option<String> {
        match self.find(names)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// A text that says something.
    pub(super) fn words(&self, names: &[&str]) -> Option<String> {
        self.text(names).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(super) fn need(&self, names: &[&str]) -> Result<String, Stop> {
        self.text(names).ok_or_else(|| missing(names))
    }

    pub(super) fn need_words(&self, names: &[&str]) -> Result<String, Stop> {
        self.words(names).ok_or_else(|| missing(names))
    }

    /// A command line. Other agents take a list of words: it is the line that means these words to a shell.
    pub(super) fn command(&self) -> Result<String, Stop> {
        let words = match self.find(COMMAND) {
            Some(Value::Array(words)) if !words.is_empty() => words,
            Some(value @ (Value::Array(_) | Value::Object(_))) => {
                return Err(Stop::Failed(format!(
                    "`{}` is a string, the whole command line, and not {value}",
                    COMMAND[0]
                )));
            }
            _ => return self.need_words(COMMAND),
        };
        let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
        match words.as_deref() {
            None => Err(Stop::Failed(format!("`{}` is a string, the whole command line", COMMAND[0]))),
            // Nobody's program is called so: it is a line in brackets.
            Some([line]) => Ok((*line).to_owned()),
            Some(words) => Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
        }
    }

    pub(super) fn number(&self, names: &[&str]) -> Result<Option<u64>, Stop> {
        let Some(value) = self.find(names) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => text.trim().parse().ok().or_else(|| whole(text.trim().parse().ok()?)),
            _ => None,
        };
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(Stop::Failed(format!("`{}` is a whole number, and not {value}", names[0]))),
        }
    }

    pub(super) fn flag(&self, names: &[&str]) -> bool {
        match self.find(names) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
            Some(Value::Number(number)) => number.as_u64() == Some(1),
            _ => false,
        }
    }

    pub(super) fn list(&self, names: &[&str]) -> Result<Vec<Value>, Stop> {
        match self.find(names) {
            Some(Value::Array(items)) => Ok(items.clone()),
            Some(Value::String(text)) => {
                serde_json::from_str(text).map_err(|_| Stop::Failed(format!("`{}` is a list", names[0])))
            }
            _ => Err(missing(names)),
        }
    }
}

/// A word that a shell takes as it stands.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn missing(names: &[&str]) -> Stop {
    Stop::Failed(format!("`{}` is missing; give it and call the tool again", names[0]))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64)
}

//! The one table between our tools and theirs: names, arguments and units, read in both directions.
//!
//! Our names are OpenCode's, whatever the agent calls its tool; its spellings of a field are all known. What the table
//! lacks passes through, tools and arguments alike.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};
use tolka_facts::{Blobs, Json, Tool, ToolKind};

use super::blocks::{self, Replacement};
use crate::opencode::tool_name;

struct Row {
    ours: &'static str,
    theirs: &'static str,
    kind: ToolKind,
    /// Without these there is nothing to invoke: some agents begin with part of the input.
    needs: &'static [&'static str],
    fields: &'static [Field],
}

struct Field {
    theirs: &'static str,
    /// Ours first, then as other agents spell it.
    ours: &'static [&'static str],
    unit: Unit,
}

#[derive(Clone, Copy)]
enum Unit {
    Same,
    /// Milliseconds with us, seconds with them.
    Seconds,
    /// A line for a shell. Some agents tell a list of words.
    Command,
}

const fn same(theirs: &'static str, ours: &'static [&'static str]) -> Field {
    Field { theirs, ours, unit: Unit::Same }
}

const PATH: Field = same("path", &["filePath", "file_path", "path", "absolute_path"]);
const OLD: &[&str] = &["oldString", "old_string", "oldText", "old_text", "old_str"];
const NEW: &[&str] = &["newString", "new_string", "newText", "new_text", "new_str"];

const REPLACE: &str = "replace_in_file";

const TABLE: &[Row] = &[
    Row {
        ours: "bash",
        theirs: "run_command",
        kind: ToolKind::Execute,
        needs: &["command"],
        fields: &[
            Field { theirs: "command", ours: &["command", "cmd"], unit: Unit::Command },
            same("cwd", &["workdir", "cwd", "directory"]),
            Field { theirs: "timeout", ours: &["timeout", "timeout_ms"], unit: Unit::Seconds },
        ],
    },
    Row { ours: "read", theirs: "read_file", kind: ToolKind::Read, needs: &["path"], fields: &[PATH] },
    Row {
        ours: "write",
        theirs: "write_to_file",
        kind: ToolKind::Edit,
        needs: &["path", "content"],
        fields: &[PATH, same("content", &["content", "contents"])],
    },
    Row {
        ours: "edit",
        theirs: REPLACE,
        kind: ToolKind::Edit,
        needs: &["path"],
        fields: &[PATH, same("diff", &["diff"])],
    },
    Row { ours: "delete", theirs: "delete_file", kind: ToolKind::Delete, needs: &["path"], fields: &[PATH] },
    Row {
        ours: "list",
        theirs: "list_files",
        kind: ToolKind::Search,
        needs: &["path"],
        fields: &[same("path", &["path", "dir_path"]), same("recursive", &["recursive"])],
    },
    Row {
        ours: "grep",
        theirs: "search_files",
        kind: ToolKind::Search,
        needs: &["regex"],
        fields: &[
            same("path", &["path", "dir_path"]),
            same("regex", &["pattern", "regex"]),
            same("file_pattern", &["include", "glob", "file_pattern"]),
        ],
    },
    Row {
        ours: "webfetch",
        theirs: "web_fetch",
        kind: ToolKind::Fetch,
        needs: &["url"],
        fields: &[same("url", &["url"])],
    },
    Row {
        ours: "websearch",
        theirs: "web_search",
        kind: ToolKind::Fetch,
        needs: &["query"],
        fields: &[same("query", &["query"]), same("num_results", &["numResults", "num_results"])],
    },
];

/// A call as this wire names it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    pub name: String,
    /// An object, always.
    pub args: Json,
}

impl Call {
    pub fn of(tool: &Tool, blobs: &dyn Blobs) -> Self {
        let ours = tool_name(tool);
        let input = tool.input.as_ref().map_or_else(|| Cow::Owned(Json::default()), |input| input.whole(blobs));
        let Some(row) = TABLE.iter().find(|row| row.ours == ours) else {
            return Call { name: ours.to_owned(), args: as_object(&input) };
        };
        let args = match input.read::<Map<String, Value>>() {
            Some(fields) => Json::of(&row.to_theirs(fields)),
            None => as_object(&input),
        };
        Call { name: row.theirs.to_owned(), args }
    }

    /// Whether enough of it is known to be told while the agent still writes it.
    pub(super) fn is_ready(&self) -> bool {
        let args = self.args.read::<Map<String, Value>>().unwrap_or_default();
        match TABLE.iter().find(|row| row.theirs == self.name) {
            Some(row) => row.needs.iter().all(|name| args.contains_key(*name)),
            None => !args.is_empty(),
        }
    }

    /// Our name of the tool, what kind it is, and its input in our words.
    pub(super) fn ours(&self) -> (String, ToolKind, Json) {
        let Some(row) = TABLE.iter().find(|row| row.theirs == self.name) else {
            return (self.name.clone(), ToolKind::Other, self.args.clone());
        };
        let input =
            self.args.read::<Map<String, Value>>().map_or_else(|| self.args.clone(), |a| Json::of(&row.to_ours(a)));
        (row.ours.to_owned(), row.kind, input)
    }

    /// Such a call tells of the file that it changed; one that does not has changed none.
    pub(super) fn edits_a_file(&self) -> bool {
        is_file_tool(&self.name)
    }

    pub(super) fn removes_a_file(&self) -> bool {
        self.name == "delete_file"
    }

    pub(super) fn text(&self, arg: &str) -> Option<String> {
        self.args.value().get(arg).and_then(Value::as_str).map(str::to_owned)
    }
}

impl Row {
    fn to_theirs(&self, mut fields: Map<String, Value>) -> Map<String, Value> {
        if self.theirs == REPLACE {
            search_and_replace(&mut fields);
        }
        let mut args = Map::new();
        for field in self.fields {
            if let Some(value) = field.ours.iter().find_map(|name| fields.shift_remove(*name)) {
                args.insert(field.theirs.to_owned(), field.unit.to_theirs(value));
            }
        }
        pass_through(fields, args)
    }

    fn to_ours(&self, mut args: Map<String, Value>) -> Map<String, Value> {
        let mut fields = Map::new();
        for field in self.fields {
            if let Some(value) = args.shift_remove(field.theirs) {
                fields.insert(field.ours[0].to_owned(), field.unit.to_ours(value));
            }
        }
        let mut fields = pass_through(args, fields);
        if self.theirs == REPLACE {
            old_and_new(&mut fields);
        }
        fields
    }
}

/// What the table translated stands first; a field of the same name does not overwrite it.
fn pass_through(rest: Map<String, Value>, mut known: Map<String, Value>) -> Map<String, Value> {
    for (name, value) in rest {
        known.entry(name).or_insert(value);
    }
    known
}

impl Unit {
    fn to_theirs(self, value: Value) -> Value {
        match (self, &value) {
            (Unit::Seconds, Value::Number(ms)) => {
                let ms = ms.as_f64().unwrap_or_default().round();
                whole_number(ms / 1000.0).unwrap_or(value)
            }
            (Unit::Command, Value::Array(words)) => command_line(words).map_or(value, Value::from),
            _ => value,
        }
    }

    fn to_ours(self, value: Value) -> Value {
        match (self, &value) {
            (Unit::Seconds, Value::Number(s)) => {
                whole_number((s.as_f64().unwrap_or_default() * 1000.0).round()).unwrap_or(value)
            }
            _ => value,
        }
    }
}

/// Without a fraction where there is none.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole_number(number: f64) -> Option<Value> {
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => Some(Value::from(number as i64)),
        false => serde_json::Number::from_f64(number).map(Value::Number),
    }
}

/// `["bash", "-lc", "ls"]` runs `ls`.
fn command_line(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words[..] {
        [_, "-c" | "-lc", line] => Some(line.to_owned()),
        _ => Some(words.join(" ")),
    }
}

/// Old and new text, or a list of such, become the blocks that `replace_in_file` takes.
fn search_and_replace(fields: &mut Map<String, Value>) {
    if fields.contains_key("diff") {
        return;
    }
    let Some(replacements) = replacements(fields) else { return };
    if let Some(diff) = blocks::write(&replacements) {
        let single = OLD.iter().chain(NEW).find(|name| fields.contains_key(**name));
        match single {
            Some(_) => {
                take_text(fields, OLD);
                take_text(fields, NEW);
            }
            None => drop(fields.shift_remove("edits")),
        }
        fields.insert("diff".to_owned(), Value::from(diff));
    }
}

fn old_and_new(fields: &mut Map<String, Value>) {
    let Some(replacements) = fields.get("diff").and_then(Value::as_str).and_then(blocks::read) else { return };
    fields.shift_remove("diff");
    let pair = |r: &Replacement| [(OLD[0].to_owned(), r.old.clone().into()), (NEW[0].to_owned(), r.new.clone().into())];
    match &replacements[..] {
        [only] => fields.extend(pair(only)),
        all => {
            let edits: Vec<Value> = all.iter().map(|r| Value::Object(Map::from_iter(pair(r)))).collect();
            fields.insert("edits".to_owned(), Value::from(edits));
        }
    }
}

/// Every replacement that an input of ours asks for; `None` if it is written in another way.
pub(super) fn replacements(fields: &Map<String, Value>) -> Option<Vec<Replacement>> {
    let one = |fields: &Map<String, Value>| {
        let text = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)).map(Value::as_str);
        match (text(OLD), text(NEW)) {
            (Some(old), Some(new)) => Some(Replacement { old: old?.to_owned(), new: new?.to_owned() }),
            _ => None,
        }
    };
    match one(fields) {
        Some(replacement) => Some(vec![replacement]),
        None => fields.get("edits")?.as_array()?.iter().map(|edit| one(edit.as_object()?)).collect(),
    }
}

fn take_text(fields: &mut Map<String, Value>, names: &[&str]) {
    if let Some(name) = names.iter().find(|name| fields.contains_key(**name)) {
        fields.shift_remove(*name);
    }
}

fn as_object(input: &Json) -> Json {
    match input.get().trim_start().starts_with('{') {
        true => input.clone(),
        false if input.is_null() => Json::of(&Map::new()),
        false => Json::of(&Map::from_iter([("input".to_owned(), input.value())])),
    }
}

fn is_file_tool(theirs: &str) -> bool {
    matches!(theirs, "write_to_file" | REPLACE | "delete_file")
}

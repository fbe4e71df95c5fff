//! A call in their words and in ours. Names and arguments come from the [table](table); what it lacks passes through,
//! tools and arguments alike.

mod table;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};
use tolka_facts::{Blobs, Json, Tool, ToolKind};

use super::blocks::{self, Replacement};
use crate::tool::{self, Field, KnownTool};
pub(super) use table::TheirTool;
use table::{Row, Unit};

/// A call as this wire names it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    pub name: String,
    /// An object, always.
    pub args: Json,
}

impl Call {
    pub fn of(tool: &Tool, blobs: &dyn Blobs) -> Self {
        let input = tool.input.as_ref().map_or_else(|| Cow::Owned(Json::default()), |input| input.whole(blobs));
        let Some(row) = KnownTool::of(tool).and_then(Row::of) else {
            return Call { name: tool::name(tool).to_owned(), args: as_object(&input) };
        };
        let args = match input.read::<Map<String, Value>>() {
            Some(fields) => Json::of(&row.to_theirs(fields)),
            None => as_object(&input),
        };
        Call { name: row.name.to_owned(), args }
    }

    /// Whether enough of it is known to be told while the agent still writes it.
    pub(super) fn is_ready(&self) -> bool {
        let args = self.args.read::<Map<String, Value>>().unwrap_or_default();
        match Row::named(&self.name) {
            Some(row) => row.needs.iter().all(|name| args.contains_key(*name)),
            None => !args.is_empty(),
        }
    }

    /// Our name of the tool, what kind it is, and its input in our words.
    pub(super) fn ours(&self) -> (String, ToolKind, Json) {
        let Some(row) = Row::named(&self.name) else {
            return (self.name.clone(), ToolKind::Other, self.args.clone());
        };
        let input =
            self.args.read::<Map<String, Value>>().map_or_else(|| self.args.clone(), |a| Json::of(&row.to_ours(a)));
        (row.ours.name().to_owned(), row.kind, input)
    }

    /// `None` if this wire has no tool of that name.
    pub(super) fn tool(&self) -> Option<TheirTool> {
        Row::named(&self.name).map(|row| row.theirs)
    }

    /// Such a call tells of the file that it changed; one that does not has changed none.
    pub(super) fn edits_a_file(&self) -> bool {
        matches!(self.tool(), Some(TheirTool::WriteToFile | TheirTool::ReplaceInFile | TheirTool::DeleteFile))
    }

    pub(super) fn removes_a_file(&self) -> bool {
        self.tool() == Some(TheirTool::DeleteFile)
    }

    pub(super) fn text(&self, arg: &str) -> Option<String> {
        self.args.value().get(arg).and_then(Value::as_str).map(str::to_owned)
    }
}

impl Row {
    fn to_theirs(&self, mut fields: Map<String, Value>) -> Map<String, Value> {
        if self.theirs == TheirTool::ReplaceInFile {
            search_and_replace(&mut fields);
        }
        let mut args = Map::new();
        for arg in self.args {
            if let Some(value) = arg.field.take(&mut fields) {
                args.insert(arg.name.to_owned(), arg.unit.to_theirs(value));
            }
        }
        pass_through(fields, args)
    }

    fn to_ours(&self, mut args: Map<String, Value>) -> Map<String, Value> {
        let mut fields = Map::new();
        for arg in self.args {
            if let Some(value) = args.shift_remove(arg.name) {
                fields.insert(arg.field.ours().to_owned(), arg.unit.to_ours(value));
            }
        }
        let mut fields = pass_through(args, fields);
        if self.theirs == TheirTool::ReplaceInFile {
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
    if Field::Diff.spelling_in(fields).is_some() {
        return;
    }
    let Some(replacements) = replacements(fields) else { return };
    if let Some(diff) = blocks::write(&replacements) {
        let told_in: &[Field] = match replacement(fields) {
            Some(_) => &[Field::OldText, Field::NewText],
            None => &[Field::Edits],
        };
        told_in.iter().for_each(|field| drop(field.take(fields)));
        fields.insert(Field::Diff.ours().to_owned(), Value::from(diff));
    }
}

fn old_and_new(fields: &mut Map<String, Value>) {
    let Some(replacements) = tool::text(fields, Field::Diff).and_then(blocks::read) else { return };
    Field::Diff.take(fields);
    let pair = |r: &Replacement| {
        let named = |field: Field, text: &str| (field.ours().to_owned(), Value::from(text));
        [named(Field::OldText, &r.old), named(Field::NewText, &r.new)]
    };
    match &replacements[..] {
        [only] => fields.extend(pair(only)),
        all => {
            let edits: Vec<Value> = all.iter().map(|r| Value::Object(Map::from_iter(pair(r)))).collect();
            fields.insert(Field::Edits.ours().to_owned(), Value::from(edits));
        }
    }
}

/// Every replacement that an input of ours asks for; `None` if it is written in another way.
pub(super) fn replacements(fields: &Map<String, Value>) -> Option<Vec<Replacement>> {
    match replacement(fields) {
        Some(only) => Some(vec![only]),
        None => {
            fields.get(Field::Edits.ours())?.as_array()?.iter().map(|edit| replacement(edit.as_object()?)).collect()
        }
    }
}

fn replacement(fields: &Map<String, Value>) -> Option<Replacement> {
    let text = |field| tool::text(fields, field).map(str::to_owned);
    Some(Replacement { old: text(Field::OldText)?, new: text(Field::NewText)? })
}

fn as_object(input: &Json) -> Json {
    match input.get().trim_start().starts_with('{') {
        true => input.clone(),
        false if input.is_null() => Json::of(&Map::new()),
        false => Json::of(&Map::from_iter([("input".to_owned(), input.value())])),
    }
}

//! What a packet must hold, as tables: readable beside a document, and walked by one function. Fields that a table does
//! not name are allowed everywhere: every family adds some over time.

use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    name: &'static str,
    kind: Kind,
    is_required: bool,
}

/// A field that is always there.
pub(crate) const fn must(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, is_required: true }
}

/// A field that may be left out.
pub(crate) const fn may(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, is_required: false }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Any,
    Text,
    /// A time as RFC 3339 has it.
    Time,
    Number,
    Integer,
    Bool,
    True,
    Null,
    /// An object with any fields.
    Open,
    Object(&'static [Field]),
    List(&'static Kind),
    OneOf(&'static [&'static str]),
    /// Null, or that.
    Or(&'static Kind),
}

impl Kind {
    fn words(self) -> String {
        match self {
            Kind::Any => "anything".to_owned(),
            Kind::Text => "a string".to_owned(),
            Kind::Time => "a time (RFC 3339)".to_owned(),
            Kind::Number => "a number".to_owned(),
            Kind::Integer => "a whole number".to_owned(),
            Kind::Bool => "true or false".to_owned(),
            Kind::True => "true".to_owned(),
            Kind::Null => "null".to_owned(),
            Kind::Open | Kind::Object(_) => "an object".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::OneOf([one]) => format!("`{one}`"),
            Kind::OneOf(names) => format!("one of {}", names.join(", ")),
            Kind::Or(kind) => format!("{} or null", kind.words()),
        }
    }
}

/// Everything that does not fit, each in a sentence that names the field.
pub(crate) fn problems(value: &Value, fields: &[Field]) -> Vec<String> {
    let mut out = Vec::new();
    match value {
        Value::Object(object) => check_fields(object, fields, "", &mut out),
        other => out.push(format!("{} instead of an object", shown(other))),
    }
    out
}

fn check_fields(object: &Map<String, Value>, fields: &[Field], path: &str, out: &mut Vec<String>) {
    for field in fields {
        let name = if path.is_empty() { field.name.to_owned() } else { format!("{path}.{}", field.name) };
        match object.get(field.name) {
            Some(value) => check(value, field.kind, &name, out),
            None if field.is_required => out.push(format!("`{name}` is missing; it is {}", field.kind.words())),
            None => {}
        }
    }
}

fn check(value: &Value, kind: Kind, name: &str, out: &mut Vec<String>) {
    let fits = match kind {
        Kind::Any => true,
        Kind::Text => value.is_string(),
        Kind::Time => value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()),
        Kind::Number => value.is_number(),
        Kind::Integer => value.is_i64() || value.is_u64(),
        Kind::Bool => value.is_boolean(),
        Kind::True => *value == Value::Bool(true),
        Kind::Null => value.is_null(),
        Kind::OneOf(names) => value.as_str().is_some_and(|text| names.contains(&text)),
        Kind::Open => value.is_object(),
        Kind::Object(fields) => match value {
            Value::Object(object) => return check_fields(object, fields, name, out),
            _ => false,
        },
        Kind::List(kind) => match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    check(item, *kind, &format!("{name}[{at}]"), out);
                }
                return;
            }
            _ => false,
        },
        Kind::Or(kind) => match value {
            Value::Null => true,
            value => return check(value, *kind, name, out),
        },
    };
    if !fits {
        out.push(format!("`{name}` is {}, not {}", shown(value), kind.words()));
    }
}

/// Short: a problem names a value, it does not repeat a file.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) if text.chars().count() > 40 => {
            format!("\"{}…\"", text.chars().take(40).collect::<String>())
        }
        other => other.to_string(),
    }
}

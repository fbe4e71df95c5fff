//! What a packet must hold, as tables: readable beside a document, and walked by one function. Fields that a table does
//! not name are allowed everywhere: every family adds some over time.

use serde_json::{Map, Value};

/// What is wrong in so many places is wrong throughout; a list may have millions.
const PLACES: usize = 100;

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
    /// A string that begins so.
    Id(&'static str),
    /// A time as RFC 3339 has it.
    Time,
    Number,
    Integer,
    /// A whole number that is not below zero.
    Count,
    /// A number from 0 to 1.
    Share,
    Bool,
    True,
    Null,
    /// An object with any fields.
    Open,
    Object(&'static [Field]),
    EmptyObject,
    /// An object of which one field, the tag, says what the others are.
    Tagged(&'static str, &'static [(&'static str, &'static [Field])]),
    /// An object with any names, each of that.
    Map(&'static Kind),
    EmptyList,
    List(&'static Kind),
    OneOf(&'static [&'static str]),
    /// One or the other; neither is looked into.
    Either(&'static Kind, &'static Kind),
    /// Null, or that.
    Or(&'static Kind),
}

impl Kind {
    /// Whether the value itself is right; what it holds is another matter.
    fn fits(self, value: &Value) -> bool {
        match self {
            Kind::Any => true,
            Kind::Text => value.is_string(),
            Kind::Id(prefix) => value.as_str().is_some_and(|text| text.starts_with(prefix)),
            Kind::Time => value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()),
            Kind::Number => value.is_number(),
            Kind::Integer => value.is_i64() || value.is_u64(),
            Kind::Count => value.is_u64(),
            Kind::Share => value.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)),
            Kind::Bool => value.is_boolean(),
            Kind::True => *value == Value::Bool(true),
            Kind::Null => value.is_null(),
            Kind::OneOf(names) => value.as_str().is_some_and(|text| names.contains(&text)),
            Kind::Open | Kind::Object(_) | Kind::Tagged(..) | Kind::Map(_) => value.is_object(),
            Kind::EmptyObject => value.as_object().is_some_and(Map::is_empty),
            Kind::EmptyList => value.as_array().is_some_and(Vec::is_empty),
            Kind::List(_) => value.is_array(),
            Kind::Either(one, other) => one.fits(value) || other.fits(value),
            Kind::Or(kind) => value.is_null() || kind.fits(value),
        }
    }

    fn words(self) -> String {
        match self {
            Kind::Any => "anything".to_owned(),
            Kind::Text => "a string".to_owned(),
            Kind::Id(prefix) => format!("a string that begins with `{prefix}`"),
            Kind::Time => "a time (RFC 3339)".to_owned(),
            Kind::Number => "a number".to_owned(),
            Kind::Integer => "a whole number".to_owned(),
            Kind::Count => "a whole number from 0 on".to_owned(),
            Kind::Share => "a number from 0 to 1".to_owned(),
            Kind::Bool => "true or false".to_owned(),
            Kind::True => "true".to_owned(),
            Kind::Null => "null".to_owned(),
            Kind::Open | Kind::Object(_) | Kind::Tagged(..) | Kind::Map(_) => "an object".to_owned(),
            Kind::EmptyObject => "an empty object".to_owned(),
            Kind::EmptyList => "an empty list".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::OneOf([one]) => format!("`{one}`"),
            Kind::OneOf(names) => format!("one of {}", names.join(", ")),
            Kind::Either(one, other) => format!("{} or {}", one.words(), other.words()),
            Kind::Or(kind) => format!("{} or null", kind.words()),
        }
    }
}

/// What does not fit, each in a sentence that names the field; the first of it if it is much.
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
    if out.len() >= PLACES {
        return;
    }
    if !kind.fits(value) {
        return out.push(format!("`{name}` is {}, not {}", shown(value), kind.words()));
    }
    match (kind, value) {
        (Kind::Or(kind), value) if !value.is_null() => check(value, *kind, name, out),
        (Kind::Object(fields), Value::Object(object)) => check_fields(object, fields, name, out),
        (Kind::Tagged(tag, shapes), Value::Object(object)) => check_tagged(object, tag, shapes, name, out),
        (Kind::Map(kind), Value::Object(object)) => {
            object.iter().for_each(|(key, item)| check(item, *kind, &format!("{name}.{key}"), out));
        }
        (Kind::List(kind), Value::Array(items)) => {
            items.iter().enumerate().for_each(|(at, item)| check(item, *kind, &format!("{name}[{at}]"), out));
        }
        _ => {}
    }
}

fn check_tagged(
    object: &Map<String, Value>,
    tag: &str,
    shapes: &[(&str, &[Field])],
    path: &str,
    out: &mut Vec<String>,
) {
    let told = object.get(tag).unwrap_or(&Value::Null);
    if let Some((_, fields)) = shapes.iter().find(|(name, _)| told == name) {
        return check_fields(object, fields, path, out);
    }
    let names: Vec<_> = shapes.iter().map(|(name, _)| *name).collect();
    let problem = if told.is_null() { "missing; it is".to_owned() } else { format!("{}, not", shown(told)) };
    out.push(format!("`{path}.{tag}` is {problem} one of {}", names.join(", ")));
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SHAPE: &[Field] = &[
        must("id", Kind::Id("ses")),
        may("note", Kind::Or(&Kind::Text)),
        must("list", Kind::List(&Kind::Tagged("type", &[("a", &[must("x", Kind::Integer)]), ("b", &[])]))),
        must("none", Kind::EmptyObject),
        may("flags", Kind::Map(&Kind::Bool)),
    ];

    #[test]
    fn what_fits_is_quiet_and_what_does_not_is_named() {
        let good = json!({ "id": "ses_1", "note": null, "list": [{ "type": "a", "x": 1 }, { "type": "b" }], "none": {},
            "flags": { "on": true }, "more": 1 });
        assert_eq!(problems(&good, SHAPE), Vec::<String>::new());

        let bad = json!({ "id": "msg_1", "note": 3, "list": [{ "type": "a" }, { "type": "c" }, {}], "none": { "x": 1 },
            "flags": { "on": 1 } });
        assert_eq!(
            problems(&bad, SHAPE),
            [
                "`id` is \"msg_1\", not a string that begins with `ses`",
                "`note` is 3, not a string or null",
                "`list[0].x` is missing; it is a whole number",
                "`list[1].type` is \"c\", not one of a, b",
                "`list[2].type` is missing; it is one of a, b",
                "`none` is an object, not an empty object",
                "`flags.on` is 1, not true or false",
            ]
        );
        assert_eq!(problems(&json!({ "list": vec![0; 5000] }), &SHAPE[2..3]).len(), PLACES);
        assert_eq!(problems(&json!([]), SHAPE), ["a list instead of an object"]);
        assert_eq!(problems(&json!({ "id": "ses", "none": {} }), SHAPE), ["`list` is missing; it is a list"]);
    }

    #[test]
    fn numbers_have_their_bounds() {
        let fits = |kind: Kind, value: Value| problems(&json!({ "n": value }), &[must("n", kind)]).is_empty();
        assert_eq!(
            [json!(0), json!(7), json!(-1), json!(0.5)].map(|n| fits(Kind::Count, n)),
            [true, true, false, false]
        );
        assert_eq!(
            [json!(0), json!(0.5), json!(1), json!(1.5), json!(-1)].map(|n| fits(Kind::Share, n)),
            [true, true, true, false, false]
        );
    }

    #[test]
    fn times_have_an_offset() {
        let at = |time: &str| problems(&json!({ "at": time }), &[must("at", Kind::Time)]).len();
        assert_eq!(["2026-01-22T00:11:51.712150+00:00", "2026-01-22T00:11:51Z"].map(at), [0, 0]);
        assert_eq!(["2026-01-22T00:11:51", "now", ""].map(at), [1, 1, 1]);
    }
}

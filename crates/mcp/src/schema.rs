//! A schema of a tool's input, made such that every provider takes it and nobody's parser breaks on it.
//!
//! Providers want an object at the top, without alternatives; some follow `$ref`, so a few that lead to one another could
//! become more than fits into any memory.

use serde_json::{Map, Value, json};

/// Of one tool.
pub(crate) const LARGEST: usize = 32 << 10;
const DEEPEST: usize = 24;
const REFERENCES: usize = 64;

/// What is not usable becomes an object of which nothing is known.
pub(crate) fn safe(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else { return open() };
    for name in ["$schema", "$id", "anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"] {
        fields.remove(name);
    }
    let mut left = REFERENCES;
    let mut schema = Value::Object(fields);
    if !trim(&mut schema, DEEPEST, &mut left) {
        return open();
    }
    schema["type"] = json!("object");
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    // A name that is required and not there is refused by some.
    if let Value::Object(fields) = &mut schema
        && fields.get("required").is_some_and(|required| !required.is_array())
    {
        fields.remove("required");
    }
    schema
}

fn open() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Cuts what is too deep and what refers elsewhere. False: it has too many references.
fn trim(value: &mut Value, depth: usize, references: &mut usize) -> bool {
    if depth == 0 {
        *value = Value::Object(Map::new());
        return true;
    }
    match value {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref") {
                let is_here = reference.as_str().is_some_and(|to| to.starts_with("#/"));
                match references.checked_sub(1) {
                    Some(left) if is_here => *references = left,
                    Some(_) => {
                        fields.remove("$ref");
                    }
                    None => return false,
                }
            }
            fields.values_mut().all(|value| trim(value, depth - 1, references))
        }
        Value::Array(values) => values.iter_mut().all(|value| trim(value, depth - 1, references)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_schema_stays_as_it_is() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "type": "string" }, "b": { "$ref": "#/$defs/B" } },
            "required": ["a"],
            "$defs": { "B": { "type": "number" } },
        });
        assert_eq!(safe(schema.clone()), schema);
    }

    #[test]
    fn the_top_is_an_object_without_alternatives() {
        for schema in [json!(null), json!("x"), json!({}), json!({ "type": "array" }), json!({ "anyOf": [{}] })] {
            assert_eq!(safe(schema), open());
        }
        assert_eq!(safe(json!({ "required": "a", "$schema": "x" })), open());
    }

    #[test]
    fn references_to_elsewhere_are_dropped_and_many_are_a_bomb() {
        let elsewhere = json!({ "properties": { "a": { "$ref": "http://evil/x.json" } } });
        assert_eq!(safe(elsewhere)["properties"]["a"], json!({}));
        let laughs = |n: usize| json!({ "anyOf": vec![json!({ "$ref": format!("#/$defs/{n}") }); 10] });
        let defs: Map<String, Value> = (0..10).map(|n| (n.to_string(), laughs(n + 1))).collect();
        assert_eq!(safe(json!({ "type": "object", "$defs": defs })), open());
    }

    #[test]
    fn what_is_too_deep_is_cut() {
        let deep = (0..100).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
        let text = safe(deep).to_string();
        assert!(text.matches("properties").count() <= DEEPEST, "{text}");
    }
}

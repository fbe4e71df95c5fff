//! The official schema as a judge of frames.

use std::collections::HashMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::support::data;

pub(crate) fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| serde_json::from_slice(&std::fs::read(data("schema/acp-v1.schema.json")).unwrap()).unwrap())
}

/// A definition and those that it refers to: to compile all of them takes long.
fn needed(definition: &str) -> Map<String, Value> {
    let (mut all, mut open) = (Map::new(), vec![definition.to_owned()]);
    while let Some(name) = open.pop() {
        let found = &schema()["$defs"][&name];
        let text = found.to_string();
        let refs = text.split(r##""#/$defs/"##).skip(1).filter_map(|rest| rest.split('"').next());
        open.extend(refs.filter(|name| !all.contains_key(*name)).map(str::to_owned));
        all.insert(name, found.clone());
    }
    all
}

/// Whether a value is what a definition of the schema says.
pub(crate) fn fits(definition: &str, value: &Value) -> bool {
    let whole = json!({ "$ref": format!("#/$defs/{definition}"), "$defs": needed(definition) });
    jsonschema::draft202012::is_valid(&whole, value)
}

const USED: [&str; 7] = [
    "SessionNotification",
    "RequestPermissionRequest",
    "CreateElicitationRequest",
    "CancelRequestNotification",
    "CompleteElicitationNotification",
    "PromptResponse",
    "Error",
];

fn validator(definition: &str) -> &'static Validator {
    static VALIDATORS: OnceLock<HashMap<&str, Validator>> = OnceLock::new();
    let all = VALIDATORS.get_or_init(|| {
        let of = |name: &str| {
            let whole = json!({ "$ref": format!("#/$defs/{name}"), "$defs": needed(name) });
            jsonschema::draft202012::new(&whole).unwrap()
        };
        USED.into_iter().map(|name| (name, of(name))).collect()
    });
    &all[definition]
}

/// Panics with what the schema says against a frame.
pub(crate) fn check(frame: &Value) {
    assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
    let (definition, value) = match frame["method"].as_str() {
        Some("session/update") => ("SessionNotification", &frame["params"]),
        Some("session/request_permission") => ("RequestPermissionRequest", &frame["params"]),
        Some("elicitation/create") => ("CreateElicitationRequest", &frame["params"]),
        Some("elicitation/complete") => ("CompleteElicitationNotification", &frame["params"]),
        Some("$/cancel_request") => ("CancelRequestNotification", &frame["params"]),
        Some(method) => return assert!(method.starts_with('_'), "{method} is not ours to send"),
        None if frame.get("error").is_some() => ("Error", &frame["error"]),
        None => ("PromptResponse", &frame["result"]),
    };
    assert_eq!(
        frame.get("id").is_some(),
        !matches!(frame["method"].as_str(), Some("session/update" | "$/cancel_request" | "elicitation/complete")),
        "{frame}"
    );
    if let Err(error) = validator(definition).validate(value) {
        panic!("{definition} at {}: {error}\n{frame}", error.instance_path);
    }
}

#[test]
fn the_validator_refuses() {
    let bad = |update: Value| {
        let frame =
            json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } });
        std::panic::catch_unwind(|| check(&frame)).is_err()
    };
    assert!(bad(json!({ "sessionUpdate": "tool_call", "toolCallId": "c" })));
    assert!(bad(
        json!({ "sessionUpdate": "plan", "entries": [{ "content": "x", "priority": "high", "status": "cancelled" }] })
    ));
    assert!(!bad(json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t" })));
}

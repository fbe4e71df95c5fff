use serde_json::{Value, json};
use tolka_facts::Head;

/// A session as lists and single looks show it.
pub(super) fn session(head: &Head, seq: u64) -> Value {
    let mut shown = json!(head);
    shown["position"] = json!(seq.to_string());
    shown
}

//! What we add to our own messages in `_meta.tolka`, where the protocol has no field for it: other clients skip it,
//! and our decoder gets back what was meant.

use serde::{Deserialize, Serialize};
use tolka_facts::{CallId, Json, TurnId};

use super::wire::lenient;

/// `_meta`, as we write it.
#[derive(Serialize, Deserialize)]
pub(super) struct Meta<T> {
    pub(super) tolka: T,
}

/// Anything that has a `_meta`. One that is not ours reads as if it had none.
#[derive(Deserialize)]
#[serde(bound = "T: serde::de::DeserializeOwned")]
struct Marked<T> {
    #[serde(rename = "_meta", default, deserialize_with = "lenient")]
    meta: Option<Meta<T>>,
}

pub(super) fn read<T: serde::de::DeserializeOwned>(json: &Json) -> Option<T> {
    // Nearly every message has none, and to look for the word is cheaper than to parse.
    let is_marked = json.get().contains(r#""tolka""#);
    Some(json.read::<Marked<T>>().filter(|_| is_marked)?.meta?.tolka)
}

/// On the first words of a turn: the prompt's response will have this id. On words for a turn that runs: they have no
/// response of their own.
#[derive(Serialize, Deserialize)]
pub(super) struct TurnMark {
    pub(super) turn: TurnId,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) into: Option<TurnId>,
}

/// On the notice that the model is asked again: what stands there in words.
#[derive(Serialize, Deserialize)]
pub(super) struct RetryMark {
    pub(super) attempt: u64,
    pub(super) delay_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) code: Option<i64>,
}

/// On a request for permission: what rules call it, which the protocol does not tell.
#[derive(Serialize, Deserialize)]
pub(super) struct PermissionMark {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) call: Option<CallId>,
    pub(super) permission: String,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) patterns: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) metadata: Option<Json>,
}

/// On the notice that a request needs no answer any more: the one that it got, as a response would say it.
#[derive(Serialize, Deserialize)]
pub(super) struct AnswerMark {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) answers: Option<Vec<Vec<String>>>,
    #[serde(default)]
    pub(super) by: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome {
    pub(super) outcome: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) option_id: Option<String>,
}

impl Outcome {
    pub(super) fn of(option: Option<&str>) -> Self {
        let outcome = if option.is_some() { "selected" } else { "cancelled" };
        Outcome { outcome: outcome.to_owned(), option_id: option.map(str::to_owned) }
    }
}

/// In the `data` of an error: the turn was cut, and nobody answered its prompt.
#[derive(Serialize, Deserialize)]
pub(super) struct StopMark {
    pub(super) stop: String,
}

pub(super) const INTERRUPTED: &str = "interrupted";

//! What an ACP agent said, to be said again as it came.

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use tolka_facts::Json;

use super::wire::lenient;

/// The root of a raw message, as far as it tells what it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Root<'a> {
    #[serde(default, deserialize_with = "lenient")]
    session_update: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    method: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    tool_call_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    tool_call: Option<CallOf>,
    #[serde(default, deserialize_with = "lenient")]
    session_id: Option<String>,
    id: Option<IgnoredAny>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    options: Option<IgnoredAny>,
    requested_schema: Option<IgnoredAny>,
    /// Onyx's packets are ACP updates with a type of their own.
    r#type: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallOf {
    #[serde(default, deserialize_with = "lenient")]
    tool_call_id: Option<String>,
}

/// A raw message of a fact, if it is of this protocol.
pub(super) enum Passed<'a> {
    /// The `update` of a `session/update`, its kind, and the call that it is about.
    Update { update: &'a Json, kind: String, call: Option<String> },
    /// A whole notification.
    Notification { method: String, params: Option<&'a RawValue> },
    /// The result of a prompt.
    Result { reason: String },
    /// The parameters of a request to the client, and the call that they name.
    Ask { params: &'a Json, call: Option<String> },
}

impl<'a> Passed<'a> {
    /// `None` for what came on another wire.
    pub(super) fn of(whole: &'a Json) -> Option<Self> {
        let root: Root<'a> = whole.read().filter(|root: &Root<'_>| root.r#type.is_none())?;
        if let Some(kind) = root.session_update {
            return Some(Passed::Update { update: whole, kind, call: root.tool_call_id });
        }
        if let Some(reason) = root.stop_reason {
            return Some(Passed::Result { reason });
        }
        if let Some(method) = root.method {
            return root.id.is_none().then_some(Passed::Notification { method, params: root.params });
        }
        let is_ask = root.session_id.is_some() && (root.options.is_some() || root.requested_schema.is_some());
        let call = root.tool_call.and_then(|call| call.tool_call_id).or(root.tool_call_id);
        is_ask.then_some(Passed::Ask { params: whole, call })
    }
}

/// An object as it came, but of our session: the agent's own name for it means nothing to our clients.
pub(super) struct Readdressed<'a> {
    /// JSON.
    pub(super) params: &'a str,
    pub(super) session: &'a str,
}

impl Serialize for Readdressed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = serde_json::from_str::<Fields>(self.params).unwrap_or_default();
        serializer.collect_map(fields.0.into_iter().map(|(key, value)| match key.as_str() {
            "sessionId" => (key, Json::of(&self.session)),
            _ => (key, value),
        }))
    }
}

/// In the order in which they were written.
#[derive(Default)]
struct Fields(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

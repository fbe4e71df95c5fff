//! What an ACP agent said, to be said again as it came.

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tolka_facts::{Blobs, Cause, Fact, Json};

use super::wire::lenient;

/// The root of a raw message, as far as it tells what it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Root {
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
    params: Option<Json>,
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
pub(super) enum Passed {
    /// The `update` of a `session/update`, and the call that it is about.
    Update { update: Json, call: Option<String> },
    /// A whole notification.
    Notification { method: String, params: Option<Json> },
    /// The result of a prompt.
    Result(Stopped),
    /// The parameters of a request to the client, and the call that they name.
    Ask { params: Json, call: Option<String> },
}

pub(super) struct Stopped {
    pub(super) reason: String,
    /// Perhaps moved out to a blob: it is kept until the turn ends.
    pub(super) result: Json,
}

impl Passed {
    /// `None` for what we made up, what a client said, and what came on another wire.
    pub(super) fn of(fact: &Fact, blobs: &dyn Blobs) -> Option<Passed> {
        let raw = fact.raw.as_ref().filter(|_| fact.cause == Cause::Agent)?;
        let whole = raw.whole(blobs);
        let root: Root = whole.read().filter(|root: &Root| root.r#type.is_none())?;
        if root.session_update.is_some() {
            return Some(Passed::Update { update: whole.into_owned(), call: root.tool_call_id });
        }
        if let Some(reason) = root.stop_reason {
            return Some(Passed::Result(Stopped { reason, result: raw.clone() }));
        }
        if let Some(method) = root.method {
            return root.id.is_none().then_some(Passed::Notification { method, params: root.params });
        }
        let is_ask = root.session_id.is_some() && (root.options.is_some() || root.requested_schema.is_some());
        let call = root.tool_call.and_then(|call| call.tool_call_id).or(root.tool_call_id);
        is_ask.then(|| Passed::Ask { params: whole.into_owned(), call })
    }
}

/// An object as it came, but of our session: the agent's own name for it means nothing to our clients.
pub(super) struct Readdressed<'a> {
    pub(super) params: &'a Json,
    pub(super) session: &'a str,
}

impl Serialize for Readdressed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.params.read::<Fields>().unwrap_or_default();
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

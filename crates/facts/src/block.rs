use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Body;

/// A piece of content, with the fields that the Agent Client Protocol gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: Body,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        #[cfg_attr(test, ts(type = "unknown"))]
        annotations: Option<Value>,
    },
    Image {
        /// Base64.
        data: Body,
        mime: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        uri: Option<String>,
    },
    Audio {
        /// Base64.
        data: Body,
        mime: String,
    },
    Link {
        uri: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        title: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        description: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        mime: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        size: Option<u64>,
    },
    Resource {
        uri: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        mime: Option<String>,
        /// `text` for readable content, `blob` (base64) for the rest; exactly one is there.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        text: Option<Body>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        blob: Option<Body>,
    },
}

impl Block {
    pub fn text(text: impl Into<Body>) -> Self {
        Block::Text { text: text.into(), annotations: None }
    }

    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Body> {
        let (one, two) = match self {
            Block::Text { text, .. } => (Some(text), None),
            Block::Image { data, .. } | Block::Audio { data, .. } => (Some(data), None),
            Block::Link { .. } => (None, None),
            Block::Resource { text, blob, .. } => (text.as_mut(), blob.as_mut()),
        };
        one.into_iter().chain(two)
    }
}

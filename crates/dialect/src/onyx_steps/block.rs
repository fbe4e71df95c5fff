//! Content blocks as the document has them: ACP's, but an embedded resource stands flat.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use tolka_facts::{Blobs, Block, Body, ToolContent};

use crate::onyx::fields;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Content<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        data: Cow<'a, str>,
        mime_type: &'a str,
    },
    Audio {
        data: Cow<'a, str>,
        mime_type: &'a str,
    },
    EmbeddedResource {
        uri: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Cow<'a, str>>,
        /// Base64, for what is no text.
        #[serde(skip_serializing_if = "Option::is_none")]
        blob: Option<Cow<'a, str>>,
        mime_type: Option<&'a str>,
    },
    ResourceLink {
        uri: &'a str,
        name: &'a str,
        mime_type: Option<&'a str>,
        size: Option<u64>,
    },
}

impl<'a> Content<'a> {
    fn of(block: &'a Block, blobs: &dyn Blobs) -> Self {
        match block {
            Block::Text { text, .. } => Content::Text { text: text.text(blobs) },
            Block::Image { data, mime, .. } => Content::Image { data: data.text(blobs), mime_type: mime },
            Block::Audio { data, mime } => Content::Audio { data: data.text(blobs), mime_type: mime },
            Block::Resource { uri, mime, text, blob } => {
                let whole = |body: &'a Option<Body>| body.as_ref().map(|body| body.text(blobs));
                Content::EmbeddedResource { uri, text: whole(text), blob: whole(blob), mime_type: mime.as_deref() }
            }
            Block::Link { uri, name, mime, size, .. } => {
                Content::ResourceLink { uri, name, mime_type: mime.as_deref(), size: *size }
            }
        }
    }
}

/// A diff is told as a file that was written, and into a terminal no reader could look.
pub(super) fn of_tool<'a>(content: Option<&'a Vec<ToolContent>>, blobs: &dyn Blobs) -> Vec<Content<'a>> {
    let blocks = content.into_iter().flatten().filter_map(|content| match content {
        ToolContent::Content { block } => Some(Content::of(block, blobs)),
        ToolContent::Diff { .. } | ToolContent::Terminal { .. } => None,
    });
    blocks.collect()
}

/// `None` for a block that is none of the document's.
pub(super) fn read(block: &Value) -> Option<Block> {
    if block["type"] != "embedded_resource" {
        return fields::block(block);
    }
    let text = |name: &str| block[name].as_str().map(str::to_owned);
    Some(Block::Resource {
        uri: text("uri")?,
        mime: text("mimeType"),
        text: text("text").map(Into::into),
        blob: text("blob").map(Into::into),
    })
}

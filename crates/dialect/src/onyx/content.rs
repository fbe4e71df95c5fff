//! Content as it is written: ACP's blocks, a tool's items and its locations, every field there and the keys
//! in the order of the real server's output.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use tolka_facts::{Blobs, Block, Body, Location, Rope, ToolContent};

/// Always null: the documents give these objects a `_meta` that nobody fills.
pub(super) type Null = ();

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text {
        _meta: Null,
        annotations: Option<&'a Value>,
        text: Cow<'a, str>,
        r#type: &'static str,
    },
    /// Output that is still being told piece by piece.
    Live {
        _meta: Null,
        annotations: Null,
        text: &'a Rope,
        r#type: &'static str,
    },
    Media {
        _meta: Null,
        annotations: Null,
        data: Cow<'a, str>,
        #[serde(rename = "mimeType")]
        mime: &'a str,
        uri: Option<&'a str>,
        r#type: &'static str,
    },
    Link {
        _meta: Null,
        annotations: Null,
        description: Option<&'a str>,
        #[serde(rename = "mimeType")]
        mime: Option<&'a str>,
        name: &'a str,
        size: Option<u64>,
        title: Option<&'a str>,
        uri: &'a str,
        r#type: &'static str,
    },
    Resource {
        _meta: Null,
        annotations: Null,
        resource: Resource<'a>,
        r#type: &'static str,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct Resource<'a> {
    _meta: Null,
    #[serde(rename = "mimeType")]
    mime: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<Cow<'a, str>>,
    uri: &'a str,
}

impl<'a> Content<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Content::Text { _meta: (), annotations: None, text: Cow::Borrowed(text), r#type: "text" }
    }

    fn block(block: &'a Block, blobs: &dyn Blobs) -> Self {
        let media =
            |data, mime, uri, kind| Content::Media { _meta: (), annotations: (), data, mime, uri, r#type: kind };
        match block {
            Block::Text { text, annotations } => {
                Content::Text { _meta: (), annotations: annotations.as_ref(), text: text.text(blobs), r#type: "text" }
            }
            Block::Image { data, mime, uri } => media(data.text(blobs), mime, uri.as_deref(), "image"),
            Block::Audio { data, mime } => media(data.text(blobs), mime, None, "audio"),
            Block::Link { uri, name, title, description, mime, size } => Content::Link {
                _meta: (),
                annotations: (),
                description: description.as_deref(),
                mime: mime.as_deref(),
                name,
                size: *size,
                title: title.as_deref(),
                uri,
                r#type: "resource_link",
            },
            Block::Resource { uri, mime, text, blob } => {
                let whole = |body: &'a Option<Body>| body.as_ref().map(|body| body.text(blobs));
                let resource = Resource { _meta: (), mime: mime.as_deref(), text: whole(text), blob: whole(blob), uri };
                Content::Resource { _meta: (), annotations: (), resource, r#type: "resource" }
            }
        }
    }
}

/// One item of a tool's `content`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Item<'a> {
    Content {
        _meta: Null,
        content: Content<'a>,
        r#type: &'static str,
    },
    Diff {
        _meta: Null,
        #[serde(rename = "newText")]
        new: Cow<'a, str>,
        /// Empty for a new file: by that the documents know one.
        #[serde(rename = "oldText")]
        old: Cow<'a, str>,
        path: Cow<'a, str>,
        r#type: &'static str,
    },
}

impl<'a> Item<'a> {
    /// `None` for a terminal: the documents know none, and its client could not look into it.
    pub(super) fn new(content: &'a ToolContent, blobs: &dyn Blobs) -> Option<Self> {
        match content {
            ToolContent::Content { block } => {
                Some(Item::Content { _meta: (), content: Content::block(block, blobs), r#type: "content" })
            }
            ToolContent::Diff { path, old, new } => {
                let old = old.as_ref().map(|old| old.text(blobs)).unwrap_or_default();
                Some(Item::Diff { _meta: (), new: new.text(blobs), old, path: Cow::Borrowed(path), r#type: "diff" })
            }
            ToolContent::Terminal { .. } => None,
        }
    }

    pub(super) fn live(text: &'a Rope) -> Self {
        let content = Content::Live { _meta: (), annotations: (), text, r#type: "text" };
        Item::Content { _meta: (), content, r#type: "content" }
    }

    pub(super) fn new_file(path: String, text: String) -> Self {
        Item::Diff { _meta: (), new: Cow::Owned(text), old: Cow::Borrowed(""), path: Cow::Owned(path), r#type: "diff" }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Place<'a> {
    _meta: Null,
    line: Option<u64>,
    path: &'a str,
}

impl<'a> From<&'a Location> for Place<'a> {
    fn from(location: &'a Location) -> Self {
        Place { _meta: (), line: location.line, path: &location.path }
    }
}

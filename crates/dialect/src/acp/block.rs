use serde::Deserialize;
use serde_json::Value;
use tolka_facts::{Block, Json, ToolContent};

use super::wire::lenient;

/// Every field that any kind of block has: a tag inside would need a buffered deserializer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyBlock {
    r#type: String,
    #[serde(default, deserialize_with = "lenient")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    data: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    mime_type: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    uri: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    title: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    description: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    size: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    annotations: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    resource: Option<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    #[serde(default, deserialize_with = "lenient")]
    mime_type: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    blob: Option<String>,
}

/// `None` for a block that the protocol does not have or that lacks what makes it one.
pub(super) fn block(json: &Json) -> Option<Block> {
    let any: AnyBlock = json.read()?;
    match any.r#type.as_str() {
        "text" => Some(Block::Text { text: any.text?.into(), annotations: any.annotations }),
        "image" => Some(Block::Image { data: any.data?.into(), mime: any.mime_type?, uri: any.uri }),
        "audio" => Some(Block::Audio { data: any.data?.into(), mime: any.mime_type? }),
        "resource_link" => Some(Block::Link {
            name: any.name.or_else(|| any.uri.clone())?,
            uri: any.uri?,
            title: any.title,
            description: any.description,
            mime: any.mime_type,
            size: any.size,
        }),
        "resource" => {
            let Resource { uri, mime_type, text, blob } = any.resource?;
            let blob = if text.is_some() { None } else { Some(blob?.into()) };
            Some(Block::Resource { uri, mime: mime_type, text: text.map(Into::into), blob })
        }
        _ => None,
    }
}

/// The text of a text block.
pub(super) fn text(json: &Json) -> Option<String> {
    let any: AnyBlock = json.read()?;
    any.text.filter(|_| any.r#type == "text")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyContent {
    r#type: String,
    content: Option<Json>,
    #[serde(default, deserialize_with = "lenient")]
    path: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    old_text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    new_text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    terminal_id: Option<String>,
}

pub(super) fn content(json: &Json) -> Option<ToolContent> {
    let any: AnyContent = json.read()?;
    match any.r#type.as_str() {
        "content" => Some(ToolContent::Content { block: block(&any.content?)? }),
        "diff" => Some(ToolContent::Diff {
            path: any.path?,
            old: any.old_text.map(Into::into),
            new: any.new_text.unwrap_or_default().into(),
        }),
        "terminal" => Some(ToolContent::Terminal { id: any.terminal_id? }),
        _ => None,
    }
}

//! What servers give: read leniently, piece by piece, so that one piece which is wrong does not take the others with it.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connection::read;
use crate::error::{McpError, cut};

/// Pieces of one result.
const MOST: usize = 200;
/// Of what we do not know, for people to see that it was there.
const UNKNOWN: usize = 500;

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Returned {
    pub content: Vec<Content>,
    /// The same for programs, where there is one.
    pub structured: Option<Value>,
    /// The tool says that it failed.
    pub is_error: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    /// Base64, or so it says.
    Image {
        data: String,
        mime: String,
    },
    Audio {
        data: String,
        mime: String,
    },
    Link {
        uri: String,
        name: String,
        description: Option<String>,
        mime: Option<String>,
    },
    Resource(Contents),
    /// What cannot be shown as it is, in words.
    Words(String),
}

/// What is in a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    pub uri: String,
    pub mime: Option<String>,
    pub given: Given,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    Text(String),
    /// Base64.
    Blob(String),
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub is_user: bool,
    pub content: Content,
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, rename = "structuredContent", default)]
    structured: Option<&'a RawValue>,
    #[serde(rename = "isError", default)]
    is_error: Option<bool>,
}

impl Returned {
    pub(crate) fn read(answer: &RawValue) -> Result<Self, McpError> {
        let result: Called<'_> = read(answer)?;
        let pieces = result.content.unwrap_or_default();
        let mut content: Vec<Content> = pieces.iter().take(MOST).map(|piece| Content::read(piece)).collect();
        if pieces.len() > MOST {
            content.push(Content::Words(format!("[{} more pieces are left out]", pieces.len() - MOST)));
        }
        let structured = result.structured.and_then(|value| serde_json::from_str(value.get()).ok());
        Ok(Returned { content, structured, is_error: result.is_error.unwrap_or(false) })
    }
}

impl Content {
    fn read(piece: &RawValue) -> Self {
        let Ok(Value::Object(mut fields)) = serde_json::from_str(piece.get()) else {
            return Content::Words(format!("[a piece that is none: {}]", cut(piece.get(), UNKNOWN)));
        };
        let mut take = |name: &str| match fields.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let kind = take("type").unwrap_or_default();
        match kind.as_str() {
            "text" => Content::Text(take("text").unwrap_or_default()),
            "image" => Content::Image {
                data: take("data").unwrap_or_default(),
                mime: take("mimeType").unwrap_or_else(|| "image/*".to_owned()),
            },
            "audio" => Content::Audio {
                data: take("data").unwrap_or_default(),
                mime: take("mimeType").unwrap_or_else(|| "audio/*".to_owned()),
            },
            "resource_link" => {
                let uri = take("uri").unwrap_or_default();
                let name = take("title").or_else(|| take("name")).unwrap_or_else(|| uri.clone());
                Content::Link { uri, name, description: take("description"), mime: take("mimeType") }
            }
            "resource" => match fields.remove("resource").and_then(Contents::of) {
                Some(contents) => Content::Resource(contents),
                None => Content::Words("[a resource without content]".to_owned()),
            },
            _ => Content::Words(format!("[a piece of a kind that is not known: {}]", cut(piece.get(), UNKNOWN))),
        }
    }
}

impl Contents {
    fn of(value: Value) -> Option<Self> {
        let Value::Object(mut fields) = value else { return None };
        let mut take = |name: &str| match fields.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let given = match (take("text"), take("blob")) {
            (Some(text), _) => Given::Text(text),
            (None, Some(blob)) => Given::Blob(blob),
            (None, None) => return None,
        };
        Some(Contents { uri: take("uri").unwrap_or_default(), mime: take("mimeType"), given })
    }

    pub(crate) fn read(answer: &RawValue) -> Result<Vec<Self>, McpError> {
        #[derive(Deserialize)]
        struct Read<'a> {
            #[serde(borrow)]
            contents: Vec<&'a RawValue>,
        }
        let read: Read<'_> = read(answer)?;
        let pieces = read.contents.into_iter().take(MOST);
        Ok(pieces.filter_map(|piece| Contents::of(serde_json::from_str(piece.get()).ok()?)).collect())
    }
}

impl Said {
    pub(crate) fn read(answer: &RawValue) -> Result<Vec<Self>, McpError> {
        #[derive(Deserialize)]
        struct Read<'a> {
            #[serde(borrow)]
            messages: Vec<Message<'a>>,
        }
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(default)]
            role: String,
            #[serde(borrow)]
            content: &'a RawValue,
        }
        let read: Read<'_> = read(answer)?;
        let said = |message: Message<'_>| Said {
            is_user: message.role != "assistant",
            content: Content::read(message.content),
        };
        Ok(read.messages.into_iter().take(MOST).map(said).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    #[test]
    fn one_wrong_piece_does_not_take_the_others_with_it() {
        let answer = json!({ "content": [
            { "type": "text", "text": "hello" },
            { "type": "image", "data": "aaaa", "mimeType": "image/jpeg" },
            { "type": "image" },
            { "type": "resource", "resource": { "uri": "a:b", "text": "t" } },
            { "type": "resource" },
            { "type": "hologram" },
            7,
        ]});
        let returned = Returned::read(&raw(&answer)).unwrap();
        let words = |text: &str| Content::Words(text.to_owned());
        assert_eq!(returned.content[0], Content::Text("hello".into()));
        assert_eq!(returned.content[1], Content::Image { data: "aaaa".into(), mime: "image/jpeg".into() });
        assert_eq!(returned.content[2], Content::Image { data: String::new(), mime: "image/*".into() });
        let given = Given::Text("t".into());
        assert_eq!(returned.content[3], Content::Resource(Contents { uri: "a:b".into(), mime: None, given }));
        assert_eq!(returned.content[4], words("[a resource without content]"));
        assert!(matches!(&returned.content[5], Content::Words(words) if words.contains("hologram")));
        assert_eq!(returned.content[6], words("[a piece that is none: 7]"));
    }

    #[test]
    fn what_is_no_result_is_an_error_and_what_is_too_much_is_cut() {
        assert!(Returned::read(&raw(&json!([1]))).is_err());
        assert!(Returned::read(&raw(&json!({ "content": "text" }))).is_err());
        let many = json!({ "content": vec![json!({ "type": "text", "text": "a" }); MOST + 5] });
        let returned = Returned::read(&raw(&many)).unwrap();
        assert_eq!(returned.content.last(), Some(&Content::Words("[5 more pieces are left out]".into())));
    }
}

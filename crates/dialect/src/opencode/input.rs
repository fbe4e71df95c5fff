//! What a client may put into a prompt: text, `file://` and data URLs (document 004, "Input Part Types").

use serde_json::Value;
use tolka_facts::{Block, Subtask};

/// In the words and the form of OpenCode's own validation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{expected}\n  at [{path}]")]
pub struct InputError {
    expected: String,
    path: String,
}

impl InputError {
    fn new(expected: impl Into<String>, path: impl Into<String>) -> Self {
        InputError { expected: expected.into(), path: path.into() }
    }
}

pub fn blocks_from_parts(parts: Option<&Value>) -> Result<Vec<Block>, InputError> {
    let Some(parts) = parts else { return Err(InputError::new("Missing key", "\"parts\"")) };
    let Value::Array(parts) = parts else {
        return Err(InputError::new(format!("Expected array, got {parts}"), "\"parts\""));
    };
    if parts.is_empty() {
        return Err(InputError::new("Expected at least one part", "\"parts\""));
    }
    let blocks: Vec<Block> = parts.iter().enumerate().map(|(at, part)| block(part, at)).collect::<Result<_, _>>()?;
    let is_blank = |block: &Block| matches!(block, Block::Text { text, .. } if text.head().trim().is_empty());
    if blocks.iter().all(is_blank) {
        return Err(InputError::new("Expected a part that says something", "\"parts\""));
    }
    Ok(blocks)
}

fn block(part: &Value, at: usize) -> Result<Block, InputError> {
    let path = |field: &str| format!("\"parts\"][{at}][\"{field}\"");
    let text = |field: &str| match part.get(field) {
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => Err(InputError::new(format!("Expected string, got {other}"), path(field))),
        None => Err(InputError::new("Missing key", path(field))),
    };
    match text("type")? {
        "text" => Ok(Block::text(text("text")?)),
        "file" => file(text("url")?, text("mime")?, part.get("filename").and_then(Value::as_str))
            .ok_or_else(|| InputError::new("Expected a file:/// or base64 data: URL", path("url"))),
        "agent" => Ok(Block::text(format!("@{}", text("name")?))),
        "subtask" => {
            let (prompt, kind) = (text("prompt")?.to_owned(), text("agent")?.to_owned());
            let description = part.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
            Ok(Subtask { kind, description, prompt }.into_block())
        }
        other => Err(InputError::new(
            format!("Expected \"text\", \"file\", \"agent\" or \"subtask\", got \"{other}\""),
            path("type"),
        )),
    }
}

fn file(url: &str, mime: &str, filename: Option<&str>) -> Option<Block> {
    if let Some(data) = url.strip_prefix("data:") {
        let (kind, data) = data.split_once(',')?;
        let mime =
            Some(kind.split(';').next().unwrap_or_default()).filter(|m| !m.is_empty()).unwrap_or(mime).to_owned();
        let data = kind.ends_with(";base64").then(|| data.to_owned())?;
        return Some(match mime.split('/').next() {
            Some("image") => Block::Image { data: data.into(), mime, uri: None },
            Some("audio") => Block::Audio { data: data.into(), mime },
            _ => Block::Resource {
                uri: format!("attachment:{}", filename.unwrap_or("file")),
                mime: Some(mime),
                text: None,
                blob: Some(data.into()),
            },
        });
    }
    let known = url.starts_with("file:///");
    let name = filename.or_else(|| url.rsplit('/').next()).unwrap_or(url);
    known.then(|| Block::Link {
        uri: url.to_owned(),
        name: name.to_owned(),
        title: None,
        description: None,
        mime: Some(mime.to_owned()),
        size: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn takes_the_documents_three_kinds_and_names_what_is_wrong_with_others() {
        let parts = json!([
            { "type": "text", "text": "Your message" },
            { "type": "file", "mime": "text/plain", "url": "file:///path/to/file" },
            { "type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk=" },
        ]);
        let blocks = blocks_from_parts(Some(&parts)).unwrap();
        assert_eq!(blocks[0], Block::text("Your message"));
        assert!(matches!(&blocks[1], Block::Link { uri, name, .. } if uri == "file:///path/to/file" && name == "file"));
        assert!(matches!(&blocks[2], Block::Image { mime, .. } if mime == "image/png"));

        let task = json!([{ "type": "subtask", "prompt": "Look.", "description": "A look", "agent": "explore" }]);
        let task = blocks_from_parts(Some(&task)).unwrap().pop().unwrap();
        let expected = Subtask { kind: "explore".into(), description: "A look".into(), prompt: "Look.".into() };
        assert_eq!(Subtask::of(&task, &tolka_facts::NoBlobs), Some(expected));

        let wrong = |parts: Value| blocks_from_parts(Some(&parts)).unwrap_err().to_string();
        assert_eq!(wrong(json!("bad")), "Expected array, got \"bad\"\n  at [\"parts\"]");
        assert_eq!(wrong(json!([{ "type": "text" }])), "Missing key\n  at [\"parts\"][0][\"text\"]");
        assert!(wrong(json!([{ "type": "file", "mime": "a/b", "url": "nonsense" }])).contains("data: URL"));
    }
}

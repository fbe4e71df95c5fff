//! The body of `send-message`, in both of its generations.

use serde_json::{Value, json};
use tolka_facts::event::Model;
use tolka_facts::uri_path;
use tolka_facts::{Block, Head, Json};
use tolka_session::PromptRequest;

use crate::fault::Fault;
use crate::request::text_field;

/// Names of files come with it; more than this is no message of a person.
const ATTACHMENTS: usize = 100;
/// A client's key is a UUID or the like; it is kept for ever.
const KEY: usize = 200;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    content: String,
    /// `client_request_id`: today's client, which reads the stream elsewhere.
    pub(super) key: Option<String>,
    attachments: Vec<Attachment>,
    provider: Option<String>,
    model: Option<String>,
    /// `content` and nothing else: the documents' client.
    pub(super) is_plain: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Attachment {
    name: String,
    path: String,
    mime: Option<String>,
}

impl Message {
    pub(super) fn read(body: &Value) -> Result<Self, Fault> {
        let content = text_field(body, "content")?.ok_or_else(|| wrong("`content` is missing; it is the prompt."))?;
        if content.trim().is_empty() {
            return Err(wrong("`content` is empty; there is nothing to do."));
        }
        let key = text_field(body, "client_request_id")?.map(str::to_owned);
        if key.as_ref().is_some_and(|key| key.trim().is_empty() || key.len() > KEY) {
            return Err(wrong(&format!("`client_request_id` must have 1 to {KEY} characters.")));
        }
        let is_plain = body.as_object().is_some_and(|fields| fields.len() == 1);
        let owned = |name| text_field(body, name).map(|text| text.map(str::to_owned));
        let (provider, model) = (owned("provider")?, owned("model")?);
        Ok(Message { content: content.to_owned(), key, attachments: attachments(body)?, provider, model, is_plain })
    }

    pub(super) fn into_request(self, head: &Head) -> PromptRequest {
        let text = std::iter::once(Block::text(self.content));
        let links = self.attachments.iter().map(|attachment| attachment.link(&head.workspace));
        let content = text.chain(links).collect();
        let model = self.model.map(|id| Model { provider: self.provider.unwrap_or_default(), id });
        let listed: Vec<Value> = self.attachments.iter().map(Attachment::json).collect();
        let context = (!listed.is_empty()).then(|| Json::from(json!({ "attachments": listed })));
        PromptRequest { content, key: self.key, model, context, ..PromptRequest::default() }
    }
}

impl Attachment {
    fn read(value: &Value) -> Result<Self, Fault> {
        let field = |name| text_field(value, name).map(|text| text.filter(|text| !text.is_empty()).map(str::to_owned));
        let path = field("path")?.ok_or_else(|| wrong("An attachment needs a `path`."))?;
        let name = field("name")?.ok_or_else(|| wrong("An attachment needs a `name`."))?;
        if !is_attachment_path(&path) {
            let shown: String = path.chars().take(80).collect();
            return Err(wrong(&format!(
                "`{shown}` is not the path of an attachment: those are relative and start with `attachments/`."
            )));
        }
        Ok(Attachment { name, path, mime: field("mime_type")? })
    }

    fn link(&self, workspace: &str) -> Block {
        Block::Link {
            uri: format!("file://{}/{}", uri_path(workspace.trim_end_matches('/')), uri_path(&self.path)),
            name: self.name.clone(),
            title: None,
            description: None,
            mime: self.mime.clone(),
            size: None,
        }
    }

    fn json(&self) -> Value {
        json!({ "name": self.name, "path": self.path, "mime_type": self.mime })
    }
}

fn attachments(body: &Value) -> Result<Vec<Attachment>, Fault> {
    let list = match body.get("attachments") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= ATTACHMENTS => list,
        Some(Value::Array(_)) => return Err(wrong(&format!("`attachments` has more than {ATTACHMENTS} items."))),
        Some(_) => return Err(wrong("`attachments` must be a list.")),
    };
    if !list.iter().all(Value::is_object) {
        return Err(wrong("`attachments` must be a list of objects with `name`, `path` and `mime_type`."));
    }
    list.iter().map(Attachment::read).collect()
}

/// A link is only a name for the agent, but one that leads out of the workspace would be a trap.
fn is_attachment_path(path: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let has_odd = path.contains('\\') || path.chars().any(char::is_control);
    path.starts_with("attachments/") && !has_odd && path.split('/').all(is_plain)
}

fn wrong(message: &str) -> Fault {
    Fault::BadRequest(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Option<Message> {
        Message::read(body).ok()
    }

    #[test]
    fn both_generations_are_read() {
        let plain = read(&json!({ "content": "hi" })).unwrap();
        assert!(plain.is_plain && plain.key.is_none());
        let today =
            json!({ "content": "hi", "client_request_id": "k", "attachments": [], "provider": null, "model": "m" });
        let today = read(&today).unwrap();
        assert!(!today.is_plain);
        let request = today.into_request(&Head::default());
        assert_eq!(request.key.as_deref(), Some("k"));
        assert_eq!(request.model, Some(Model { provider: String::new(), id: "m".into() }));
        assert_eq!(request.context, None);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let attached = |path: &str| json!({ "content": "hi", "attachments": [{ "name": "a", "path": path }] });
        for body in [
            json!({}),
            json!({ "content": "" }),
            json!({ "content": " \n" }),
            json!({ "content": 1 }),
            json!({ "content": ["hi"] }),
            json!({ "content": "hi", "client_request_id": "" }),
            json!({ "content": "hi", "client_request_id": 7 }),
            json!({ "content": "hi", "attachments": "x" }),
            json!({ "content": "hi", "attachments": ["x"] }),
            json!({ "content": "hi", "attachments": [{ "path": "attachments/a" }] }),
            attached("/etc/passwd"),
            attached("attachments"),
            attached("attachments/"),
            attached("attachments/../x"),
            attached("other/x"),
            attached("attachments/a\\b"),
        ] {
            assert_eq!(read(&body), None, "{body}");
        }
    }

    #[test]
    fn an_attachment_is_a_link_into_the_workspace() {
        let body = json!({
            "content": "see",
            "client_request_id": "k",
            "attachments": [{ "name": "a b.png", "path": "attachments/a b.png", "mime_type": "image/png" }],
        });
        let head = Head { workspace: "/ws/".into(), ..Head::default() };
        let request = read(&body).unwrap().into_request(&head);
        let Some(Block::Link { uri, name, mime, .. }) = request.content.get(1) else { panic!("no link") };
        assert_eq!((uri.as_str(), name.as_str()), ("file:///ws/attachments/a%20b.png", "a b.png"));
        assert_eq!(mime.as_deref(), Some("image/png"));
        assert!(request.context.unwrap().get().contains("attachments/a b.png"));
    }
}

//! The body of a chat: the last user message is the prompt, the context goes to the agent as it came.

use serde_json::Value;
use tolka_facts::{Block, Json};
use tolka_session::PromptRequest;

use crate::fault::Fault;

const NO_MESSAGE: &str =
    "No user message found. Send the prompt as the last of `messages`: {\"role\": \"user\", \"content\": \"…\"}.";

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    text: String,
    /// What the editor shows: the open file, its selection, other files. Only the agent reads it.
    context: Option<Json>,
    pub(super) dialog: Option<String>,
}

impl Message {
    /// Of all messages only the last one of the user counts: the dialog has its own history. Fields that are not
    /// known are ignored, wrong types are not.
    pub(super) fn read(body: &Value) -> Result<Self, Fault> {
        let messages = match body.get("messages") {
            Some(Value::Array(messages)) => messages,
            Some(_) => return Err(wrong("`messages` must be a list.")),
            None => return Err(wrong("`messages` is missing; it is a list of {\"role\", \"content\"}.")),
        };
        let mut last = None;
        for (at, message) in messages.iter().enumerate() {
            let text = |name: &str| {
                let text = message.get(name).and_then(Value::as_str);
                text.ok_or_else(|| wrong(&format!("`messages[{at}].{name}` must be a string.")))
            };
            let (role, content) = (text("role")?, text("content")?);
            last = (role == "user").then_some(content).or(last);
        }
        if !matches!(body.get("stream"), None | Some(Value::Null | Value::Bool(_))) {
            return Err(wrong("`stream` must be true or false."));
        }
        let context = match body.get("context") {
            None | Some(Value::Null) => None,
            Some(context @ Value::Object(_)) => Some(Json::from_value(context)),
            Some(_) => return Err(wrong("`context` must be an object.")),
        };
        let dialog = match body.get("dialog_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(wrong("`dialog_id` must be a string.")),
        };
        let text = last.filter(|text| !text.trim().is_empty());
        let text = text.ok_or_else(|| Fault::BadRequest(NO_MESSAGE.to_owned()))?.to_owned();
        Ok(Message { text, context, dialog })
    }

    pub(super) fn into_request(self) -> PromptRequest {
        PromptRequest { content: vec![Block::text(self.text)], context: self.context, ..PromptRequest::default() }
    }
}

fn wrong(message: &str) -> Fault {
    Fault::Invalid(message.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_user_message_is_the_prompt() {
        let context = json!({ "current_file": { "path": "a.py", "selection": "x" }, "open_files": [] });
        let body = json!({
            "messages": [
                { "role": "user", "content": "first" },
                { "role": "user", "content": "second", "name": "me" },
                { "role": "assistant", "content": "yes?" },
            ],
            "context": context,
            "dialog_id": null,
            "workload": "fast",
        });
        let read = Message::read(&body).unwrap();
        let expected = Message { text: "second".to_owned(), context: Some(Json::from(context)), dialog: None };
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let user = json!([{ "role": "user", "content": "hi" }]);
        for (body, field) in [
            (json!({}), "messages"),
            (json!({ "messages": "hi" }), "messages"),
            (json!({ "messages": ["hi"] }), "messages[0].role"),
            (json!({ "messages": [{ "role": "user" }] }), "messages[0].content"),
            (json!({ "messages": [{ "role": "user", "content": ["hi"] }] }), "messages[0].content"),
            (json!({ "messages": user, "stream": "yes" }), "stream"),
            (json!({ "messages": user, "context": [] }), "context"),
            (json!({ "messages": user, "dialog_id": 7 }), "dialog_id"),
        ] {
            let Err(Fault::Invalid(message)) = Message::read(&body) else { panic!("{body} is invalid") };
            assert!(message.starts_with(&format!("`{field}`")), "{message}");
        }
        for messages in [
            json!([]),
            json!([{ "role": "assistant", "content": "hi" }]),
            json!([{ "role": "user", "content": " \n" }]),
        ] {
            let read = Message::read(&json!({ "messages": messages }));
            assert!(matches!(read, Err(Fault::BadRequest(message)) if message == NO_MESSAGE), "{messages}");
        }
    }
}

//! The conversation in the words of the `genai` crate.

use genai::chat::{Binary, ChatMessage, ChatRequest, ContentPart, MessageContent, Tool, ToolCall, ToolResponse};
use serde_json::{Value, json};

use crate::native::model::{Input, Message, Output, Request, Returned};

pub(super) fn chat(request: &Request) -> ChatRequest {
    let mut chat = ChatRequest::new(request.messages.iter().flat_map(|message| messages(message)).collect());
    if !request.system.is_empty() {
        chat = chat.with_system(&*request.system);
    }
    let tools = request.tools.iter().map(|tool| {
        Tool::new(tool.name.as_str()).with_description(tool.description.as_str()).with_schema(tool.schema.clone())
    });
    if request.tools.is_empty() { chat } else { chat.with_tools(tools.collect::<Vec<_>>()) }
}

fn messages(message: &Message) -> Vec<ChatMessage> {
    match message {
        Message::User(inputs) => vec![ChatMessage::user(content(inputs.iter().map(part)))],
        Message::Model(outputs) => {
            let parts = answer(outputs);
            if parts.is_empty() { Vec::new() } else { vec![ChatMessage::assistant(MessageContent::from_parts(parts))] }
        }
        Message::Results(results) => {
            let responses = results.iter().map(|result| ContentPart::ToolResponse(response(result)));
            let mut messages = vec![ChatMessage::tool(content(responses))];
            // A result is text here; what is not is shown after it.
            let seen =
                results.iter().flat_map(|result| &result.content).filter(|input| !matches!(input, Input::Text(_)));
            let seen: Vec<ContentPart> = seen.map(part).collect();
            if !seen.is_empty() {
                messages.push(ChatMessage::user(content(seen.into_iter())));
            }
            messages
        }
    }
}

fn content(parts: impl Iterator<Item = ContentPart>) -> MessageContent {
    MessageContent::from_parts(parts.collect::<Vec<_>>())
}

fn part(input: &Input) -> ContentPart {
    match input {
        Input::Text(text) => ContentPart::Text(text.clone()),
        Input::Image { mime, data } => ContentPart::Binary(Binary::from_base64(mime.as_str(), data.as_str(), None)),
        Input::File { name, mime, data } => {
            ContentPart::Binary(Binary::from_base64(mime.as_str(), data.as_str(), Some(name.clone())))
        }
    }
}

fn response(result: &Returned) -> ToolResponse {
    let texts = result
        .content
        .iter()
        .filter_map(|input| if let Input::Text(text) = input { Some(text.as_str()) } else { None });
    let text = texts.collect::<Vec<_>>().join("\n");
    ToolResponse::new(result.call.as_str(), if result.is_error { format!("Error: {text}") } else { text })
}

/// Signatures first, as that crate wants them; thoughts that nobody signed stay here.
fn answer(outputs: &[Output]) -> Vec<ContentPart> {
    let (mut signatures, mut parts, mut on_calls) = (Vec::new(), Vec::new(), Vec::new());
    for output in outputs {
        match output {
            Output::Text(text) if text.is_empty() => {}
            Output::Text(text) => parts.push(ContentPart::Text(text.clone())),
            Output::Thought { kept, .. } => {
                let kept = kept.as_ref().map(tolka_facts::Json::value).unwrap_or_default();
                signatures.extend(strings(&kept["thought_signatures"]).into_iter().map(ContentPart::ThoughtSignature));
                on_calls.extend(kept["call_signatures"].as_array().into_iter().flatten().map(strings));
            }
            Output::Call { id, name, input } => parts.push(ContentPart::ToolCall(ToolCall {
                call_id: id.clone(),
                fn_name: name.clone(),
                fn_arguments: Some(input.value()).filter(Value::is_object).unwrap_or_else(|| json!({})),
                thought_signatures: None,
            })),
        }
    }
    let calls =
        parts.iter_mut().filter_map(|part| if let ContentPart::ToolCall(call) = part { Some(call) } else { None });
    for (call, signed) in calls.zip(on_calls) {
        call.thought_signatures = Some(signed).filter(|signed| !signed.is_empty());
    }
    if parts.is_empty() {
        return parts;
    }
    signatures.extend(parts);
    signatures
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

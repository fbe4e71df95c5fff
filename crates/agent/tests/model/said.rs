//! What a model said, gathered from its pieces, and requests made from it.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tolka_agent::ModelAbout;
use tolka_agent::native::model::{
    Anthropic, AnthropicOptions, Endpoint, Input, Message, Model, ModelError, OpenAi, OpenAiOptions, Output, Piece,
    Pieces, Request, Returned, Secret, ToolSpec,
};
use tolka_facts::Json;
use tolka_facts::event::Finish;
use tolka_scripted::Scripted;

pub(crate) const KEY: &str = "sk-secret-0123456789";

#[derive(Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) outputs: Vec<Output>,
    pub(crate) finish: Finish,
    pub(crate) is_refusal: bool,
    pub(crate) usage: Option<tolka_facts::event::Usage>,
}

pub(crate) async fn pieces(mut stream: Pieces) -> (Vec<Piece>, Option<ModelError>) {
    let (mut pieces, mut error) = (Vec::new(), None);
    while let Some(piece) = stream.next().await {
        assert!(error.is_none(), "something came after an error");
        assert!(!matches!(pieces.last(), Some(Piece::Ended { .. })), "something came after the end");
        match piece {
            Ok(piece) => pieces.push(piece),
            Err(problem) => error = Some(problem),
        }
    }
    assert!(error.is_some() || matches!(pieces.last(), Some(Piece::Ended { .. })), "{pieces:?}");
    (pieces, error)
}

/// As the loop gathers them.
pub(crate) fn gathered(pieces: Vec<Piece>) -> Said {
    let (mut outputs, mut slots, mut inputs) = (Vec::new(), Vec::new(), Vec::<String>::new());
    let mut is_thinking = false;
    for piece in pieces {
        match piece {
            Piece::Text(text) => match outputs.last_mut() {
                Some(Output::Text(said)) => said.push_str(&text),
                _ => outputs.push(Output::Text(text)),
            },
            Piece::Thought(text) => match outputs.last_mut() {
                Some(Output::Thought { text: thought, .. }) if is_thinking => thought.push_str(&text),
                _ => {
                    is_thinking = true;
                    outputs.push(Output::Thought { text, kept: None });
                }
            },
            Piece::ThoughtEnded { kept } => match outputs.last_mut() {
                Some(Output::Thought { kept: before, .. }) if std::mem::take(&mut is_thinking) => *before = kept,
                _ => outputs.push(Output::Thought { text: String::new(), kept }),
            },
            Piece::CallBegan { slot, id, name } => {
                assert_eq!(slot, slots.len(), "slots are numbered as calls begin");
                slots.push(outputs.len());
                inputs.push(String::new());
                outputs.push(Output::Call { id, name, input: Json::of(&json!({})) });
            }
            Piece::CallInput { slot, text } => inputs[slot].push_str(&text),
            Piece::Ended { finish, is_refusal, usage } => {
                for (slot, text) in slots.iter().zip(&inputs) {
                    if let Output::Call { input, .. } = &mut outputs[*slot] {
                        *input = Json::parse(text).unwrap_or_else(|problem| panic!("{problem}: {text:?}"));
                    }
                }
                return Said { outputs, finish, is_refusal, usage };
            }
        }
    }
    panic!("it has not ended: {outputs:?}");
}

pub(crate) async fn said(stream: Pieces) -> Said {
    let (pieces, error) = pieces(stream).await;
    assert_eq!(error, None, "{pieces:?}");
    gathered(pieces)
}

pub(crate) async fn failed(stream: Pieces) -> ModelError {
    let (pieces, error) = pieces(stream).await;
    let error = error.unwrap_or_else(|| panic!("it went well: {pieces:?}"));
    assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
    error
}

pub(crate) fn endpoint(base_url: String) -> Endpoint {
    let mut endpoint = Endpoint::new(base_url);
    endpoint.key = Some(Secret::new(KEY));
    endpoint.key_name = Some("SCRIPTED_API_KEY".to_owned());
    endpoint.idle = Duration::from_secs(120);
    endpoint.first = Duration::from_secs(120);
    endpoint
}

pub(crate) fn about() -> ModelAbout {
    let model = tolka_facts::event::Model { provider: "scripted".to_owned(), id: "m-1".to_owned() };
    ModelAbout { output: Some(4096), ..ModelAbout::named(model) }
}

pub(crate) fn openai(provider: &Scripted) -> Box<dyn Model> {
    Box::new(OpenAi::new(endpoint(provider.openai_url()), about(), OpenAiOptions::default()))
}

pub(crate) fn prompt(text: &str) -> Request {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    Request {
        system: "You are a test.".into(),
        messages: vec![Message::User(vec![Input::Text(text.to_owned())]).into()],
        tools: [ToolSpec { name: "read".to_owned(), description: "Reads a file.".to_owned(), schema }].into(),
    }
}

pub(crate) fn anthropic(provider: &Scripted) -> Box<dyn Model> {
    Box::new(Anthropic::new(endpoint(provider.anthropic_url()), about(), AnthropicOptions::default()))
}

pub(crate) fn both(provider: &Scripted) -> [(&'static str, Box<dyn Model>); 2] {
    [("openai", openai(provider)), ("anthropic", anthropic(provider))]
}

/// The request with an answer and the results of its calls after it.
pub(crate) fn with_results(mut request: Request, said: &Said, result: &str) -> Request {
    request.messages.push(Message::Model(said.outputs.clone()).into());
    let results = said.outputs.iter().filter_map(|output| match output {
        Output::Call { id, .. } => {
            Some(Returned { call: id.clone(), content: vec![Input::Text(result.to_owned())], is_error: false })
        }
        Output::Text(_) | Output::Thought { .. } => None,
    });
    request.messages.push(Message::Results(results.collect()).into());
    request
}

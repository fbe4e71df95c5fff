//! What a person is asked. The document has no event for it, and its client shows a type that it does not know as chat;
//! so a request is a call of a tool that is named for it. Its client has no button for an answer either: how to give one
//! stands among the arguments, for whoever reads them.

use serde::{Deserialize, Serialize};
use tolka_facts::event::{PermissionAsked, PermissionOption, Question, QuestionAsked};
use tolka_facts::{RequestId, SessionId};

pub(super) const PERMISSION: &str = "request_permission";
pub(super) const QUESTION: &str = "ask_question";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PermissionArgs {
    request_id: RequestId,
    permission: String,
    title: String,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    patterns: Vec<String>,
    options: Vec<PermissionOption>,
    #[serde(skip_deserializing)]
    answer: String,
}

impl PermissionArgs {
    pub(super) fn new(asked: &PermissionAsked, session: &SessionId) -> Self {
        PermissionArgs {
            request_id: asked.request.clone(),
            permission: asked.permission.clone(),
            title: asked.title.clone(),
            patterns: asked.patterns.clone(),
            options: asked.options.clone(),
            answer: how_to_answer(session, &asked.request, r#"{"option": "<id>"}"#),
        }
    }
}

impl From<PermissionArgs> for PermissionAsked {
    fn from(args: PermissionArgs) -> Self {
        PermissionAsked {
            request: args.request_id,
            call: None,
            permission: args.permission,
            title: args.title,
            patterns: args.patterns,
            metadata: None,
            options: args.options,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct QuestionArgs {
    request_id: RequestId,
    questions: Vec<Question>,
    #[serde(skip_deserializing)]
    answer: String,
}

impl QuestionArgs {
    pub(super) fn new(asked: &QuestionAsked, session: &SessionId) -> Self {
        let answer = how_to_answer(session, &asked.request, r#"{"answers": [["<label>"]]}, a list for each question"#);
        QuestionArgs { request_id: asked.request.clone(), questions: asked.questions.clone(), answer }
    }
}

impl From<QuestionArgs> for QuestionAsked {
    fn from(args: QuestionArgs) -> Self {
        QuestionAsked { request: args.request_id, call: None, questions: args.questions }
    }
}

fn how_to_answer(session: &SessionId, request: &RequestId, body: &str) -> String {
    format!("POST /v1/sessions/{session}/answers/{request} with {body}")
}

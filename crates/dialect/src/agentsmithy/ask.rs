//! What a person is asked. The document has no event for it, and its client shows a type that it does not know as chat;
//! so a request is a call of a tool that is named for it.

use serde::{Deserialize, Serialize};
use tolka_facts::RequestId;
use tolka_facts::event::{PermissionAsked, PermissionOption, Question, QuestionAsked};

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
}

impl From<&PermissionAsked> for PermissionArgs {
    fn from(asked: &PermissionAsked) -> Self {
        PermissionArgs {
            request_id: asked.request.clone(),
            permission: asked.permission.clone(),
            title: asked.title.clone(),
            patterns: asked.patterns.clone(),
            options: asked.options.clone(),
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
}

impl From<&QuestionAsked> for QuestionArgs {
    fn from(asked: &QuestionAsked) -> Self {
        QuestionArgs { request_id: asked.request.clone(), questions: asked.questions.clone() }
    }
}

impl From<QuestionArgs> for QuestionAsked {
    fn from(args: QuestionArgs) -> Self {
        QuestionAsked { request: args.request_id, call: None, questions: args.questions }
    }
}

//! Requests of an agent to a person: for leave, and for an answer. A form's fields are our questions.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tolka_facts::event::{OptionKind, PermissionAsked, PermissionOption, Question, QuestionAsked, QuestionOption};
use tolka_facts::{Blobs, Json, Tool, ToolKind};

use super::mark::{Meta, PermissionMark};
use super::wire::lenient;
use super::write::{Shown, ToolCall};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionParams<'a> {
    session_id: &'a str,
    tool_call: ToolCall<'a>,
    options: Vec<Choice<'a>>,
    #[serde(rename = "_meta")]
    meta: Meta<PermissionMark>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Choice<'a> {
    option_id: &'a str,
    name: &'a str,
    kind: OptionKind,
}

impl<'a> From<&'a PermissionOption> for Choice<'a> {
    fn from(option: &'a PermissionOption) -> Self {
        Choice { option_id: &option.id, name: &option.name, kind: option.kind }
    }
}

impl<'a> PermissionParams<'a> {
    /// `tool` is the call that leave is asked for, as far as it is known.
    pub(super) fn of(e: &'a PermissionAsked, tool: Option<&'a Tool>, session: &'a str, blobs: &dyn Blobs) -> Self {
        let shown = tool.and_then(|tool| tool.content.as_deref());
        let tool_call = ToolCall {
            // The protocol asks for leave for a call only; where there is none, the request stands for it.
            tool_call_id: e.call.as_ref().map_or(e.request.as_str(), |call| call.as_str()),
            title: Some(&e.title),
            name: tool.and_then(|tool| tool.name.as_deref()),
            kind: tool.map(|tool| tool.kind).filter(|kind| *kind != ToolKind::Other),
            content: shown.map(|content| content.iter().map(|content| Shown::of(content, blobs)).collect()),
            locations: tool.and_then(|tool| tool.locations.as_deref()),
            raw_input: tool.and_then(|tool| tool.input.as_ref()).map(|input| input.whole(blobs)),
            ..ToolCall::default()
        };
        let mark = PermissionMark {
            call: e.call.clone(),
            permission: e.permission.clone(),
            patterns: e.patterns.clone(),
            metadata: e.metadata.as_ref().map(|metadata| metadata.whole(blobs).into_owned()),
        };
        let options = e.options.iter().map(Choice::from).collect();
        PermissionParams { session_id: session, tool_call, options, meta: Meta { tolka: mark } }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FormParams<'a> {
    mode: &'static str,
    session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    message: Cow<'a, str>,
    requested_schema: Value,
}

impl<'a> FormParams<'a> {
    pub(super) fn of(e: &'a QuestionAsked, session: &'a str) -> Self {
        let fields = (1..).zip(&e.questions).map(|(n, question)| (format!("q{n}"), field(question)));
        let message = match e.questions.as_slice() {
            [one] => Cow::Borrowed(one.question.as_str()),
            several => Cow::Owned(format!("There are {} questions", several.len())),
        };
        FormParams {
            mode: "form",
            session_id: session,
            tool_call_id: e.call.as_ref().map(|call| call.as_str()),
            message,
            requested_schema: json!({ "type": "object", "properties": fields.collect::<Map<_, _>>() }),
        }
    }
}

fn field(question: &Question) -> Value {
    let Question { question, header, options, multiple } = question;
    let option = |option: &QuestionOption| json!({ "const": option.label, "title": option.label, "description": option.description });
    let options: Vec<_> = options.iter().map(option).collect();
    match (*multiple, options.is_empty()) {
        (true, _) => {
            json!({ "type": "array", "title": header, "description": question, "items": { "anyOf": options } })
        }
        (false, false) => json!({ "type": "string", "title": header, "description": question, "oneOf": options }),
        // Any words will do.
        (false, true) => json!({ "type": "string", "title": header, "description": question }),
    }
}

/// A form as we can put it to a person: a question per field, and the fields' names, to read the answer by.
pub(super) struct Form {
    pub(super) call: Option<String>,
    pub(super) questions: Vec<Question>,
    pub(super) fields: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireForm {
    mode: String,
    message: String,
    #[serde(default, deserialize_with = "lenient")]
    tool_call_id: Option<String>,
    requested_schema: WireSchema,
}

#[derive(Deserialize)]
struct WireSchema {
    #[serde(default)]
    properties: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireField {
    r#type: String,
    title: Option<String>,
    description: Option<String>,
    r#enum: Option<Vec<String>>,
    one_of: Option<Vec<WireOption>>,
    items: Option<WireItems>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireItems {
    r#enum: Option<Vec<String>>,
    any_of: Option<Vec<WireOption>>,
}

#[derive(Deserialize)]
struct WireOption {
    r#const: String,
    description: Option<String>,
}

/// `None` for a form with fields that are no questions with words for answers (numbers, yes or no), and for a link.
pub(super) fn form(params: &Json) -> Option<Form> {
    let WireForm { mode, message, tool_call_id, requested_schema } = params.read()?;
    if mode != "form" || requested_schema.properties.is_empty() {
        return None;
    }
    let (mut questions, mut fields) = (Vec::new(), Vec::new());
    for (name, field) in requested_schema.properties {
        let field: WireField = serde_json::from_value(field).ok()?;
        let multiple = match field.r#type.as_str() {
            "string" => false,
            "array" => true,
            _ => return None,
        };
        let items = field.items.unwrap_or(WireItems { r#enum: None, any_of: None });
        let titled = field.one_of.or(items.any_of).unwrap_or_default();
        let plain = field.r#enum.or(items.r#enum).unwrap_or_default();
        let plain = plain.into_iter().map(|label| WireOption { r#const: label, description: None });
        let options = titled.into_iter().chain(plain).map(|option| QuestionOption {
            label: option.r#const,
            description: option.description.unwrap_or_default(),
        });
        questions.push(Question {
            question: field.description.unwrap_or_else(|| message.clone()),
            header: field.title.unwrap_or_else(|| name.clone()),
            options: options.collect(),
            multiple,
        });
        fields.push(name);
    }
    Some(Form { call: tool_call_id, questions, fields })
}

#[derive(Deserialize)]
struct WireAnswer {
    action: String,
    #[serde(default, deserialize_with = "lenient")]
    content: Option<Map<String, Value>>,
}

/// The answers to a form, in the order of its fields; `None` if it was declined.
pub(super) fn answers(result: &Json, fields: &[String]) -> Option<Vec<Vec<String>>> {
    let WireAnswer { action, content } = result.read()?;
    let content = content.filter(|_| action == "accept")?;
    let words = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let answer = |field: &String| match content.get(field) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.iter().map(words).collect(),
        Some(one) => vec![words(one)],
    };
    Some(fields.iter().map(answer).collect())
}

//! The end of a turn: what is still open is closed, then the prompt gets its response.

use serde_json::json;
use tolka_facts::event::{Failed, FailureKind, Stop, TurnEnded};
use tolka_facts::{Ask, Json, OpenTurn, ToolStatus};

use super::super::mark::{AnswerMark, INTERRUPTED, Outcome};
use super::super::wire;
use super::super::write::{self, PromptResult, RpcError, ToolCall, Update};
use super::{Encoder, State, Telling};

const INTERNAL_ERROR: i64 = -32603;
const AUTH_REQUIRED: i64 = -32000;
const REQUEST_CANCELLED: i64 = -32800;

impl Encoder {
    pub(super) fn turn_ended(&mut self, end: &TurnEnded, turn: &OpenTurn, to: &mut Telling<'_>) {
        for tool in turn.open_tools() {
            // The session's actor ends every tool; an agent may not, and its clients' spinners would turn for ever.
            if !self.state.calls.contains(&tool.call) {
                continue;
            }
            let error = json!({ "error": "The turn ended before the tool did" });
            let raw_output = tool.output.is_none().then(|| std::borrow::Cow::Owned(Json::from(error)));
            let status = Some(ToolStatus::Failed);
            let call = ToolCall { tool_call_id: tool.call.as_str(), status, raw_output, ..ToolCall::default() };
            to.update(&Update::ToolCallUpdate(call));
        }
        for ask in &turn.asks {
            let (outcome, action) = match ask {
                Ask::Permission(_) => (Some(Outcome::of(None)), None),
                Ask::Question(_) => (None, Some("decline".to_owned())),
            };
            to.answered(
                ask.request(),
                AnswerMark { outcome, action, answers: None, by: "tolka".to_owned(), reason: None },
            );
        }
        let State { result, .. } = std::mem::take(&mut self.state);
        let id = end.turn.as_str();
        let Some(stop_reason) = write::stop_reason(end.stop) else {
            return fail(end, turn, to);
        };
        // The agent's own answer, unless the turn ended otherwise than it said.
        let result = result.filter(|(reason, _)| wire::stop(reason) == end.stop);
        if let Some(result) = result.map(|(_, result)| result.whole(to.blobs).into_owned())
            && result.get().starts_with('{')
        {
            return to.out.push(&write::response(id, result));
        }
        let meta = end.meta.as_ref().map(|meta| meta.whole(to.blobs)).filter(|meta| meta.get().starts_with('{'));
        let usage = end.usage.map(Into::into);
        to.out.push(&write::response(id, PromptResult { stop_reason, usage, meta }));
    }
}

fn fail(end: &TurnEnded, turn: &OpenTurn, to: &mut Telling<'_>) {
    let id = end.turn.as_str();
    let error = match turn.failure.as_ref().filter(|_| end.stop == Stop::Failed) {
        Some(failure) => RpcError {
            code: failure.code.unwrap_or_else(|| code(failure)),
            message: &failure.message,
            data: failure.details.as_ref().map(|data| data.whole(to.blobs).into_owned()).filter(|data| !data.is_null()),
        },
        None if end.stop == Stop::Interrupted => RpcError {
            code: INTERNAL_ERROR,
            message: "The server stopped in the middle of the turn",
            data: Some(Json::from(json!({ "_meta": { "tolka": { "stop": INTERRUPTED } } }))),
        },
        None => RpcError { code: INTERNAL_ERROR, message: "The agent failed", data: None },
    };
    to.out.push(&write::error_response(id, error));
}

fn code(failure: &Failed) -> i64 {
    match failure.kind {
        FailureKind::Auth => AUTH_REQUIRED,
        FailureKind::Aborted => REQUEST_CANCELLED,
        FailureKind::Agent
        | FailureKind::Provider
        | FailureKind::OutputLength
        | FailureKind::Sandbox
        | FailureKind::Storage
        | FailureKind::Unknown => INTERNAL_ERROR,
    }
}

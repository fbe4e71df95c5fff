//! Responses: what became of a request.

use serde::Deserialize;
use tolka_facts::event::{PermissionAnswered, QuestionAnswered};
use tolka_facts::{Cause, Draft, Json, RequestId, SessionId};

use super::super::ask;
use super::super::mark::{self, AnswerMark, Outcome};
use super::super::method::Side;
use super::super::waiting::written;
use super::super::wire::lenient;
use super::request::Request;
use super::{Decoder, Frame, Id, named};

/// What a result is of, by the fields that it has.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Fields {
    #[serde(default, deserialize_with = "lenient")]
    outcome: Option<Outcome>,
    #[serde(default, deserialize_with = "lenient")]
    action: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawn {
    request_id: Id,
}

type Answer = std::result::Result<Json, Json>;

impl Decoder {
    pub(super) fn responded(&mut self, by: Option<Side>, id: Option<&Id>, outcome: Answer, frame: &mut Frame<'_>) {
        let fields: Fields = outcome.as_ref().ok().and_then(Json::read).unwrap_or_default();
        let is_of_client = fields.outcome.is_some() || fields.action.is_some();
        let asked = id.and_then(|id| self.requests.take(by, &written(id), is_of_client));
        let Some((from, request)) = asked else {
            return self.unasked(id, fields.stop_reason.is_some(), outcome, frame);
        };
        let cause = if from == Side::Client { Cause::Agent } else { Cause::Client };
        let (session, draft) = match request {
            Request::Prompt { session, turn } => {
                let (now, mut drafts) = (frame.now(), Vec::new());
                self.session(&session, frame).ended(&turn, outcome, now, &mut drafts);
                return self.tell(Some(&session), drafts, frame);
            }
            Request::New { cwd } => {
                if let Some(session) = outcome.ok().as_ref().and_then(named) {
                    let created = Decoder::created(cwd, &frame.raw);
                    return self.know(&session, Some(created), frame);
                }
                (None, frame.foreign("session/new", cause))
            }
            Request::Load { session } => {
                let (now, mut drafts) = (frame.now(), Vec::new());
                self.session(&session, frame).loaded(now, &mut drafts);
                self.tell(Some(&session), drafts, frame);
                (Some(session), frame.foreign("session/load", cause))
            }
            Request::Permission { session, request } => {
                let option = fields.outcome.and_then(|outcome| outcome.option_id);
                let answered = PermissionAnswered { request, option, by: "client".to_owned(), reason: None };
                (Some(session), Draft::client(answered).with_raw(frame.raw.clone()))
            }
            Request::Form { session, request, fields } => {
                let answers = outcome.ok().and_then(|result| ask::answers(&result, &fields));
                let answered = QuestionAnswered { request, answers, by: "client".to_owned() };
                (Some(session), Draft::client(answered).with_raw(frame.raw.clone()))
            }
            Request::Other { session, method } => (session, frame.foreign(&method, cause)),
        };
        self.tell(session.as_ref(), vec![draft], frame);
    }

    /// The response to a request that the stream does not have: one side of a conversation alone, or our own telling,
    /// in which a prompt's response has the name of its turn.
    fn unasked(&mut self, id: Option<&Id>, has_stop: bool, outcome: Answer, frame: &mut Frame<'_>) {
        let turn = match id {
            Some(Id::Text(id)) => Some(id.as_str()),
            Some(Id::Number(_)) | None => None,
        };
        let named_turn = turn.filter(|id| id.starts_with("trn_"));
        let of_turn = self.sessions.iter().find(|(_, session)| session.is_in(turn)).map(|(id, _)| SessionId::from(id));
        // A prompt that was forgotten may have been another session's than the last one's.
        let is_of_last = named_turn.is_some() || (has_stop && !self.requests.of(Side::Client).is_full());
        let session = of_turn.or_else(|| self.last.clone().filter(|_| is_of_last));
        if let Some(session) = session {
            let (now, named_turn, mut drafts) = (frame.now(), named_turn.map(Into::into), Vec::new());
            self.session(&session, frame).stopped(named_turn, outcome, now, &mut drafts);
            return self.tell(Some(&session), drafts, frame);
        }
        let new = outcome.ok().as_ref().and_then(named).filter(|session| self.sessions.get(session.as_str()).is_none());
        if let Some(session) = new {
            let created = Decoder::created(String::new(), &frame.raw);
            return self.know(&session, Some(created), frame);
        }
        let foreign = frame.foreign("response", Cause::Agent);
        self.tell(None, vec![foreign], frame);
    }

    /// A request needs no answer any more. `false` if it is none that asks a person.
    pub(super) fn withdrawn(&mut self, from: Side, params: &Json, frame: &mut Frame<'_>) -> bool {
        let Some(Withdrawn { request_id }) = params.read() else { return false };
        let mark: Option<AnswerMark> = mark::read(params);
        let by = if from == Side::Agent { Some(Side::Client) } else { None };
        let Some((_, request)) = self.requests.take(by, &written(&request_id), true) else { return false };
        let (session, draft) = match request {
            Request::Permission { session, request } => (session, permission(request, mark)),
            Request::Form { session, request, .. } => (session, form(request, mark)),
            Request::New { .. } | Request::Load { .. } | Request::Prompt { .. } | Request::Other { .. } => {
                return false;
            }
        };
        // Words for the turn that runs may have come just before.
        let (now, mut drafts) = (frame.now(), Vec::new());
        self.session(&session, frame).flush(now, &mut drafts);
        drafts.push(draft.with_raw(frame.raw.clone()));
        self.tell(Some(&session), drafts, frame);
        true
    }
}

fn permission(request: RequestId, mark: Option<AnswerMark>) -> Draft {
    let Some(mark) = mark else {
        return Draft::agent(PermissionAnswered { request, option: None, by: "agent".to_owned(), reason: None });
    };
    let option = mark.outcome.and_then(|outcome| outcome.option_id);
    Draft::client(PermissionAnswered { request, option, by: mark.by, reason: mark.reason })
}

fn form(request: RequestId, mark: Option<AnswerMark>) -> Draft {
    let Some(mark) = mark else {
        return Draft::agent(QuestionAnswered { request, answers: None, by: "agent".to_owned() });
    };
    Draft::client(QuestionAnswered { request, answers: mark.answers, by: mark.by })
}

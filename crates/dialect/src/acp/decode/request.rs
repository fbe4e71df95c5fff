//! Requests, and what is to be known when their responses come.

use tolka_facts::event::{PermissionAsked, QuestionAsked};
use tolka_facts::{CallId, Cause, Draft, Json, RequestId, SessionId, TurnId};

use super::super::ask;
use super::super::mark::{self, PermissionMark};
use super::super::method::Side;
use super::super::waiting::written;
use super::super::wire::{self, PermissionRequest};
use super::{Decoder, Frame, Id, Named, named};

#[derive(Debug)]
pub(super) enum Request {
    New { cwd: String },
    Load { session: SessionId },
    Prompt { session: SessionId, turn: TurnId },
    Permission { session: SessionId, request: RequestId },
    Form { session: SessionId, request: RequestId, fields: Vec<String> },
    Other { session: Option<SessionId>, method: String },
}

impl Decoder {
    pub(super) fn client_asks(&mut self, id: &Id, method: &str, params: &Json, frame: &mut Frame<'_>) {
        let Named { session_id, cwd } = params.read().unwrap_or_default();
        let session = session_id.map(SessionId::from);
        let request = match (method, &session) {
            ("session/prompt", Some(session)) => {
                let (now, raw, mut drafts) = (frame.now(), frame.raw.clone(), Vec::new());
                let turn = self.session(session, frame).prompted(params, raw, now, &mut drafts);
                self.tell(Some(session), drafts, frame);
                self.requests.of(Side::Client).insert(&written(id), Request::Prompt { session: session.clone(), turn });
                return;
            }
            ("session/new", _) => Request::New { cwd: cwd.unwrap_or_default() },
            ("session/load", Some(session)) => {
                let is_known = self.sessions.get(session.as_str()).is_some();
                let created = Decoder::created(cwd.unwrap_or_default(), &frame.raw);
                self.know(session, Some(created), frame);
                self.session(session, frame).load(is_known);
                Request::Load { session: session.clone() }
            }
            ("session/resume", Some(session)) => {
                let created = Decoder::created(cwd.unwrap_or_default(), &frame.raw);
                self.know(session, Some(created), frame);
                Request::Other { session: Some(session.clone()), method: method.to_owned() }
            }
            _ => Request::Other { session: session.clone(), method: method.to_owned() },
        };
        self.requests.of(Side::Client).insert(&written(id), request);
        let foreign = frame.foreign(method, Cause::Client);
        self.tell(session.as_ref(), vec![foreign], frame);
    }

    pub(super) fn agent_asks(&mut self, id: &Id, method: &str, params: &Json, frame: &mut Frame<'_>) {
        let session = named(params);
        let (mut drafts, own) = (Vec::new(), own_id(id));
        let asked = match (method, &session) {
            ("session/request_permission", Some(session)) => self.permission(session, own, params, frame, &mut drafts),
            ("elicitation/create", Some(session)) => self.form(session, own, params, frame, &mut drafts),
            _ => None,
        };
        let request = asked.unwrap_or_else(|| {
            drafts.push(frame.foreign(method, Cause::Agent));
            Request::Other { session: session.clone(), method: method.to_owned() }
        });
        self.requests.of(Side::Agent).insert(&written(id), request);
        self.tell(session.as_ref(), drafts, frame);
    }

    /// `None` if nobody could answer it.
    fn permission(
        &mut self,
        session: &SessionId,
        own: Option<RequestId>,
        params: &Json,
        frame: &mut Frame<'_>,
        out: &mut Vec<Draft>,
    ) -> Option<Request> {
        let now = frame.now();
        let speaker = self.session(session, frame);
        speaker.flush(now, out);
        let mut asked = match own_permission(params) {
            Some(asked) => asked,
            None => {
                let mut news = Vec::new();
                let asked = speaker.interpreter.permission(params, now, &mut news);
                // What it tells of one that cannot be asked is the whole request, which the caller tells.
                out.extend(asked.is_some().then_some(news).into_iter().flatten());
                asked?
            }
        };
        asked.request = own.unwrap_or(asked.request);
        let request = Request::Permission { session: session.clone(), request: asked.request.clone() };
        out.push(Draft::agent(asked).with_raw(params.clone()));
        Some(request)
    }

    fn form(
        &mut self,
        session: &SessionId,
        own: Option<RequestId>,
        params: &Json,
        frame: &mut Frame<'_>,
        out: &mut Vec<Draft>,
    ) -> Option<Request> {
        let form = ask::form(params)?;
        let now = frame.now();
        self.session(session, frame).flush(now, out);
        let request = own.unwrap_or_else(|| self.ids.question(now));
        let call = form.call.map(CallId::from);
        let asked = QuestionAsked { request: request.clone(), call, questions: form.questions };
        out.push(Draft::agent(asked).with_raw(params.clone()));
        Some(Request::Form { session: session.clone(), request, fields: form.fields })
    }
}

/// Our own streams have our name of a request as its id.
fn own_id(id: &Id) -> Option<RequestId> {
    match id {
        Id::Text(id) if id.starts_with("per_") || id.starts_with("que_") => Some(RequestId::from(id.as_str())),
        Id::Text(_) | Id::Number(_) => None,
    }
}

/// A request for leave as we write it.
fn own_permission(params: &Json) -> Option<PermissionAsked> {
    let PermissionMark { call, permission, patterns, metadata } = mark::read(params)?;
    let PermissionRequest { tool_call, options } = params.read()?;
    Some(PermissionAsked {
        request: RequestId::default(),
        call,
        permission,
        title: tool_call.title.unwrap_or_default(),
        patterns,
        metadata,
        options: options.iter().filter_map(wire::option).collect(),
    })
}

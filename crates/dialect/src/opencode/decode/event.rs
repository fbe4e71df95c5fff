//! The events that have a meaning for us, with the properties that we read of them.

use serde::Deserialize;
use tolka_facts::Json;
use tolka_facts::event::{Model, Question};

use super::message::{Message, Nothing, WireError};
use super::part::{Part, Status};
use super::tagged::tagged;

tagged! {
    WireEvent by "type" in "properties" {
        "server.connected" => ServerConnected(Nothing),
        "server.heartbeat" => ServerHeartbeat(Nothing),
        "server.instance.disposed" => InstanceDisposed(Disposed),
        "session.created" => SessionCreated(SessionEvent),
        "session.updated" => SessionUpdated(SessionEvent),
        "session.deleted" => SessionDeleted(SessionEvent),
        "session.status" => SessionStatus(SessionStatus),
        "session.idle" => SessionIdle(OfSession),
        "session.error" => SessionError(SessionError),
        "session.compacted" => SessionCompacted(OfSession),
        "message.updated" => MessageUpdated(MessageUpdated),
        "message.removed" => MessageRemoved(MessageRemoved),
        "message.part.updated" => PartUpdated(PartUpdated),
        "message.part.delta" => PartDelta(PartDelta),
        "permission.asked" => PermissionAsked(PermissionAsked),
        "permission.updated" => PermissionUpdated(PermissionUpdated),
        "permission.replied" => PermissionReplied(PermissionReplied),
        "question.asked" => QuestionAsked(QuestionAsked),
        "question.replied" => QuestionReplied(QuestionReplied),
        "question.rejected" => QuestionRejected(QuestionRejected),
        "todo.updated" => TodoUpdated(TodoUpdated),
        "file.edited" => FileEdited(FileEdited),
        "tui.toast.show" => Toast(Toast),
        "installation.updated" => InstallationUpdated(Version),
        "installation.update-available" => UpdateAvailable(Version),
        "vcs.branch.updated" => BranchUpdated(Branch),
        "pty.created" => PtyCreated(PtyInfo),
        "pty.updated" => PtyUpdated(PtyInfo),
        "pty.exited" => PtyExited(PtyExited),
        "pty.deleted" => PtyDeleted(PtyDeleted),
    }
}

impl WireEvent {
    /// The session it is about; `None` for what belongs to the server.
    pub fn session(&self) -> Option<&str> {
        match self {
            WireEvent::SessionCreated(e) | WireEvent::SessionUpdated(e) | WireEvent::SessionDeleted(e) => {
                Some(&e.info.id)
            }
            WireEvent::SessionStatus(e) => Some(&e.session_id),
            WireEvent::SessionIdle(e) | WireEvent::SessionCompacted(e) => Some(&e.session_id),
            WireEvent::SessionError(e) => e.session_id.as_deref(),
            WireEvent::MessageUpdated(e) => match &e.info {
                Message::User(message) => Some(&message.session_id),
                Message::Assistant(message) => Some(&message.session_id),
                Message::Other(_) => None,
            },
            WireEvent::MessageRemoved(e) => Some(&e.session_id),
            WireEvent::PartUpdated(e) => e.part.place().map(|(session, _, _)| session),
            WireEvent::PartDelta(e) => Some(&e.session_id),
            WireEvent::PermissionAsked(e) => Some(&e.session_id),
            WireEvent::PermissionUpdated(e) => Some(&e.session_id),
            WireEvent::PermissionReplied(e) => Some(&e.session_id),
            WireEvent::QuestionAsked(e) => Some(&e.session_id),
            WireEvent::QuestionReplied(e) => Some(&e.session_id),
            WireEvent::QuestionRejected(e) => Some(&e.session_id),
            WireEvent::TodoUpdated(e) => Some(&e.session_id),
            WireEvent::ServerConnected(_)
            | WireEvent::ServerHeartbeat(_)
            | WireEvent::InstanceDisposed(_)
            | WireEvent::FileEdited(_)
            | WireEvent::Toast(_)
            | WireEvent::InstallationUpdated(_)
            | WireEvent::UpdateAvailable(_)
            | WireEvent::BranchUpdated(_)
            | WireEvent::PtyCreated(_)
            | WireEvent::PtyUpdated(_)
            | WireEvent::PtyExited(_)
            | WireEvent::PtyDeleted(_)
            | WireEvent::Other(_) => None,
        }
    }
}

/// Declares what is read of an event, with the names of the wire.
macro_rules! properties {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident : $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$attr])* pub $field: $type),* }
    )*};
}

properties! {
    /// The document gives `server.instance.disposed` no properties.
    Disposed { #[serde(default)] directory: String }
    OfSession { #[serde(rename = "sessionID")] session_id: String }
    SessionStatus { #[serde(rename = "sessionID")] session_id: String, status: Status }
    SessionError { #[serde(rename = "sessionID")] session_id: Option<String>, error: Option<WireError> }
    MessageUpdated { info: Message }
    MessageRemoved {
        #[serde(rename = "sessionID")] session_id: String,
        #[serde(rename = "messageID")] message_id: String,
    }
    PartUpdated { part: Part, delta: Option<String> }
    PartDelta {
        #[serde(rename = "sessionID")] session_id: String,
        #[serde(rename = "messageID")] message_id: String,
        #[serde(rename = "partID")] part_id: String,
        field: String,
        delta: String,
    }
    PermissionAsked {
        id: String,
        #[serde(rename = "sessionID")] session_id: String,
        permission: String,
        #[serde(default)] patterns: Vec<String>,
        metadata: Option<Json>,
        tool: Option<CallRef>,
    }
    /// What servers sent before `permission.asked`.
    PermissionUpdated {
        id: String,
        #[serde(rename = "sessionID")] session_id: String,
        r#type: String,
        title: String,
        pattern: Option<OneOrMany>,
        metadata: Option<Json>,
        #[serde(rename = "callID")] call_id: Option<String>,
    }
    CallRef { #[serde(rename = "callID")] call_id: String }
    QuestionAsked {
        id: String,
        #[serde(rename = "sessionID")] session_id: String,
        questions: Vec<Question>,
        tool: Option<CallRef>,
    }
    QuestionReplied {
        #[serde(rename = "sessionID")] session_id: String,
        #[serde(rename = "requestID")] request_id: String,
        answers: Vec<Vec<String>>,
    }
    QuestionRejected {
        #[serde(rename = "sessionID")] session_id: String,
        #[serde(rename = "requestID")] request_id: String,
    }
    TodoUpdated { #[serde(rename = "sessionID")] session_id: String, todos: Vec<Todo> }
    Todo { content: String, status: String, #[serde(default)] priority: String }
    FileEdited { file: String }
    Toast { title: Option<String>, message: String, variant: String }
    /// The document gives installation events no properties.
    Version { #[serde(default)] version: String }
    Branch { branch: Option<String> }
    PtyInfo { info: Json }
    PtyExited { id: String, exit_code: i64 }
    PtyDeleted { id: String }
    SessionInfo {
        id: String,
        #[serde(default)] title: String,
        #[serde(default)] directory: String,
        #[serde(rename = "parentID")] parent_id: Option<String>,
        agent: Option<String>,
        model: Option<SessionModel>,
        time: Option<SessionTime>,
    }
    SessionModel { id: String, #[serde(rename = "providerID")] provider_id: String }
    SessionTime { archived: Option<f64> }
}

impl From<&SessionModel> for Model {
    fn from(model: &SessionModel) -> Model {
        Model { provider: model.provider_id.clone(), id: model.id.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Vec<String> {
    fn from(some: OneOrMany) -> Vec<String> {
        match some {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

/// The document calls the session `session`, today's server `info`; a stream for both carries both.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "EitherName")]
pub struct SessionEvent {
    pub info: SessionInfo,
}

#[derive(Deserialize)]
struct EitherName {
    info: Option<SessionInfo>,
    session: Option<SessionInfo>,
}

impl TryFrom<EitherName> for SessionEvent {
    type Error = &'static str;

    fn try_from(either: EitherName) -> Result<Self, &'static str> {
        either.info.or(either.session).map(|info| SessionEvent { info }).ok_or("missing field `info` or `session`")
    }
}

/// `requestID` and `reply` today; `permissionID` and `response` before.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "OldOrNewReply")]
pub struct PermissionReplied {
    pub session_id: String,
    pub request_id: String,
    pub reply: String,
}

#[derive(Deserialize)]
struct OldOrNewReply {
    #[serde(rename = "sessionID")]
    session_id: String,
    #[serde(rename = "requestID")]
    request_id: Option<String>,
    #[serde(rename = "permissionID")]
    permission_id: Option<String>,
    reply: Option<String>,
    response: Option<String>,
}

impl TryFrom<OldOrNewReply> for PermissionReplied {
    type Error = &'static str;

    fn try_from(either: OldOrNewReply) -> Result<Self, &'static str> {
        Ok(PermissionReplied {
            session_id: either.session_id,
            request_id: either.request_id.or(either.permission_id).ok_or("missing field `requestID`")?,
            reply: either.reply.or(either.response).ok_or("missing field `reply`")?,
        })
    }
}

//! Every method of the protocol: who sends it, and whether it wants an answer.

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Client,
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Request,
    Notification,
}

pub(super) struct Method {
    pub(super) name: &'static str,
    /// `None`: both send it.
    pub(super) from: Option<Side>,
    pub(super) sort: Sort,
}

const fn request(name: &'static str, from: Side) -> Method {
    Method { name, from: Some(from), sort: Sort::Request }
}

const fn notification(name: &'static str, from: Option<Side>) -> Method {
    Method { name, from, sort: Sort::Notification }
}

pub(super) const METHODS: &[Method] = &[
    request("initialize", Side::Client),
    request("authenticate", Side::Client),
    request("logout", Side::Client),
    request("session/new", Side::Client),
    request("session/load", Side::Client),
    request("session/list", Side::Client),
    request("session/delete", Side::Client),
    request("session/resume", Side::Client),
    request("session/close", Side::Client),
    request("session/set_mode", Side::Client),
    request("session/set_config_option", Side::Client),
    request("session/prompt", Side::Client),
    notification("session/cancel", Some(Side::Client)),
    request("fs/read_text_file", Side::Agent),
    request("fs/write_text_file", Side::Agent),
    request("terminal/create", Side::Agent),
    request("terminal/output", Side::Agent),
    request("terminal/release", Side::Agent),
    request("terminal/wait_for_exit", Side::Agent),
    request("terminal/kill", Side::Agent),
    request("session/request_permission", Side::Agent),
    request("elicitation/create", Side::Agent),
    notification("session/update", Some(Side::Agent)),
    notification("elicitation/complete", Some(Side::Agent)),
    notification("$/cancel_request", None),
];

/// `None` for one that the protocol does not have.
pub(super) fn method(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

//! What the protocol demands, rule by rule.

use crate::check::{Manners, Rule};

macro_rules! rules {
    ($($id:ident = $name:literal, $section:literal, $demand:literal;)*) => {
        $(pub(super) const $id: Rule = Rule { name: $name, section: concat!("ACP v1, ", $section), demand: $demand };)*

        pub(super) const ALL: &[&Rule] = &[$(&$id),*];
    };
}

rules! {
    JSON = "json", "Transports, stdio", "Each line is one JSON object.";
    CUT = "cut", "Transports, stdio", "The stream ends after a whole message.";
    ENVELOPE = "envelope", "recordings", "A recorded line has a time `t`, a direction `dir` and the message `msg`.";
    NOISE = "noise", "Transports, stdio", "An agent writes nothing but messages to its standard output.";
    VERSION = "jsonrpc", "Overview, Communication Model", "Every message says `\"jsonrpc\":\"2.0\"`.";
    MESSAGE = "message", "Overview, Communication Model",
        "A message has a method, or an id and either a result or an error.";
    METHOD = "method", "Extensibility, Extension Methods",
        "A method is one of the protocol's, or its name begins with an underscore.";
    SENDER = "sender", "Overview, Agent and Client",
        "Each side sends its own methods, requests with an id and notifications without.";
    SHAPE = "shape", "Schema", "Parameters, results and errors have the fields and values that the schema names.";
    KIND = "update-kind", "Prompt Turn, 3. Agent Reports Output",
        "An update is of a kind that the schema has; clients ignore any other.";
    SESSION = "session", "Session Setup, Session ID", "Messages name the session that the agent gave out.";
    DOUBLE_ID = "double-id", "Overview, Communication Model", "A request's id differs from those that still wait.";
    RESPONSE = "unknown-response", "Overview, Communication Model", "A response has the id of a request that waits.";
    DOUBLE_TURN = "double-turn", "Prompt Turn, The Prompt Turn Lifecycle", "A turn begins when the one before has ended.";
    OUTSIDE = "outside-turn", "Prompt Turn, 4. Check for Completion",
        "What an agent says about a prompt stands before the prompt's response.";
    DOUBLE_CALL = "double-call", "Tool Calls, Creating", "A tool call is created once.";
    NO_CALL = "no-call", "Tool Calls, Updating", "A tool call is created before it is updated.";
    ENDED_CALL = "ended-call", "Tool Calls, Status", "Nothing is said of a tool call that has completed or failed.";
    OPEN_ASK = "open-request", "Prompt Turn, Cancellation",
        "Every request to the person is answered or withdrawn before the prompt's response.";
    OPTION = "option", "Tool Calls, Requesting Permission", "The option that was selected is one of those offered.";
    TRUNCATED = "truncated", "Prompt Turn, 4. Check for Completion", "Every prompt has a response.";
}

pub(super) const MANNERS: Manners =
    Manners { bare: None, crlf: None, id: None, event: None, data: None, blank: None, json: &JSON, cut: &CUT };

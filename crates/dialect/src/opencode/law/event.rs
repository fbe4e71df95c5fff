//! The properties of every event: as document 004 has them, as today's schema does, and of the old SDK's permission.

use super::part::{self, MESSAGES, MESSAGES_TODAY, PARTS};
use super::rule;
use crate::check::{Field, Kind, Rule, may, must};

pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) rule: &'static Rule,
    pub(super) fields: &'static [Field],
}

const fn of(name: &'static str, rule: &'static Rule, fields: &'static [Field]) -> Known {
    Known { name, rule, fields }
}

const fn event(name: &'static str, fields: &'static [Field]) -> Known {
    of(name, &rule::EVENT, fields)
}

const SESSION_ID: Field = must("sessionID", Kind::Id("ses"));
const MESSAGE_ID: Field = must("messageID", Kind::Id("msg"));
const INFO: &[Field] = &[SESSION_ID, must("info", Kind::Object(SESSION))];
const TEXTS: Kind = Kind::List(&Kind::Text);

/// The envelope, on `/event`.
pub(super) const DOCUMENTED: &[Field] =
    &[may("id", Kind::Text), must("type", Kind::Text), must("properties", Kind::Open)];
pub(super) const TODAY: &[Field] =
    &[must("id", Kind::Id("evt")), must("type", Kind::Text), must("properties", Kind::Open)];
/// On the global feed, about it.
pub(super) const GLOBAL: &[Field] = &[must("directory", Kind::Text), may("project", Kind::Text)];
/// What the global feed has beside events: each that is stored, once more.
pub(super) const SYNC: &[Field] = &[must(
    "syncEvent",
    Kind::Object(&[
        must("id", Kind::Text),
        must("type", Kind::Text),
        must("seq", Kind::Integer),
        must("aggregateID", Kind::Text),
        must("data", Kind::Open),
    ]),
)];

/// As the document's tables have them.
pub(super) const OF_DOCUMENT: &[Known] = &[
    event("server.connected", &[]),
    event("server.instance.disposed", &[]),
    of("session.idle", &rule::SESSION, &[SESSION_ID]),
    of("session.error", &rule::SESSION, &[may("sessionID", Kind::Id("ses"))]),
    of("session.updated", &rule::SESSION, &[must("session", Kind::Object(&[must("id", Kind::Id("ses"))]))]),
    of("message.updated", &rule::MESSAGE, &[must("info", Kind::Tagged("role", MESSAGES))]),
    of("message.removed", &rule::MESSAGE, &[SESSION_ID, MESSAGE_ID]),
    of("message.part.updated", &rule::PART, &[must("part", Kind::Tagged("type", PARTS)), may("delta", Kind::Text)]),
    event("installation.updated", &[]),
    event("installation.update-available", &[]),
];

/// What clients of the old SDK wait for; `permission.asked` has taken its place.
pub(super) const OLD: &[Known] = &[event(
    "permission.updated",
    &[
        must("id", Kind::Text),
        must("type", Kind::Text),
        SESSION_ID,
        must("messageID", Kind::Text),
        must("title", Kind::Text),
        must("metadata", Kind::Open),
        must("time", Kind::Object(&[must("created", Kind::Integer)])),
    ],
)];

const SESSION: &[Field] = &[
    must("id", Kind::Id("ses")),
    must("slug", Kind::Text),
    must("projectID", Kind::Text),
    must("directory", Kind::Text),
    may("parentID", Kind::Id("ses")),
    must("title", Kind::Text),
    must("version", Kind::Text),
    may("cost", Kind::Number),
    may("tokens", part::TOKENS),
    may("model", Kind::Object(&[must("id", Kind::Text), must("providerID", Kind::Text)])),
    must(
        "time",
        Kind::Object(&[must("created", Kind::Integer), must("updated", Kind::Integer), may("archived", Kind::Number)]),
    ),
];
const STATUS: &[(&str, &[Field])] = &[
    ("idle", &[]),
    ("busy", &[]),
    ("retry", &[must("attempt", Kind::Integer), must("message", Kind::Text), must("next", Kind::Integer)]),
];
const TOOL: Field = may("tool", Kind::Object(&[must("messageID", Kind::Text), must("callID", Kind::Text)]));
const REQUEST: &[Field] = &[SESSION_ID, must("requestID", Kind::Text)];
const ANSWERS: &[Field] = &[SESSION_ID, must("requestID", Kind::Text), must("answers", Kind::List(&TEXTS))];
const QUESTIONS: Field = must(
    "questions",
    Kind::List(&Kind::Object(&[
        must("question", Kind::Text),
        must("header", Kind::Text),
        must("options", Kind::List(&Kind::Object(&[must("label", Kind::Text), must("description", Kind::Text)]))),
        may("multiple", Kind::Bool),
    ])),
);
const TODOS: Kind = Kind::List(&Kind::Object(&[
    must("content", Kind::Text),
    must("status", Kind::OneOf(&["pending", "in_progress", "completed", "cancelled"])),
    must("priority", Kind::OneOf(&["high", "medium", "low"])),
]));
const PTY: &[Field] = &[must(
    "info",
    Kind::Object(&[
        must("id", Kind::Id("pty")),
        must("title", Kind::Text),
        must("command", Kind::Text),
        must("args", TEXTS),
        must("cwd", Kind::Text),
        must("status", Kind::OneOf(&["running", "exited"])),
        must("pid", Kind::Integer),
    ]),
)];
const VERSION: &[Field] = &[must("version", Kind::Text)];

/// As the schema of OpenCode 1.18 has them, and `server.heartbeat`, which it sends and does not list.
pub(super) const OF_TODAY: &[Known] = &[
    event("catalog.updated", &[]),
    event("command.executed", &[must("name", Kind::Text), SESSION_ID, must("arguments", Kind::Text), MESSAGE_ID]),
    event("file.edited", &[must("file", Kind::Text)]),
    event(
        "file.watcher.updated",
        &[must("file", Kind::Text), must("event", Kind::OneOf(&["add", "change", "unlink"]))],
    ),
    event("global.disposed", &[]),
    event("installation.update-available", VERSION),
    event("installation.updated", VERSION),
    event("integration.connection.updated", &[must("integrationID", Kind::Text)]),
    event("integration.updated", &[]),
    event("lsp.updated", &[]),
    event("mcp.browser.open.failed", &[must("mcpName", Kind::Text), must("url", Kind::Text)]),
    event("mcp.tools.changed", &[must("server", Kind::Text)]),
    of(
        "message.part.delta",
        &rule::PART,
        &[
            SESSION_ID,
            MESSAGE_ID,
            must("partID", Kind::Id("prt")),
            must("field", Kind::Text),
            must("delta", Kind::Text),
        ],
    ),
    of("message.part.removed", &rule::PART, &[SESSION_ID, MESSAGE_ID, must("partID", Kind::Id("prt"))]),
    of(
        "message.part.updated",
        &rule::PART,
        &[SESSION_ID, must("part", Kind::Tagged("type", PARTS)), must("time", Kind::Number)],
    ),
    of("message.removed", &rule::MESSAGE, &[SESSION_ID, MESSAGE_ID]),
    of("message.updated", &rule::MESSAGE, &[SESSION_ID, must("info", Kind::Tagged("role", MESSAGES_TODAY))]),
    event("models-dev.refreshed", &[]),
    event(
        "permission.asked",
        &[
            must("id", Kind::Id("per")),
            SESSION_ID,
            must("permission", Kind::Text),
            must("patterns", TEXTS),
            must("metadata", Kind::Open),
            must("always", TEXTS),
            TOOL,
        ],
    ),
    event(
        "permission.replied",
        &[SESSION_ID, must("requestID", Kind::Text), must("reply", Kind::OneOf(&["once", "always", "reject"]))],
    ),
    event("permission.v2.asked", &[must("id", Kind::Text), SESSION_ID, must("action", Kind::Text)]),
    event("permission.v2.replied", REQUEST),
    event("plugin.added", &[must("id", Kind::Text)]),
    event("project.directories.updated", &[must("projectID", Kind::Text)]),
    event("project.updated", &[must("id", Kind::Text), must("worktree", Kind::Text)]),
    event("pty.created", PTY),
    event("pty.deleted", &[must("id", Kind::Id("pty"))]),
    event("pty.exited", &[must("id", Kind::Id("pty")), must("exitCode", Kind::Integer)]),
    event("pty.updated", PTY),
    event("question.asked", &[must("id", Kind::Id("que")), SESSION_ID, QUESTIONS, TOOL]),
    event("question.rejected", REQUEST),
    event("question.replied", ANSWERS),
    event("question.v2.asked", &[must("id", Kind::Text), SESSION_ID, must("questions", Kind::List(&Kind::Open))]),
    event("question.v2.rejected", REQUEST),
    event("question.v2.replied", ANSWERS),
    event("reference.updated", &[]),
    event("server.connected", &[]),
    event("server.heartbeat", &[]),
    event("server.instance.disposed", &[must("directory", Kind::Text)]),
    of("session.compacted", &rule::SESSION, &[SESSION_ID]),
    of("session.created", &rule::SESSION, INFO),
    of("session.deleted", &rule::SESSION, INFO),
    of("session.diff", &rule::SESSION, &[SESSION_ID, must("diff", part::FILE_DIFFS)]),
    of("session.error", &rule::SESSION, &[may("sessionID", Kind::Id("ses"))]),
    of("session.idle", &rule::SESSION, &[SESSION_ID]),
    of("session.status", &rule::SESSION, &[SESSION_ID, must("status", Kind::Tagged("type", STATUS))]),
    of("session.updated", &rule::SESSION, INFO),
    event("todo.updated", &[SESSION_ID, must("todos", TODOS)]),
    event("tui.command.execute", &[must("command", Kind::Text)]),
    event("tui.prompt.append", &[must("text", Kind::Text)]),
    event("tui.session.select", &[SESSION_ID]),
    event(
        "tui.toast.show",
        &[
            may("title", Kind::Text),
            must("message", Kind::Text),
            must("variant", Kind::OneOf(&["info", "success", "warning", "error"])),
        ],
    ),
    event("vcs.branch.updated", &[may("branch", Kind::Text)]),
    event("workspace.failed", &[must("message", Kind::Text)]),
    event("workspace.ready", &[must("name", Kind::Text)]),
    event(
        "workspace.status",
        &[
            must("workspaceID", Kind::Text),
            must("status", Kind::OneOf(&["connected", "connecting", "disconnected", "error"])),
        ],
    ),
    event("worktree.failed", &[must("message", Kind::Text)]),
    event("worktree.ready", &[must("name", Kind::Text)]),
];

/// Of sessions of the second version, which no client of ours speaks: `session.next.` and one of these.
const NEXT: &[&str] = &[
    "agent.switched",
    "compaction.delta",
    "compaction.ended",
    "compaction.started",
    "context.updated",
    "model.switched",
    "moved",
    "prompt.admitted",
    "prompted",
    "reasoning.delta",
    "reasoning.ended",
    "reasoning.started",
    "retried",
    "revert.cleared",
    "revert.committed",
    "revert.staged",
    "shell.ended",
    "shell.started",
    "step.ended",
    "step.failed",
    "step.started",
    "synthetic",
    "text.delta",
    "text.ended",
    "text.started",
    "tool.called",
    "tool.failed",
    "tool.input.delta",
    "tool.input.ended",
    "tool.input.started",
    "tool.progress",
    "tool.success",
];

pub(super) fn is_next(name: &str) -> bool {
    name.strip_prefix("session.next.").is_some_and(|name| NEXT.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema's 89, and the heartbeat.
    #[test]
    fn every_event_of_the_schema_is_there_once() {
        let mut names: Vec<_> = OF_TODAY.iter().map(|known| known.name).chain(NEXT.iter().copied()).collect();
        assert_eq!(names.len(), 89 + 1);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 89 + 1);
        assert!(OF_DOCUMENT.iter().all(|known| names.contains(&known.name)));
    }
}

//! The shapes of messages and of all that they hold: document 004's, and what today's schema adds.

use crate::check::{Field, Kind, may, must};

type Shapes = [(&'static str, &'static [Field])];

const ID: Field = must("id", Kind::Id("prt"));
const SESSION_ID: Field = must("sessionID", Kind::Id("ses"));
const MESSAGE_ID: Field = must("messageID", Kind::Id("msg"));
const MESSAGE: Field = must("id", Kind::Id("msg"));

pub(super) const TOKENS: Kind = Kind::Object(&[
    must("input", Kind::Number),
    must("output", Kind::Number),
    must("reasoning", Kind::Number),
    must("cache", Kind::Object(&[must("read", Kind::Number), must("write", Kind::Number)])),
]);
const MODEL: Kind = Kind::Object(&[must("providerID", Kind::Text), must("modelID", Kind::Text)]);
const SPAN: Kind = Kind::Object(&[must("start", Kind::Integer), may("end", Kind::Integer)]);
const ENDED: Kind = Kind::Object(&[must("start", Kind::Integer), must("end", Kind::Integer)]);
pub(super) const FILE_DIFFS: Kind = Kind::List(&Kind::Object(&[
    may("file", Kind::Text),
    may("patch", Kind::Text),
    must("additions", Kind::Number),
    must("deletions", Kind::Number),
    may("status", Kind::OneOf(&["added", "deleted", "modified"])),
]));

pub(super) const MESSAGES: &Shapes = &[("user", USER), ("assistant", ASSISTANT)];
/// Today an assistant's message names its agent too.
pub(super) const MESSAGES_TODAY: &Shapes = &[("user", USER), ("assistant", &[must("agent", Kind::Text)])];

const USER: &[Field] = &[
    MESSAGE,
    SESSION_ID,
    must("time", Kind::Object(&[must("created", Kind::Number)])),
    must("agent", Kind::Text),
    must("model", MODEL),
    may("summary", Kind::Object(&[may("title", Kind::Text), may("body", Kind::Text), must("diffs", FILE_DIFFS)])),
];
const ASSISTANT: &[Field] = &[
    MESSAGE,
    SESSION_ID,
    must("parentID", Kind::Text),
    must("modelID", Kind::Text),
    must("providerID", Kind::Text),
    must("mode", Kind::Text),
    must("path", Kind::Object(&[must("cwd", Kind::Text), must("root", Kind::Text)])),
    must("time", Kind::Object(&[must("created", Kind::Integer), may("completed", Kind::Integer)])),
    must("tokens", TOKENS),
    must("cost", Kind::Number),
    may("finish", Kind::Text),
];

/// Document 004 has the first four.
pub(super) const PARTS: &Shapes = &[
    ("text", &[ID, SESSION_ID, MESSAGE_ID, must("text", Kind::Text), may("synthetic", Kind::Bool), may("time", SPAN)]),
    ("reasoning", &[ID, SESSION_ID, MESSAGE_ID, must("text", Kind::Text), must("time", SPAN)]),
    ("tool", &[ID, SESSION_ID, MESSAGE_ID, must("callID", Kind::Text), must("tool", Kind::Text)]),
    ("file", FILE),
    ("step-start", &[ID, SESSION_ID, MESSAGE_ID, may("snapshot", Kind::Text)]),
    (
        "step-finish",
        &[
            ID,
            SESSION_ID,
            MESSAGE_ID,
            must("reason", Kind::Text),
            may("snapshot", Kind::Text),
            must("cost", Kind::Number),
            must("tokens", TOKENS),
        ],
    ),
    ("snapshot", &[ID, SESSION_ID, MESSAGE_ID, must("snapshot", Kind::Text)]),
    ("patch", &[ID, SESSION_ID, MESSAGE_ID, must("hash", Kind::Text), must("files", Kind::List(&Kind::Text))]),
    ("agent", &[ID, SESSION_ID, MESSAGE_ID, must("name", Kind::Text)]),
    (
        "retry",
        &[
            ID,
            SESSION_ID,
            MESSAGE_ID,
            must("attempt", Kind::Integer),
            must("error", Kind::Tagged("name", ERRORS)),
            must("time", Kind::Object(&[must("created", Kind::Integer)])),
        ],
    ),
    ("compaction", &[ID, SESSION_ID, MESSAGE_ID, must("auto", Kind::Bool)]),
    (
        "subtask",
        &[
            ID,
            SESSION_ID,
            MESSAGE_ID,
            must("prompt", Kind::Text),
            must("description", Kind::Text),
            must("agent", Kind::Text),
        ],
    ),
];
const FILE: &[Field] =
    &[ID, SESSION_ID, MESSAGE_ID, must("mime", Kind::Text), may("filename", Kind::Text), must("url", Kind::Text)];

/// Of a part of type `tool`.
pub(super) const STATE: &[Field] = &[must("state", Kind::Tagged("status", STATES))];
const INPUT: Field = must("input", Kind::Open);
const STATES: &Shapes = &[
    ("pending", &[INPUT, must("raw", Kind::Text)]),
    (
        "running",
        &[
            INPUT,
            may("title", Kind::Text),
            may("metadata", Kind::Open),
            must("time", Kind::Object(&[must("start", Kind::Integer)])),
        ],
    ),
    (
        "completed",
        &[
            INPUT,
            must("output", Kind::Text),
            must("title", Kind::Text),
            must("metadata", Kind::Open),
            must("time", ENDED),
            may("attachments", Kind::List(&Kind::Tagged("type", &[("file", FILE)]))),
        ],
    ),
    ("error", &[INPUT, must("error", Kind::Text), may("metadata", Kind::Open), must("time", ENDED)]),
];

/// Of a message or of `session.error`.
pub(super) const FAILURE: &[Field] = &[may("error", Kind::Tagged("name", ERRORS))];
/// Document 004 has the first five.
const ERRORS: &Shapes = &[
    ("ProviderAuthError", &[must("data", Kind::Object(&[must("providerID", Kind::Text), WORDS]))]),
    ("UnknownError", &[must("data", Kind::Object(&[WORDS]))]),
    ("MessageOutputLengthError", &[must("data", Kind::Open)]),
    ("MessageAbortedError", &[must("data", Kind::Object(&[WORDS]))]),
    (
        "APIError",
        &[must(
            "data",
            Kind::Object(&[
                WORDS,
                may("statusCode", Kind::Integer),
                must("isRetryable", Kind::Bool),
                may("responseHeaders", Kind::Map(&Kind::Text)),
                may("responseBody", Kind::Text),
            ]),
        )],
    ),
    ("StructuredOutputError", &[must("data", Kind::Object(&[WORDS, must("retries", Kind::Integer)]))]),
    ("ContextOverflowError", &[must("data", Kind::Object(&[WORDS]))]),
    ("ContentFilterError", &[must("data", Kind::Object(&[WORDS]))]),
];
const WORDS: Field = must("message", Kind::Text);

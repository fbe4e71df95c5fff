//! How this dialect carries each fact.
//!
//! Any fact that is told may end the segment that is open; the frames that end one are named only in the rows of facts
//! that can give no other. A fact that a later one tells (a prompt, by the start of its turn) names that frame.

use crate::Carriage::{Never, Partly};
use crate::CarriageTable;

pub(crate) const CARRIAGE: &CarriageTable = &[
    ("session_created", Never("Streams are about turns; sessions are listed under /api/dialogs.")),
    ("session_changed", Never("Streams are about turns; a title is read under /api/dialogs.")),
    ("session_deleted", Never("Streams are about turns; sessions are listed under /api/dialogs.")),
    ("prompt_queued", Partly(&["user"], "What is not text, and when it was queued: it is told when its turn starts.")),
    ("prompt_dropped", Never("A prompt is told when its turn starts, which this one's does not.")),
    ("turn_started", Partly(&["user"], "The turn's id; what of the prompt is not text.")),
    ("turn_ended", Partly(&["error", "done"], "The stop reason, beyond whether it failed; usage and cost.")),
    ("step_started", Partly(&["chat_end", "reasoning_end"], "All but that a run of text is over.")),
    ("step_ended", Partly(&["chat_end", "reasoning_end"], "All but that a run of text is over.")),
    ("text_appended", Partly(&["chat_start", "chat"], "The id of the part; empty pieces.")),
    ("thought_appended", Partly(&["reasoning_start", "reasoning"], "The id of the part; empty pieces.")),
    (
        "tool_changed",
        Partly(
            &["tool_call", "file_edit"],
            "Everything but the tool's name, its input and its edits; the rest is read under /tool-results.",
        ),
    ),
    (
        "input_appended",
        Partly(&["chat_end", "reasoning_end", "tool_call"], "The pieces: a call is told with its whole input."),
    ),
    ("output_appended", Partly(&["tool_call"], "The output; it is read under /tool-results.")),
    ("plan_set", Never("The wire has no plans.")),
    ("mode_set", Never("The wire has no modes.")),
    ("commands_set", Never("The wire has no commands.")),
    ("usage_set", Never("The wire has no usage.")),
    ("noticed", Never("The wire has no notices.")),
    (
        "file_changed",
        Partly(&["tool_call", "file_edit"], "The texts, where the change has no diff; which call it was."),
    ),
    ("artifact_saved", Never("The wire has no artifacts.")),
    (
        "permission_asked",
        Partly(&["tool_call"], "Which call it is about, and its metadata. It is a call named `request_permission`."),
    ),
    ("permission_answered", Never("Answers are sent by clients and not told to them.")),
    ("question_asked", Partly(&["tool_call"], "Which call it is about. It is a call named `ask_question`.")),
    ("question_answered", Never("Answers are sent by clients and not told to them.")),
    ("compaction_started", Partly(&["summary_start"], "Its id and whether it was asked for.")),
    ("compaction_ended", Partly(&["summary_start", "summary_end"], "The summary, and why there is none.")),
    ("process_started", Never("Streams are about turns.")),
    ("process_ended", Never("Streams are about turns.")),
    (
        "checkpoint_saved",
        Partly(
            &["file_edit"],
            "All but the files that the turn changed and nobody told, without their diffs; the checkpoint before a turn \
             is told with its prompt.",
        ),
    ),
    ("rewind_started", Never("Restoring is a request of its own, with its own answer.")),
    ("rewound", Never("Restoring is a request of its own, with its own answer.")),
    ("unrewound", Never("Restoring is a request of its own, with its own answer.")),
    ("message_hidden", Never("Hidden messages are not in the history.")),
    ("failed", Partly(&["error"], "All but its words, which the turn's end tells; all of it between turns.")),
    ("foreign", Never("It was said in another wire's words.")),
    ("instance_disposed", Never("Streams are about turns.")),
    ("version_changed", Never("Streams are about turns.")),
    ("update_found", Never("Streams are about turns.")),
    ("branch_changed", Never("Streams are about turns.")),
    ("pty_changed", Never("Streams are about turns.")),
    ("session_chosen", Never("A client asks which dialog is current.")),
    ("prompt_steered", Never("On this wire `user` begins a turn; the history has it in the turn that took it.")),
    ("retry_scheduled", Never("The wire has no event for a wait.")),
    ("rewind_failed", Never("Restoring is a request of its own, with its own answer.")),
    ("approved", Never("Approving is a request of its own, with its own answer.")),
    ("files_moved", Never("Streams are about turns.")),
    ("session_forked", Never("Streams are about turns; sessions are listed under /api/dialogs.")),
];

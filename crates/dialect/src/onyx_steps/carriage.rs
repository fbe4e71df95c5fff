//! How this wire carries each event. Packets that end what was open (`output_end`, `step_end`, and at the turn's end
//! `tool_end` and `permission_response`) stand in the rows of the events that cause them.

use crate::Carriage::{Never, Partly, Whole};
use crate::CarriageTable;

const SERVER: &str = "The wire is about one session.";
const HISTORY: &str = "The wire has no packet for what is done to a session's past.";

pub(crate) const CARRIAGE: &CarriageTable = &[
    ("session_created", Never("The stream is the session's; nothing opens it.")),
    ("session_changed", Partly(&["mode_update"], "The title, the model and the agent.")),
    ("session_deleted", Never("The stream ends.")),
    ("prompt_queued", Never("The prompt is not on the wire: its client has just sent it.")),
    ("prompt_dropped", Never("The prompt is not on the wire.")),
    ("turn_started", Never("The first packet of a turn implies its start.")),
    (
        "turn_ended",
        Partly(
            &["done", "error", "tool_start", "tool_end", "permission_response", "output_end", "step_end"],
            "Cost, cached and reasoning tokens, and the agent's own `_meta` are lost.",
        ),
    ),
    (
        "step_started",
        Partly(&["step_start", "step_end", "output_end"], "The model is lost; the step's name is its number."),
    ),
    (
        "step_ended",
        Partly(
            &["step_end", "output_end"],
            "Of why it ended only completed, failed or cancelled is left. Its tokens are summed in `done` if the turn \
             tells none; its cost is lost.",
        ),
    ),
    (
        "text_appended",
        Partly(
            &["output_start", "output_delta", "output_end", "step_end"],
            "The part's id is lost: a segment of output has none.",
        ),
    ),
    (
        "thought_appended",
        Partly(
            &["step_start", "step_delta", "step_end", "output_end"],
            "Inside a step the part's id is lost. Outside of any, the thought is a step of its own with that id.",
        ),
    ),
    (
        "tool_changed",
        Partly(
            &["tool_start", "tool_progress", "tool_end", "file_write", "output_end", "step_end"],
            "Nothing is told until there is something to invoke. Kind, locations, terminals and `_meta` are lost; \
             output and error become plain text; content is told at the end, and diffs as files that were written.",
        ),
    ),
    ("input_appended", Never("The start of a call has its input once it is whole.")),
    (
        "output_appended",
        Partly(
            &["tool_start", "tool_progress", "output_end", "step_end"],
            "Pieces are told together, at marks that grow; what comes after the last mark is in the result of a call \
             that gives no other.",
        ),
    ),
    ("plan_set", Partly(&["plan"], "A dropped entry is told as a completed one.")),
    ("mode_set", Whole(&["mode_update"])),
    ("commands_set", Never("The wire has no packet for an agent's commands.")),
    ("usage_set", Never("The wire tells tokens at the turn's end only.")),
    ("noticed", Never("The wire has no packet for notices.")),
    (
        "file_changed",
        Partly(
            &["file_write", "tool_start", "output_end", "step_end"],
            "Path, size, operation and call are told; contents, diff and counts of lines are lost.",
        ),
    ),
    ("artifact_saved", Partly(&["artifact_created"], "A Next.js app is told as a web app.")),
    (
        "permission_asked",
        Partly(
            &["permission_request", "tool_start", "output_end", "step_end"],
            "Patterns and metadata are lost. Outside of a turn nothing is told.",
        ),
    ),
    (
        "permission_answered",
        Partly(&["permission_response"], "Who answered is lost. An answer to what was not asked is not told."),
    ),
    ("question_asked", Never("The wire has no packet for questions.")),
    ("question_answered", Never("The wire has no packet for questions.")),
    ("compaction_started", Never("The wire has no packet for compaction.")),
    ("compaction_ended", Never("The wire has no packet for compaction.")),
    ("process_started", Never(SERVER)),
    ("process_ended", Never(SERVER)),
    (
        "checkpoint_saved",
        Partly(&["file_write"], "All but the files that the turn changed and nobody told, by path and operation."),
    ),
    ("rewind_started", Never(HISTORY)),
    ("rewound", Never(HISTORY)),
    ("unrewound", Never(HISTORY)),
    ("message_hidden", Never(HISTORY)),
    (
        "failed",
        Partly(&["error"], "Kind, details and whether to try again are lost. Inside a turn the turn's end tells it."),
    ),
    ("foreign", Never("Nobody knows what it means.")),
    ("instance_disposed", Never(SERVER)),
    ("version_changed", Never(SERVER)),
    ("update_found", Never(SERVER)),
    ("branch_changed", Never(SERVER)),
    ("pty_changed", Never(SERVER)),
    ("session_chosen", Never(SERVER)),
    ("prompt_steered", Never("The prompt is not on the wire.")),
    ("retry_scheduled", Never("The wire has no packet for a wait.")),
    ("rewind_failed", Never(HISTORY)),
    ("approved", Never(HISTORY)),
    ("files_moved", Never(SERVER)),
    ("session_forked", Never("The stream is the session's; nothing opens it.")),
];

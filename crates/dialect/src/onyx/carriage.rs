//! How each fact is carried. What this wire has no word for is not in the documents either.

use crate::Carriage::{Never, Partly, Whole};
use crate::CarriageTable;

const CALL: &[&str] = &["tool_call_start", "tool_call_progress"];
const CALLED: &[&str] = &["tool_call_start", "tool_call_progress", "subagent_started"];
const END: &[&str] = &["tool_call_start", "tool_call_progress", "prompt_response", "error"];

pub(crate) const CARRIAGE: &CarriageTable = &[
    (
        "session_created",
        Partly(&["subagent_started"], "only that of a subagent is told, by the ids of the two sessions"),
    ),
    ("session_changed", Partly(&["current_mode_update"], "all but the mode, which clients ask the routes for")),
    ("session_deleted", Never("a stream tells of turns; clients ask the routes for the session")),
    ("prompt_queued", Never("the client that listens has sent it; others read it with the stored messages")),
    ("prompt_dropped", Never("the stream that waited for its turn is ended by the door, as cancelled")),
    ("turn_started", Never("the first thing that the agent says or does shows it")),
    (
        "turn_ended",
        Partly(END, "usage, cost and the turn's id are lost; one that failed or was interrupted is told as an error"),
    ),
    ("step_started", Never("the wire has no steps")),
    ("step_ended", Never("the wire has no steps")),
    ("text_appended", Partly(&["agent_message_chunk"], "the part's id; an empty piece is not told")),
    ("thought_appended", Partly(&["agent_thought_chunk"], "the part's id; an empty piece is not told")),
    (
        "tool_changed",
        Partly(
            CALLED,
            "the tool's name once a title has taken its place (today's profile keeps it); a cancelled call is failed; \
             terminals, and `_meta` but for a subagent's session, which is also told as begun; a change that shows nothing new is not told",
        ),
    ),
    ("input_appended", Never("a progress has the whole input once it is known")),
    (
        "output_appended",
        Partly(CALL, "told whole as content, in steps that grow with it; not where the agent gave an output itself"),
    ),
    ("plan_set", Partly(&["agent_plan_update"], "a cancelled entry is completed")),
    ("mode_set", Whole(&["current_mode_update"])),
    ("commands_set", Never("clients of this family have no commands")),
    ("usage_set", Partly(&["context_usage"], "the size of the context, and the currency of the cost")),
    ("noticed", Never("the wire has no notices, and an `error` would end the turn")),
    ("file_changed", Never("clients see changes as diffs of the calls that made them")),
    (
        "artifact_saved",
        Partly(
            &["artifact_created"],
            "its mime type and size; ten kinds become four: file, image, nextjs_app, web_app",
        ),
    ),
    ("permission_asked", Partly(&["approval_requested"], "what else the agent said of it (`metadata`)")),
    ("permission_answered", Never("the call goes on or fails; that shows it")),
    ("question_asked", Never("clients of this family cannot answer questions")),
    ("question_answered", Never("clients of this family cannot answer questions")),
    ("compaction_started", Never("only its end is told")),
    ("compaction_ended", Partly(&["compaction"], "its id; one that failed is not told, as the context stayed")),
    ("process_started", Never("clients ask the routes for what runs")),
    ("process_ended", Never("clients ask the routes for what runs")),
    ("checkpoint_saved", Never("the wire has no checkpoints")),
    ("rewind_started", Never("the wire cannot take back what it told")),
    ("rewound", Never("the wire cannot take back what it told")),
    ("unrewound", Never("the wire cannot take back what it told")),
    ("message_hidden", Never("the wire cannot take back what it told")),
    (
        "failed",
        Partly(&["error"], "its kind and whether it may be retried; inside a turn it is told by the turn's end"),
    ),
    ("foreign", Never("what we have no word for cannot be put into other words")),
    ("instance_disposed", Never("the server's own affairs are not on this wire")),
    ("version_changed", Never("the server's own affairs are not on this wire")),
    ("update_found", Never("the server's own affairs are not on this wire")),
    ("branch_changed", Never("the server's own affairs are not on this wire")),
    ("pty_changed", Never("the server's own affairs are not on this wire")),
    ("session_chosen", Never("the server's own affairs are not on this wire")),
    ("prompt_steered", Never("prompts are not on the wire; it is a row among those of its turn")),
    ("retry_scheduled", Never("the wire has no packet for a wait")),
    ("rewind_failed", Never("the wire cannot take back what it told")),
    ("approved", Never("the wire has no checkpoints")),
    ("files_moved", Never("clients ask the routes for the files")),
    ("session_forked", Never("a stream tells of turns; clients ask the routes for the session")),
];

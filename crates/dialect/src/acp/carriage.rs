//! How this dialect carries each fact. Frames go by the kind of their update, by their method, or are a `result` or an
//! `error`.

use crate::Carriage::{Never, Partly, Whole};
use crate::CarriageTable;

const DOOR: &str = "the client's own requests (session/new, session/list, session/delete) tell it, not the agent";
const SERVER: &str = "it is of the server, and the protocol is between one client and one agent";
const STEPS: &str = "the protocol does not tell calls of the model; readers make steps of text and tools";
const REWIND: &str = "the protocol has no word for checkpoints";

pub(crate) const CARRIAGE: &CarriageTable = &[
    ("session_created", Never(DOOR)),
    (
        "session_changed",
        Partly(
            &["session_info_update", "current_mode_update"],
            "title and mode are told; model, agent and archive are configuration that the client asks for",
        ),
    ),
    ("session_deleted", Never(DOOR)),
    ("prompt_queued", Never("the prompt is told when its turn starts")),
    ("prompt_dropped", Never("a prompt that no turn came of was never told")),
    (
        "turn_started",
        Partly(
            &["user_message_chunk", "session_info_update"],
            "the prompt's blocks are told; its key, agent, model and context, and the checkpoint, are not",
        ),
    ),
    (
        "turn_ended",
        Partly(
            &["result", "error", "tool_call_update", "$/cancel_request"],
            "the cost is not told, and of a failure neither its kind nor whether to try again, unless its code says so; \
             calls and requests that are open are closed first",
        ),
    ),
    ("step_started", Never(STEPS)),
    ("step_ended", Never(STEPS)),
    ("text_appended", Whole(&["agent_message_chunk"])),
    ("thought_appended", Whole(&["agent_thought_chunk"])),
    (
        "tool_changed",
        Partly(
            &["tool_call", "tool_call_update"],
            "cancelled is told as failed, and why a call failed is told in its output or content; a subagent's session \
             is told in `_meta`, and read back as that",
        ),
    ),
    ("input_appended", Never("there is no input in pieces; an update has the whole once it is known")),
    ("output_appended", Whole(&["tool_call", "tool_call_update"])),
    (
        "plan_set",
        Partly(
            &["plan"],
            "a cancelled entry is told as completed; one that was read out of a call's todo list is not told",
        ),
    ),
    ("mode_set", Whole(&["current_mode_update"])),
    ("commands_set", Whole(&["available_commands_update"])),
    ("usage_set", Partly(&["usage_update"], "how much of it its subagents used")),
    ("noticed", Whole(&["notice"])),
    ("file_changed", Never("files are told by the diffs of the calls that change them")),
    ("artifact_saved", Never("the protocol has no word for artifacts")),
    ("permission_asked", Whole(&["session/request_permission"])),
    ("permission_answered", Whole(&["$/cancel_request"])),
    ("question_asked", Whole(&["elicitation/create"])),
    ("question_answered", Whole(&["$/cancel_request"])),
    ("compaction_started", Partly(&["compaction_update"], "who asked for it is not told")),
    ("compaction_ended", Whole(&["compaction_update"])),
    ("process_started", Never("the protocol has no word for what runs beside a turn")),
    ("process_ended", Never("the protocol has no word for what runs beside a turn")),
    ("checkpoint_saved", Never(REWIND)),
    ("rewind_started", Never(REWIND)),
    ("rewound", Never(REWIND)),
    ("unrewound", Never(REWIND)),
    ("message_hidden", Never(REWIND)),
    ("failed", Partly(&["notice"], "outside of a turn, the message alone; inside of one the turn's error tells it")),
    (
        "foreign",
        Partly(
            &["(as it came)"],
            "updates and extension notifications of ACP agents are passed on; their requests, which were answered, and \
             what came on other wires are not",
        ),
    ),
    ("instance_disposed", Never(SERVER)),
    ("version_changed", Never(SERVER)),
    ("update_found", Never(SERVER)),
    ("branch_changed", Never(SERVER)),
    ("pty_changed", Never("the protocol's terminals are the client's")),
    ("session_chosen", Never("a client knows which session it shows")),
    (
        "prompt_steered",
        Partly(&["user_message_chunk"], "the prompt's blocks are told; its key, agent, model and context are not"),
    ),
    ("retry_scheduled", Whole(&["notice"])),
    ("rewind_failed", Never(REWIND)),
    ("approved", Never(REWIND)),
    ("files_moved", Never("the protocol has no word for files that others change")),
    ("session_forked", Never(DOOR)),
];

//! How each fact is carried, in all three profiles. Document 004 has fewer events; the rest is today's.

use crate::Carriage::{Never, Partly, Whole};
use crate::CarriageTable;

const SESSION: &[&str] = &["session.updated"];
// After a retry, what the agent does next tells first that the session is busy again.
const MESSAGE: &[&str] = &["session.status", "message.updated", "message.part.updated"];
const PART: &[&str] = &["session.status", "message.part.updated"];
const TEXT: &[&str] = &["session.status", "message.part.updated", "message.part.delta"];
const PROMPT: &[&str] = &["message.updated", "message.part.updated", "session.updated"];
const END: &[&str] =
    &["message.part.updated", "session.error", "message.updated", "session.updated", "session.status", "session.idle"];
const RETRY: &[&str] = &["message.updated", "session.status"];
const PERMISSION: &[&str] = &["message.part.updated", "permission.asked", "permission.updated"];
const PTY: &[&str] = &["pty.created", "pty.updated", "pty.exited", "pty.deleted"];

pub(crate) const CARRIAGE: &CarriageTable = &[
    (
        "session_created",
        Partly(&["session.created"], "which agent runs it, where a model is named, and what a fork was made of"),
    ),
    (
        "session_changed",
        Partly(SESSION, "which agent runs it, where a model is named; the whole session is shown anew"),
    ),
    ("session_deleted", Whole(&["session.deleted"])),
    (
        "prompt_queued",
        Partly(PROMPT, "the turn's id, the client's key and context; an attached text is a text; titles of links"),
    ),
    ("prompt_dropped", Partly(&["message.removed"], "that it had not begun: its message is removed")),
    (
        "turn_started",
        Partly(
            &["session.updated", "session.status"],
            "the turn's id; its checkpoint is in its first step. The session is busy, and shows no more what was taken back",
        ),
    ),
    (
        "turn_ended",
        Partly(
            END,
            "the turn's id, its cost, its usage where it had steps, and why it stopped, but for a failure and a \
             cancellation; one that was interrupted is told as aborted",
        ),
    ),
    ("step_started", Whole(MESSAGE)),
    ("step_ended", Partly(MESSAGE, "that usage or cost were not told: they are zero then")),
    ("text_appended", Partly(TEXT, "the part's id, in place of which one is made")),
    ("thought_appended", Partly(TEXT, "the part's id, in place of which one is made")),
    (
        "tool_changed",
        Partly(
            PART,
            "its kind, locations, content but for texts, images and the first diff, and `_meta`; a cancelled call is \
             an error; a change that shows nothing new is not told",
        ),
    ),
    ("input_appended", Partly(PART, "told whole, in steps that grow with it, and not once the call runs")),
    ("output_appended", Partly(PART, "told whole, in steps that grow with it")),
    ("plan_set", Whole(&["todo.updated"])),
    ("mode_set", Whole(SESSION)),
    ("commands_set", Never("clients ask a route for the commands, and no event tells of new ones")),
    ("usage_set", Partly(SESSION, "how full the context is; only what it cost is told, without its currency")),
    ("noticed", Partly(&["tui.toast.show"], "a severity of no known name is info")),
    ("file_changed", Partly(&["file.edited"], "all but the path; what a subagent changed its own session tells")),
    ("artifact_saved", Never("the wire has no artifacts; the file is told by the call that wrote it")),
    (
        "permission_asked",
        Partly(
            PERMISSION,
            "the answers to choose from, which are once, always and reject; the title is in the old event; what a \
             subagent asks its own session tells, where these clients look for it",
        ),
    ),
    ("permission_answered", Partly(&["permission.replied"], "who answered and why; nobody's answer is reject")),
    ("question_asked", Partly(&["question.asked"], "what a subagent asks its own session tells")),
    ("question_answered", Partly(&["question.replied", "question.rejected"], "who answered")),
    (
        "compaction_started",
        Partly(
            &["message.updated", "message.part.updated"],
            "its id; outside of a turn it is not told. It is a part of a user's message",
        ),
    ),
    (
        "compaction_ended",
        Partly(
            &["message.updated", "message.part.updated", "message.part.delta", "session.compacted"],
            "its id and what it keeps; one that failed is not told. The summary is a message of the agent's",
        ),
    ),
    ("process_started", Never("the family has terminals of people and no processes of agents")),
    ("process_ended", Never("the family has terminals of people and no processes of agents")),
    (
        "checkpoint_saved",
        Partly(
            &["file.edited", "message.part.updated", "message.updated", "session.diff"],
            "the checkpoint itself and who else worked there: after a turn its changes are a `patch` and the summary of \
             its prompt",
        ),
    ),
    ("rewind_started", Never("what came of it is told")),
    (
        "rewound",
        Partly(
            &["file.watcher.updated", "session.updated", "session.diff", "tui.toast.show"],
            "what others changed alone, and of very many what was kept; the checkpoints, but for the one before; `revert` \
             is the first message that is hidden",
        ),
    ),
    (
        "unrewound",
        Partly(
            &["file.watcher.updated", "session.updated", "session.diff", "tui.toast.show"],
            "what others changed alone, and of very many what was kept; the checkpoints",
        ),
    ),
    ("message_hidden", Whole(&["message.removed"])),
    (
        "failed",
        Partly(
            &["session.error"],
            "code, details and whether it may be retried, but for a provider's; eight kinds are five",
        ),
    ),
    ("foreign", Never("what we have no word for cannot be put into other words")),
    ("instance_disposed", Whole(&["server.instance.disposed"])),
    ("version_changed", Whole(&["installation.updated"])),
    ("update_found", Whole(&["installation.update-available"])),
    ("branch_changed", Partly(&["vcs.branch.updated"], "the folder, which the envelope of the global feed names")),
    ("pty_changed", Partly(PTY, "what is known of one that exited or is gone, but for its id and exit code")),
    ("session_chosen", Never("its own client is told only by hand which session to show")),
    (
        "prompt_steered",
        Partly(&["message.updated"], "the ids of both turns: its message is told again, and the next step names it"),
    ),
    (
        "retry_scheduled",
        Partly(
            RETRY,
            "the provider's code, but where an answer was cut off, whose message gets the error; the wait is told by \
             its end, and read back from the time in the event's id",
        ),
    ),
    ("rewind_failed", Partly(&["tui.toast.show"], "that it was a rewind, but for a title")),
    ("approved", Partly(&["session.updated", "session.diff"], "all but that no changes are counted any more")),
    ("files_moved", Partly(&["file.watcher.updated"], "whose restore moved them, and counts of lines")),
    ("session_forked", Partly(SESSION, "what it was forked from: the session is shown anew")),
];

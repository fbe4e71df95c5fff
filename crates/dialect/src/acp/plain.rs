//! Messages that can be read without knowing what came before.

use tolka_facts::event::{
    Command, CommandsSet, Failed, FailureKind, ModeSet, Noticed, RetryScheduled, SessionChanged, Severity, UsageSet,
};
use tolka_facts::{Event, Json};

use super::mark::{self, RetryMark};
use super::wire::{Commands, ContextUsage, CurrentMode, SessionInfo, WireCommand, WireError, WireNotice};

/// `None` for an update that we have no word for, or that lacks what makes it one.
pub(super) fn event(what: &str, update: &Json) -> Option<Event> {
    let event = match what {
        "available_commands_update" => {
            let Commands { available_commands } = update.read()?;
            CommandsSet { commands: available_commands.iter().filter_map(Json::read).map(command).collect() }.into()
        }
        "current_mode_update" => ModeSet { mode: update.read::<CurrentMode>()?.current_mode_id }.into(),
        "session_info_update" => {
            let title = Some(update.read::<SessionInfo>()?.title);
            SessionChanged { title, mode: None, model: None, agent: None, archived: None }.into()
        }
        "usage_update" => {
            let ContextUsage { used, size, cost } = update.read()?;
            UsageSet { used, size, cost, subagents: None }.into()
        }
        "notice" => {
            let WireNotice { severity, title, description } = update.read()?;
            if let Some(RetryMark { attempt, delay_ms, code }) = mark::read(update) {
                let message = description.unwrap_or_default();
                return Some(RetryScheduled { attempt, delay_ms, message, code }.into());
            }
            let severity = match severity.as_deref() {
                Some("info") => Severity::Info,
                Some("warning") => Severity::Warning,
                Some("error") => Severity::Error,
                _ => Severity::Other,
            };
            Noticed { severity, title, description }.into()
        }
        _ => return None,
    };
    Some(event)
}

fn command(wire: WireCommand) -> Command {
    Command {
        name: wire.name,
        description: wire.description.unwrap_or_default(),
        hint: wire.input.map(|input| input.hint),
    }
}

/// The error object of a failed request.
pub(super) fn failure(error: &Json) -> Failed {
    let Some(read) = error.read::<WireError>() else {
        let message = "the agent answered with an error that is none".to_owned();
        return Failed { kind: FailureKind::Agent, message, code: None, retryable: true, details: Some(error.clone()) };
    };
    let (kind, retryable) = match read.code {
        Some(-32000) => (FailureKind::Auth, false),
        Some(-32800) => (FailureKind::Aborted, true),
        // The agent does not know the method or the session; to ask again changes nothing.
        Some(-32602..=-32600 | -32002) => (FailureKind::Agent, false),
        _ => (FailureKind::Agent, true),
    };
    let message = read.message.unwrap_or_else(|| "the agent answered with an error".to_owned());
    Failed { kind, message, code: read.code, retryable, details: read.data }
}

//! What a turn leaves open when it ends, ended: nothing stays open behind a turn.

use crate::event::{CompactionEnded, Finish, PermissionAnswered, QuestionAnswered, StepEnded, Stop, ToolChanged};
use crate::{Ask, Draft, OpenTurn, ToolStatus};

/// How the last step of a turn ended, where only the turn's own end was told.
impl From<Stop> for Finish {
    fn from(stop: Stop) -> Finish {
        match stop {
            Stop::EndTurn | Stop::MaxTurnRequests | Stop::Refusal => Finish::Stop,
            Stop::MaxTokens => Finish::Length,
            Stop::Cancelled => Finish::Cancelled,
            Stop::Failed | Stop::Interrupted => Finish::Error,
        }
    }
}

impl OpenTurn {
    /// Takes back what was asked and will not be answered any more.
    pub fn withdraw_asks(&self, by: &str) -> Vec<Draft> {
        let by = || by.to_owned();
        let withdrawn = self.asks.iter().map(|ask| match ask {
            Ask::Permission(ask) => {
                Draft::tolka(PermissionAnswered { request: ask.request.clone(), option: None, by: by(), reason: None })
            }
            Ask::Question(ask) => {
                Draft::tolka(QuestionAnswered { request: ask.request.clone(), answers: None, by: by() })
            }
        });
        withdrawn.collect()
    }

    /// What ends all that is open, in the order in which it ends: requests, a summary, calls, the step.
    pub fn end_what_is_open(&self, stop: Stop) -> Vec<Draft> {
        let (why, status) = match stop {
            Stop::Cancelled => ("The turn was cancelled before the tool ended.", ToolStatus::Cancelled),
            Stop::Interrupted => {
                ("The server stopped before the tool ended; it was not run again.", ToolStatus::Cancelled)
            }
            Stop::Failed => ("The agent failed before the tool ended.", ToolStatus::Failed),
            Stop::EndTurn | Stop::MaxTokens | Stop::MaxTurnRequests | Stop::Refusal => {
                ("The turn ended before the tool did.", ToolStatus::Failed)
            }
        };
        let mut drafts = self.withdraw_asks("tolka");
        drafts.extend(self.compaction.iter().map(|id| {
            let error = Some(unsummarised(stop).to_owned());
            Draft::tolka(CompactionEnded { id: id.clone(), summary: None, error, keeps: None, usage: None, cost: None })
        }));
        drafts.extend(self.open_tools().map(|tool| {
            let (status, error) = (Some(status), Some(why.into()));
            Draft::tolka(ToolChanged { status, error, ..ToolChanged::of(tool.call.clone()) })
        }));
        drafts.extend(self.step.iter().map(|step| {
            let message = step.message.clone();
            Draft::tolka(StepEnded { message, finish: stop.into(), usage: None, cost: None, kept: None })
        }));
        drafts
    }
}

/// Why there is no summary. The conversation is as it was.
fn unsummarised(stop: Stop) -> &'static str {
    match stop {
        Stop::Cancelled => "The turn was cancelled before there was a summary.",
        Stop::Interrupted => "The server stopped before there was a summary.",
        Stop::Failed | Stop::EndTurn | Stop::MaxTokens | Stop::MaxTurnRequests | Stop::Refusal => {
            "The turn ended before there was a summary."
        }
    }
}

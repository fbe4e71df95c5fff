//! What waits for a person, and the plan.

use tolka_facts::event::{
    OptionKind, PermissionAnswered, PermissionAsked, PermissionOption, PlanEntry, PlanSet, PlanStatus, Priority,
    QuestionAnswered, QuestionAsked,
};
use tolka_facts::{CallId, Draft, RequestId};

use super::event;
use super::session::Session;

impl Session {
    pub(super) fn permission_asked(&mut self, ask: event::PermissionAsked, out: &mut Vec<Draft>) {
        let title = ask.patterns.first().unwrap_or(&ask.permission).clone();
        let asked = PermissionAsked {
            request: RequestId::from(ask.id),
            call: ask.tool.map(|tool| CallId::from(tool.call_id)),
            permission: ask.permission,
            title,
            patterns: ask.patterns,
            metadata: ask.metadata,
            options: options(),
        };
        self.ask(asked, out);
    }

    pub(super) fn permission_updated(&mut self, ask: event::PermissionUpdated, out: &mut Vec<Draft>) {
        let asked = PermissionAsked {
            request: RequestId::from(ask.id),
            call: ask.call_id.map(CallId::from),
            permission: ask.r#type,
            title: ask.title,
            patterns: ask.pattern.map(Vec::from).unwrap_or_default(),
            metadata: ask.metadata,
            options: options(),
        };
        self.ask(asked, out);
    }

    /// A server for old and new clients asks twice, by one id.
    fn ask(&mut self, asked: PermissionAsked, out: &mut Vec<Draft>) {
        if self.asks.get(asked.request.as_str()).is_none() {
            self.asks.insert(asked.request.as_str(), ());
            self.need_turn(None, out);
            out.push(Draft::agent(asked));
        }
    }

    pub(super) fn permission_replied(&mut self, reply: &event::PermissionReplied, out: &mut Vec<Draft>) {
        out.push(Draft::client(PermissionAnswered {
            request: RequestId::from(reply.request_id.as_str()),
            option: Some(reply.reply.clone()),
            by: "opencode".to_owned(),
            reason: None,
        }));
    }

    pub(super) fn question_asked(&mut self, ask: event::QuestionAsked, out: &mut Vec<Draft>) {
        if self.asks.get(&ask.id).is_none() {
            self.asks.insert(&ask.id, ());
            self.need_turn(None, out);
            out.push(Draft::agent(QuestionAsked {
                request: RequestId::from(ask.id),
                call: ask.tool.map(|tool| CallId::from(tool.call_id)),
                questions: ask.questions,
            }));
        }
    }

    pub(super) fn question_answered(&mut self, request: &str, answers: Option<Vec<Vec<String>>>, out: &mut Vec<Draft>) {
        let by = "opencode".to_owned();
        out.push(Draft::client(QuestionAnswered { request: RequestId::from(request), answers, by }));
    }

    pub(super) fn todos(&mut self, update: event::TodoUpdated, out: &mut Vec<Draft>) {
        let entry = |todo: event::Todo| PlanEntry {
            content: todo.content,
            status: match todo.status.as_str() {
                "in_progress" => PlanStatus::InProgress,
                "completed" => PlanStatus::Completed,
                "cancelled" => PlanStatus::Cancelled,
                _ => PlanStatus::Pending,
            },
            priority: match todo.priority.as_str() {
                "high" => Priority::High,
                "low" => Priority::Low,
                _ => Priority::Medium,
            },
        };
        out.push(Draft::agent(PlanSet { entries: update.todos.into_iter().map(entry).collect() }));
    }
}

/// The three answers that OpenCode's clients can give; the wire does not list them.
fn options() -> Vec<PermissionOption> {
    let option = |id: &str, name: &str, kind| PermissionOption { id: id.to_owned(), name: name.to_owned(), kind };
    vec![
        option("once", "Allow once", OptionKind::AllowOnce),
        option("always", "Allow always", OptionKind::AllowAlways),
        option("reject", "Reject", OptionKind::RejectOnce),
    ]
}

//! What we remember of a tool call between its messages, and how one message changes it.

use tolka_facts::event::ToolChanged;
use tolka_facts::{Body, CallId, Json, Location, ToolContent, ToolKind, ToolStatus};

use super::block;
use super::wire::{self, ToolFields, ToolMeta};

/// How a call came to our sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// A `tool_call`. Its title may be the tool's name: OpenCode's first title is.
    Start,
    Update,
    /// Named in a request for permission, which repeats what the agent wants the person to see and may
    /// know less than was told before.
    Permission,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) name: Option<String>,
    pub(super) kind: Option<ToolKind>,
    pub(super) title: Option<String>,
    pub(super) locations: Vec<Location>,
    has_input: bool,
    has_content: bool,
    pub(super) has_ended: bool,
}

/// A message about a call, read.
#[derive(Debug)]
pub(super) struct Change {
    /// `None` when the message tells nothing but output.
    pub(super) changed: Option<ToolChanged>,
    pub(super) output: Option<String>,
}

impl Call {
    pub(super) fn read(&mut self, fields: ToolFields, sight: Sight, is_new: bool) -> Change {
        let meta: ToolMeta = fields.meta.as_ref().and_then(Json::read).unwrap_or_default();
        let status = fields.status.as_deref().and_then(wire::status);
        let content: Option<Vec<ToolContent>> =
            fields.content.map(|items| items.iter().filter_map(block::content).collect());
        let error = (status == Some(ToolStatus::Failed))
            .then(|| said_error(fields.raw_output.as_ref(), content.as_deref().unwrap_or_default()))
            .flatten();
        let title_as_name =
            || fields.title.as_deref().filter(|title| sight == Sight::Start && is_new && is_name(title));
        let name = fields.name.or_else(|| meta.claude_code.map(|claude| claude.tool_name.to_lowercase()));
        let mut changed = ToolChanged {
            name: name.or_else(|| title_as_name().map(str::to_lowercase)),
            kind: fields.kind.as_deref().map(wire::kind),
            title: fields.title.filter(|title| !title.is_empty()),
            status,
            input: fields.raw_input,
            output: fields.raw_output,
            content,
            locations: fields.locations.map(|all| all.iter().filter_map(Json::read).collect()),
            error,
            ..ToolChanged::of(CallId::from(fields.tool_call_id))
        };
        let is_repeated = sight == Sight::Permission && !is_new;
        if is_repeated {
            self.keep_what_is_news(&mut changed);
        }
        let output = meta.terminal_output_delta.map(|output| output.data).filter(|data| !data.is_empty());
        let says_nothing = changed == ToolChanged::of(changed.call.clone());
        let is_told = !says_nothing || (output.is_none() && !is_repeated);
        if is_told && !is_repeated {
            changed.meta = fields.meta;
        }
        self.remember(&changed);
        Change { changed: is_told.then_some(changed), output }
    }

    /// OpenCode asks for a running call as if it were pending, with part of its input.
    fn keep_what_is_news(&self, changed: &mut ToolChanged) {
        changed.status = None;
        changed.name.take_if(|_| self.name.is_some());
        changed.kind.take_if(|_| self.kind.is_some());
        changed.title.take_if(|_| self.title.is_some());
        changed.input.take_if(|input| self.has_input || is_empty(input));
        changed.content.take_if(|content| self.has_content || content.is_empty());
        changed.locations.take_if(|locations| !self.locations.is_empty() || locations.is_empty());
    }

    fn remember(&mut self, changed: &ToolChanged) {
        self.name = changed.name.clone().or_else(|| self.name.take());
        self.kind = changed.kind.or(self.kind);
        self.title = changed.title.clone().or_else(|| self.title.take());
        self.locations = changed.locations.clone().unwrap_or_else(|| std::mem::take(&mut self.locations));
        self.has_input |= changed.input.as_ref().is_some_and(|input| !is_empty(input));
        self.has_content |= changed.content.as_ref().is_some_and(|content| !content.is_empty());
    }

    /// What rules call the thing that this call does.
    pub(super) fn permission(&self) -> String {
        let by_kind = match self.kind.unwrap_or_default() {
            ToolKind::Execute => "bash",
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => "edit",
            ToolKind::Read => "read",
            ToolKind::Search => "grep",
            ToolKind::Fetch => "webfetch",
            ToolKind::Think | ToolKind::SwitchMode | ToolKind::Other => "other",
        };
        self.name.clone().unwrap_or_else(|| by_kind.to_owned())
    }
}

fn is_empty(input: &Json) -> bool {
    input.get() == "{}"
}

/// A tool's name is one word; titles that are commands or paths have other characters.
fn is_name(title: &str) -> bool {
    title.starts_with(|c: char| c.is_ascii_alphabetic())
        && title.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

#[derive(serde::Deserialize)]
struct ErrorOutput {
    error: String,
}

/// Why a call failed: agents say it in the output or, failing that, in the content.
pub(super) fn said_error(output: Option<&Json>, content: &[ToolContent]) -> Option<Body> {
    let said = output
        .and_then(|output| output.read::<String>().or_else(|| output.read::<ErrorOutput>().map(|output| output.error)));
    said.map(Body::from).or_else(|| {
        content.iter().find_map(|content| match content {
            ToolContent::Content { block: tolka_facts::Block::Text { text, .. } } => Some(text.clone()),
            _ => None,
        })
    })
}

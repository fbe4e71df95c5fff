//! Packets back to facts: ours, or those of a server that we read.
//!
//! The stream of one prompt has neither the prompt nor ids for its turn and its runs of text, so those are
//! made from the place in the stream. What the state holds does not grow with the stream.

use serde::Deserialize;
use tolka_facts::event::{
    ArtifactSaved, CompactionEnded, Cost, Failed, FailureKind, Foreign, ModeSet, OptionKind, PermissionAsked,
    PermissionOption, PlanSet, Stop, TextAppended, ThoughtAppended, ToolChanged, TurnEnded, TurnStarted, UsageSet,
};
use tolka_facts::{
    ArtifactId, Block, Body, Draft, Event, Json, NoBlobs, PartId, RequestId, SessionId, Time, ToolStatus, TurnId,
    Voice, derived_id,
};

use super::error::{CommonError, INTERRUPTED};
use super::packet::{Approval, Artifact, ErrorPacket, Packet, ToolPacket};
use super::{rules, stamp};
use crate::sse::read_all;
use crate::{DecodeError, Heard, SseEvent, SseReader};

#[derive(Debug, Default)]
pub struct Decoder {
    reader: SseReader,
    turn: Option<TurnId>,
    /// The run of text that the next chunk of this voice belongs to.
    open: Option<(Voice, PartId)>,
    /// Ids made so far.
    made: u64,
    /// The session that the stream is about, once a packet has told. Today's server mixes the packets of
    /// subagents into the stream of their parent.
    route: Option<Route>,
}

/// Both are there on a subagent's packets, neither on others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Route {
    session_id: Option<String>,
    parent_session_id: Option<String>,
}

impl crate::Decoder for Decoder {
    /// An event that cannot be read is told and skipped; those after it are read all the same.
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.feed(bytes, &mut events);
        self.events(&events, out).and(read)
    }

    fn finish(&mut self, out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.finish(&mut events);
        self.events(&events, out).and(read)
    }
}

impl Decoder {
    fn events(&mut self, events: &[SseEvent], out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        read_all(events, |event| {
            let raw = Json::parse(&event.data)?;
            let mut drafts = Vec::new();
            self.packet(&raw, event.event.as_deref(), &mut drafts);
            out.extend(Heard::all(drafts, None, stamp::read(&raw)));
            Ok::<_, serde_json::Error>(())
        })
    }

    fn packet(&mut self, raw: &Json, event: Option<&str>, out: &mut Vec<Draft>) {
        // JSON that is no object is no packet either.
        let packet = Packet::parse_event(raw.get(), event).unwrap_or_else(|_| Packet::Unknown(String::new()));
        let name = packet.name().to_owned();
        let event = match self.is_elsewhere(&packet, raw) {
            true => None,
            false => self.event(packet, out),
        };
        let event = event.unwrap_or_else(|| Foreign { origin: "onyx".to_owned(), what: name }.into());
        let failure = match &event {
            Event::Failed(failed) => Some(failed.message == INTERRUPTED),
            _ => None,
        };
        out.push(Draft::agent(event).with_raw(raw.clone()));
        if let Some(interrupted) = failure
            && let Some(turn) = self.end_turn()
        {
            let stop = if interrupted { Stop::Interrupted } else { Stop::Failed };
            out.push(Draft::tolka(TurnEnded { turn, stop, usage: None, cost: None, meta: None }));
        }
    }

    /// What the packet tells; `None` if we have no word for it.
    fn event(&mut self, packet: Packet, out: &mut Vec<Draft>) -> Option<Event> {
        Some(match packet {
            Packet::MessageChunk(Some(Block::Text { text, .. })) => {
                let part = self.part(Voice::Text, out);
                TextAppended { part, text: text.text(&NoBlobs).into_owned() }.into()
            }
            Packet::ThoughtChunk(Some(Block::Text { text, .. })) => {
                let part = self.part(Voice::Thought, out);
                ThoughtAppended { part, text: text.text(&NoBlobs).into_owned() }.into()
            }
            Packet::ToolStart(tool) => {
                self.start_turn(out);
                // Text after a tool is a new run, also when the voice is the same.
                self.open = None;
                let name = tool.title.as_deref().and_then(rules::known_tool).map(str::to_owned);
                tool_changed(tool, name).into()
            }
            Packet::ToolProgress(tool) => {
                self.start_turn(out);
                tool_changed(tool, None).into()
            }
            Packet::Plan(entries) => PlanSet { entries }.into(),
            Packet::Mode(mode) => ModeSet { mode }.into(),
            Packet::PromptResponse { stop, meta } => {
                self.start_turn(out);
                TurnEnded { turn: self.end_turn()?, stop, usage: None, cost: None, meta }.into()
            }
            Packet::Error(error) => failed(error).into(),
            Packet::ArtifactCreated(artifact) => artifact_saved(artifact).into(),
            Packet::ApprovalRequested(approval) => {
                self.start_turn(out);
                permission_asked(approval).into()
            }
            Packet::ContextUsage { used, cost } => {
                let cost = cost.map(|amount| Cost { amount, currency: "USD".to_owned() });
                UsageSet { used, size: 0, cost, subagents: None }.into()
            }
            Packet::Compaction { summary } => CompactionEnded {
                id: self.id("cmp"),
                summary: summary.map(Body::from),
                error: None,
                keeps: None,
                usage: None,
                cost: None,
            }
            .into(),
            // A session of its own begins there, in a journal that is not this one.
            Packet::SubagentStarted { .. } => return None,
            Packet::MessageChunk(_) | Packet::ThoughtChunk(_) | Packet::Unknown(_) => return None,
        })
    }

    fn id(&mut self, prefix: &str) -> String {
        self.made += 1;
        derived_id(prefix, Time::default(), self.made, 0)
    }

    /// The packets of a turn imply its start, which the wire does not tell.
    fn start_turn(&mut self, out: &mut Vec<Draft>) {
        if self.turn.is_none() {
            let turn = TurnId::from(self.id("trn"));
            self.turn = Some(turn.clone());
            out.push(Draft::tolka(TurnStarted { turn, checkpoint: None }));
        }
    }

    fn end_turn(&mut self) -> Option<TurnId> {
        self.open = None;
        self.turn.take()
    }

    fn part(&mut self, voice: Voice, out: &mut Vec<Draft>) -> PartId {
        self.start_turn(out);
        match &self.open {
            Some((open, part)) if *open == voice => part.clone(),
            _ => {
                let part = PartId::from(self.id("prt"));
                self.open = Some((voice, part.clone()));
                part
            }
        }
    }

    /// A packet of another session than the stream's: its text must not run into ours.
    fn is_elsewhere(&mut self, packet: &Packet, raw: &Json) -> bool {
        #[derive(Deserialize)]
        struct Routed {
            _meta: Option<Route>,
        }
        let tells = matches!(
            packet,
            Packet::MessageChunk(_) | Packet::ThoughtChunk(_) | Packet::ToolStart(_) | Packet::ToolProgress(_)
        );
        if !tells {
            return false;
        }
        let route = raw.read::<Routed>().and_then(|routed| routed._meta).unwrap_or_default();
        let is_routed = route.session_id.is_some() && route.parent_session_id.is_some();
        let own = self.route.get_or_insert_with(|| if is_routed { route.clone() } else { Route::default() });
        is_routed && *own != route
    }
}

fn tool_changed(tool: ToolPacket, by_title: Option<String>) -> ToolChanged {
    let failed = tool.status == Some(ToolStatus::Failed);
    let error = tool.output.as_ref().filter(|_| failed).and_then(error_in).map(Body::from);
    let subagent = tool.meta.as_ref().and_then(subagent_in);
    ToolChanged {
        call: tool.call,
        name: tool.name.or(by_title),
        kind: tool.kind,
        title: tool.title,
        status: tool.status,
        input: tool.input,
        output: tool.output,
        content: tool.content,
        locations: tool.locations,
        error,
        meta: tool.meta,
        subagent,
    }
}

fn subagent_in(meta: &Json) -> Option<SessionId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        subagent_session_id: SessionId,
    }
    meta.read::<Named>().map(|named| named.subagent_session_id)
}

fn error_in(output: &Json) -> Option<String> {
    #[derive(Deserialize)]
    struct Output {
        error: String,
    }
    output.read::<Output>().map(|output| output.error)
}

fn failed(error: ErrorPacket) -> Failed {
    let is = |common: CommonError| error.message == common.message();
    let kind = if is(CommonError::SandboxNotRunning) {
        FailureKind::Sandbox
    } else if is(CommonError::Database) {
        FailureKind::Storage
    } else if is(CommonError::SessionNotFound) {
        FailureKind::Unknown
    } else {
        FailureKind::Agent
    };
    Failed { kind, message: error.message, code: error.code, retryable: false, details: error.details }
}

/// The wire tells neither type nor size of the file.
fn artifact_saved(artifact: Artifact) -> ArtifactSaved {
    ArtifactSaved {
        id: ArtifactId::from(artifact.id),
        kind: artifact.kind,
        name: artifact.name,
        path: artifact.path,
        mime: "application/octet-stream".to_owned(),
        size: 0,
        preview: artifact.preview,
    }
}

fn permission_asked(approval: Approval) -> PermissionAsked {
    let mut options = approval.options;
    if options.is_empty() {
        // What today's server takes as an answer.
        let option = |id: &str, name: &str, kind| PermissionOption { id: id.to_owned(), name: name.to_owned(), kind };
        options.push(option("APPROVED", "Approve", OptionKind::AllowOnce));
        options.push(option("REJECTED", "Reject", OptionKind::RejectOnce));
    }
    PermissionAsked {
        request: RequestId::from(approval.id),
        call: approval.call,
        permission: approval.permission,
        title: approval.title,
        patterns: approval.patterns,
        metadata: None,
        options,
    }
}

//! What a session says, without what this wire cannot carry: two tellings of the same session must agree
//! on it. What is lost on the way (turn ids, who answered, …) is left out or brought to its common form here.

use std::collections::HashMap;

use serde_json::Value;
use tolka_facts::event::{FailureKind, KeptWhy, Moment, Rewound, Severity, Stop, Unrewound};
use tolka_facts::{Block, Event, NoBlobs, Part, Role, Tool, ToolContent, ToolKind, ToolStatus, View};

use crate::support::Run;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Transcript {
    pub(crate) title: String,
    pub(crate) messages: Vec<Said>,
    /// What is no message: questions and answers, plans, notices, failures.
    pub(crate) beside: Vec<String>,
    pub(crate) stops: Vec<Stop>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    pub(crate) id: String,
    pub(crate) role: Role,
    pub(crate) hidden: bool,
    pub(crate) parts: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Content(Block),
    Text(String),
    Thought(String),
    Tool { call: String, name: String, status: ToolStatus, title: String, input: String, result: String },
}

impl Transcript {
    pub(crate) fn of(run: &Run) -> Transcript {
        let mut view = View::default();
        run.facts.iter().for_each(|fact| view.apply(fact));
        let open = view.tip.turn.as_ref().map(|turn| turn.id.clone());
        let messages = view.messages.iter().map(|message| Said {
            id: message.id.to_string(),
            role: message.role,
            // The wire's clients hide what was taken back; its messages are there until they are removed.
            hidden: message.hidden && !message.rewound,
            parts: message
                .parts
                .iter()
                .filter_map(|part| piece(part, Some(&message.turn) == open.as_ref(), run))
                .collect(),
        });
        Transcript {
            title: view.tip.head.title.clone(),
            messages: messages.collect(),
            beside: beside(run),
            stops: stops(run),
        }
    }

    pub(crate) fn texts(&self) -> Vec<&str> {
        let parts = self.messages.iter().filter(|said| said.role == Role::Agent).flat_map(|said| &said.parts);
        parts.filter_map(|part| if let Piece::Text(text) = part { Some(text.as_str()) } else { None }).collect()
    }

    pub(crate) fn tools(&self) -> Vec<(&str, ToolStatus)> {
        let parts = self.messages.iter().flat_map(|said| &said.parts);
        let tool = |part| match part {
            &Piece::Tool { ref name, status, .. } => Some((name.as_str(), status)),
            _ => None,
        };
        parts.filter_map(tool).collect()
    }
}

fn piece(part: &Part, is_open: bool, run: &Run) -> Option<Piece> {
    let words = |text: String| (!text.is_empty()).then_some(text);
    match part {
        Part::Content(Block::Text { text, .. }) => Some(Piece::Content(Block::text(text.text(&run.blobs).as_ref()))),
        Part::Content(block) => Some(Piece::Content(block.clone())),
        Part::Text(said) => words(said.text.to_string()).map(Piece::Text),
        Part::Thought(said) => words(said.text.to_string()).map(Piece::Thought),
        Part::Tool(tool) => Some(called(tool, is_open, run)),
    }
}

fn was_asked_for(tool: &Tool, run: &Run) -> bool {
    run.facts
        .iter()
        .any(|fact| matches!(&fact.event, Event::PermissionAsked(ask) if ask.call.as_ref() == Some(&tool.call)))
}

fn called(tool: &Tool, is_open: bool, run: &Run) -> Piece {
    let is_lost = tool.is_open() && !is_open;
    let status = match tool.status {
        _ if is_lost => ToolStatus::Failed,
        ToolStatus::Cancelled => ToolStatus::Failed,
        // A call that a person is asked about runs, as far as this wire tells.
        ToolStatus::Pending if was_asked_for(tool, run) => ToolStatus::Running,
        status => status,
    };
    let input = tool.input.as_ref().map(|input| input.whole(&run.blobs).get().to_owned());
    Piece::Tool {
        call: tool.call.to_string(),
        name: tool.name.clone().unwrap_or_else(|| named(tool.kind).to_owned()),
        status,
        title: if status == ToolStatus::Completed { tool.title.clone() } else { String::new() },
        input: input.unwrap_or_default(),
        result: match status {
            ToolStatus::Completed => output(tool, run),
            _ if is_lost => "The turn ended before the tool did.".to_owned(),
            ToolStatus::Failed => error(tool, run),
            _ => String::new(),
        },
    }
}

fn named(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Execute => "bash",
        ToolKind::Read => "read",
        ToolKind::Edit | ToolKind::Move => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Search => "grep",
        ToolKind::Fetch => "webfetch",
        _ => "tool",
    }
}

fn value(tool: &Tool, run: &Run) -> Value {
    tool.output.as_ref().map(|output| output.whole(&run.blobs).value()).unwrap_or_default()
}

fn output(tool: &Tool, run: &Run) -> String {
    let value = value(tool, run);
    let told = value.as_str().or(value["output"].as_str()).map(str::to_owned);
    let shown = tool.content.iter().flatten().find_map(|content| match content {
        ToolContent::Content { block: Block::Text { text, .. } } => Some(text.text(&run.blobs).into_owned()),
        _ => None,
    });
    told.or(shown.filter(|text| !text.is_empty())).unwrap_or_else(|| tool.live_output.to_string())
}

fn error(tool: &Tool, run: &Run) -> String {
    if let Some(error) = &tool.error {
        return error.text(&run.blobs).into_owned();
    }
    let told = value(tool, run)["error"].as_str().map(str::to_owned).unwrap_or_else(|| output(tool, run));
    if told.is_empty() && tool.output.is_none() { "The tool failed and did not say why.".to_owned() } else { told }
}

fn stops(run: &Run) -> Vec<Stop> {
    let (mut stops, mut seen) = (Vec::new(), None);
    for fact in &run.facts {
        match &fact.event {
            Event::TurnStarted(_) => seen = None,
            Event::Failed(e) if e.kind == FailureKind::Aborted => seen = Some(Stop::Cancelled),
            Event::Failed(_) => seen = Some(Stop::Failed),
            Event::TurnEnded(e) => stops.push(match e.stop {
                Stop::Cancelled | Stop::Interrupted => Stop::Cancelled,
                _ => seen.take().unwrap_or(Stop::EndTurn),
            }),
            _ => {}
        }
    }
    stops
}

fn beside(run: &Run) -> Vec<String> {
    let mut in_turn = false;
    let mut options = HashMap::new();
    let mut beside = Vec::new();
    for fact in &run.facts {
        let line = match &fact.event {
            Event::TurnStarted(_) => {
                in_turn = true;
                continue;
            }
            Event::TurnEnded(_) => {
                in_turn = false;
                continue;
            }
            Event::PermissionAsked(e) => {
                options.insert(e.request.clone(), e.options.clone());
                let metadata = e.metadata.as_ref().map(|metadata| metadata.whole(&run.blobs).value());
                format!("{} asks for {} {:?} {:?} {metadata:?}", e.request, e.permission, e.call, e.patterns)
            }
            Event::PermissionAnswered(e) => {
                let known = options.get(&e.request).into_iter().flatten();
                let allowed =
                    known.clone().find(|option| Some(&option.id) == e.option.as_ref()).map(|option| option.kind);
                format!("{} is answered {:?}", e.request, allowed.filter(|kind| kind.allows()))
            }
            Event::QuestionAsked(e) => format!("{} asks {:?}", e.request, e.questions),
            Event::QuestionAnswered(e) => format!("{} is answered {:?}", e.request, e.answers),
            Event::PlanSet(e) => format!("{:?}", e.entries),
            // Nothing but a toast tells it.
            Event::RewindFailed(e) => {
                let words = Some(&e.message).filter(|text| !text.is_empty());
                format!("{:?} Nothing was taken back {words:?}", Severity::Error)
            }
            Event::Rewound(Rewound { kept, .. }) | Event::Unrewound(Unrewound { kept, .. }) => {
                match kept.iter().filter(|file| file.why != KeptWhy::NotOurs).count() {
                    0 => continue,
                    1 => "A file was kept".to_owned(),
                    more => format!("{more} files were kept"),
                }
            }
            Event::Noticed(e) if e.severity == Severity::Warning && e.title.ends_with(" kept") => e.title.clone(),
            Event::Noticed(e) => {
                let severity = if e.severity == Severity::Other { Severity::Info } else { e.severity };
                format!("{severity:?} {} {:?}", e.title, e.description.as_ref().filter(|text| !text.is_empty()))
            }
            // In a turn an abort is how it ends.
            Event::Failed(e) if e.kind == FailureKind::Aborted && in_turn => continue,
            Event::Failed(e) => match e.kind {
                FailureKind::OutputLength => "output length".to_owned(),
                FailureKind::Provider => format!("provider {} {:?} {} {:?}", e.message, e.code, e.retryable, e.details),
                FailureKind::Auth => format!("auth {}", e.message),
                FailureKind::Aborted => format!("aborted {}", e.message),
                _ => format!("failed {}", e.message),
            },
            // The wire tells when in whole milliseconds.
            Event::RetryScheduled(e) => format!("attempt {} in {} ms: {}", e.attempt, e.delay_ms, e.message),
            Event::FileChanged(e) => e.path.clone(),
            Event::CheckpointSaved(e) if e.moment == Some(Moment::AfterTurn) => {
                let untold = e.changes.iter().flat_map(|changes| &changes.files).filter(|stat| !stat.told);
                beside.extend(untold.map(|stat| format!("/workspace/{}", stat.path)));
                continue;
            }
            Event::CompactionEnded(_) => "compacted".to_owned(),
            Event::InstanceDisposed(e) => format!("disposed {}", e.directory),
            Event::VersionChanged(e) => format!("version {}", e.version),
            Event::BranchChanged(e) => format!("branch {:?}", e.branch),
            Event::PtyChanged(e) => format!("pty {} {:?} {:?}", e.id, e.change, e.info),
            _ => continue,
        };
        beside.push(line);
    }
    beside
}

/// For facts that hold no blobs.
pub(crate) fn plain(block: &Block) -> String {
    match block {
        Block::Text { text, .. } => text.text(&NoBlobs).into_owned(),
        other => format!("{other:?}"),
    }
}

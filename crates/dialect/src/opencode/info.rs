//! A session as routes and events show it.

use serde::Serialize;
use serde_json::Value;
use tolka_facts::event::{ParentKind, Usage};
use tolka_facts::{Hash, Head, SessionId};

use super::wire::{self, SPOKEN_VERSION};

/// A project is a folder; OpenCode names it by a hash.
pub fn project_id(workspace: &str) -> String {
    Hash::of(workspace.as_bytes()).as_str()[..40].to_owned()
}

/// `Session` as routes and events show it.
pub fn session_info(head: &Head) -> Value {
    let names = Names::of(head);
    // String keys only, and all of it is plain data.
    serde_json::to_value(SessionInfo::of(head, &names)).unwrap_or_default()
}

/// Names that OpenCode has for what others do not name. They are made by hashing, so whoever tells often keeps them.
#[derive(Debug, Clone)]
pub(super) struct Names {
    session: SessionId,
    workspace: String,
    slug: String,
    project: String,
}

impl Names {
    pub(super) fn of(head: &Head) -> Self {
        Names {
            session: head.id.clone(),
            workspace: head.workspace.clone(),
            slug: slug(&head.id),
            project: project_id(&head.workspace),
        }
    }

    pub(super) fn are_of(&self, head: &Head) -> bool {
        self.session == head.id && self.workspace == head.workspace
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionInfo<'a> {
    id: &'a str,
    slug: &'a str,
    version: &'a str,
    #[serde(rename = "projectID")]
    project_id: &'a str,
    directory: &'a str,
    path: &'a str,
    title: &'a str,
    agent: &'a str,
    model: ModelInfo<'a>,
    cost: f64,
    tokens: Tokens,
    summary: Summary,
    time: Times,
    #[serde(rename = "parentID", skip_serializing_if = "Option::is_none")]
    parent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revert: Option<Revert<'a>>,
}

/// What is hidden, from a message on, and can be brought back.
#[derive(Serialize)]
struct Revert<'a> {
    #[serde(rename = "messageID")]
    message_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a str>,
}

#[derive(Serialize)]
struct ModelInfo<'a> {
    id: &'a str,
    #[serde(rename = "providerID")]
    provider_id: &'a str,
}

#[derive(Serialize)]
struct Summary {
    additions: u64,
    deletions: u64,
    files: u64,
}

#[derive(Serialize)]
struct Times {
    created: u64,
    updated: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    archived: Option<u64>,
}

impl<'a> SessionInfo<'a> {
    /// `names` must be of this head.
    pub(super) fn of(head: &'a Head, names: &'a Names) -> Self {
        let model = wire::model(head, None);
        SessionInfo {
            id: head.id.as_str(),
            slug: &names.slug,
            version: SPOKEN_VERSION,
            project_id: &names.project,
            directory: &head.workspace,
            path: "",
            title: &head.title,
            agent: wire::agent_name(head),
            model: ModelInfo { id: model.id, provider_id: model.provider },
            cost: head.cost.as_ref().map_or(0.0, |cost| cost.amount),
            tokens: Tokens::of(head.tokens),
            summary: Summary { additions: head.added, deletions: head.removed, files: head.files },
            time: Times {
                created: head.created.millis(),
                updated: head.updated.millis(),
                archived: head.archived.then(|| head.updated.millis()),
            },
            // A fork stands on its own; a parent's children are the subagents that it called.
            parent_id: head.parent.as_ref().filter(|p| p.kind == ParentKind::Subagent).map(|p| p.session.as_str()),
            revert: head.rewound.as_ref().and_then(|rewind| {
                let message_id = rewind.message.as_ref()?.as_str();
                Some(Revert { message_id, snapshot: rewind.before.as_deref() })
            }),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Tokens {
    input: u64,
    output: u64,
    reasoning: u64,
    cache: Cache,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
}

#[derive(Serialize)]
struct Cache {
    read: u64,
    write: u64,
}

impl Tokens {
    fn of(usage: Usage) -> Self {
        Tokens {
            input: usage.input,
            output: usage.output,
            reasoning: usage.reasoning,
            cache: Cache { read: usage.cache_read, write: usage.cache_write },
            total: None,
        }
    }

    /// Tokens of a step carry their total once there are any, as the real server's do.
    pub(super) fn counted(usage: Usage) -> Self {
        Tokens { total: Some(usage.total()).filter(|total| *total > 0), ..Tokens::of(usage) }
    }
}

fn slug(id: &SessionId) -> String {
    const FIRST: [&str; 16] = [
        "amber", "brisk", "calm", "clear", "eager", "gentle", "glowing", "happy", "jolly", "keen", "kind", "lucid",
        "misty", "proud", "quiet", "sunny",
    ];
    const SECOND: [&str; 16] = [
        "birch", "brook", "comet", "falcon", "fjord", "heron", "lake", "lynx", "maple", "meadow", "otter", "pine",
        "raven", "river", "rocket", "tiger",
    ];
    let hash = Hash::of(id.as_str().as_bytes());
    let digit = |at: usize| usize::from_str_radix(&hash.as_str()[at..=at], 16).ok();
    format!("{}-{}", FIRST[digit(0).unwrap_or(0)], SECOND[digit(1).unwrap_or(0)])
}

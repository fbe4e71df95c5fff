//! Prompts that are called by a name. The files are looked at whenever a prompt comes, and a call is queued as what it
//! stands for, so that everybody sees what the agent was told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tolka_agent::{Agent, COMPACT, GENERAL, ModeAbout};
use tolka_facts::event::Model;
use tolka_facts::{Block, NoBlobs, Subtask, uri_path};
use tolka_workspace::slash::{Filled, Slash, called, fill};

use crate::prompt::PromptRequest;

/// What a call stands for.
struct Meant {
    slash: Slash,
    filled: Filled,
    /// The kind of subagent that is to do it.
    kind: Option<String>,
}

/// Puts what was called in the place of its call; a name that nobody knows is a text like any other.
pub(crate) async fn call(agent: &Arc<dyn Agent>, workspace: &str, request: &mut PromptRequest) {
    if agent.shelf().is_none() {
        return;
    }
    let text = match request.content.first() {
        Some(Block::Text { text, .. }) if text.blob().is_none() => text.text(&NoBlobs).into_owned(),
        _ => return,
    };
    // A summary is the agent's own work: no file has its name.
    let is_own = |name: &str| agent.compacts() && COMPACT.strip_prefix('/') == Some(name);
    if called(&text).is_none_or(|(name, _)| is_own(&name)) {
        return;
    }
    let (asked, place) = (agent.clone(), PathBuf::from(workspace));
    let looking = tokio::task::spawn_blocking(move || meant(asked.as_ref(), &place, &text));
    // It fails only if the runtime is going down, and this task with it.
    if let Some(meant) = looking.await.ok().flatten() {
        put(agent.as_ref(), request, meant, workspace);
    }
}

fn meant(agent: &dyn Agent, workspace: &Path, text: &str) -> Option<Meant> {
    let (name, arguments) = called(text)?;
    let slash = agent.shelf()?.all(workspace).into_iter().find(|slash| slash.name == name)?;
    let filled = fill(&slash.template, arguments, workspace);
    let kind = kind_of(&slash, &agent.subagents(workspace));
    (!filled.text.trim().is_empty()).then_some(Meant { slash, filled, kind })
}

/// A subagent does it where the file says so, or names one and does not say otherwise. As OpenCode has it.
fn kind_of(slash: &Slash, kinds: &[ModeAbout]) -> Option<String> {
    let is_kind = |name: &str| kinds.iter().any(|kind| kind.name == name);
    let named = slash.agent.as_deref().filter(|name| is_kind(name));
    let wanted = slash.subtask.unwrap_or(named.is_some());
    let kind = named.or_else(|| Some(GENERAL).filter(|name| is_kind(name)));
    kind.filter(|_| wanted).map(str::to_owned)
}

/// What the request itself says wins; a way of working or a model that is not here is left to the agent.
fn put(agent: &dyn Agent, request: &mut PromptRequest, meant: Meant, workspace: &str) {
    let Meant { slash, filled, kind } = meant;
    let called = match kind {
        // What it mentions a subagent reads itself.
        Some(kind) => vec![Subtask { kind, description: slash.description, prompt: filled.text }.into_block()],
        None => {
            let links = filled.files.into_iter().map(|path| link(workspace, path));
            std::iter::once(Block::text(filled.text)).chain(links).collect()
        }
    };
    request.content.splice(..1, called);
    if request.agent.is_none() {
        let is_known = |name: &String| agent.modes().iter().any(|mode| mode.name == *name);
        request.agent = slash.agent.filter(is_known);
    }
    if request.model.is_none() {
        let wanted = slash.model.as_deref().map(|model| {
            let (provider, id) = model.split_once('/').unwrap_or(("", model));
            Model { provider: provider.to_owned(), id: id.to_owned() }
        });
        request.model = wanted.and_then(|wanted| agent.find_model(&wanted));
    }
}

fn link(workspace: &str, path: String) -> Block {
    let uri = format!("file://{}/{}", uri_path(workspace), uri_path(&path));
    Block::Link { uri, name: path, title: None, description: None, mime: None, size: None }
}

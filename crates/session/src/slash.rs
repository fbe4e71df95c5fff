//! Prompts that are called by a name. The files are looked at whenever a prompt comes, and a call is queued as what it
//! stands for, so that everybody sees what the agent was told.

use std::path::{Path, PathBuf};

use tolka_agent::{Agent, COMPACT};
use tolka_facts::event::Model;
use tolka_facts::{Block, NoBlobs};
use tolka_workspace::slash::{Filled, Shelf, Slash, called, fill};

use crate::prompt::PromptRequest;

/// Puts what was called in the place of its call; a name that nobody knows is a text like any other.
pub(crate) async fn call(agent: &dyn Agent, workspace: &str, request: &mut PromptRequest) {
    let Some(shelf) = agent.shelf().cloned() else { return };
    let text = match request.content.first() {
        Some(Block::Text { text, .. }) if text.blob().is_none() => text.text(&NoBlobs).into_owned(),
        _ => return,
    };
    // A summary is the agent's own work: no file has its name.
    let is_own = |name: &str| agent.compacts() && COMPACT.strip_prefix('/') == Some(name);
    if called(&text).is_none_or(|(name, _)| is_own(&name)) {
        return;
    }
    let place = PathBuf::from(workspace);
    let looking = tokio::task::spawn_blocking(move || meant(&shelf, &place, &text));
    // It fails only if the runtime is going down, and this task with it.
    if let Some((slash, filled)) = looking.await.ok().flatten() {
        put(agent, request, &slash, filled, workspace);
    }
}

fn meant(shelf: &Shelf, workspace: &Path, text: &str) -> Option<(Slash, Filled)> {
    let (name, arguments) = called(text)?;
    let slash = shelf.all(workspace).into_iter().find(|slash| slash.name == name)?;
    let filled = fill(&slash.template, arguments, workspace);
    (!filled.text.trim().is_empty()).then_some((slash, filled))
}

/// What the request itself says wins; a way of working or a model that is not here is left to the agent.
fn put(agent: &dyn Agent, request: &mut PromptRequest, slash: &Slash, filled: Filled, workspace: &str) {
    let mut called = vec![Block::text(filled.text)];
    called.extend(filled.files.into_iter().map(|path| link(workspace, path)));
    request.content.splice(..1, called);
    if request.agent.is_none() {
        let is_known = |name: &&String| agent.modes().iter().any(|mode| mode.name == **name);
        request.agent = slash.agent.as_ref().filter(is_known).cloned();
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
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let written = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let place: String = format!("{workspace}/{path}").bytes().map(written).collect();
    Block::Link { uri: format!("file://{place}"), name: path, title: None, description: None, mime: None, size: None }
}

//! Whom a client asks for. OpenCode's clients choose a model and, as "agent", a way of working; here a model
//! stands for the agent that brings it, and the ways of working are that agent's modes.

use std::sync::Arc;

use serde_json::Value;
use tolka_agent::{Agent, BUILD};
use tolka_facts::Head;
use tolka_facts::event::Model;

use crate::app::App;
use crate::fault::Fault;
use crate::request::text_field;

/// What a client asked for, as far as it counts; the rest is left to the agent.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Choice {
    /// The configured agent of a new session.
    pub(super) agent: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) model: Option<Model>,
}

pub(super) fn for_new_session(app: &App, body: &Value) -> Result<Choice, Fault> {
    let wanted = model(body)?;
    let (owner, model) = wanted.and_then(|model| owner(app, &model)).unzip();
    let mut choice = Choice { agent: None, mode: None, model };
    let mut agent = owner.or_else(|| app.desk.agents().first());
    match text_field(body, "agent")? {
        None | Some("") => {}
        // Our own names are no part of OpenCode's list, but whoever writes one means it.
        Some(name) if named(app, name).is_some() => {
            agent = named(app, name);
            choice.model = choice.model.and_then(|model| agent?.find_model(&model));
        }
        Some(name) => choice.mode = Some(mode(agent, name)?),
    }
    choice.agent = agent.map(|agent| agent.name().to_owned());
    Ok(choice)
}

/// Refuses a prompt that asks for somebody else than the session is with: to answer in another's name would
/// be worse. A model that nobody here brings is let pass where there is nothing to choose from, for clients that always
/// name one; messages then name the model that answered.
pub(super) fn in_session(app: &App, head: &Head, body: &Value) -> Result<Choice, Fault> {
    let agent = named(app, &head.agent);
    let mode = match text_field(body, "agent")? {
        None | Some("") => None,
        Some(name) if name == head.agent || head.mode.as_deref() == Some(name) => None,
        Some(name) => Some(mode(agent, name)?),
    };
    let Some(model) = model(body)? else { return Ok(Choice { agent: None, mode, model: None }) };
    if let Some(model) = agent.and_then(|agent| agent.find_model(&model)) {
        return Ok(Choice { agent: None, mode, model: Some(model) });
    }
    let choices = agent.map(|agent| agent.models()).unwrap_or_default();
    let name = format!("{}/{}", model.provider, model.id);
    match owner(app, &model) {
        Some((owner, _)) if head.model.as_ref() != Some(&model) => Err(Fault::BadRequest(format!(
            "This session is with `{}`; to work with `{}` ({name}), start a new one.",
            head.agent,
            owner.name(),
        ))),
        None if choices.len() > 1 => Err(Fault::BadRequest(format!(
            "Model not found: {name}. GET /config/providers lists those that there are."
        ))),
        _ => Ok(Choice { agent: None, mode, model: None }),
    }
}

fn named<'a>(app: &'a App, name: &str) -> Option<&'a Arc<dyn Agent>> {
    app.desk.agents().iter().find(|agent| agent.name() == name)
}

/// The agent that brings a model, and the model by its whole name.
fn owner<'a>(app: &'a App, model: &Model) -> Option<(&'a Arc<dyn Agent>, Model)> {
    app.desk.agents().iter().find_map(|agent| Some((agent, agent.find_model(model)?)))
}

fn mode(agent: Option<&Arc<dyn Agent>>, name: &str) -> Result<String, Fault> {
    let modes = agent.map(|agent| agent.modes()).unwrap_or_default();
    if modes.iter().any(|mode| mode.name == name) {
        return Ok(name.to_owned());
    }
    let known: Vec<String> = modes.into_iter().map(|mode| mode.name).collect();
    let known = if known.is_empty() { BUILD.to_owned() } else { known.join(", ") };
    let name: String = name.chars().take(80).collect();
    Err(Fault::BadRequest(format!("Agent not found: \"{name}\". Available agents: {known}")))
}

/// `id` when a session is created, `modelID` in a prompt.
fn model(body: &Value) -> Result<Option<Model>, Fault> {
    let Some(model) = body.get("model").filter(|model| !model.is_null()) else { return Ok(None) };
    let field = |name: &str| model.get(name).and_then(Value::as_str).map(str::to_owned);
    match (field("providerID"), field("id").or_else(|| field("modelID"))) {
        (Some(provider), Some(id)) => Ok(Some(Model { provider, id })),
        _ => Err(Fault::BadRequest("Expected { providerID, modelID }\n  at [\"model\"]".to_owned())),
    }
}

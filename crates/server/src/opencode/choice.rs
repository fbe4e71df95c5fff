//! Whom a client asks for. OpenCode's clients choose a model and, as "agent", a way of working; here a model
//! stands for the agent that brings it, and the only way of working is `build`.

use serde_json::Value;
use tolka_facts::Head;
use tolka_facts::event::Model;

use crate::app::App;
use crate::fault::Fault;
use crate::request::text_field;

/// The one entry of `GET /agent`.
pub(super) const BUILD: &str = "build";

/// The configured agent that a new session is asked to be with; `None` leaves it to the server.
pub(super) fn for_new_session(app: &App, body: &Value) -> Result<Option<String>, Fault> {
    let by_model = model(body)?.and_then(|model| owner(app, &model));
    match text_field(body, "agent")? {
        None | Some("" | BUILD) => Ok(by_model),
        // Our own names are no part of OpenCode's list, but whoever writes one means it.
        Some(name) if app.desk.agents().iter().any(|agent| agent.name() == name) => Ok(Some(name.to_owned())),
        Some(name) => Err(unknown(name)),
    }
}

/// Refuses a prompt that asks for somebody else than the session is with: to answer in another's name would
/// be worse. A model that nobody here brings is let pass, for clients that always name one; messages then
/// name the model that answered.
pub(super) fn in_session(app: &App, head: &Head, body: &Value) -> Result<(), Fault> {
    if let Some(name) = text_field(body, "agent")?
        && !matches!(name, "" | BUILD)
        && name != head.agent
        && head.mode.as_deref() != Some(name)
    {
        return Err(unknown(name));
    }
    let Some(model) = model(body)? else { return Ok(()) };
    match owner(app, &model) {
        Some(owner) if owner != head.agent && head.model.as_ref() != Some(&model) => Err(Fault::BadRequest(format!(
            "This session is with `{}`; to work with `{owner}` ({}/{}), start a new one.",
            head.agent, model.provider, model.id
        ))),
        _ => Ok(()),
    }
}

fn owner(app: &App, model: &Model) -> Option<String> {
    app.desk.agents().iter().find(|agent| agent.model() == *model).map(|agent| agent.name().to_owned())
}

fn unknown(name: &str) -> Fault {
    let name: String = name.chars().take(80).collect();
    Fault::BadRequest(format!("Agent not found: \"{name}\". Available agents: {BUILD}"))
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

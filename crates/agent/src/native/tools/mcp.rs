//! Tools of MCP servers, and what else of theirs goes into a conversation: resources and prompts that a person named.
//!
//! To a model they are tools like ours, by the name of their server and their own. To a person each asks for leave as
//! `server:tool`, unless a rule says otherwise; no name of a server has a colon in it, so leave for one is leave for no
//! other. Whatever their server does, a call ends, and its end says in words what came of it.

mod given;

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tolka_facts::Draft;
use tolka_facts::event::{Command, CommandsSet, OutputAppended};
use tolka_mcp::{Kit, Offered, Prompt, Server, State, tool_name};
use tolka_workspace::slash::Slash;

use super::Tools;
use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::bash::{Asking, Before, GRACE};
use super::field::Fields;
use super::name::{MCP, Name};
use crate::native::model::ToolSpec;
use crate::native::permission::{Leave, literal};
use crate::native::turn::notice;
use crate::{Gone, PLAN, Teller};

/// Calls that no model makes: what a person named in a prompt is read in this way, and told so.
pub(in crate::native) const RESOURCE: &str = "mcp_resource";
pub(in crate::native) const PROMPT: &str = "mcp_prompt";

/// A turn waits no longer for servers that are coming up; it can do without them, and they join it later.
const PATIENCE: Duration = Duration::from_secs(10);
/// Lines of progress that are told of one call.
const PROGRESS: usize = 200;
/// Names that are remembered; no session has seen so many tools.
const MOST_NAMES: usize = 4_096;

/// What a session knows of its servers.
#[derive(Debug, Default)]
pub(super) struct Acquaintance(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Which server a tool was of that was offered once, by its name.
    tools: HashMap<String, String>,
    /// Servers that the person was told of, and how they were doing. Not in which words: those are theirs to choose.
    told: HashSet<(String, State)>,
}

impl Acquaintance {
    fn name(&self, server: &str, tool: &str) -> String {
        let name = tool_name(server, tool, |name| Name::of(name).is_some() || matches!(name, RESOURCE | PROMPT));
        let mut known = self.known();
        if known.tools.len() >= MOST_NAMES {
            known.tools.clear();
        }
        known.tools.insert(name.clone(), server.to_owned());
        name
    }

    /// Whether that is news. Of servers that are not there any more nothing is kept.
    fn is_news(&self, kit: &Kit, server: &str, state: State) -> bool {
        let mut known = self.known();
        known.told.retain(|(server, _)| kit.get(server).is_some());
        known.told.insert((server.to_owned(), state))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Two plain maps: a panic leaves them whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tools {
    /// The MCP servers of this session.
    pub(in crate::native) fn kit(&self) -> Kit {
        let hub = self.settings.mcp.as_ref();
        hub.map(|hub| hub.of_session(self.session.as_str(), &self.workspace)).unwrap_or_default()
    }

    /// Waits until it is known of each server whether it is there; a while at most.
    pub(in crate::native) async fn settled(&self) {
        self.kit().settled(PATIENCE).await;
    }

    fn foreign(&self) -> Vec<Offered> {
        self.kit().offered(|server, tool| self.servers.name(server, tool))
    }

    /// In plan mode only those that say that they change nothing.
    pub(super) fn foreign_specs(&self, mode: &str) -> Vec<ToolSpec> {
        let is_fit = |offered: &Offered| mode != PLAN || offered.tool.is_read_only;
        let spec = |offered: Offered| {
            let about = format!("[MCP server {}] {}", offered.server.name(), offered.tool.description);
            ToolSpec { name: offered.name, description: about, schema: offered.tool.schema }
        };
        self.foreign().into_iter().filter(is_fit).map(spec).collect()
    }

    /// Tells which servers are not there, once for each way not to be; and which prompts can be sent as commands, if that is new.
    pub(in crate::native) async fn tell_servers(&self, teller: &Teller, known: &[Command]) -> Result<(), Gone> {
        let kit = self.kit();
        for server in kit.servers() {
            let status = server.status();
            let words = match status.state {
                State::Failed | State::NeedsAuth => status.error.unwrap_or_default(),
                State::Connecting => "It has not come up yet.".to_owned(),
                State::Idle | State::Disabled | State::Ready => continue,
            };
            if self.servers.is_news(&kit, server.name(), status.state) {
                notice(teller, &format!("The MCP server `{}` cannot be used", server.name()), words).await?;
            }
        }
        let mut commands = self.in_files().await;
        commands.extend(kit.prompts().iter().map(|(server, prompt)| command(server, prompt)));
        // An agent that had the session before may have told others; they are not ours to take away.
        let has_none = self.settings.mcp.is_none() && self.settings.shelf.is_none();
        if commands == known || commands.is_empty() && has_none {
            return Ok(());
        }
        teller.tell(Draft::agent(CommandsSet { commands })).await
    }

    /// Prompts that are kept in files, which the session puts in the place of their calls, and what we do ourselves.
    async fn in_files(&self) -> Vec<Command> {
        let Some(shelf) = self.settings.shelf.clone() else { return Vec::new() };
        let workspace = self.workspace.clone();
        let reading = tokio::task::spawn_blocking(move || crate::commands(&shelf, true, &workspace));
        let command = |slash: Slash| Command { name: slash.name, description: slash.description, hint: slash.hint };
        reading.await.unwrap_or_default().into_iter().map(command).collect()
    }
}

fn command(server: &Server, prompt: &Prompt) -> Command {
    let argument = |argument: &tolka_mcp::PromptArgument| match argument.is_required {
        true => format!("<{}>", argument.name),
        false => format!("[{}]", argument.name),
    };
    let hint = prompt.arguments.iter().map(argument).collect::<Vec<_>>().join(" ");
    Command {
        name: format!("{}:{}", server.name(), prompt.name),
        description: prompt.description.clone().unwrap_or_else(|| format!("A prompt of {}", server.name())),
        hint: (!hint.is_empty()).then_some(hint),
    }
}

pub(super) async fn run(act: &Act<'_>) -> Result<Done, Stop> {
    match act.call.name.as_str() {
        RESOURCE => read(act).await,
        PROMPT => prompt(act).await,
        name => match act.tools.foreign().into_iter().find(|offered| offered.name == name) {
            Some(offered) => call(act, &offered).await,
            None => Err(missing(act.tools, name)),
        },
    }
}

/// Of a tool that was there once it is said why it is not.
fn missing(tools: &Tools, name: &str) -> Stop {
    let server = tools.servers.known().tools.get(name).cloned();
    let Some(server) = server else {
        let known: Vec<String> = tools.specs("").into_iter().map(|spec| spec.name).collect();
        return Stop::Failed(format!("there is no tool `{name}`; use one of {}", known.join(", ")));
    };
    let status = tools.kit().get(&server).map(|server| server.status());
    let why = match status {
        None => "it is not there any more".to_owned(),
        Some(status) if status.state == State::Ready => "it does not have this tool any more".to_owned(),
        Some(status) => status.error.unwrap_or_else(|| format!("it is {}", status.state.name())),
    };
    Stop::Failed(format!("`{name}` cannot be used now: it is a tool of the MCP server `{server}`, and {why}"))
}

async fn call(act: &Act<'_>, offered: &Offered) -> Result<Done, Stop> {
    Fields::of(&act.call.input)?;
    let (server, tool) = (offered.server.name(), &offered.tool);
    let input = match act.call.input.value() {
        Value::Object(fields) => Value::Object(fields),
        _ => json!({}),
    };
    let title = format!("{server}: {}", tool.title.as_ref().unwrap_or(&tool.name));
    let subject = format!("{server}:{}", tool.name);
    let want = Want {
        permission: MCP,
        title: format!("Use `{}` of the MCP server `{server}`", tool.name),
        metadata: json!({ "server": server, "tool": tool.name, "input": input }),
        always: vec![literal(&subject)],
        subjects: vec![subject],
    };
    act.leave(want, &[]).await?;
    act.running_for_good(&title, &[]).await?;
    // Whatever it says of itself: what it does to files is told, or a rewind would take it for a person's.
    let before = Before::look(act).await?;
    // Enough for what comes while one line is told; more is left out.
    let (heard, mut progress) = mpsc::channel(16);
    let mut calling = pin!(offered.server.call(&tool.name, input, heard));
    let mut told = 0;
    let returned = loop {
        tokio::select! {
            biased;
            () = act.scene.cancel.fired() => break None,
            returned = &mut calling => break Some(returned),
            Some(words) = progress.recv(), if told < PROGRESS => {
                told += 1;
                tell_progress(act, &words).await?;
            }
        }
    };
    // What it told last may have come in one breath with its answer.
    while told < PROGRESS
        && let Ok(words) = progress.try_recv()
    {
        told += 1;
        tell_progress(act, &words).await?;
    }
    let Some(returned) = returned else {
        // The session ends the turn soon; the next checkpoint has the changes.
        if let Ok(told) = tokio::time::timeout(GRACE, before.tell_changes(Asking::No)).await {
            told?;
        }
        return Err(Stop::Cancelled(None));
    };
    let note = before.tell_changes(Asking::Yes).await?;
    let returned = returned.map_err(|error| failed(&offered.server, &error))?;
    let mut done = given::done(title, returned)?;
    done.output.extend(note.map(|note| format!("\n{note}\n")));
    Ok(done)
}

async fn tell_progress(act: &Act<'_>, words: &str) -> Result<(), Gone> {
    let text = format!("{words}\n");
    act.scene.teller.tell(Draft::agent(OutputAppended { call: act.call.id.clone(), text })).await
}

/// Reads a resource that a person named.
async fn read(act: &Act<'_>) -> Result<Done, Stop> {
    let fields = Fields::of(&act.call.input)?;
    let (server, uri) = (named_server(act, &fields)?, fields.need_words(&["uri"])?);
    let title = format!("{}: {uri}", server.name());
    not_denied(act, &format!("{}:{uri}", server.name()))?;
    act.running(&title, &[]).await?;
    let contents = until_cancelled(act, server.read(&uri)).await?.map_err(|error| failed(&server, &error))?;
    given::of_resource(title, contents)
}

/// Reads a prompt that a person sent as a command.
async fn prompt(act: &Act<'_>) -> Result<Done, Stop> {
    let fields = Fields::of(&act.call.input)?;
    let (server, name) = (named_server(act, &fields)?, fields.need_words(&["prompt"])?);
    let title = format!("{}: {name}", server.name());
    not_denied(act, &format!("{}:{name}", server.name()))?;
    act.running(&title, &[]).await?;
    let arguments = act.call.input.value()["arguments"].clone();
    let arguments = if arguments.is_object() { arguments } else { json!({}) };
    let said = until_cancelled(act, server.prompt(&name, arguments)).await?;
    given::of_prompt(title, said.map_err(|error| failed(&server, &error))?)
}

fn named_server(act: &Act<'_>, fields: &Fields) -> Result<Arc<Server>, Stop> {
    let name = fields.need_words(&["server"])?;
    let kit = act.tools.kit();
    kit.get(&name).cloned().ok_or_else(|| Stop::Failed(format!("there is no MCP server `{name}` in this session")))
}

/// What a person names need not be asked for, but what is denied is denied to all.
fn not_denied(act: &Act<'_>, subject: &str) -> Result<(), Stop> {
    match act.tools.settings.rules.leave(MCP, subject) {
        Leave::Deny => Err(Stop::Failed(format!("the rules of this server do not allow `{MCP}` for `{subject}`"))),
        Leave::Ask | Leave::Allow => Ok(()),
    }
}

async fn until_cancelled<T>(act: &Act<'_>, work: impl Future<Output = T>) -> Result<T, Stop> {
    tokio::select! {
        done = work => Ok(done),
        () = act.scene.cancel.fired() => Err(Stop::Cancelled(None)),
    }
}

fn failed(server: &Server, error: &tolka_mcp::McpError) -> Stop {
    Stop::Failed(format!("the MCP server `{}` did not do it: {error}", server.name()))
}

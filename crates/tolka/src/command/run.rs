mod person;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tolka_facts::event::{PermissionAsked, QuestionAsked, Stop};
use tolka_facts::{Event, Fact};

use crate::DataArgs;
use crate::agents::{AgentArgs, demo_workspace};
use crate::client::Client;
use crate::host::Attached;
use crate::render::Render;
use person::{Choice, Person, Reason};

/// The exit code of who leaves a turn that is being cancelled.
const LEFT: u8 = 130;
/// The exit code of a turn that stopped before it was done.
const AT_A_LIMIT: u8 = 3;

#[derive(Args)]
#[command(after_help = "Examples:
  tolka run \"what does this project do?\"
  tolka run --model ollama/qwen3 --mode plan \"how would you add a cache?\"
  tolka run --session ses_… \"and now add a test\"
  echo \"fix the build\" | tolka run -

Permissions are asked here when this is a terminal, and refused when it is not. Ctrl-C cancels the turn; a second one
leaves at once.
Exit codes: 0 the turn ended well, 1 it failed, 2 it was cancelled or interrupted, 3 it stopped at a limit (too many steps, too
long, the token limit).")]
pub(crate) struct Run {
    /// The prompt; `-` reads it from stdin
    prompt: String,
    /// Go on with this session instead of a new one
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    data: DataArgs,
    /// Folder that the agent works in [default: the current one; for the demo, one of its own under --data]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    #[command(flatten)]
    agent: AgentArgs,
    /// Way of working: `build`, or `plan`, in which nothing is changed
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Token of a server that runs already
    #[arg(long, env = "TOLKA_TOKEN", hide_env_values = true, value_name = "SECRET")]
    token: Option<String>,
}

impl Run {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let prompt = match self.prompt.as_str() {
            "-" => std::io::read_to_string(std::io::stdin()).context("stdin cannot be read")?,
            prompt => prompt.to_owned(),
        };
        if prompt.trim().is_empty() {
            bail!("the prompt is empty");
        }
        let data = self.data.folder()?;
        let (attached, workspace) = match Attached::to(&data, self.token.clone())? {
            Some(running) => {
                let workspace = self.workspace_beside(&running.client, &data).await?;
                (running, workspace)
            }
            None => {
                let choice = self.agent.choose().await?;
                let workspace = choice.workspace(self.workspace.as_deref(), &data)?;
                let saving = choice.saving(&data);
                if let Some(why) = choice.fallen_back() {
                    eprintln!("tolka: {why}");
                }
                let crew = choice.agents(&data, saving.checkpoints.clone());
                (Attached::own(&data, &workspace, saving.clone(), crew).await?, Some(workspace))
            }
        };
        let followed = self.follow(&attached.client, &prompt, workspace.as_deref()).await;
        attached.leave().await?;
        followed
    }

    fn body(&self, prompt: &str) -> Value {
        let model = self.agent.model.as_ref().map(|model| json!({ "provider": model.provider, "id": model.id }));
        given([("text", json!(prompt)), ("model", json!(model))])
    }

    /// The folder to name to a server that runs already. A server that has only the demo's own folder is not asked to
    /// work in another one.
    async fn workspace_beside(&self, client: &Client, data: &Path) -> Result<Option<PathBuf>> {
        let Some(given) = &self.workspace else {
            let served = client.get("/path").await?;
            let served = served["directory"].as_str().map(PathBuf::from);
            let demos = demo_workspace(data).canonicalize().ok();
            if demos.is_some() && served == demos {
                return Ok(None);
            }
            let here = std::env::current_dir().context("the current folder cannot be used")?;
            if let Some(served) = served.filter(|served| !here.starts_with(served)) {
                bail!(
                    "the server that runs on this data folder works in {}, and this folder is not in it; run this there, name a folder \
                     of it with --workspace, or use another data folder with --data",
                    served.display()
                );
            }
            return Ok(Some(here));
        };
        given.canonicalize().map(Some).with_context(|| format!("the workspace {} cannot be used", given.display()))
    }

    async fn follow(&self, client: &Client, prompt: &str, workspace: Option<&Path>) -> Result<ExitCode> {
        let session = match &self.session {
            Some(session) => {
                if let Some(mode) = &self.mode {
                    client.patch(&format!("/v1/sessions/{session}"), &json!({ "mode": mode })).await?;
                }
                session.clone()
            }
            None => {
                let new = given([
                    ("title", json!(title(prompt))),
                    ("workspace", json!(workspace)),
                    ("agent", json!(self.agent.agent)),
                    ("mode", json!(self.mode)),
                ]);
                let created = client.post("/v1/sessions", &new).await?;
                created["id"].as_str().context("the server made a session without an id")?.to_owned()
            }
        };
        let accepted = client.post(&format!("/v1/sessions/{session}/prompt"), &self.body(prompt)).await?;
        let (turn, position) =
            (accepted["turn"].as_str().unwrap_or_default(), accepted["position"].as_str().unwrap_or("0"));
        let mut events = client.events(&format!("/v1/sessions/{session}/events?after={position}")).await?;
        let mut render = Render::new();
        let mut person = Person::at_terminal()?;
        let (mut ours, mut is_cancelled) = (Ours::Waits, false);
        loop {
            let event = tokio::select! {
                event = events.next() => event?,
                () = person.interrupts() => {
                    if is_cancelled {
                        return Ok(ExitCode::from(LEFT));
                    }
                    is_cancelled = true;
                    stop(client, &session, turn, ours).await?;
                    continue;
                }
            };
            let Some(event) = event else { break };
            let fact = Fact::from_json(event.data.as_bytes())?;
            render.show(&fact);
            let asked = match &fact.event {
                _ if is_cancelled => Asked::Answered,
                Event::PermissionAsked(ask) => {
                    answer_permission(client, &session, ask, &mut person, &mut render).await?
                }
                Event::QuestionAsked(ask) => answer_question(client, &session, ask, &mut person, &mut render).await?,
                _ => Asked::Answered,
            };
            if asked == Asked::Interrupted {
                is_cancelled = true;
                stop(client, &session, turn, ours).await?;
            }
            match &fact.event {
                Event::TurnStarted(started) if started.turn.as_str() == turn => ours = Ours::Runs,
                Event::PromptDropped(dropped) if dropped.turn.as_str() == turn => {
                    render.end(&session);
                    return Ok(ExitCode::from(2));
                }
                Event::TurnEnded(ended) if ended.turn.as_str() == turn => {
                    render.end(&session);
                    return Ok(match ended.stop {
                        Stop::EndTurn => ExitCode::SUCCESS,
                        Stop::MaxTokens | Stop::MaxTurnRequests => ExitCode::from(AT_A_LIMIT),
                        Stop::Failed | Stop::Refusal => ExitCode::FAILURE,
                        Stop::Cancelled | Stop::Interrupted => ExitCode::from(2),
                    });
                }
                _ => {}
            }
        }
        bail!("the stream ended before the turn did; `tolka sessions` shows whether it goes on")
    }
}

/// Only what is there: the server takes a null for a mistake.
fn given<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn title(prompt: &str) -> String {
    let line = prompt.lines().find(|line| !line.trim().is_empty()).unwrap_or("New session").trim();
    line[..line.floor_char_boundary(80)].to_owned()
}

/// How the turn of our own prompt stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ours {
    Waits,
    Runs,
}

/// A prompt that waits behind somebody else's turn is taken back; that turn is not ours to end.
async fn stop(client: &Client, session: &str, turn: &str, ours: Ours) -> Result<()> {
    if ours == Ours::Waits && client.delete(&format!("/v1/sessions/{session}/queue/{turn}")).await.is_ok() {
        return Ok(());
    }
    // What cannot be taken back any more has begun.
    client.post(&format!("/v1/sessions/{session}/cancel"), &json!({})).await.map(drop)
}

/// Whether the person went on after being asked.
#[derive(PartialEq, Eq)]
enum Asked {
    Answered,
    Interrupted,
}

/// Who refused, where nobody did.
const NOBODY: &str = ", by `tolka run`: nobody is at this terminal to answer";

/// Another client may answer first; then the server says so, and that is fine.
async fn answer_permission(
    client: &Client,
    session: &str,
    ask: &PermissionAsked,
    person: &mut Person,
    render: &mut Render,
) -> Result<Asked> {
    let names: Vec<&str> = ask.options.iter().map(|option| option.name.as_str()).collect();
    let (option, reason, by) = match person.choose(render, &ask.title, &names).await? {
        Choice::Option(at) => {
            let Some(option) = ask.options.get(at) else { return Ok(Asked::Answered) };
            if option.kind.allows() {
                (option, None, "")
            } else {
                match person.reason(render).await? {
                    Reason::Said(reason) => (option, reason, ""),
                    Reason::Interrupted => return Ok(Asked::Interrupted),
                }
            }
        }
        // A refusal without a word would end the turn; the agent may find another way.
        Choice::Nobody => {
            let refusal = ask.options.iter().find(|option| !option.kind.allows());
            let Some(option) = refusal else { return Ok(Asked::Answered) };
            (option, Some("Nobody was at the terminal to allow it.".to_owned()), NOBODY)
        }
        Choice::Interrupted => return Ok(Asked::Interrupted),
    };
    let path = format!("/v1/sessions/{session}/answers/{}", ask.request);
    let answered = client.post(&path, &given([("option", json!(option.id)), ("reason", json!(reason))])).await;
    render.answered(&format!("{}{by}", option.name), answered.err().map(|error| error.to_string()));
    Ok(Asked::Answered)
}

async fn answer_question(
    client: &Client,
    session: &str,
    ask: &QuestionAsked,
    person: &mut Person,
    render: &mut Render,
) -> Result<Asked> {
    let mut answers = Vec::new();
    for question in &ask.questions {
        let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
        match person.choose(render, &question.question, &labels).await? {
            Choice::Option(at) => answers.push(vec![labels[at].to_owned()]),
            Choice::Nobody => break,
            Choice::Interrupted => return Ok(Asked::Interrupted),
        }
    }
    let is_whole = answers.len() == ask.questions.len();
    let body: Value = if is_whole { json!({ "answers": answers }) } else { json!({ "reject": true }) };
    let answered = client.post(&format!("/v1/sessions/{session}/answers/{}", ask.request), &body).await;
    let told = if is_whole { "answered".to_owned() } else { format!("rejected{NOBODY}") };
    render.answered(&told, answered.err().map(|error| error.to_string()));
    Ok(Asked::Answered)
}

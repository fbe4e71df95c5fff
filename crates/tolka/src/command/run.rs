//! `tolka run`: one prompt, followed in a terminal or by a program.

mod person;
mod policy;
mod result;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tolka_facts::event::{OptionKind, PermissionAsked, QuestionAsked};
use tolka_facts::{Event, Fact};

use crate::DataArgs;
use crate::agents::{AgentArgs, demo_workspace};
use crate::client::Client;
use crate::host::Attached;
use crate::print;
use crate::render::Render;
use person::{Choice, Person, Reason};
use policy::Allow;
use result::{Exit, Outcome};

/// Of a prompt that is read from stdin.
const LONGEST: u64 = 16 << 20;

#[derive(Args)]
#[command(after_help = "Examples:
  tolka run \"what does this project do?\"
  tolka run --model ollama/qwen3 --mode plan \"how would you add a cache?\"
  tolka run --session ses_… \"and now add a test\"
  tolka run --continue \"and the docs\"
  git diff | tolka run \"review this:\" -
  tolka run --json --allow edit --allow \"bash:cargo test *\" \"fix the tests\" | tail -n 1 | jq -r .text

Permissions are asked here when this is a terminal. When it is not, or with --json, what --allow names is allowed once and all else
is refused at once: nothing waits for a person who is not there. Ctrl-C cancels the turn; a second one leaves at once.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 something was refused because nobody was there to be asked, 4 cancelled or
interrupted, 5 stopped at a limit (steps, time, tokens), 130 left by a second Ctrl-C.")]
pub(crate) struct Run {
    /// The prompt, in one word or several; `-` stands for what comes from stdin, which is read too if there is no prompt
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
    /// Go on with this session instead of a new one
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Go on with the latest session of this folder
    #[arg(long = "continue", short = 'c', conflicts_with = "session")]
    go_on: bool,
    /// Print every fact as a line of JSON (dialect `tolka`), and at the end a line with the result
    #[arg(long)]
    json: bool,
    /// Allow this without asking: a permission, with a pattern or without (may be given several times)
    #[arg(long, value_name = "PERMISSION[:PATTERN]")]
    allow: Vec<Allow>,
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
        let prompt = self.words()?;
        if prompt.trim().is_empty() {
            eprintln!("tolka: the prompt is empty; write it behind `tolka run`, or send it to stdin");
            return Ok(ExitCode::from(Exit::Usage as u8));
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

    /// Stdin is read only where it is named, or nothing else is: a script may have an open one that never ends.
    fn words(&self) -> Result<String> {
        let is_alone = self.prompt.is_empty() && !std::io::stdin().is_terminal();
        let parts: Vec<&str> = if is_alone { vec!["-"] } else { self.prompt.iter().map(String::as_str).collect() };
        let (mut words, mut is_read) = (String::new(), false);
        for part in parts {
            let gap = if words.is_empty() { "" } else { " " };
            match part {
                "-" if !std::mem::replace(&mut is_read, true) => {
                    let mut read = String::new();
                    let stdin = std::io::stdin().lock().take(LONGEST + 1).read_to_string(&mut read);
                    stdin.context("stdin cannot be read")?;
                    if read.len() as u64 > LONGEST {
                        bail!("what comes from stdin is longer than {} MiB", LONGEST >> 20);
                    }
                    words.push_str(if words.is_empty() { "" } else { "\n\n" });
                    words.push_str(&read);
                }
                part => {
                    words.push_str(gap);
                    words.push_str(part);
                }
            }
        }
        Ok(words)
    }

    /// The session to go on with, if one was meant.
    async fn session(&self, client: &Client, workspace: Option<&Path>) -> Result<Option<String>> {
        if !self.go_on {
            return Ok(self.session.clone());
        }
        let of =
            workspace.map(|folder| format!("&workspace={}", escaped(&folder.to_string_lossy()))).unwrap_or_default();
        let listed = client.get(&format!("/v1/sessions?limit=50{of}")).await?;
        let sessions = listed["sessions"].as_array().cloned().unwrap_or_default();
        // One that another session began is not what a person had open.
        let latest = sessions.iter().find(|session| session["parent"].is_null()).or(sessions.first());
        let latest = latest.and_then(|session| session["id"].as_str()).map(str::to_owned);
        latest.map(Some).context("there is no session of this folder to go on with")
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
        let session = match self.session(client, workspace).await? {
            Some(session) => {
                if let Some(mode) = &self.mode {
                    client.patch(&format!("/v1/sessions/{session}"), &json!({ "mode": mode })).await?;
                }
                session
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
        let mut render = if self.json { Render::quiet() } else { Render::new() };
        let mut person = if self.json { Person::away()? } else { Person::at_terminal()? };
        let mut outcome = Outcome::default();
        let (mut ours, mut is_cancelled) = (Ours::Waits, false);
        loop {
            let event = tokio::select! {
                event = events.next() => event?,
                () = person.interrupts() => {
                    if is_cancelled {
                        return Ok(ExitCode::from(Exit::Left as u8));
                    }
                    is_cancelled = true;
                    if stop_or_leave(stop(client, &session, turn, ours), &mut person).await? == Left::Yes {
                        return Ok(ExitCode::from(Exit::Left as u8));
                    }
                    continue;
                }
            };
            let Some(event) = event else { break };
            let fact = Fact::from_json(event.data.as_bytes())?;
            if self.json {
                print::line(&event.data)?;
            }
            render.show(&fact);
            // Before ours begins it is somebody else's turn, with what is asked in it.
            let is_ours = ours == Ours::Runs;
            if is_ours {
                outcome.hear(&fact);
            }
            let asked = match &fact.event {
                _ if is_cancelled || !is_ours => Asked::Answered,
                Event::PermissionAsked(ask) => {
                    let ours = (&mut person, &mut render, &mut outcome);
                    answer_permission(client, &session, ask, &self.allow, ours).await?
                }
                Event::QuestionAsked(ask) => {
                    answer_question(client, &session, ask, (&mut person, &mut render, &mut outcome)).await?
                }
                _ => Asked::Answered,
            };
            if asked == Asked::Interrupted {
                is_cancelled = true;
                if stop_or_leave(stop(client, &session, turn, ours), &mut person).await? == Left::Yes {
                    return Ok(ExitCode::from(Exit::Left as u8));
                }
            }
            match &fact.event {
                Event::TurnStarted(started) if started.turn.as_str() == turn => ours = Ours::Runs,
                Event::PromptDropped(dropped) if dropped.turn.as_str() == turn => {
                    return self.end(&session, turn, Exit::Cancelled, &outcome, &mut render);
                }
                Event::TurnEnded(ended) if ended.turn.as_str() == turn => {
                    let exit = outcome.end(ended);
                    return self.end(&session, turn, exit, &outcome, &mut render);
                }
                _ => {}
            }
        }
        bail!("the stream ended before the turn did; `tolka sessions` shows whether it goes on")
    }

    fn end(&self, session: &str, turn: &str, exit: Exit, outcome: &Outcome, render: &mut Render) -> Result<ExitCode> {
        render.end(session);
        if self.json {
            print::line(outcome.line(session, turn, exit))?;
        }
        Ok(ExitCode::from(exit as u8))
    }
}

/// For a query.
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
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

/// Whether the person did not wait for the end.
#[derive(PartialEq, Eq)]
enum Left {
    Yes,
    No,
}

/// A server that does not answer keeps nobody: whoever presses Ctrl-C once more leaves.
async fn stop_or_leave(stopping: impl Future<Output = Result<()>>, person: &mut Person) -> Result<Left> {
    tokio::select! {
        stopped = stopping => stopped.map(|()| Left::No),
        () = person.interrupts() => Ok(Left::Yes),
    }
}

/// Whether the person went on after being asked.
#[derive(PartialEq, Eq)]
enum Asked {
    Answered,
    Interrupted,
}

/// Who refused, where nobody did.
const NOBODY: &str = ", by `tolka run`: nobody is at this terminal to answer";

/// The person, what they see, and what comes of it.
type Here<'a> = (&'a mut Person, &'a mut Render, &'a mut Outcome);

/// Another client may answer first; then the server says so, and that is fine.
async fn answer_permission(
    client: &Client,
    session: &str,
    ask: &PermissionAsked,
    allow: &[Allow],
    (person, render, outcome): Here<'_>,
) -> Result<Asked> {
    let names: Vec<&str> = ask.options.iter().map(|option| option.name.as_str()).collect();
    let once = ask.options.iter().find(|option| option.kind == OptionKind::AllowOnce);
    let once = once.filter(|_| allow.iter().any(|allow| allow.covers(ask)));
    let choice = match once {
        Some(_) => {
            render.ask_nobody(&ask.title);
            Choice::Nobody
        }
        None => person.choose(render, &ask.title, &names).await?,
    };
    let (option, reason, by) = match choice {
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
        Choice::Nobody if once.is_some() => {
            let Some(option) = once else { return Ok(Asked::Answered) };
            (option, None, ", by --allow")
        }
        // A refusal without a word would end the turn; the agent may find another way.
        Choice::Nobody => {
            let refusal = ask.options.iter().find(|option| !option.kind.allows());
            outcome.refuse(ask);
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
    (person, render, outcome): Here<'_>,
) -> Result<Asked> {
    let mut answers = Vec::new();
    for question in &ask.questions {
        let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
        match person.choose(render, &question.question, &labels).await? {
            Choice::Option(at) => answers.push(vec![labels[at].to_owned()]),
            Choice::Nobody => {
                outcome.refuse_question(&question.question);
                break;
            }
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

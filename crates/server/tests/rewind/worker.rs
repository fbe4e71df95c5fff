use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tolka_agent::{Agent, Ended, Gone, Mind, Place, Prompt, Running, Teller};
use tolka_facts::event::{FileChanged, FileOperation, Finish, Model, StepEnded, StepStarted, Stop, TextAppended};
use tolka_facts::{Block, Draft, NoBlobs, Time};

/// Does what the lines of its prompt say: `write <path> <text>` as a tool would, which tells of it; `run <command>` as a
/// command would, of which nobody knows what it changed; `hold` until it is cancelled or the gate opens.
#[derive(Debug)]
pub(crate) struct Worker {
    gate: watch::Receiver<bool>,
}

impl Worker {
    /// With the gate that lets those who hold go on.
    pub(crate) fn gated() -> (Arc<dyn Agent>, watch::Sender<bool>) {
        let (open, gate) = watch::channel(false);
        (Arc::new(Worker { gate }), open)
    }
}

impl Agent for Worker {
    fn name(&self) -> &str {
        "worker"
    }

    fn model(&self) -> Model {
        Model { provider: "worker".to_owned(), id: "model".to_owned() }
    }

    fn open(&self, place: Place) -> Box<dyn Mind> {
        Box::new(Working { workspace: place.workspace.into(), gate: self.gate.clone() })
    }
}

struct Working {
    workspace: PathBuf,
    gate: watch::Receiver<bool>,
}

impl Mind for Working {
    fn turn<'a>(&'a mut self, prompt: Prompt, teller: &'a Teller) -> Running<'a> {
        Box::pin(async move { self.work(&prompt, teller).await.unwrap_or(Ended::stopped(Stop::Cancelled)) })
    }
}

impl Working {
    async fn work(&mut self, prompt: &Prompt, teller: &Teller) -> Result<Ended, Gone> {
        let Some(Block::Text { text, .. }) = prompt.content.first() else { return Ok(Ended::stopped(Stop::Refusal)) };
        let message = teller.ids().message(Time::now());
        teller.tell(Draft::agent(StepStarted { message: message.clone(), model: None })).await?;
        let text = text.text(&NoBlobs).into_owned();
        say(teller, "On it. ").await?;
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("write", rest)) => {
                    let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
                    let change = write(&self.workspace.join(path), text);
                    teller.tell(Draft::agent(change)).await?;
                }
                Some(("run", command)) => run(&self.workspace, command),
                None if line == "hold" => {
                    say(teller, "Holding.").await?;
                    tokio::select! {
                        open = self.gate.wait_for(|open| *open) => drop(open),
                        () = teller.cancel().fired() => return Ok(Ended::stopped(Stop::Cancelled)),
                    }
                }
                _ => say(teller, line).await?,
            }
        }
        say(teller, "Done.").await?;
        let ended = StepEnded { message, finish: Finish::Stop, usage: None, cost: None, kept: None };
        teller.tell(Draft::agent(ended)).await?;
        Ok(Ended::stopped(Stop::EndTurn))
    }
}

fn write(path: &Path, text: &str) -> FileChanged {
    let operation = if path.exists() { FileOperation::Update } else { FileOperation::Create };
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("{text}\n")).unwrap();
    let path = path.display().to_string();
    FileChanged { path, operation, before: None, after: None, added: 1, removed: 0, call: None, diff: None }
}

fn run(workspace: &Path, command: &str) {
    let status = std::process::Command::new("sh").arg("-ec").arg(command).current_dir(workspace).status().unwrap();
    assert!(status.success(), "{command}: {status}");
}

async fn say(teller: &Teller, text: &str) -> Result<(), Gone> {
    let part = teller.ids().part(Time::now());
    teller.tell(Draft::agent(TextAppended { part, text: text.to_owned() })).await
}

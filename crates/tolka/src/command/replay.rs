use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use tolka_agent::{Agent, Pace, Recording};
use tolka_dialect::Dialect;

use super::dialects::names;
use crate::agents::{Crew, replay};
use crate::client::Client;
use crate::host::Attached;
use crate::print;
use crate::saving::Saving;

#[derive(Args)]
#[command(after_help = "Examples:
  tolka replay run.jsonl                          as facts, at its own pace
  tolka replay run.jsonl --dialect onyx --pace max
  tolka replay run.jsonl --dialect opencode | head

Permissions in the recording are allowed. Each line on stdout is one frame.")]
pub(crate) struct Replay {
    /// A recorded run: facts, or an ACP recording
    file: PathBuf,
    #[arg(long, default_value = "tolka", value_name = "NAME", help = format!("Dialect to tell it in: {}", names()))]
    dialect: Dialect,
    /// How fast: 1 as recorded, 10 ten times as fast, max at once
    #[arg(long, default_value = "1", value_name = "FACTOR")]
    pace: Pace,
}

impl Replay {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let turns = Recording::open(&self.file)?.turns().max(1);
        let scratch = tempfile::tempdir().context("no folder for scratch work can be made")?;
        let name = format!("replay:{}", self.file.display());
        let workspace = scratch.path().canonicalize()?;
        let data = scratch.path().join("data");
        let agent: Arc<dyn Agent> = Arc::new(replay(&name, &self.file, self.pace)?);
        let crew = async { Ok(Crew::without_hands(Arc::from([agent]))) };
        let attached = Attached::own(&data, &workspace, Saving::off(&data), crew).await?;
        let told = tell(&attached.client, self.dialect, turns).await;
        attached.leave().await?;
        told.map(|()| ExitCode::SUCCESS)
    }
}

/// Plays every turn and prints what the dialect makes of it. A second stream, of facts, says what to answer.
async fn tell(client: &Client, dialect: Dialect, turns: usize) -> Result<()> {
    let created = client.post("/v1/sessions", &json!({ "title": "Replay" })).await?;
    let session = created["id"].as_str().context("the server made a session without an id")?;
    for _ in 0..turns {
        client.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "text": "Play the recording." })).await?;
    }
    let mut facts = client.events(&format!("/v1/sessions/{session}/events")).await?;
    let mut frames = client.events(&format!("/v1/sessions/{session}/events?dialect={dialect}")).await?;
    let mut ended = 0;
    let mut last = String::from("0");
    while ended < turns {
        tokio::select! {
            fact = facts.next() => {
                let Some(fact) = fact? else { break };
                let fact = tolka_facts::Fact::from_json(fact.data.as_bytes())?;
                match &fact.event {
                    tolka_facts::Event::PermissionAsked(ask) => {
                        let allow = ask.options.iter().find(|option| option.kind.allows()).or(ask.options.first());
                        let option = allow.map(|option| option.id.as_str()).unwrap_or_default();
                        let path = format!("/v1/sessions/{session}/answers/{}", ask.request);
                        client.post(&path, &json!({ "option": option })).await?;
                    }
                    tolka_facts::Event::QuestionAsked(ask) => {
                        let first = |q: &tolka_facts::event::Question| q.options.first().map(|o| o.label.clone()).into_iter().collect::<Vec<_>>();
                        let answers: Vec<Vec<String>> = ask.questions.iter().map(first).collect();
                        let path = format!("/v1/sessions/{session}/answers/{}", ask.request);
                        client.post(&path, &json!({ "answers": answers })).await?;
                    }
                    tolka_facts::Event::TurnEnded(_) => ended += 1,
                    _ => {}
                }
            }
            frame = frames.next() => match frame? {
                Some(frame) => {
                    print::line(&frame.data)?;
                    last = frame.id.unwrap_or(last);
                }
                None => break,
            },
        }
    }
    // The facts are told; the frames of the last ones may still be on their way.
    loop {
        let page = format!("/v1/sessions/{session}/events?format=json&dialect={dialect}&after={last}");
        let page = client.get(&page).await?;
        for event in page["events"].as_array().into_iter().flatten() {
            print::line(&event["data"])?;
        }
        page["position"].as_str().unwrap_or_default().clone_into(&mut last);
        if page["more"] != true {
            return Ok(());
        }
    }
}

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use tolka_journal::{Journal, Kin, SessionQuery, Sqlite, SqliteOptions};

use crate::DataArgs;
use crate::client::Client;
use crate::print;

#[derive(Args)]
#[command(after_help = "Examples:
  tolka sessions
  tolka sessions --json | jq -r '.sessions[].id'")]
pub(crate) struct Sessions {
    #[command(flatten)]
    data: DataArgs,
    /// As JSON, one object
    #[arg(long)]
    json: bool,
    /// How many, the latest first; 1000 at most
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Token of a server that runs already
    #[arg(long, env = "TOLKA_TOKEN", hide_env_values = true, value_name = "SECRET")]
    token: Option<String>,
}

impl Sessions {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let data = self.data.folder()?;
        let listed = match Sqlite::owner_of(&data)? {
            Some(owner) => {
                let client = Client::new(&owner.text, self.token.clone())?;
                client.get(&format!("/v1/sessions?limit={}", self.limit)).await?
            }
            // Looking must not set anything going: no server is started, and nothing that waits is run.
            None if data.exists() => read(&data, usize::from(self.limit)).await?,
            None => json!({ "sessions": [] }),
        };
        if self.json {
            print::line(listed)?;
            return Ok(ExitCode::SUCCESS);
        }
        let sessions = listed["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
        if sessions.is_empty() {
            print::line("no sessions yet; start one with `tolka run \"…\"`")?;
        }
        for session in sessions {
            print::line(line(session))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn read(data: &Path, limit: usize) -> Result<Value> {
    let journal = Sqlite::open(&SqliteOptions::new(data))?;
    let rows = journal.sessions(SessionQuery { limit, kin: Kin::NoSubagents, ..SessionQuery::default() }).await?;
    let sessions: Vec<Value> = rows.iter().map(|row| json!(row.head)).collect();
    tokio::task::spawn_blocking(move || journal.close()).await?;
    Ok(json!({ "sessions": sessions }))
}

fn line(session: &Value) -> String {
    let text = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
    let state = match (session["waiting"].as_u64(), session["busy"].as_bool()) {
        (Some(1..), _) => "asks you",
        (_, Some(true)) => "works",
        _ => "idle",
    };
    let title: String = text("title").chars().filter(|c| !c.is_control()).collect();
    let turns = session["turns"].as_u64().unwrap_or(0);
    let s = if turns == 1 { " " } else { "s" };
    format!("{}  {state:8}  {turns:3} turn{s}  {title}", text("id"))
}

//! `tolka doctor`: what a server would have to work with on this machine, and what it would lack.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use tolka_journal::Sqlite;
use tolka_workspace::command::{Network, free_bytes};

use crate::config::{Config, ConfigArgs, Which};
use crate::environment::Environment;
use crate::models::{Catalogue, Look};
use crate::print::plain;
use crate::settings::{self, Sandboxed};
use crate::{DataArgs, print};

/// With less, a long session and its checkpoints soon come to an end.
const LITTLE: u64 = 1 << 30;

#[derive(Args)]
#[command(after_help = "Examples:
  tolka doctor
  tolka doctor --json | jq '.checks[] | select(.state != \"good\")'

The exit code is 1 if a server could not start or could not work: what is marked with an exclamation mark. What is marked with
a tilde works, and less well than it could.")]
pub(crate) struct Doctor {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    data: DataArgs,
    /// As JSON, one object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    /// It works, and less well than it could.
    Weak,
    Bad,
}

struct Check {
    name: &'static str,
    state: State,
    says: String,
    /// More of it, line by line.
    more: Vec<String>,
}

impl Check {
    fn new(name: &'static str, state: State, says: impl Into<String>) -> Self {
        Check { name, state, says: says.into(), more: Vec::new() }
    }
}

impl Doctor {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let checks = self.look().await;
        let is_bad = checks.iter().any(|check| check.state == State::Bad);
        if self.json {
            let checks: Vec<Value> = checks.iter().map(as_json).collect();
            print::line(json!({ "ok": !is_bad, "checks": checks }))?;
        } else {
            tell(&checks)?;
        }
        Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    async fn look(&self) -> Vec<Check> {
        let environment = Environment::of_this_process();
        let mut checks = vec![git()];
        let (config, check) = match self.config.read(&environment) {
            Ok(config) => {
                let says =
                    config.file.as_ref().map_or("none; all is as usual".to_owned(), |file| file.display().to_string());
                (config, Check::new("configuration", State::Good, says))
            }
            Err(error) => (Config::default(), Check::new("configuration", State::Bad, format!("{error:#}"))),
        };
        checks.push(check);
        let data = self.data.folder();
        if let Ok(data) = &data {
            checks.extend(sandbox(&config, &environment, data).await);
        }
        checks.push(models(&config, &environment).await);
        checks.push(search(&config, &environment));
        match &data {
            Ok(data) => checks.extend(folder(data)),
            Err(error) => checks.push(Check::new("data", State::Bad, format!("{error:#}"))),
        }
        checks
    }
}

fn git() -> Check {
    match std::process::Command::new("git").arg("--version").output() {
        Ok(output) if output.status.success() => {
            Check::new("git", State::Good, String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => Check::new("git", State::Weak, "not found: what turns do cannot be taken back; install git"),
    }
}

/// None is none; one that was chosen and cannot be asked is a fault.
fn search(config: &Config, environment: &Environment) -> Check {
    let (web, says) = crate::web::web(config, environment);
    let is_missed = config.web.search.is_some() && web.search.is_none();
    let state = if is_missed { State::Weak } else { State::Good };
    Check::new("web search", state, says.trim_start_matches("web search: "))
}

async fn sandbox(config: &Config, environment: &Environment, data: &Path) -> Vec<Check> {
    let (entry, hidden) = (config.sandbox.clone(), settings::hidden(config, environment, data));
    let found = tokio::task::spawn_blocking(move || settings::shell(&entry, hidden)).await;
    let Sandboxed { shell, unusable, .. } = match found {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return vec![Check::new("sandbox", State::Bad, format!("{error:#}"))],
        Err(error) => return vec![Check::new("sandbox", State::Bad, error.to_string())],
    };
    let state = if unusable.is_empty() { State::Good } else { State::Weak };
    let mut level = Check::new("sandbox", state, shell.level().name());
    level.more = unusable.iter().map(|one| format!("not {}: {}", one.level.name(), one.why.trim())).collect();
    level.more.extend(shell.gaps().into_iter().map(|gap| format!("cannot stop {}", gap.words())));
    let groups = match shell.has_groups() {
        true => Check::new("control groups", State::Good, "the kernel counts processes and memory of commands"),
        false => {
            Check::new("control groups", State::Weak, "none can be made here: keepers count, a few times a second")
        }
    };
    let network = match shell.network() {
        Network::On => "on".to_owned(),
        Network::Off => "off".to_owned(),
        Network::Only(hosts) => hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    vec![level, groups, Check::new("network", State::Good, format!("{network} (of commands)"))]
}

async fn models(config: &Config, environment: &Environment) -> Check {
    let found = Catalogue::gather(config, environment, None, Look::Everywhere).await;
    match (found.stuck(), &found.usual) {
        (Some(why), _) => Check::new("models", State::Bad, why),
        (None, Some(usual)) => Check::new("models", State::Good, Which::to_string(usual)),
        (None, None) => {
            Check::new("models", State::Weak, "none can be used, so the demo answers; `tolka models` tells why")
        }
    }
}

fn folder(data: &Path) -> Vec<Check> {
    let place = data.display();
    let held = match Sqlite::owner_of(data) {
        Ok(Some(owner)) => Check::new("data", State::Good, format!("{place}, open in process {}", owner.pid)),
        Ok(None) => match is_writable(data) {
            true => Check::new("data", State::Good, place.to_string()),
            false => Check::new("data", State::Bad, format!("{place} cannot be written; name another with --data")),
        },
        Err(error) => Check::new("data", State::Bad, error.to_string()),
    };
    // Of the nearest folder that is there.
    let free = data.ancestors().find_map(free_bytes);
    let disk = match free {
        Some(free) if free >= LITTLE => Check::new("disk", State::Good, format!("{} GiB free", free >> 30)),
        Some(free) => Check::new("disk", State::Weak, format!("only {} MiB free", free >> 20)),
        None => Check::new("disk", State::Weak, "how much is free cannot be told"),
    };
    vec![held, disk]
}

/// Found by trying, in the folder or in the nearest one in which it would be made.
fn is_writable(data: &Path) -> bool {
    let Some(there) = data.ancestors().find(|folder| folder.is_dir()) else { return false };
    tempfile::Builder::new().prefix(".tolka-").tempfile_in(there).is_ok()
}

fn tell(checks: &[Check]) -> Result<()> {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in checks {
        let mark = match check.state {
            State::Good => ' ',
            State::Weak => '~',
            State::Bad => '!',
        };
        print::line(format_args!("{mark} {:width$}  {}", check.name, plain(&check.says)))?;
        for line in &check.more {
            print::line(format_args!("  {:width$}  - {}", "", plain(line)))?;
        }
    }
    Ok(())
}

fn as_json(check: &Check) -> Value {
    let state = match check.state {
        State::Good => "good",
        State::Weak => "weak",
        State::Bad => "bad",
    };
    json!({ "name": check.name, "state": state, "says": check.says, "more": check.more })
}

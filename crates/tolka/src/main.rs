//! The command line: `serve` is the product, the rest are small clients of it.

mod agents;
mod client;
mod command;
mod config;
mod environment;
mod fetch;
mod host;
mod models;
mod print;
mod pruning;
mod render;
mod saving;
mod settings;
mod source;
mod web;

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Small and steady under many short allocations; the system's holds on to what bursts took. Without huge pages
/// (`no_thp`): each small heap of each thread would take one whole, 9 MB more for a server that does nothing.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "tolka", version, about, propagate_version = true)]
#[command(after_help = "Examples:
  tolka serve                                   serve on http://127.0.0.1:4096: the agent in this folder, or the demo
                                                if there is no model
  tolka models                                  what models can be used, and why others cannot
  tolka doctor                                  what works on this machine, and what does not
  tolka run \"add a test for the parser\"         one prompt in this terminal
  tolka run --mode plan \"add a cache?\"          look and plan, change nothing
  tolka permissions list                        what was allowed always
  tolka checkpoints restore 3f2a…               take back what a turn did to the files
  tolka sessions                                what there is
  tolka serve --agent replay:run.jsonl          play a recorded run for every prompt
  tolka convert --to onyx run.jsonl             a stream or a recording, told in another dialect
  tolka check --dialect onyx captured.sse       what in a stream breaks the rules of its dialect
  tolka token add phone --scope view,approve    let a phone watch and approve")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server: agents in, every client out
    Serve(command::serve::Serve),
    /// Send a prompt and follow it in this terminal
    Run(command::run::Run),
    /// List the models that can be used now, and why the rest cannot
    Models(command::models::Models),
    /// Look at what a server would have to work with here: git, sandbox, models, disk
    Doctor(command::doctor::Doctor),
    /// List what was allowed always, and take it back
    Permissions(command::permissions::Permissions),
    /// List what was saved of workspaces, go back to it, clear it away
    Checkpoints(command::checkpoints::Checkpoints),
    /// List sessions
    Sessions(command::sessions::Sessions),
    /// Play a recorded run and print it in a dialect
    Replay(command::replay::Replay),
    /// Tell a stream or a recording in another dialect
    Convert(command::convert::Convert),
    /// Judge a stream, of a file or a live server, by the rules of its dialect
    Check(command::check::Check),
    /// List the dialects, or print what each carries and demands
    Dialects(command::dialects::Dialects),
    /// Make, list and revoke tokens
    Token(command::token::TokenCommand),
}

/// Where things are kept.
#[derive(Args, Clone, Debug)]
pub(crate) struct DataArgs {
    /// Folder for everything Tolka keeps [default: ~/.local/share/tolka]
    #[arg(long, value_name = "DIR", env = "TOLKA_DATA", global = true)]
    data: Option<PathBuf>,
}

impl DataArgs {
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        if let Some(data) = &self.data {
            return Ok(std::path::absolute(data)?);
        }
        let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
        let base = base.filter(|base| base.is_absolute()).or_else(home);
        Ok(base
            .ok_or_else(|| anyhow::anyhow!("there is no home folder; say where to keep things with --data"))?
            .join("tolka"))
    }
}

fn main() -> std::process::ExitCode {
    if let Some(code) = command::keep::asked() {
        return code;
    }
    // Keys are in the environment and in memory. Commands of an agent belong to the same person, and not every machine
    // has a sandbox that keeps them from looking.
    tolka_workspace::command::close_off();
    let cli = Cli::parse();
    // `Targets` reads the same words as `EnvFilter` does, `info,tolka_server=debug`, without a regex engine in every process.
    let wanted = std::env::var("TOLKA_LOG").ok().and_then(|wanted| wanted.parse().ok());
    let filter = wanted.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(lines).init();
    let ended =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Into::into).and_then(|runtime| {
            runtime.block_on(async {
                match cli.command {
                    Command::Serve(command) => command.run().await,
                    Command::Run(command) => command.run().await,
                    Command::Models(command) => command.run().await,
                    Command::Doctor(command) => command.run().await,
                    Command::Permissions(command) => command.run(),
                    Command::Checkpoints(command) => command.run().await,
                    Command::Sessions(command) => command.run().await,
                    Command::Replay(command) => command.run().await,
                    Command::Convert(command) => command.run().await,
                    Command::Check(command) => command.run().await,
                    Command::Dialects(command) => command.run(),
                    Command::Token(command) => command.run(),
                }
            })
        });
    match ended {
        Ok(code) => code,
        Err(error) if print::is_gone_reader(&error) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tolka: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

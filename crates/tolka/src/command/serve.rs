use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::DataArgs;
use crate::agents::AgentArgs;
use crate::host::{Hosted, config};

#[derive(Args)]
#[command(after_help = "Examples:
  tolka serve                                          the native agent, or the demo if there is no model
  tolka serve --model ollama/qwen3 --workspace ~/project
  tolka serve --agent demo
  tolka serve --agent replay:run.jsonl --pace 10
  tolka serve --host 0.0.0.0 --token \"$(openssl rand -hex 24)\" --allow-host my-machine

The first line on stdout is the URL; what else there is to know goes to stderr. Clients of OpenCode, of Onyx Build Mode, of AgentSmithy
and browsers all use it.")]
pub(crate) struct Serve {
    /// Address to listen on; off loopback a token is needed
    #[arg(long, default_value = "127.0.0.1", value_name = "H")]
    host: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[arg(long, default_value_t = 4096, value_name = "N")]
    port: u16,
    #[command(flatten)]
    data: DataArgs,
    /// Folder that agents work in [default: the current one; for the demo, one of its own under --data]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    #[command(flatten)]
    agent: AgentArgs,
    /// A token that may do everything; others are made with `tolka token`
    #[arg(long, env = "TOLKA_TOKEN", hide_env_values = true, value_name = "SECRET")]
    token: Option<String>,
    /// Another name that this server answers to (may be given several times)
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// A web origin whose pages may use this server (may be given several times)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Streams that may be open at once
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    max_readers: usize,
    /// Milliseconds that a stream may gather what follows a first event, to write less often; 20 are hardly seen
    #[arg(long, default_value_t = 0, value_name = "MS", value_parser = clap::value_parser!(u64).range(..=1000))]
    gather: u64,
    /// The most bytes that the journal's file may grow to; its log of a few MiB is not counted
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
}

impl Serve {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let data = self.data.folder()?;
        let choice = self.agent.choose().await?;
        let workspace = choice.workspace(self.workspace.as_deref(), &data)?;
        let saving = choice.saving(&data);
        let says = saving.says(&workspace).await?;
        let mut config = config(data.clone(), workspace);
        config.host = self.host;
        config.port = self.port;
        config.token = self.token;
        config.allow_hosts = self.allow_host;
        config.allow_origins = self.allow_origin;
        config.max_readers = self.max_readers;
        config.gather = Duration::from_millis(self.gather);
        let crew = choice.agents(&data, saving.checkpoints.clone());
        let hosted = Hosted::open(config, saving.clone(), crew, self.max_bytes).await?;
        for line in hosted.says.iter().chain(&says) {
            eprintln!("tolka: {line}");
        }
        // The socket listens already, so whoever reads this line can connect.
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{}", hosted.url()).and_then(|()| stdout.flush()).context("nobody reads stdout")?;
        drop(stdout);
        hosted.run(told_to_stop()).await?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn told_to_stop() {
    let interrupted = async {
        // Without handlers the default still ends the process.
        match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
            (Ok(mut interrupt), Ok(mut terminate)) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
            _ => std::future::pending().await,
        }
    };
    interrupted.await;
}

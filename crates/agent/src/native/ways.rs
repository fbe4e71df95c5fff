//! How MCP servers are started and reached: programs under a keeper and in the sandbox, like every command.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Url};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tolka_mcp::{Piped, Program, Ways};
use tolka_workspace::command::{self, PipedJob, Shell};

use super::model::{is_loopback, tls};

const CONNECT: Duration = Duration::from_secs(15);
/// The longest line of stderr that is told as one.
const LINE: u64 = 4 << 10;

#[derive(Debug)]
pub struct Reaching {
    shell: Arc<Shell>,
}

impl Reaching {
    pub fn new(shell: Arc<Shell>) -> Self {
        Reaching { shell }
    }
}

impl Ways for Reaching {
    fn start(&self, program: &Program<'_>) -> io::Result<Piped> {
        let (name, args) = program.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let job = PipedJob {
            program: PathBuf::from(name),
            args: args.iter().map(Into::into).collect(),
            env: program.env.to_vec(),
            workspace: program.workspace.to_owned(),
            folder: program.workspace.to_owned(),
        };
        let mut running = self.shell.start_piped(&job).map_err(io::Error::other)?;
        let (stdin, stdout, stderr) = (running.stdin.take(), running.stdout.take(), running.take_stderr());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io::Error::other("it has no pipes"));
        };
        let (words, heard) = tokio::io::duplex(4096);
        let following = tokio::spawn(follow(stderr, words));
        Ok(Piped {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(heard),
            leash: Box::new(Leash { _running: running, following }),
        })
    }

    fn client(&self, url: &Url) -> Result<Client, String> {
        let mut builder = Client::builder()
            .user_agent(concat!("tolka/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .tls_backend_preconfigured(tls(url.scheme() == "https")?);
        if is_loopback(url) {
            builder = builder.no_proxy();
        }
        builder.build().map_err(|problem| problem.without_url().to_string())
    }
}

/// Passes on what a program says for people, with what its keeper reports put into words.
async fn follow(stderr: ChildStderr, mut words: DuplexStream) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut stderr).take(LINE).read_until(b'\n', &mut line).await {
        let said = String::from_utf8_lossy(&line);
        if let Some(said) = command::Piped::words(said.trim_end_matches('\n'))
            && words.write_all(format!("{said}\n").as_bytes()).await.is_err()
        {
            return;
        }
        line.clear();
    }
}

/// What belongs to a program that runs; its input is what it hangs on.
struct Leash {
    _running: command::Piped,
    following: JoinHandle<()>,
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.following.abort();
    }
}

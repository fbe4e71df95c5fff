//! A program that is talked to over pipes for as long as somebody needs it: under a keeper and in the sandbox, like a
//! command, but with an input, an output that is its own, and no time limit.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::order::Report;
use super::proxy::Pass;
use super::{CommandError, Exit};

/// Of what it said on stderr, the end.
const SAID: usize = 16 << 10;

/// For a program whose input has ended to go, and for its keeper to end what does not.
const ENDING: Duration = Duration::from_secs(10);

/// What to start.
#[derive(Debug, Clone)]
pub struct PipedJob {
    /// A path, or a name that is looked for in `PATH`.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Beyond what every command gets. It may hold secrets: no other process sees them.
    pub env: Vec<(String, String)>,
    /// All that the sandbox lets it write.
    pub workspace: PathBuf,
    /// Where it starts, inside the workspace.
    pub folder: PathBuf,
}

/// A program that runs. Dropping it, or only its `stdin`, ends it with all that it started.
#[derive(Debug)]
pub struct Piped {
    /// Its input, and the leash of its keeper.
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    keeper: Child,
    said: Vec<u8>,
    pass: Option<Pass>,
}

impl Piped {
    pub(super) fn start(mut keeper: Command, pass: Option<Pass>) -> Result<Self, CommandError> {
        let mut keeper = keeper.spawn().map_err(CommandError::Start)?;
        let (stdin, stdout, stderr) = (keeper.stdin.take(), keeper.stdout.take(), keeper.stderr.take());
        Ok(Piped { stdin, stdout, stderr, keeper, said: Vec::new(), pass })
    }

    /// Waits for its end. It has to be waited for, in a task of its own: what it says on stderr is read here, and a
    /// program whose words nobody reads comes to a halt. May be dropped and called again.
    pub async fn ended(&mut self) -> Result<Exit, String> {
        while let Some(stderr) = &mut self.stderr {
            let mut piece = [0; 4096];
            match stderr.read(&mut piece).await {
                Ok(count @ 1..) => {
                    self.said.extend_from_slice(&piece[..count]);
                    let too_much = self.said.len().saturating_sub(SAID);
                    self.said.drain(..too_much);
                }
                _ => self.stderr = None,
            }
        }
        let _ = self.keeper.wait().await;
        match Report::find(&self.said) {
            Some(Report::Ended { code, signal, timed_out, left_behind, over }) => {
                Ok(Exit { code, signal, timed_out, left_behind, lost: 0, over, refused: self.refused() })
            }
            Some(Report::Failed { words }) => Err(words),
            Some(Report::Over(_)) | None => Err("its keeper was killed".to_owned()),
        }
    }

    /// Ends it, and waits until it is gone.
    pub async fn stop(&mut self) -> Result<Exit, String> {
        self.stdin = None;
        self.stdout = None;
        if let Ok(ended) = timeout(ENDING, self.ended()).await {
            return ended;
        }
        let _ = self.keeper.start_kill();
        self.ended().await
    }

    /// Its stderr, for somebody who follows it line by line with [`Piped::words`]; then [`Piped::ended`] knows nothing of it.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// A line of its stderr in words: its own, or for people what its keeper reports. `None`: nothing to tell.
    pub fn words(line: &str) -> Option<String> {
        match serde_json::from_str::<Report>(line) {
            Ok(Report::Ended { code: Some(0), over, .. }) if over.is_empty() => None,
            Ok(Report::Ended { code: Some(code), .. }) => Some(format!("[it ended with exit code {code}]")),
            Ok(Report::Ended { signal, .. }) => Some(format!("[signal {} ended it]", signal.unwrap_or_default())),
            Ok(Report::Failed { words }) => Some(words),
            Ok(Report::Over(_)) => None,
            Err(_) => Some(line.to_owned()),
        }
    }

    /// The end of what it said on stderr, so far: the first thing to look at if it does not do what it should.
    pub fn said(&self) -> String {
        let said = String::from_utf8_lossy(&self.said);
        let lines = said.lines().filter(|line| serde_json::from_str::<Report>(line).is_err());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Hosts that it asked for and that are not on the list.
    pub fn refused(&self) -> Vec<String> {
        self.pass.as_ref().map(Pass::refused).unwrap_or_default()
    }
}

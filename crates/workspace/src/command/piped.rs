//! A program that is talked to over pipes for as long as somebody needs it: under a keeper and in the sandbox, like a
//! command, but with an input, an output that is its own, and no time limit.

use std::ffi::OsString;
use std::path::PathBuf;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::CommandError;
use super::order::Report;
use super::proxy::Pass;

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
    _keeper: Child,
    _pass: Option<Pass>,
}

impl Piped {
    pub(super) fn start(mut keeper: Command, pass: Option<Pass>) -> Result<Self, CommandError> {
        let mut keeper = keeper.spawn().map_err(CommandError::Start)?;
        let (stdin, stdout, stderr) = (keeper.stdin.take(), keeper.stdout.take(), keeper.stderr.take());
        Ok(Piped { stdin, stdout, stderr, _keeper: keeper, _pass: pass })
    }

    /// Its stderr, for somebody who follows it line by line with [`Piped::words`]: a program whose words nobody reads comes to
    /// a halt. It ends when the program has, with all that it started.
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
}

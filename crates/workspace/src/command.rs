//! Commands: each in a process group of its own, under a keeper that ends all of it, inside the sandbox that is there.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How strongly commands are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Bubblewrap,
    Landlock,
    None,
}

/// What commands are run with.
#[derive(Debug)]
pub struct Shell {
    _keeper: PathBuf,
    level: Level,
}

#[derive(Debug, Clone)]
pub struct Job {
    /// A line for the shell.
    pub line: String,
    /// The workspace; all that the sandbox lets it write.
    pub workspace: PathBuf,
    /// Where it starts, inside the workspace.
    pub folder: PathBuf,
    pub time_limit: Duration,
}

/// What a running command gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A piece of its output, stdout and stderr as they come, cut at characters.
    Output(String),
    Ended(Exit),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// `None`: a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    /// Processes that it left behind; they were ended with it.
    pub left_behind: usize,
    /// Output beyond what is kept was thrown away: so many bytes.
    pub lost: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("the command cannot be started: {0}")]
    Start(std::io::Error),
    #[error("{0} is no folder of the workspace")]
    Folder(String),
}

/// A command that runs. Dropping it ends it, with all that it started.
#[derive(Debug)]
pub struct Running {}

impl Shell {
    /// Finds out what the machine can do. `keeper` is the program (and its first arguments) that keeps commands: it runs
    /// [`keep`].
    pub fn probe(keeper: &Path) -> Self {
        Shell { _keeper: keeper.to_owned(), level: Level::None }
    }

    pub fn level(&self) -> Level {
        self.level
    }

    pub fn start(&self, _job: &Job) -> Result<Running, CommandError> {
        Err(CommandError::Start(std::io::Error::other("not built")))
    }
}

impl Running {
    /// What it says next. After [`Heard::Ended`]: `None`.
    pub async fn next(&mut self) -> Option<Heard> {
        None
    }

    /// Ends it, with all that it started, and waits until they are gone.
    pub async fn stop(&mut self) {}
}

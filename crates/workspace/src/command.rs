//! Commands: each under a keeper that ends all of it, inside the sandbox that is there.
//!
//! A keeper is our own program, started anew for one command. It adopts whatever its command leaves
//! behind, so nothing gets away by a new session, a second fork or an ignored signal, and it holds a leash, a
//! pipe from us. When that closes, since the command is stopped, dropped, or since this process was killed,
//! everything ends. What a command writes to stdout and stderr goes into one pipe: its order is what a
//! reader needs most.

mod family;
mod keeper;
mod order;
mod running;
mod surroundings;
mod text;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

pub use keeper::keep;
use order::Order;
pub use running::Running;

/// The first argument of the keeper: a program that gets it calls [`keep`] before it does anything else.
pub const KEEP: &str = "__keep";

/// The kernel takes no longer argument: 32 pages, with the NUL.
const LONGEST_LINE: usize = (128 << 10) - 1;

/// How strongly commands are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Bubblewrap,
    Landlock,
    None,
}

/// What commands are run with.
#[derive(Debug)]
pub struct Shell {
    keeper: PathBuf,
    program: PathBuf,
    level: Level,
    passed: Vec<OsString>,
}

#[derive(Debug, Clone)]
pub struct Job {
    /// A line for the shell.
    pub line: String,
    /// The workspace; all that the sandbox lets it write.
    pub workspace: PathBuf,
    /// Where it starts, inside the workspace: from there on, or absolute.
    pub folder: PathBuf,
    pub time_limit: Duration,
}

/// What a running command gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A piece of its output, stdout and stderr as they come, cut at characters.
    Output(String),
    Ended(Exit),
    /// It could not be started, or its keeper was killed: nothing is known of how it ended, but it is gone. The words
    /// say why.
    Failed(String),
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
    #[error("the command has {0} bytes, and the system takes at most {LONGEST_LINE}; write it to a file and run that")]
    TooLong(usize),
    #[error("the command holds a NUL character, which no command can")]
    Nul,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Bubblewrap => "bubblewrap",
            Level::Landlock => "landlock",
            Level::None => "none",
        }
    }
}

impl Shell {
    /// Finds out what the machine can do. `keeper` is the program that keeps commands: started with [`KEEP`] as its first
    /// argument it calls [`keep`].
    pub fn probe(keeper: &Path) -> Self {
        let program = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].map(PathBuf::from);
        let program = program.into_iter().find(|bash| bash.exists()).unwrap_or_else(|| PathBuf::from("/bin/sh"));
        Shell { keeper: keeper.to_owned(), program, level: Level::None, passed: Vec::new() }
    }

    /// Names of the environment that commands get besides the usual ones.
    pub fn passing(mut self, names: impl IntoIterator<Item = OsString>) -> Self {
        self.passed.extend(names);
        self
    }

    pub fn level(&self) -> Level {
        self.level
    }

    /// Within a tokio runtime.
    pub fn start(&self, job: &Job) -> Result<Running, CommandError> {
        if job.line.len() > LONGEST_LINE {
            return Err(CommandError::TooLong(job.line.len()));
        }
        if job.line.contains('\0') {
            return Err(CommandError::Nul);
        }
        let (workspace, folder) = folders(job)?;
        let order = Order { program: self.program.clone(), time_limit: job.time_limit, level: self.level, workspace };
        let order = serde_json::to_string(&order).map_err(|error| CommandError::Start(error.into()))?;
        let mut command = Command::new(&self.keeper);
        command.arg(KEEP).arg(order).arg(&job.line).current_dir(&folder);
        command.env_clear().envs(surroundings::of(&self.passed));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(command).map_err(CommandError::Start)
    }
}

/// The workspace and the folder of a job, by their real names.
fn folders(job: &Job) -> Result<(PathBuf, PathBuf), CommandError> {
    let refused = |path: &Path| CommandError::Folder(path.display().to_string());
    let workspace = job.workspace.canonicalize().map_err(|_| refused(&job.workspace))?;
    let folder = workspace.join(&job.folder).canonicalize().map_err(|_| refused(&job.folder))?;
    if folder.starts_with(&workspace) && folder.is_dir() { Ok((workspace, folder)) } else { Err(refused(&job.folder)) }
}

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
mod sandbox;
mod scratch;
mod surroundings;
mod text;

use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::time::Duration;

use tokio::process::Command;

pub use family::close_off;
pub use keeper::keep;
use order::{Order, Report, Sandbox};
pub use running::Running;
use sandbox::Bounds;
use scratch::Scratch;

/// The first argument of the keeper: a program that gets it calls [`keep`] before it does anything else.
pub const KEEP: &str = "__keep";

/// The kernel takes no longer argument: 32 pages, with the NUL.
const LONGEST_LINE: usize = (128 << 10) - 1;

/// For finding out whether a sandbox works. Where it does, it is there in a few milliseconds.
const PROBING: Duration = Duration::from_secs(5);

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
    keeper: PathBuf,
    program: PathBuf,
    level: Level,
    hidden: Vec<PathBuf>,
    /// Where there is a sandbox: without one, the system's own is there to be written.
    scratch: Option<Scratch>,
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

    /// What a command can do in spite of it, for people to know.
    pub fn cannot_stop(self) -> &'static [&'static str] {
        match self {
            Level::Bubblewrap => &[
                "using the network, with the services of this machine",
                "reaching this server's own port on this machine, and answering its own permission request there, unless \
                 the server has a token (--token)",
                "reading files that are no known secrets",
                "making what git obeys where it is missing (.git, .git/hooks, .git/config.worktree); a notice says so after \
                 the command",
                "putting other repositories into the workspace, with configurations that git obeys there",
                "using up memory, processor and disk",
            ],
            Level::Landlock => &[
                "using the network, with the services of this machine",
                "reaching this server's own port on this machine, and answering its own permission request there, unless \
                 the server has a token that no command line shows (TOLKA_TOKEN)",
                "reading files that are no known secrets, and the names of those that are",
                "changing the configuration and the hooks of the workspace's git; a notice says so after the command",
                "putting other repositories into the workspace, with configurations that git obeys there",
                "reading what is hidden inside the workspace itself",
                "talking to other programs over their sockets",
                "seeing which other processes run, and how they were started",
                "emptying files outside, on Linux before 6.2; ending other processes, before 6.12",
                "using up memory, processor and disk",
            ],
            Level::None => &[
                "anything that you yourself can do on this machine",
                "reaching this server's own port on this machine, and answering its own permission request there, unless \
                 the server has a token that no file and no command line shows (TOLKA_TOKEN)",
            ],
        }
    }
}

impl Shell {
    /// Finds the strongest sandbox that works here. `keeper` is the program that keeps commands: started with [`KEEP`] as
    /// its first argument it calls [`keep`]. Blocks, for some milliseconds.
    pub fn probe(keeper: &Path) -> Self {
        for level in [Level::Bubblewrap, Level::Landlock] {
            match Shell::at(keeper, level) {
                Ok(shell) => return shell,
                Err(error) => tracing::info!(level = level.name(), %error, "a sandbox cannot be used here"),
            }
        }
        Shell::new(keeper, Level::None, None)
    }

    /// With one sandbox and no other, or the reason why it does not work here. Blocks.
    pub fn at(keeper: &Path, level: Level) -> std::io::Result<Self> {
        match level {
            Level::Bubblewrap | Level::Landlock => {
                let shell = Shell::new(keeper, level, Some(Scratch::new()?));
                shell.try_out()?;
                Ok(shell)
            }
            Level::None => Ok(Shell::new(keeper, level, None)),
        }
    }

    fn new(keeper: &Path, level: Level, scratch: Option<Scratch>) -> Self {
        let program = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].map(PathBuf::from);
        let program = program.into_iter().find(|bash| bash.exists()).unwrap_or_else(|| PathBuf::from("/bin/sh"));
        // The file of this very process, if that is the keeper, may be replaced while it runs.
        let is_me = cfg!(target_os = "linux") && std::env::current_exe().is_ok_and(|me| me == keeper);
        let keeper = if is_me { PathBuf::from("/proc/self/exe") } else { keeper.to_owned() };
        Shell { keeper, program, level, hidden: Vec::new(), scratch }
    }

    /// Files and folders that commands do not see, besides the usual secrets in a home folder.
    pub fn hiding(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.hidden.extend(paths);
        self
    }

    /// What commands do not see in a sandbox: those files and folders that are there, by their real names. Who reads for an
    /// agent without a sandbox looks here first.
    pub fn hidden(&self) -> Vec<PathBuf> {
        sandbox::all_hidden(&self.hidden).collect()
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
        let command = self.keeper(workspace, folder, &job.line, job.time_limit).map_err(CommandError::Start)?;
        Running::start(Command::from(command)).map_err(CommandError::Start)
    }

    fn keeper(
        &self,
        workspace: PathBuf,
        folder: PathBuf,
        line: &str,
        time_limit: Duration,
    ) -> std::io::Result<process::Command> {
        let mut command = process::Command::new(&self.keeper);
        command.current_dir(&folder).env_clear().envs(surroundings::of());
        let scratch = self.scratch.as_ref().map(|scratch| scratch.path().to_owned());
        let bounds = scratch.map(|scratch| Bounds::new(workspace, folder, scratch, &self.hidden));
        if let Some(bounds) = &bounds {
            command.envs(surroundings::confined(self.level, &bounds.scratch));
        }
        let sandbox = match (self.level, bounds) {
            (Level::Bubblewrap, Some(bounds)) => Sandbox::Bubblewrap(bounds),
            (Level::Landlock, Some(bounds)) => Sandbox::Landlock(bounds),
            (_, _) => Sandbox::None,
        };
        let order = Order { program: self.program.clone(), time_limit, sandbox };
        command.arg(KEEP).arg(serde_json::to_string(&order)?).arg(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs what does nothing.
    fn try_out(&self) -> std::io::Result<()> {
        let nowhere = std::env::temp_dir().canonicalize()?;
        let mut keeper = self.keeper(nowhere.clone(), nowhere, "true", PROBING)?.spawn()?;
        let leash = keeper.stdin.take();
        let said = keeper.wait_with_output()?.stderr;
        drop(leash);
        match Report::find(&said) {
            Some(Report::Ended { code: Some(0), .. }) => Ok(()),
            Some(Report::Failed { words }) => Err(std::io::Error::other(words)),
            Some(Report::Ended { .. }) | None => Err(std::io::Error::other("the shell does not run in it")),
        }
    }
}

/// The workspace and the folder of a job, by their real names.
fn folders(job: &Job) -> Result<(PathBuf, PathBuf), CommandError> {
    let refused = |path: &Path| CommandError::Folder(path.display().to_string());
    let workspace = job.workspace.canonicalize().map_err(|_| refused(&job.workspace))?;
    let folder = workspace.join(&job.folder).canonicalize().map_err(|_| refused(&job.folder))?;
    if folder.starts_with(&workspace) && folder.is_dir() { Ok((workspace, folder)) } else { Err(refused(&job.folder)) }
}

//! Commands: each under a keeper that ends all of it, inside the sandbox that is there.
//!
//! A keeper is our own program, started anew for one command. It adopts whatever its command leaves
//! behind, so nothing gets away by a new session, a second fork or an ignored signal, and it holds a leash, a
//! pipe from us. When that closes, since the command is stopped, dropped, or since this process was killed,
//! everything ends. What a command writes to stdout and stderr goes into one pipe: its order is what a
//! reader needs most.

mod family;
mod forward;
mod group;
mod keeper;
mod level;
mod limits;
mod network;
mod order;
mod piped;
mod ports;
mod proxy;
mod running;
mod sandbox;
mod scratch;
mod surroundings;
mod text;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

pub use family::close_off;
use group::Place;
pub use keeper::keep;
pub use level::{Gap, Level};
pub use limits::{Bound, Limits, free_bytes};
pub use network::{Host, Network, NoHost};
use order::{Input, Order, Report, Sandbox, Way};
pub use piped::{Piped, PipedJob};
pub use ports::listening;
use proxy::{Pass, Proxy, Reach};
pub use running::Running;
use sandbox::Bounds;
use scratch::Scratch;

/// The first argument of the keeper: a program that gets it calls [`keep`] before it does anything else.
pub const KEEP: &str = "__keep";

/// The kernel takes no longer argument: 32 pages, with the NUL.
const LONGEST_LINE: usize = (128 << 10) - 1;

/// For finding out whether a sandbox works. Where it does, it is there in a few milliseconds; a machine that does much else
/// takes longer, and gets no weaker one for that.
const PROBING: Duration = Duration::from_secs(30);

/// What commands are run with.
#[derive(Debug)]
pub struct Shell {
    keeper: PathBuf,
    program: PathBuf,
    level: Level,
    /// Bubblewrap's program, found once: a folder that `PATH` names could get another one later.
    wrapper: Option<PathBuf>,
    hidden: Vec<PathBuf>,
    /// Where there is a sandbox: without one, the system's own is there to be written.
    scratch: Option<Scratch>,
    network: Network,
    /// Where the network is a list, and a sandbox keeps commands from going elsewhere.
    proxy: Option<Arc<Proxy>>,
    limits: Limits,
    /// `None`: keepers count.
    group: Option<Place>,
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
    /// Beyond what every command gets; no secrets.
    pub env: Vec<(String, String)>,
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
    /// Bounds that it came up against. Some of them end a command, and all of them spoil it.
    pub over: Vec<Bound>,
    /// Hosts that it asked for and that are not on the list, each with its port.
    pub refused: Vec<String>,
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
                shell.try_out(Way::Open)?;
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
        let wrapper = (level == Level::Bubblewrap).then(sandbox::wrapper).flatten();
        let (network, limits, group) = (Network::On, Limits::default(), Place::find());
        Shell { keeper, program, level, wrapper, hidden: Vec::new(), scratch, network, proxy: None, limits, group }
    }

    /// What commands may reach, or the reason why the sandbox cannot hold them to it. Without one nothing does. Blocks.
    pub fn reaching(mut self, network: Network) -> std::io::Result<Self> {
        if network != Network::On && self.level != Level::None {
            self.try_out(Way::Closed)?;
        }
        self.proxy = match (&network, self.level) {
            (Network::On | Network::Off, _) | (_, Level::None) => None,
            (Network::Only(hosts), Level::Bubblewrap) => Some(Arc::new(Proxy::open(hosts.clone(), Reach::Socket)?)),
            (Network::Only(hosts), Level::Landlock) => Some(Arc::new(Proxy::open(hosts.clone(), Reach::Port)?)),
        };
        self.network = network;
        Ok(self)
    }

    pub fn limited_to(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Counts by keepers alone, as on a machine where no control group can be made.
    pub fn without_groups(mut self) -> Self {
        self.group = None;
        self
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

    pub fn network(&self) -> &Network {
        &self.network
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether the kernel counts what commands use, or keepers do.
    pub fn has_groups(&self) -> bool {
        self.group.is_some()
    }

    /// Whether what a command serves can be reached from outside of its sandbox.
    pub fn is_reachable(&self) -> bool {
        self.level != Level::Bubblewrap || self.network == Network::On
    }

    /// What commands can do all the same.
    pub fn gaps(&self) -> Vec<Gap> {
        let ground = level::Ground { stops_connections: sandbox::stops_connections(), has_groups: self.has_groups() };
        level::gaps(self.level, &self.network, ground)
    }

    /// Within a tokio runtime.
    pub fn start(&self, job: &Job) -> Result<Running, CommandError> {
        if job.line.len() > LONGEST_LINE {
            return Err(CommandError::TooLong(job.line.len()));
        }
        if job.line.contains('\0') {
            return Err(CommandError::Nul);
        }
        let (workspace, folder) = folders(&job.workspace, &job.folder)?;
        let (way, pass) = self.way(&workspace).map_err(CommandError::Start)?;
        let start = Start { workspace, folder, way, pass: pass.as_ref(), input: Input::Nothing };
        let args = ["-c".into(), job.line.clone().into()];
        let command = self.keeper(start, &self.program, &args, job.time_limit).map_err(CommandError::Start)?;
        let mut command = Command::from(command);
        command.envs(job.env.iter().map(|(name, value)| (name, value)));
        Running::start(command, pass).map_err(CommandError::Start)
    }

    /// Starts a program that is talked to over pipes. Within a tokio runtime.
    pub fn start_piped(&self, job: &PipedJob) -> Result<Piped, CommandError> {
        let has_nul = |word: &OsString| word.as_encoded_bytes().contains(&0);
        if job.args.iter().any(has_nul) || job.env.iter().any(|(_, value)| value.contains('\0')) {
            return Err(CommandError::Nul);
        }
        let (workspace, folder) = folders(&job.workspace, &job.folder)?;
        let (way, pass) = self.way(&workspace).map_err(CommandError::Start)?;
        let start = Start { workspace, folder, way, pass: pass.as_ref(), input: Input::Leash };
        let command = self.keeper(start, &job.program, &job.args, Duration::MAX).map_err(CommandError::Start)?;
        let mut command = Command::from(command);
        command.envs(surroundings::given(&job.env));
        Piped::start(command, pass)
    }

    /// The way to the network for one command.
    fn way(&self, workspace: &Path) -> std::io::Result<(Way, Option<Pass>)> {
        match (&self.network, &self.proxy) {
            (_, Some(proxy)) => proxy.admit(workspace).map(|(way, pass)| (way, Some(pass))),
            (Network::On, None) => Ok((Way::Open, None)),
            (Network::Off | Network::Only(_), None) => Ok((Way::Closed, None)),
        }
    }

    fn keeper(
        &self,
        start: Start<'_>,
        program: &Path,
        args: &[OsString],
        time_limit: Duration,
    ) -> std::io::Result<process::Command> {
        let Start { workspace, folder, way, pass, input } = start;
        let mut command = process::Command::new(&self.keeper);
        command.current_dir(&folder).env_clear().envs(surroundings::of());
        let scratch = self.scratch.as_ref().map(|scratch| scratch.path().to_owned());
        let bounds = scratch.map(|scratch| Bounds::new(workspace, folder, scratch, &self.hidden));
        if let Some(bounds) = &bounds {
            command.envs(surroundings::confined(self.level, &bounds.scratch));
        }
        command.envs(pass.map(Pass::surroundings).unwrap_or_default());
        let sandbox = match (self.level, bounds) {
            (Level::Bubblewrap, Some(bounds)) => Sandbox::Bubblewrap(bounds),
            (Level::Landlock, Some(bounds)) => Sandbox::Landlock(bounds),
            (_, _) => Sandbox::None,
        };
        let (limits, group) = (self.limits, self.group.clone());
        let (program, wrapper) = (program.to_owned(), self.wrapper.clone());
        let order = Order { program, time_limit, input, sandbox, wrapper, way, limits, group };
        command.arg(KEEP).arg(serde_json::to_string(&order)?).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs what does nothing.
    fn try_out(&self, way: Way) -> std::io::Result<()> {
        let nowhere = std::env::temp_dir().canonicalize()?;
        let input = Input::Nothing;
        let start = Start { workspace: nowhere.clone(), folder: nowhere, way, pass: None, input };
        let mut keeper = self.keeper(start, &self.program, &["-c".into(), "true".into()], PROBING)?.spawn()?;
        let leash = keeper.stdin.take();
        let said = keeper.wait_with_output()?.stderr;
        drop(leash);
        match Report::find(&said) {
            Some(Report::Ended { code: Some(0), .. }) => Ok(()),
            Some(Report::Failed { words }) => Err(std::io::Error::other(words)),
            Some(Report::Ended { .. } | Report::Over(_)) | None => {
                Err(std::io::Error::other("the shell does not run in it"))
            }
        }
    }
}

/// Where something is started, and how it is connected.
struct Start<'a> {
    workspace: PathBuf,
    folder: PathBuf,
    way: Way,
    pass: Option<&'a Pass>,
    input: Input,
}

/// The workspace and the folder of a job, by their real names.
fn folders(workspace: &Path, folder: &Path) -> Result<(PathBuf, PathBuf), CommandError> {
    let refused = |path: &Path| CommandError::Folder(path.display().to_string());
    let workspace = workspace.canonicalize().map_err(|_| refused(workspace))?;
    let found = workspace.join(folder).canonicalize().map_err(|_| refused(folder))?;
    if found.starts_with(&workspace) && found.is_dir() { Ok((workspace, found)) } else { Err(refused(folder)) }
}

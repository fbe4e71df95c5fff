//! The git command, alone with one git folder and one workspace: nothing that the person or the machine
//! has configured for git is seen by it, and it ends when nobody waits for it any more.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::CheckpointError;
use super::files::blocking;

/// Files as they are: no conversion, no hook, no helper process, every name that the file system allows. And what is in
/// them is sent to the disk before they get their names: a store with half-written objects would stay broken for ever.
const SETTINGS: &[&str] = &[
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "core.excludesFile=/dev/null",
    "core.fileMode=true",
    "core.fsmonitor=false",
    "core.fsync=all",
    "core.hooksPath=/dev/null",
    "core.ignoreCase=false",
    "core.protectHFS=false",
    "core.protectNTFS=false",
    "core.safecrlf=false",
    "core.splitIndex=false",
    "core.symlinks=true",
    "core.untrackedCache=false",
    "gc.auto=0",
    // The index is a cache of ours, and git reckons its sum at each write and never looks at it.
    "index.skipHash=true",
];

const SURROUNDINGS: &[(&str, &str)] = &[
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_AUTHOR_EMAIL", "checkpoints@tolka.invalid"),
    ("GIT_AUTHOR_NAME", "Tolka"),
    ("GIT_COMMITTER_EMAIL", "checkpoints@tolka.invalid"),
    ("GIT_COMMITTER_NAME", "Tolka"),
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_KEY_0", "core.fsyncMethod"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_VALUE_0", "batch"),
    // A path is a path, whatever characters it begins with.
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // Some of git's words are read here.
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
];

/// For a git that is not the last to write. It sends its files to the disk in their order and does not wait for the disk
/// itself to have them: a sync of whatever is written later does so, as git's own `batch` does within one process.
/// Each wait is a commit of the file system's journal, which others may have filled.
pub(super) const IN_ORDER: (&str, &str) = ("GIT_CONFIG_VALUE_0", "writeout-only");

/// Since when somebody waits, and when to give up.
#[derive(Debug, Clone)]
pub(super) struct Halt {
    pub(super) asked: Instant,
    pub(super) deadline: Instant,
    pub(super) budget: Duration,
    /// True when the result has been taken; closes when nobody wants it any more.
    wanted: watch::Receiver<bool>,
}

impl Halt {
    /// From now on. To be halted, drop the sender.
    pub(super) fn within(budget: Duration) -> (watch::Sender<bool>, Self) {
        let asked = Instant::now();
        let (sender, wanted) = watch::channel(false);
        (sender, Halt { asked, deadline: asked + budget, budget, wanted })
    }

    /// Ends with it, or when one part of so many of the time that is left is spent.
    pub(super) fn part(&self, of: u32) -> Self {
        let now = Instant::now();
        Halt { deadline: now + self.deadline.saturating_duration_since(now) / of, ..self.clone() }
    }

    /// Waits for what can be given up at any moment.
    pub(super) async fn wait<T>(&self, what: impl Future<Output = T>) -> Result<T, CheckpointError> {
        tokio::select! {
            biased;
            error = self.called() => Err(error),
            done = what => Ok(done),
        }
    }

    /// Whether the result got to the one who asked for it.
    pub(super) async fn taken(&self) -> bool {
        self.wanted.clone().wait_for(|is_taken| *is_taken).await.is_ok()
    }

    async fn called(&self) -> CheckpointError {
        let mut wanted = self.wanted.clone();
        tokio::select! {
            () = sleep_until(self.deadline) => CheckpointError::Slow { budget: self.budget },
            // Nothing is sent before the result is there: until then the only change is the end.
            _ = wanted.changed() => CheckpointError::Stopped,
        }
    }
}

#[derive(Debug)]
pub(super) struct Git {
    pub(super) dir: PathBuf,
    pub(super) index: PathBuf,
    pub(super) workspace: PathBuf,
}

pub(super) struct Output {
    pub(super) out: Vec<u8>,
    /// Warnings of a command that succeeded.
    pub(super) warnings: String,
}

impl Output {
    /// For commands that answer with a name.
    pub(super) fn line(&self) -> String {
        String::from_utf8_lossy(&self.out).trim().to_owned()
    }

    /// For commands with `-z`.
    pub(super) fn items(&self) -> impl Iterator<Item = &[u8]> {
        self.out.split(|byte| *byte == 0).filter(|item| !item.is_empty())
    }
}

impl Git {
    pub(super) async fn run<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        input: &[u8],
        halt: &Halt,
    ) -> Result<Output, CheckpointError> {
        self.run_among(&[], args, input, halt).await
    }

    /// With more in its surroundings than all of them have.
    pub(super) async fn run_among<A: AsRef<OsStr>>(
        &self,
        surroundings: &[(&str, &OsStr)],
        args: &[A],
        input: &[u8],
        halt: &Halt,
    ) -> Result<Output, CheckpointError> {
        let (mut command, workspace) = (self.command(args), self.workspace.clone());
        command.envs(surroundings.iter().copied());
        // Starting it enters the workspace, and returns when it is there.
        let mut child = blocking(move || {
            command.spawn().map_err(|error| match error.kind() {
                // The workspace was there a moment ago.
                io::ErrorKind::NotFound if workspace.exists() => CheckpointError::NoGit,
                _ => CheckpointError::NoWorkspace { path: workspace, error },
            })
        })
        .await?;
        let talked = tokio::select! {
            talked = talk(&mut child, input) => talked,
            error = halt.called() => {
                end(&mut child).await;
                return Err(error);
            }
        };
        let command = args.first().map(|arg| arg.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
        match talked {
            Ok((true, out, warnings)) => Ok(Output { out, warnings }),
            Ok((false, _, words)) => Err(CheckpointError::Git { command, words: last_words(&words) }),
            Err(error) => {
                end(&mut child).await;
                Err(CheckpointError::Git { command, words: error.to_string() })
            }
        }
    }

    pub(super) fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
            command.env_remove(name);
        }
        command.envs(SURROUNDINGS.iter().copied());
        command.env("GIT_DIR", &self.dir).env("GIT_WORK_TREE", &self.workspace).env("GIT_INDEX_FILE", &self.index);
        command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting])).args(args);
        command.current_dir(&self.workspace).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Whether it succeeded, what it wrote, and what it complained about.
async fn talk(child: &mut Child, input: &[u8]) -> io::Result<(bool, Vec<u8>, String)> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut words) = (Vec::new(), Vec::new());
    let feed = async {
        // A git that does not listen to the end says why by its exit.
        if let Some(mut pipe) = stdin {
            let _ = pipe.write_all(input).await;
        }
    };
    let hear = async {
        match stdout {
            Some(mut pipe) => pipe.read_to_end(&mut out).await.map(drop),
            None => Ok(()),
        }
    };
    let heed = async {
        match stderr {
            Some(mut pipe) => pipe.read_to_end(&mut words).await.map(drop),
            None => Ok(()),
        }
    };
    let ((), heard, heeded) = tokio::join!(feed, hear, heed);
    heard.and(heeded)?;
    let status = child.wait().await?;
    let mut words = String::from_utf8_lossy(&words).into_owned();
    if words.trim().is_empty() && !status.success() {
        words = status.to_string();
    }
    Ok((status.success(), out, words))
}

/// Git complains of each file; why it gave up comes last.
fn last_words(words: &str) -> String {
    let lines: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

/// Kills it with all that it started, and waits until it is gone: the next git must not meet it.
async fn end(child: &mut Child) {
    // Without an id it has been waited for already.
    if let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = child.wait().await;
    }
}

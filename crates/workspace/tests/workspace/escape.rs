//! Ways out, tried at every level that this machine has. What a level says it cannot stop must come about, and all else
//! must not: so the list that people read and what is built cannot differ. Without a sandbox each of them comes about,
//! or it would be no attempt.
//!
//! Everything here is on this machine, small, and ends by itself.

mod bounds;
mod network;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;

use tolka_workspace::command::{Exit, Gap, Level, Network, Shell};

use crate::command::{hear, job, nap};
use crate::house::git;

pub(crate) fn shells() -> Vec<Shell> {
    let keeper = Path::new(env!("CARGO_BIN_EXE_tolka-keeper"));
    let make = |level: Level| {
        Shell::at(keeper, level).inspect_err(|error| println!("skipped: {}: {error}", level.name())).ok()
    };
    Level::ALL.into_iter().filter_map(make).collect()
}

/// A repository to work in, and around it what a command has no business with.
struct Stage {
    workspace: PathBuf,
    outside: PathBuf,
    hidden: PathBuf,
    inner: PathBuf,
    bystander: Child,
    nap: String,
    _folders: [tempfile::TempDir; 2],
}

impl Stage {
    fn new() -> Self {
        let home = std::env::var("HOME").unwrap();
        let apart = [env!("CARGO_TARGET_TMPDIR"), &home].into_iter().find(|path| !path.starts_with("/tmp")).unwrap();
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in(apart).unwrap());
        let workspace = inside.path().canonicalize().unwrap().join("work");
        fs::create_dir(&workspace).unwrap();
        git(&workspace, &["init", "-q", "-b", "main"]);
        fs::create_dir_all(workspace.join(".git/hooks")).unwrap();
        for other in ["mine", "a/b/c/d/e"] {
            git(&workspace, &["init", "-q", other]);
        }
        let outer = outside.path().canonicalize().unwrap();
        let (hidden, inner) = (outer.join("token"), workspace.join("token"));
        for secret in [&hidden, &inner] {
            fs::write(secret, "sesame").unwrap();
        }
        fs::write(outer.join("kept"), "kept").unwrap();
        let nap = nap();
        let bystander = Command::new("sleep").arg(&nap).env("SOME_KEY", "sword".to_owned() + "fish").spawn().unwrap();
        Stage { workspace, outside: outer, hidden, inner, bystander, nap, _folders: [inside, outside] }
    }

    async fn run(&self, shell: &Shell, line: &str) -> (String, Exit) {
        hear(&mut shell.start(&job(&self.workspace, line)).unwrap()).await
    }

    fn filled(&self, line: &str) -> String {
        let line = line.replace("OUTSIDE", self.outside.to_str().unwrap());
        line.replace("BYSTANDER", &self.bystander.id().to_string()).replace("NAP", &self.nap)
    }

    /// Answers whoever connects with a word.
    fn listen(&self, place: &Path) {
        answer(UnixListener::bind(place).unwrap());
    }
}

fn answer(listener: UnixListener) {
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 1024]);
            let _ = client.write_all(b"HTTP/1.0 200 OK\r\n\r\nanswered\n");
        }
    });
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

/// What is tried, and how to see that it came about.
struct Attempt {
    line: &'static str,
    /// It comes about where one of these is a gap.
    gaps: &'static [Gap],
    is_done: fn(&mut Stage, &str) -> bool,
}

fn is_changed(stage: &mut Stage, _: &str) -> bool {
    fs::read_to_string(stage.outside.join("kept")).ok().as_deref() != Some("kept") || stage.outside.join("new").exists()
}

fn has_hook(stage: &mut Stage, _: &str) -> bool {
    stage.workspace.join(".git/hooks/pre-commit").exists()
}

fn has_config(stage: &mut Stage, _: &str) -> bool {
    has_evil(stage, ".git/config")
}

fn has_evil(stage: &Stage, file: &str) -> bool {
    fs::read_to_string(stage.workspace.join(file)).is_ok_and(|text| text.contains("evil"))
}

fn says_secret(_: &mut Stage, said: &str) -> bool {
    said.contains("sesame") || said.contains("swordfish")
}

fn says_reached(_: &mut Stage, said: &str) -> bool {
    said.contains("reached") || said.contains("answered")
}

fn is_killed(stage: &mut Stage, _: &str) -> bool {
    // It is a child of ours: how it ended stays to be asked for.
    stage.bystander.try_wait().unwrap().is_some()
}

fn says_nap(stage: &mut Stage, said: &str) -> bool {
    said.contains(&format!("sleep {}", stage.nap))
}

const ATTEMPTS: &[Attempt] = &[
    Attempt { line: "echo x >OUTSIDE/kept", gaps: &[], is_done: is_changed },
    Attempt { line: "echo x >OUTSIDE/new", gaps: &[], is_done: is_changed },
    Attempt { line: "ln -s OUTSIDE/kept way && echo x >way", gaps: &[], is_done: is_changed },
    // A folder that leads in and out by turns while somebody writes through it, and out at last.
    Attempt {
        line: "mkdir real; (for i in $(seq 300); do ln -sfn real swap; ln -sfn OUTSIDE swap; done) & \
               for i in $(seq 300); do echo x 2>/dev/null >swap/kept; done; wait; echo x >swap/kept",
        gaps: &[],
        is_done: is_changed,
    },
    Attempt { line: "cd /proc/self/root && echo x >.OUTSIDE/kept", gaps: &[], is_done: is_changed },
    Attempt { line: "mv OUTSIDE/kept OUTSIDE/new", gaps: &[], is_done: is_changed },
    Attempt { line: "echo evil >.git/hooks/pre-commit", gaps: &[Gap::Obeyed], is_done: has_hook },
    Attempt { line: "git config core.fsmonitor evil", gaps: &[Gap::Obeyed], is_done: has_config },
    Attempt {
        line: "mv .git x && cp -r x .git && echo evil >.git/hooks/pre-commit",
        gaps: &[Gap::Obeyed],
        is_done: has_hook,
    },
    // What is missing cannot be guarded, and neither can a repository that is not there yet.
    Attempt {
        line: "echo '[core] fsmonitor = evil' >.git/config.worktree",
        gaps: &[Gap::NewObeyed, Gap::Obeyed],
        is_done: |stage, _| stage.workspace.join(".git/config.worktree").exists(),
    },
    Attempt {
        line: "git -C mine config core.fsmonitor evil",
        gaps: &[Gap::NewObeyed, Gap::Obeyed],
        is_done: |stage, _| has_evil(stage, "mine/.git/config"),
    },
    Attempt {
        line: "git -C a/b/c/d/e config core.fsmonitor evil",
        gaps: &[Gap::FarObeyed],
        is_done: |stage, _| has_evil(stage, "a/b/c/d/e/.git/config"),
    },
    Attempt {
        line: "git init -q sub && git -C sub config core.fsmonitor evil",
        gaps: &[Gap::Repositories],
        is_done: |stage, _| has_evil(stage, "sub/.git/config"),
    },
    Attempt { line: "cat OUTSIDE/token", gaps: &[], is_done: says_secret },
    Attempt { line: "cat /proc/self/root/OUTSIDE/token", gaps: &[], is_done: says_secret },
    Attempt { line: "cat token", gaps: &[Gap::HiddenInside], is_done: says_secret },
    Attempt { line: "cat OUTSIDE/kept | sed s/kept/sesame/", gaps: &[Gap::OpenFiles], is_done: says_secret },
    Attempt {
        line: "ls OUTSIDE && stat OUTSIDE/token >/dev/null && echo reached",
        gaps: &[Gap::Names],
        is_done: says_name,
    },
    Attempt { line: "tr '\\0' '\\n' </proc/BYSTANDER/environ", gaps: &[], is_done: says_secret },
    Attempt { line: "cat /proc/BYSTANDER/maps >/dev/null && echo reached", gaps: &[], is_done: says_reached },
    Attempt {
        line: "ls /proc/BYSTANDER/fd/ >/dev/null && echo reached",
        gaps: &[Gap::Processes],
        is_done: says_reached,
    },
    Attempt { line: "readlink /proc/BYSTANDER/fd/1 && echo reached", gaps: &[], is_done: says_reached },
    Attempt { line: "readlink /proc/BYSTANDER/exe && echo reached", gaps: &[], is_done: says_reached },
    Attempt {
        line: "cat /proc/BYSTANDER/root/etc/passwd >/dev/null && echo reached",
        gaps: &[],
        is_done: says_reached,
    },
    Attempt { line: "kill -9 BYSTANDER; sleep 0.2", gaps: &[], is_done: is_killed },
    Attempt { line: "tr '\\0' ' ' </proc/BYSTANDER/cmdline", gaps: &[Gap::Processes], is_done: says_nap },
    // As an agent for keys has it, and as a container engine in some home has it.
    Attempt {
        line: "curl -s --max-time 10 --unix-socket /tmp/tolka-test-NAP/agent http://x/",
        gaps: &[Gap::Sockets],
        is_done: says_reached,
    },
    Attempt {
        line: "curl -s --max-time 10 --unix-socket OUTSIDE/engine http://x/",
        gaps: &[Gap::Sockets, Gap::LooseSockets],
        is_done: says_reached,
    },
];

/// Where services have their sockets, for those who may write there.
fn services() -> Option<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|own| own.starts_with("/run"));
    let is_ours = |folder: &PathBuf| tempfile::tempdir_in(folder).is_ok();
    [Some(PathBuf::from("/run")), own].into_iter().flatten().find(is_ours)
}

/// As a container engine has it, and as programs have it that want no file for it.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn sockets_of_services_and_sockets_without_a_file_are_closed_or_on_the_list() {
    use std::os::linux::net::SocketAddrExt;
    for shell in shells() {
        let (stage, gaps) = (Stage::new(), shell.gaps());
        let is_open = |gap: Option<Gap>| gaps.contains(&Gap::Anything) || gap.is_some_and(|gap| gaps.contains(&gap));
        match services() {
            Some(folder) => {
                let folder = tempfile::tempdir_in(folder).unwrap();
                let place = folder.path().join("engine.sock");
                stage.listen(&place);
                let line = format!("curl -s --max-time 10 --unix-socket {} http://x/", place.display());
                let (said, _) = stage.run(&shell, &line).await;
                assert_eq!(said.contains("answered"), is_open(Some(Gap::Sockets)), "{:?}: {said}", shell.level());
            }
            None => println!("skipped: nothing can be put into /run here"),
        }
        let name = format!("tolka-test-{}", stage.nap);
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        answer(UnixListener::bind_addr(&address).unwrap());
        let line = format!("curl -s --max-time 10 --abstract-unix-socket {name} http://x/");
        let (said, _) = stage.run(&shell, &line).await;
        assert_eq!(said.contains("answered"), is_open(None), "{:?}: {said}", shell.level());
    }
}

/// Where nothing keeps one process from tracing another, as root or as a setting of the machine may have it.
#[tokio::test]
async fn a_process_outside_cannot_be_traced() {
    let number = if cfg!(target_arch = "x86_64") { 101 } else { 117 };
    let line = format!("perl -e 'syscall({number}, 16, shift, 0, 0) == 0 or die $!; print \"reached\"' BYSTANDER");
    let mut levels = shells();
    // The one without a sandbox is tried first.
    levels.reverse();
    for shell in levels {
        let stage = Stage::new();
        let (said, _) = stage.run(&shell, &stage.filled(&line)).await;
        match shell.level() {
            Level::None if !said.contains("reached") => {
                println!("skipped: nobody traces anybody here: {said}");
                return;
            }
            Level::None => {}
            level => assert!(!said.contains("reached"), "{level:?}: {said}"),
        }
    }
}

fn says_name(stage: &mut Stage, said: &str) -> bool {
    says_reached(stage, said) && said.contains("token")
}

#[tokio::test]
async fn every_way_out_is_closed_or_on_the_list() {
    for shell in shells() {
        for attempt in ATTEMPTS {
            let mut stage = Stage::new();
            let agents = PathBuf::from(format!("/tmp/tolka-test-{}", stage.nap));
            fs::create_dir(&agents).unwrap();
            stage.listen(&agents.join("agent"));
            stage.listen(&stage.outside.join("engine"));
            // At each level anew, since what is hidden is the stage's own.
            let keeper = Path::new(env!("CARGO_BIN_EXE_tolka-keeper"));
            let shell = Shell::at(keeper, shell.level()).unwrap().hiding([stage.hidden.clone(), stage.inner.clone()]);
            let gaps = shell.gaps();
            let is_gap = gaps.contains(&Gap::Anything) || attempt.gaps.iter().any(|gap| gaps.contains(gap));
            let line = stage.filled(attempt.line);
            let (said, exit) = stage.run(&shell, &line).await;
            let is_done = (attempt.is_done)(&mut stage, &said);
            fs::remove_dir_all(&agents).unwrap();
            assert_eq!(is_done, is_gap, "{:?}: {line}: {said} {exit:?}", shell.level());
        }
    }
}

#[tokio::test]
async fn what_is_refused_says_why() {
    for shell in shells().iter().filter(|shell| shell.level() != Level::None) {
        let stage = Stage::new();
        for line in ["echo x >OUTSIDE/kept", "kill -9 BYSTANDER", "cat /proc/BYSTANDER/environ"] {
            let (said, exit) = stage.run(shell, &stage.filled(line)).await;
            let why = ["Permission denied", "Read-only file system", "not permitted", "No such"];
            assert!(why.iter().any(|why| said.contains(why)), "{:?}: {line}: {said}", shell.level());
            assert_ne!(exit.code, Some(0));
        }
    }
}

#[test]
fn every_gap_has_words_and_every_level_has_gaps() {
    for shell in shells() {
        let gaps = shell.gaps();
        assert!(gaps.contains(&Gap::Machine) && gaps.iter().all(|gap| gap.words().len() > 10));
        assert_eq!(gaps.contains(&Gap::Anything), shell.level() == Level::None);
        let off = shell.reaching(Network::Off).unwrap();
        assert!(off.level() == Level::None || !off.gaps().contains(&Gap::Network));
    }
}

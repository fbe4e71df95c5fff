//! What each level holds. One that this machine does not have is skipped, and said so.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tolka_workspace::command::{Exit, Heard, Job, Level, Shell};
use tolka_workspace::obeyed::Obeyed;

use crate::command::{all_end, code, hear, job, living, nap, processes, runaways, wait_for};
use crate::house::git;

const KEEPER: &str = env!("CARGO_BIN_EXE_tolka-keeper");

/// Those that work here.
fn shells() -> Vec<Shell> {
    let levels = [Level::Bubblewrap, Level::Landlock, Level::None];
    levels.into_iter().filter_map(shell).collect()
}

fn shell(level: Level) -> Option<Shell> {
    Shell::at(Path::new(KEEPER), level).inspect_err(|error| println!("skipped: {}: {error}", level.name())).ok()
}

/// A workspace with a space in its name, and a folder beside it that is not among the temporary ones.
struct Place {
    workspace: PathBuf,
    outside: PathBuf,
    _folders: [tempfile::TempDir; 2],
}

impl Place {
    fn new() -> Self {
        let home = std::env::var("HOME").unwrap();
        // Even the target folder may be among the temporary ones.
        let apart = [env!("CARGO_TARGET_TMPDIR"), &home].into_iter().find(|path| !path.starts_with("/tmp")).unwrap();
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in(apart).unwrap());
        let workspace = inside.path().join("the work space");
        fs::create_dir(&workspace).unwrap();
        Place { workspace, outside: outside.path().to_owned(), _folders: [inside, outside] }
    }

    async fn run(&self, shell: &Shell, line: &str) -> (String, Exit) {
        hear(&mut shell.start(&job(&self.workspace, line)).unwrap()).await
    }
}

#[tokio::test]
async fn the_strongest_that_works_is_taken() {
    let shell = Shell::probe(Path::new(KEEPER));
    assert_eq!(Some(shell.level()), shells().first().map(Shell::level));
    assert!(!shell.gaps().is_empty());
}

#[tokio::test]
async fn a_program_that_keeps_nothing_is_no_sandbox() {
    assert_eq!(Shell::probe(Path::new("/nonexistent")).level(), Level::None);
    let error = Shell::at(Path::new("/bin/true"), Level::Landlock).unwrap_err();
    assert!(error.to_string().contains("does not run"), "{error}");
    assert!(Shell::probe(Path::new("/nonexistent")).start(&job(Path::new("/tmp"), "true")).is_err());
}

#[tokio::test]
async fn exits_and_output_are_the_same_at_every_level() {
    for shell in shells() {
        let place = Place::new();
        for expected in [0, 1, 125, 255] {
            assert_eq!(place.run(&shell, &format!("exit {expected}")).await, (String::new(), code(expected)));
        }
        let (_, exit) = place.run(&shell, "kill -9 $$").await;
        assert_eq!(exit, Exit { code: None, signal: Some(9), ..code(0) }, "{:?}", shell.level());
        let (said, exit) = place.run(&shell, "pwd; echo err >&2; cat; echo $TERM; sleep 77 & exit 4").await;
        assert_eq!(said, format!("{}\nerr\ndumb\n", place.workspace.canonicalize().unwrap().display()));
        assert_eq!(exit, Exit { left_behind: 1, ..code(4) });
        let limit = Job { time_limit: Duration::from_millis(300), ..job(&place.workspace, "sleep 78") };
        let (_, exit) = hear(&mut shell.start(&limit).unwrap()).await;
        assert_eq!(exit, Exit { code: None, signal: Some(15), timed_out: true, ..code(0) }, "{:?}", shell.level());
    }
}

#[tokio::test]
async fn the_workspace_can_be_changed_and_nothing_outside() {
    for shell in shells().iter().filter(|shell| shell.level() != Level::None) {
        let place = Place::new();
        let kept = place.outside.join("kept");
        fs::write(&kept, "kept").unwrap();
        let line =
            "mkdir -p a/b && echo x >a/b/c && mv a/b/c d && ln d e && ln -s d f && chmod +x d && rm -r a && cat d";
        assert_eq!(place.run(shell, line).await, ("x\n".to_owned(), code(0)), "{:?}", shell.level());
        let temporary =
            "f=$(mktemp) && echo y >$f && cat $f && echo z >/dev/null && : >/dev/shm/tolka && rm /dev/shm/tolka";
        assert_eq!(place.run(shell, temporary).await, ("y\n".to_owned(), code(0)), "{:?}", shell.level());

        let path = kept.display().to_string();
        let new = place.outside.join("new").display().to_string();
        for line in [
            format!("echo x >{path}"),
            format!("echo x >>{path}"),
            format!("rm {path}"),
            format!("mv {path} moved"),
            format!("ln {path} linked"),
            format!("truncate -s 0 {path}"),
            format!("mkdir {new}"),
            format!("touch {new}"),
            format!("ln -s {path} way && echo x >way"),
            "echo x >/etc/tolka-was-here".to_owned(),
            "echo x >$HOME/tolka-was-here".to_owned(),
        ] {
            let (said, exit) = place.run(shell, &line).await;
            let says_why = ["Permission denied", "Read-only file system", "Invalid cross-device link"];
            assert!(says_why.iter().any(|why| said.contains(why)), "{:?}: {line}: {said}", shell.level());
            assert_ne!(exit.code, Some(0), "{line}");
            assert_eq!(fs::read_to_string(&kept).unwrap(), "kept", "{line}");
            assert!(!place.outside.join("new").exists() && !Path::new("/etc/tolka-was-here").exists(), "{line}");
        }
        // It can be read.
        assert_eq!(place.run(shell, &format!("cat {path}")).await, ("kept".to_owned(), code(0)));
    }
}

#[tokio::test]
async fn what_is_hidden_cannot_be_read() {
    for shell in shells().into_iter().filter(|shell| shell.level() != Level::None) {
        let place = Place::new();
        let (data, file) = (place.outside.join("data"), place.outside.join("token"));
        // A workspace in the data folder itself is what the demo has.
        let workspace = data.join("work");
        fs::create_dir_all(&workspace).unwrap();
        for secret in [&data.join("key"), &file] {
            fs::write(secret, "sesame").unwrap();
        }
        fs::write(place.outside.join("open"), "open").unwrap();
        std::os::unix::fs::symlink(&file, place.outside.join("way")).unwrap();
        let shell = shell.hiding([data, file]);
        let line = "touch made; cat ../key ../../token ../../way; cat ../../open; echo x >../new";
        let (said, exit) = hear(&mut shell.start(&job(&workspace, line)).unwrap()).await;
        assert!(!said.contains("sesame") && said.contains("open"), "{:?}: {said}", shell.level());
        assert_ne!(exit.code, Some(0));
        assert!(workspace.join("made").exists() && !workspace.join("../new").exists());
    }
}

#[test]
fn secrets_in_the_home_folder_and_keys_in_the_environment_are_hidden() {
    for shell in shells() {
        let place = Place::new();
        for secret in [".ssh/id_rsa", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".config/tolka/tolka.toml"]
        {
            let path = place.outside.join(secret);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "sesame").unwrap();
        }
        fs::write(place.outside.join(".gitconfig"), "[user] name = Person").unwrap();
        let line = "cat ~/.gitconfig; cat ~/.ssh/id_rsa ~/.aws/credentials ~/.config/gh/hosts.yml ~/.netrc \
                    ~/.config/tolka/tolka.toml; env; tr '\\0' '\\n' </proc/$PPID/environ; true";
        let mut command = Command::new(KEEPER);
        command.args([shell.level().name(), place.workspace.to_str().unwrap(), line]).env("HOME", &place.outside);
        for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TOLKA_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"] {
            command.env(key, "swordfish");
        }
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("Person") && said.contains("GIT_TERMINAL_PROMPT=0"), "{said}");
        assert!(!said.contains("swordfish") && !said.contains("_KEY"), "{said}");
        assert_eq!(said.contains("sesame"), shell.level() == Level::None, "{:?}: {said}", shell.level());
    }
}

#[tokio::test]
async fn a_server_cannot_be_read_or_ended_from_inside() {
    for shell in shells().iter().filter(|shell| shell.level() != Level::None) {
        let place = Place::new();
        let me = std::process::id();
        let line = format!("cat /proc/{me}/environ; kill -0 {me} && echo reached; kill -9 $PPID; echo on");
        let (said, _) = place.run(shell, &line).await;
        assert!(said.ends_with("on\n") && !said.contains("reached") && !said.contains("PATH="), "{said}");
    }
}

#[tokio::test]
async fn a_keeper_that_is_killed_takes_its_command_along() {
    let place = Place::new();
    let nap = nap();
    let line = format!("sleep {nap} & (sleep {nap} &); kill -9 $PPID; sleep {nap}");
    let mut running = shell(Level::None).unwrap().start(&job(&place.workspace, &line)).unwrap();
    assert_eq!(running.next().await, Some(Heard::Failed("its keeper was killed".to_owned())));
    assert_eq!(running.next().await, None);
    assert_eq!(living(&nap), Vec::<String>::new());

    // From outside, since from inside nothing reaches it.
    for shell in shells().iter().filter(|shell| shell.level() != Level::None) {
        let nap = self::nap();
        let line = format!("(sleep {nap} &); echo begun; sleep {nap}");
        let mut running = shell.start(&job(&place.workspace, &line)).unwrap();
        wait_for(&mut running, "begun\n").await;
        for keeper in processes().into_iter().filter(|(_, line)| line.contains("__keep") && line.contains(&nap)) {
            // The one in the sandbox may have gone with the other.
            Command::new("kill").args(["-9", &keeper.0]).output().unwrap();
        }
        let heard = running.next().await.unwrap();
        // The one in the sandbox may have seen the end of the other, done its work, and said so.
        let is_reported = matches!(heard, Heard::Ended(Exit { code: None, signal: Some(_), .. }));
        let is_failed = matches!(heard, Heard::Failed(_));
        assert!(is_failed || is_reported && shell.level() == Level::Bubblewrap, "{:?}: {heard:?}", shell.level());
        all_end(&nap).await;
    }
}

#[tokio::test]
async fn the_machine_itself_cannot_be_changed_even_by_root() {
    for shell in shells().iter().filter(|shell| shell.level() != Level::None) {
        // The value that it has: a sandbox that lets it through has done no harm.
        for line in [
            "v=$(cat /proc/sys/kernel/core_pattern) && echo \"$v\" >/proc/sys/kernel/core_pattern",
            "v=$(cat /proc/sys/vm/swappiness) && echo \"$v\" >/proc/sys/vm/swappiness",
            "mount -o remount,rw /",
            "mount -o remount,rw /proc",
            "mount -t tmpfs none .",
            "mknod device b 8 0",
            "chroot . /bin/true",
            "grep -E '^Cap(Prm|Eff):.*[1-9a-f][0-9a-f]{4}$' /proc/self/status",
        ] {
            let (said, exit) = Place::new().run(shell, line).await;
            assert_ne!(exit.code, Some(0), "{:?}: {line}: {said}", shell.level());
        }
    }
}

#[tokio::test]
async fn it_has_no_file_of_its_keeper() {
    let line = "for f in /proc/$$/fd/*; do echo ${f##*/}; done";
    // What whoever started the tests gave to all of their children.
    let mine = String::from_utf8(Command::new("/bin/bash").args(["-c", line]).output().unwrap().stdout).unwrap();
    for shell in shells().iter().filter(|shell| shell.level() != Level::Bubblewrap) {
        assert_eq!(Place::new().run(shell, line).await.0, mine, "{:?}", shell.level());
    }
}

#[tokio::test]
async fn nothing_survives_a_stop_a_drop_or_the_end_of_the_server() {
    for shell in shells() {
        let place = Place::new();
        let nap = nap();
        for line in runaways(&nap) {
            let mut running = shell.start(&job(&place.workspace, &line)).unwrap();
            wait_for(&mut running, "begun\n").await;
            running.stop().await;
            assert_eq!(living(&nap), Vec::<String>::new(), "{:?}: {line}", shell.level());

            let mut running = shell.start(&job(&place.workspace, &line)).unwrap();
            wait_for(&mut running, "begun\n").await;
            drop(running);
            all_end(&nap).await;

            let mut server = Command::new(KEEPER);
            server.args([shell.level().name(), place.workspace.to_str().unwrap(), &line]).stdout(Stdio::piped());
            let mut server = server.spawn().unwrap();
            let mut said = String::new();
            BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
            assert_eq!(said, "begun\n");
            server.kill().unwrap();
            server.wait().unwrap();
            all_end(&nap).await;
        }
    }
}

/// Not a test of its own: what the next one runs.
#[tokio::test]
#[ignore = "runs inside a_sandbox_that_is_slow_to_set_up_takes_nothing_of_the_time"]
async fn has_too_little_time() {
    let (place, shell) = (Place::new(), shell(Level::Bubblewrap).unwrap());
    let limit = Job { time_limit: Duration::from_millis(300), ..job(&place.workspace, "sleep 78") };
    let (_, exit) = hear(&mut shell.start(&limit).unwrap()).await;
    assert_eq!(exit, Exit { code: None, signal: Some(15), timed_out: true, ..code(0) });
}

/// As on a machine that does much else.
#[test]
fn a_sandbox_that_is_slow_to_set_up_takes_nothing_of_the_time() {
    if shell(Level::Bubblewrap).is_none() {
        return;
    }
    // Not among the temporary ones, which commands may change.
    let slow = tempfile::tempdir_in(std::env::var("HOME").unwrap()).unwrap();
    // Written by another process: what is open for writing in this one cannot be run.
    let script = r#"real=$(command -v bwrap); printf '#!/bin/sh\nsleep 2\nexec %s "$@"\n' "$real" >slow; chmod +x slow; mv slow bwrap"#;
    assert!(Command::new("sh").args(["-c", script]).current_dir(slow.path()).status().unwrap().success());
    let path = format!("{}:{}", slow.path().display(), std::env::var("PATH").unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "sandbox::has_too_little_time", "--ignored"]).env("PATH", path);
    let ran = child.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
async fn a_worktree_whose_git_folder_is_elsewhere_can_be_committed_to() {
    for shell in shells() {
        let place = Place::new();
        let main = place.outside.join("main");
        fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q", "-b", "main"]);
        git(&main, &["config", "user.name", "Person"]);
        git(&main, &["config", "user.email", "person@example.com"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
        let tree = place.workspace.join("tree");
        git(&main, &["worktree", "add", "-q", tree.to_str().unwrap()]);
        let line = "echo x >file && git add file && git commit -qm second && git log --format=%s -1";
        let committed = hear(&mut shell.start(&job(&tree, line)).unwrap()).await;
        assert_eq!(committed, ("second\n".to_owned(), code(0)), "{:?}", shell.level());
        if shell.level() == Level::Bubblewrap {
            let line = "git config core.sshCommand evil || echo x >$(git rev-parse --git-common-dir)/hooks/pre-commit";
            let (said, exit) = hear(&mut shell.start(&job(&tree, line)).unwrap()).await;
            assert!(exit.code != Some(0) && said.contains("Read-only file system"), "{said}");
        }
        // A file that merely says so opens nothing.
        let liar = place.workspace.join("liar");
        fs::create_dir(&liar).unwrap();
        fs::write(liar.join(".git"), format!("gitdir: {}\n", main.join(".git").display())).unwrap();
        let target = main.join(".git/description").display().to_string();
        let (said, exit) = hear(&mut shell.start(&job(&liar, &format!("echo x >{target}"))).unwrap()).await;
        assert_eq!(exit.code == Some(0), shell.level() == Level::None, "{said}");
    }
}

/// Not even by another folder in the place of the one that is guarded.
#[tokio::test]
async fn what_git_obeys_cannot_be_changed_or_replaced() {
    let Some(shell) = shell(Level::Bubblewrap) else { return };
    let place = Place::new();
    git(&place.workspace, &["init", "-q", "-b", "main"]);
    let hooks = place.workspace.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let line = "echo x >file && git add file && \
                git -c user.name=p -c user.email=p@x commit -qm first && git branch other && git stash list && \
                git gc -q && git log --format=%s";
    let (said, exit) = place.run(&shell, line).await;
    assert_eq!((said.as_str(), exit), ("first\n", code(0)));
    let config = fs::read(place.workspace.join(".git/config")).unwrap();
    for line in [
        "echo x >>.git/config",
        "mv .git .x && cp -r .x .git && echo x >>.git/config",
        "mv .git/config .git/x && echo x >.git/config",
        "rm -rf .git; mkdir .git && echo x >.git/config",
        "mv .git/hooks .git/x && mkdir .git/hooks && echo x >.git/hooks/pre-commit",
        "ln -sf /tmp/evil .git/hooks/pre-commit",
        "cd .. && mv 'the work space' aside",
    ] {
        let before = Obeyed::at(&place.workspace);
        let (said, exit) = place.run(&shell, line).await;
        assert_ne!(exit.code, Some(0), "{line}: {said}");
        assert_eq!(before.changes(), [] as [PathBuf; 0], "{line}");
        assert_eq!(fs::read(place.workspace.join(".git/config")).unwrap(), config, "{line}");
    }
}

/// Nor where `.git` is a file, nor in the modules of a repository.
#[tokio::test]
async fn what_git_obeys_elsewhere_in_the_workspace_cannot_be_changed_or_replaced() {
    let Some(shell) = shell(Level::Bubblewrap) else { return };
    let place = Place::new();
    fs::create_dir(place.workspace.join("in")).unwrap();
    git(&place.workspace, &["init", "-q", "-b", "main", "--separate-git-dir=in/.bare", "."]);
    git(&place.workspace, &["init", "-q", "--bare", "in/.bare/modules/a/b"]);
    for hooks in ["in/.bare/hooks", "in/.bare/modules/a/b/hooks"] {
        fs::create_dir_all(place.workspace.join(hooks)).unwrap();
    }
    let line =
        "echo x >file && git add file && git -c user.name=p -c user.email=p@x commit -qm first && git log --format=%s";
    let (said, exit) = place.run(&shell, line).await;
    assert_eq!((said.as_str(), exit), ("first\n", code(0)));
    for line in [
        "echo x >>in/.bare/config",
        "echo x >in/.bare/hooks/pre-commit",
        "mv in x && cp -r x in && echo x >>in/.bare/config",
        "mv in/.bare x && cp -r x in/.bare && echo x >>in/.bare/config",
        "rm .git && echo gitdir: x >.git",
        "echo x >>in/.bare/modules/a/b/config",
        "echo x >in/.bare/modules/a/b/hooks/pre-commit",
        "mv in/.bare/modules/a x && cp -r x in/.bare/modules/a && echo x >>in/.bare/modules/a/b/config",
    ] {
        let before = Obeyed::at(&place.workspace);
        let (said, exit) = place.run(&shell, line).await;
        assert_ne!(exit.code, Some(0), "{line}: {said}");
        assert_eq!(before.changes(), [] as [PathBuf; 0], "{line}");
    }
}

#[tokio::test]
async fn what_one_command_puts_aside_the_next_one_finds() {
    for shell in shells() {
        let place = Place::new();
        let name = format!("tolka-test-{}", nap());
        place.run(&shell, &format!("echo aside >${{TMPDIR:-/tmp}}/{name}")).await;
        let (said, _) = place.run(&shell, &format!("cat ${{TMPDIR:-/tmp}}/{name}; rm ${{TMPDIR:-/tmp}}/{name}")).await;
        assert_eq!(said, "aside\n", "{:?}", shell.level());
    }
}

/// What a command costs before it does anything: `cargo test -p tolka-workspace --test workspace cost -- --ignored
/// --nocapture`. `KEEPER=<path>` measures with another program, such as the command line.
#[tokio::test]
#[ignore = "prints figures; it judges nothing"]
async fn cost() {
    let place = Place::new();
    let keeper = std::env::var("KEEPER").unwrap_or_else(|_| KEEPER.to_owned());
    let middle = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let bare = (0..100).map(|_| {
        let began = Instant::now();
        Command::new("sh").args(["-c", "true"]).output().unwrap();
        began.elapsed()
    });
    println!("sh -c true: {:?}", middle(bare.collect()));
    for level in [Level::None, Level::Landlock, Level::Bubblewrap] {
        let began = Instant::now();
        let Ok(shell) = Shell::at(Path::new(&keeper), level) else { continue };
        let probed = began.elapsed();
        let (mut first, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            let began = Instant::now();
            let mut running = shell.start(&job(&place.workspace, "true")).unwrap();
            first.push(began.elapsed());
            hear(&mut running).await;
            whole.push(began.elapsed());
        }
        println!("{}: {:?}, of it {:?} to start; tried out in {probed:?}", level.name(), middle(whole), middle(first));
    }
}

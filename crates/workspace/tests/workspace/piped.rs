//! Programs that are talked to over pipes.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tolka_workspace::command::{CommandError, Level, Piped, PipedJob, Shell};

use crate::command::{all_end, living, nap};

fn shells() -> Vec<Shell> {
    let keeper = Path::new(env!("CARGO_BIN_EXE_tolka-keeper"));
    Level::ALL.into_iter().filter_map(|level| Shell::at(keeper, level).ok()).collect()
}

fn job(workspace: &Path, line: &str) -> PipedJob {
    PipedJob {
        program: PathBuf::from("bash"),
        args: vec!["-c".into(), line.into()],
        env: vec![("SECRET".to_owned(), "sesame".to_owned())],
        workspace: workspace.to_owned(),
        folder: PathBuf::from("."),
    }
}

/// What it says on stderr until it has ended, and how that was.
async fn last_words(piped: &mut Piped) -> Vec<String> {
    let mut lines = BufReader::new(piped.take_stderr().unwrap()).lines();
    let mut said = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        said.extend(Piped::words(&line));
    }
    said
}

#[tokio::test]
async fn what_is_said_is_heard_and_answered_until_the_input_ends() {
    for shell in shells() {
        let workspace = tempfile::tempdir().unwrap();
        let line = "while read -r line; do echo \"$SECRET $line\"; done; echo over >&2; exit 3";
        let mut piped = shell.start_piped(&job(workspace.path(), line)).unwrap();
        let mut stdin = piped.stdin.take().unwrap();
        let mut lines = BufReader::new(piped.stdout.take().unwrap()).lines();
        for word in ["one", "two"] {
            stdin.write_all(format!("{word}\n").as_bytes()).await.unwrap();
            assert_eq!(lines.next_line().await.unwrap(), Some(format!("sesame {word}")), "{:?}", shell.level());
        }
        drop(stdin);
        assert_eq!(last_words(&mut piped).await, ["over", "[it ended with exit code 3]"], "{:?}", shell.level());
        assert_eq!(lines.next_line().await.unwrap(), None);
    }
}

#[tokio::test]
async fn nothing_of_it_stays_when_it_is_dropped_or_its_input_is_closed() {
    for shell in shells() {
        let workspace = tempfile::tempdir().unwrap();
        let nap = nap();
        let line = format!("trap '' TERM; setsid sleep {nap} & echo begun; sleep {nap}");
        let begin = async || {
            let mut piped = shell.start_piped(&job(workspace.path(), &line)).unwrap();
            let mut said = String::new();
            BufReader::new(piped.stdout.take().unwrap()).read_line(&mut said).await.unwrap();
            assert_eq!(said, "begun\n");
            piped
        };
        drop(begin().await);
        all_end(&nap).await;
        let mut piped = begin().await;
        piped.stdin = None;
        let said = last_words(&mut piped).await;
        assert!(said.iter().any(|words| words.starts_with("[signal ")), "{:?}: {said:?}", shell.level());
        assert_eq!(living(&nap), Vec::<String>::new());
    }
}

#[tokio::test]
async fn its_secrets_are_in_no_command_line_and_it_writes_only_the_workspace() {
    for shell in shells().iter().filter(|shell| shell.level() != Level::None) {
        let workspace = tempfile::tempdir().unwrap();
        let line = "echo begun; read -r line; touch /etc/tolka-was-here; touch made";
        let mut piped = shell.start_piped(&job(workspace.path(), line)).unwrap();
        let mut said = String::new();
        BufReader::new(piped.stdout.take().unwrap()).read_line(&mut said).await.unwrap();
        assert_eq!(living("sesame"), Vec::<String>::new());
        piped.stdin.as_mut().unwrap().write_all(b"on\n").await.unwrap();
        let said = last_words(&mut piped).await.join("\n");
        assert!(said.contains("/etc/tolka-was-here"), "{said}");
        assert!(workspace.path().join("made").exists() && !Path::new("/etc/tolka-was-here").exists());
    }
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let workspace = tempfile::tempdir().unwrap();
    for shell in shells() {
        let missing = PipedJob { program: PathBuf::from("/no/such/program"), ..job(workspace.path(), "") };
        let words = last_words(&mut shell.start_piped(&missing).unwrap()).await.join("\n");
        assert!(words.contains("No such file"), "{words}");
        let outside = PipedJob { folder: PathBuf::from("/"), ..job(workspace.path(), "") };
        assert!(matches!(shell.start_piped(&outside), Err(CommandError::Folder(_))));
        assert!(matches!(shell.start_piped(&job(workspace.path(), "a\0b")), Err(CommandError::Nul)));
    }
}

/// What a configuration gives a program is for that program: a keeper or a sandbox that was started with it would be
/// somebody else's.
#[tokio::test]
async fn what_it_is_given_reaches_the_program_and_nobody_before_it() {
    for shell in shells() {
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path().canonicalize().unwrap();
        // Whoever looks for the sandbox by name would find this one.
        let evil = path.join("bwrap");
        std::fs::write(&evil, "#!/bin/sh\ntouch \"$(dirname \"$0\")/taken\"\n").unwrap();
        std::fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let given = [("PATH", format!("{}:/usr/bin:/bin", path.display())), ("LD_PRELOAD", "/no/such.so".to_owned())];
        let env = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let line = "tr '\\0' '\\n' </proc/$PPID/environ | grep -a ^LD_PRELOAD && echo keeper; echo \"$PATH\"; \
                    env | grep -a -e ^LD_PRELOAD -e GIVEN";
        let job = PipedJob { env, ..job(&path, line) };
        let mut piped = shell.start_piped(&job).unwrap();
        let mut lines = BufReader::new(piped.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            said.push(line);
        }
        let level = shell.level();
        assert_eq!(said, [given[0].1.as_str(), "LD_PRELOAD=/no/such.so"], "{level:?}");
        assert!(!path.join("taken").exists(), "{level:?}");
        drop(piped);
    }
}

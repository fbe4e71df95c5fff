//! Programs that are talked to over pipes.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tolka_workspace::command::{CommandError, Level, PipedJob, Shell};

use crate::command::{all_end, code, living, nap};

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
        assert_eq!(piped.ended().await, Ok(code(3)), "{:?}", shell.level());
        assert_eq!(lines.next_line().await.unwrap(), None);
        assert_eq!(piped.said(), "over");
    }
}

#[tokio::test]
async fn nothing_of_it_stays_when_it_is_dropped_or_stopped() {
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
        let ended = begin().await.stop().await;
        assert!(ended.is_ok_and(|exit| exit.signal.is_some()), "{:?}", shell.level());
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
        piped.ended().await.unwrap();
        assert!(piped.said().contains("/etc/tolka-was-here"), "{}", piped.said());
        assert!(workspace.path().join("made").exists() && !Path::new("/etc/tolka-was-here").exists());
    }
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let workspace = tempfile::tempdir().unwrap();
    for shell in shells() {
        let missing = PipedJob { program: PathBuf::from("/no/such/program"), ..job(workspace.path(), "") };
        let words = shell.start_piped(&missing).unwrap().ended().await.unwrap_err();
        assert!(words.contains("No such file"), "{words}");
        let outside = PipedJob { folder: PathBuf::from("/"), ..job(workspace.path(), "") };
        assert!(matches!(shell.start_piped(&outside), Err(CommandError::Folder(_))));
        assert!(matches!(shell.start_piped(&job(workspace.path(), "a\0b")), Err(CommandError::Nul)));
    }
}

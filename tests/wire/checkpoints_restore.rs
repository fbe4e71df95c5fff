//! `tolka checkpoints restore`, with a server and without.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::json;

use crate::checkpoints_cli::{json_of, names, session_that_writes};
use crate::cli::{code, stderr, stdout};
use crate::demo::terminal;
use crate::http::{call, get};
use crate::recording::short_turn;
use crate::server::{House, until};

fn notes(house: &House) -> Option<String> {
    fs::read_to_string(house.workspace().join("notes.txt")).ok()
}

fn restore(house: &House, args: &[&str]) -> Output {
    house.run(&[&["checkpoints", "restore"], args].concat())
}

#[test]
fn files_go_back_and_forth_without_a_server_and_with_one() {
    for is_served in [false, true] {
        let house = House::new();
        fs::write(house.workspace().join("mine.txt"), "mine").unwrap();
        session_that_writes(&house, &["one\n", "two\n"]);
        let first = names(&house)[0].clone();
        let agent = house.plays(&short_turn());
        let server = is_served.then(|| house.serve(&["--agent", &agent]));
        fs::write(house.workspace().join("mine.txt"), "mine, later").unwrap();

        let alone = restore(&house, &[&first]);
        assert_eq!(code(&alone), 1);
        assert!(stderr(&alone).contains("--yes"), "{}", stderr(&alone));
        let preview = restore(&house, &[&first, "--preview"]);
        assert!(
            stdout(&preview).starts_with("1 file would change:\n  delete  notes.txt"),
            "{}{}",
            stdout(&preview),
            stderr(&preview)
        );
        assert!(
            stdout(&preview).contains("1 file would be kept:\n  mine.txt  No turn of this session changed it."),
            "{}",
            stdout(&preview)
        );
        assert_eq!(notes(&house).as_deref(), Some("two\n"), "nothing was done");

        let done = restore(&house, &[&first[..10], "--yes"]);
        assert!(stdout(&done).starts_with("1 file changed:\n"), "{}{}", stdout(&done), stderr(&done));
        assert_eq!(notes(&house), None);
        assert_eq!(fs::read_to_string(house.workspace().join("mine.txt")).unwrap(), "mine, later");
        let said = stdout(&done);
        let back = said.lines().find_map(|line| line.strip_prefix("to take this back: tolka ")).unwrap();
        let args: Vec<&str> = back.split(' ').chain(["--yes", "--json"]).collect();
        assert_eq!(json_of(&house.run(&args))["files"][0]["path"], "notes.txt");
        assert_eq!(notes(&house).as_deref(), Some("two\n"));
        let nothing = restore(&house, &[&names(&house)[3], "--yes"]);
        assert!(stdout(&nothing).starts_with("no file has to change\n"), "{}{}", stdout(&nothing), stderr(&nothing));
        drop(server);
    }
}

#[test]
fn each_session_takes_back_its_own_and_conflicts_are_shown_and_kept() {
    for is_served in [false, true] {
        let house = House::new();
        let one = session_that_writes(&house, &["one\n"]);
        let of_one = names(&house)[0].clone();
        let two = session_that_writes(&house, &["two\n"]);
        let listed = json_of(&house.run(&["checkpoints", "list", "--json", "--session", &two]));
        let of_two = listed["stores"][0]["checkpoints"][0]["checkpoint"].as_str().unwrap().to_owned();
        assert_ne!((&one, &of_one), (&two, &of_two));
        let agent = house.plays(&short_turn());
        let server = is_served.then(|| house.serve(&["--agent", &agent]));

        let kept = restore(&house, &[&of_one, "--yes"]);
        let words = "no file has to change\n1 file kept:\n  notes.txt  It was also changed by somebody else.\n\
                     with --overwrite, files that somebody else changed as well go back too\n";
        assert_eq!((stdout(&kept).as_str(), code(&kept)), (words, 0), "{}", stderr(&kept));
        assert_eq!(notes(&house).as_deref(), Some("two\n"));
        assert_eq!(code(&restore(&house, &[&of_two[..8], "--yes"])), 0);
        assert_eq!(notes(&house).as_deref(), Some("one\n"), "as it was before the other session");
        let preview = json_of(&restore(&house, &[&of_one, "--overwrite", "--preview", "--json"]));
        assert_eq!((&preview["preview"], &preview["files"][0]["operation"]), (&json!(true), &json!("delete")));
        let gone = restore(&house, &[&of_one, "--overwrite", "--yes"]);
        assert!(stdout(&gone).starts_with("1 file changed:\n  delete  notes.txt"), "{}", stdout(&gone));
        assert_eq!(notes(&house), None);
        if let Some(server) = &server {
            // Whoever asked does not wait for it.
            until("the other session's clients to learn of it", || {
                let path = format!("/v1/sessions/{two}/events?format=json&limit=1000");
                get(server.address, &path).expect(200).to_string().contains("files_moved").then_some(())
            });
        }
        drop(server);
    }
}

#[test]
fn somebody_at_a_terminal_is_asked_and_only_a_yes_is_one() {
    let house = House::new();
    session_that_writes(&house, &["one\n"]);
    let first = names(&house)[0].clone();
    for (typed, is_done) in [("\n", false), ("n\n", false), ("sure\n", false), ("y\n", true)] {
        let (mut keyboard, terminal) = terminal();
        let mut command = house.command(&["checkpoints", "restore", &first]);
        let child = command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        keyboard.write_all(typed.as_bytes()).unwrap();
        let asked = child.wait_with_output().unwrap();
        let said = stdout(&asked);
        assert_eq!(code(&asked), 0, "{said}{}", stderr(&asked));
        assert!(said.starts_with("1 file would change:\n") && said.contains("Go back? [y/N] "), "{said}");
        let end = if is_done { "1 file changed:\n" } else { "nothing was done\n" };
        assert!(said.contains(end), "{typed:?}: {said}");
        assert_eq!(notes(&house).is_none(), is_done, "{typed:?}");
    }
    // Nobody is asked about nothing, nor in the middle of JSON.
    let (_keyboard, nobody) = terminal();
    let nothing = house.command(&["checkpoints", "restore", &first]).stdin(nobody).output().unwrap();
    assert_eq!(stdout(&nothing), "no file has to change\n", "{}", stderr(&nothing));
    let (_keyboard, nobody) = terminal();
    let refused = house.command(&["checkpoints", "restore", &first, "--json"]).stdin(nobody).output().unwrap();
    assert!(code(&refused) == 1 && stderr(&refused).contains("--yes"), "{}", stderr(&refused));
}

#[test]
fn what_cannot_be_restored_is_said_in_plain_words() {
    let house = House::new();
    let session = session_that_writes(&house, &["one\n"]);
    let first = names(&house)[0].clone();
    let refused = |args: &[&str], words: &str| {
        let refused = restore(&house, args);
        assert_eq!((code(&refused), stdout(&refused).as_str()), (1, ""));
        assert!(stderr(&refused).contains(words), "{}", stderr(&refused));
    };
    refused(&["12", "--yes"], "4 at least");
    refused(&["0000000000", "--yes"], "no checkpoint is called `0000000000`");
    let off = house.data().with_file_name("off.toml");
    fs::write(&off, "[checkpoints]\nenabled = false\n").unwrap();
    refused(&[&first, "--yes", "--config", off.to_str().unwrap()], "checkpoints are switched off");
    let agent = house.plays(&short_turn());
    let server = house.serve(&["--agent", &agent, "--token", "secret"]);
    refused(&[&first, "--yes"], "--token");
    drop(server);
    let server = house.serve(&["--agent", &agent]);
    assert_eq!(call(server.address, "DELETE", &format!("/v1/sessions/{session}"), &[], &[]).status, 204);
    refused(&[&first, "--yes"], "Session not found");
    assert_eq!(notes(&house).as_deref(), Some("one\n"), "nothing was done");
}

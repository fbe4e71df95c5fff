//! `tolka checkpoints`, with a server and without, and what `[checkpoints]` of `tolka.toml` does.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tolka_scripted::{Answer, Script, Scripted};

use crate::cli::{code, stderr, stdout};
use crate::recording::short_turn;
use crate::server::House;

/// A session whose turns write `notes.txt`, one text after the other.
pub(crate) fn session_that_writes(house: &House, texts: &[&str]) -> String {
    let mut session = None;
    for text in texts {
        let write = Answer::call("write", json!({ "path": "notes.txt", "content": text }));
        // What is there has to be read before it is written over.
        let is_there = house.workspace().join("notes.txt").exists();
        let read = is_there.then(|| Answer::call("read", json!({ "path": "notes.txt" })));
        let answers = read.into_iter().chain([write, Answer::text("Done.")]);
        let provider = Scripted::start(Script::of(answers)).unwrap();
        let file = house.data().with_file_name("tolka.toml");
        let base = provider.openai_url();
        fs::write(&file, format!("[providers.scripted]\nwire = \"openai\"\nbase_url = \"{base}\"\n")).unwrap();
        let mut args = vec!["run", "write it down", "--config", file.to_str().unwrap(), "--model", "scripted/story"];
        let named: Option<String> = session.take();
        args.extend(named.iter().flat_map(|id: &String| ["--session", id.as_str()]));
        let run = house.run(&args);
        assert_eq!(code(&run), 0, "{}{}", stdout(&run), stderr(&run));
        let said = stderr(&run);
        assert_eq!(fs::read_to_string(house.workspace().join("notes.txt")).unwrap(), *text);
        session = said.lines().find_map(|line| line.strip_prefix("session ")).map(str::to_owned);
    }
    session.unwrap()
}

pub(crate) fn json_of(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{}{}", stdout(output), stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The names of what is listed, the oldest first.
pub(crate) fn names(house: &House) -> Vec<String> {
    let listed = json_of(&house.run(&["checkpoints", "list", "--json"]));
    let stores = listed["stores"].as_array().unwrap().iter();
    let all = stores.flat_map(|store| store["checkpoints"].as_array().unwrap());
    all.map(|it| it["checkpoint"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn checkpoints_are_listed_and_shown() {
    let house = House::new();
    let nothing = house.run(&["checkpoints", "list"]);
    assert_eq!(stdout(&nothing), "no checkpoints; the first prompt in a workspace makes one\n", "{}", stderr(&nothing));
    assert!(!house.data().exists(), "looking makes nothing");
    let session = session_that_writes(&house, &["one\n", "two\n"]);
    let listed = stdout(&house.run(&["checkpoints", "list"]));
    let workspace = house.workspace().canonicalize().unwrap();
    assert!(listed.starts_with(&format!("{}: ", workspace.display())), "{listed}");
    assert!(listed.contains(&session) && listed.contains("Before: write it down"), "{listed}");
    let of_session = json_of(&house.run(&["checkpoints", "list", "--json", "--session", &session]));
    assert_eq!(of_session["stores"][0]["orphan"], false);
    assert!(of_session["stores"][0]["bytes"].as_u64().unwrap() > 1000);
    for (unknown, says) in [
        (&["--session", "ses_other"] as &[&str], "no checkpoints of a session `ses_other`;"),
        (&["--workspace", "/none"], "no checkpoints in /none;"),
        (
            &["--workspace", "/none", "--session", &session],
            &format!("no checkpoints of a session `{session}` in /none;"),
        ),
    ] {
        for json in [&[] as &[&str], &["--json"]] {
            let refused = house.run(&[&["checkpoints", "list"], unknown, json].concat());
            assert_eq!((code(&refused), stdout(&refused).as_str()), (1, ""), "{unknown:?}");
            assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
        }
    }

    let first = &names(&house)[0];
    let shown = stdout(&house.run(&["checkpoints", "show", &first[..8], "--diff"]));
    assert!(shown.starts_with(&format!("checkpoint {first}\nsession    {session}\n")), "{shown}");
    assert!(shown.contains("create  notes.txt") && shown.contains("+one"), "{shown}");
    let shown = json_of(&house.run(&["checkpoints", "show", first, "--json"]));
    assert_eq!(shown["changes"][0]["path"], "notes.txt");
    for (name, says) in [("12", "4 at least"), ("zzzz", "4 at least"), ("0000000000", "no checkpoint is called")] {
        let refused = house.run(&["checkpoints", "show", name]);
        assert_eq!(code(&refused), 1);
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
}

/// A name may hold what would be a line of its own, or turn what stands before it.
#[test]
fn a_name_makes_no_lines_of_its_own() {
    let house = House::new();
    let (forged, turned) = ("x\n  delete  everything", "a\u{202e}b");
    session_that_writes(&house, &["one\n"]);
    for name in [forged, turned] {
        fs::write(house.workspace().join(name), "mine\n").unwrap();
    }
    let first = names(&house).remove(0);
    let preview = stdout(&house.run(&["checkpoints", "restore", &first, "--preview"]));
    // What is there before a restore is saved.
    assert_eq!(code(&house.run(&["checkpoints", "restore", &first, "--yes"])), 0);
    let all = names(&house);
    let shown: String = all.iter().map(|name| stdout(&house.run(&["checkpoints", "show", name, "--diff"]))).collect();
    for (said, before) in [(&shown, "  create  "), (&preview, "  ")] {
        for quoted in [r#""x\n  delete  everything""#, r#""a\u{202e}b""#] {
            assert!(said.lines().any(|line| line.starts_with(&format!("{before}{quoted}"))), "{said}");
        }
        assert!(!said.lines().any(|line| line.starts_with("  delete  everything")), "{said}");
    }
}

#[test]
fn old_checkpoints_are_pruned_without_a_server_and_with_one() {
    for is_served in [false, true] {
        let house = House::new();
        session_that_writes(&house, &["one\n", "two\n", "three\n"]);
        let before = names(&house);
        assert!(before.len() > 3, "{before:?}");
        let agent = house.plays(&short_turn());
        let server = is_served.then(|| house.serve(&["--agent", &agent, "--token", "secret"]));
        if is_served {
            let refused = house.run(&["checkpoints", "prune"]);
            assert!(code(&refused) == 1 && stderr(&refused).contains("--token"), "{}", stderr(&refused));
        }
        let prune = |args: &[&str]| house.run(&[&["checkpoints", "prune", "--token", "secret"], args].concat());
        assert_eq!(stdout(&prune(&[])), "0 checkpoints went, 0 bytes\n", "they are young and small");
        assert_eq!(stdout(&prune(&["--to-size", "1"])).split(' ').next(), Some("0"), "the session is in use");
        let would = json_of(&prune(&["--older-than", "0d", "--dry-run", "--json"]));
        assert_eq!(would["checkpoints"], before.len() - 2);
        assert_eq!(names(&house), before);
        let went = stdout(&prune(&["--older-than", "0d"]));
        assert!(went.starts_with(&format!("{} checkpoint", before.len() - 2)) && went.contains(" went, "), "{went}");
        let stay = [before[0].clone(), before[before.len() - 1].clone()];
        assert_eq!(names(&house), stay, "what changes are counted from, and the newest");
        assert_eq!(stdout(&prune(&["--older-than", "0h", "--to-size", "1"])).split(' ').next(), Some("0"));
        let wrong = prune(&["--to-size", "much"]);
        assert!(code(&wrong) == 2 && stderr(&wrong).contains("this is no size"), "{}", stderr(&wrong));
        drop(server);
    }
}

/// The one store, if there is one.
fn store(house: &House) -> Option<PathBuf> {
    let stores = fs::read_dir(house.data().join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
    stores.into_iter().find(|path| path.extension().is_none())
}

#[test]
fn pruning_that_is_killed_leaves_a_sound_store() {
    let house = House::new();
    let agent = house.plays(&short_turn());
    let mut killed = 0;
    for round in 0..12_u64 {
        for n in 0..2 {
            fs::write(house.workspace().join("file"), format!("{round} {n}").repeat(5000)).unwrap();
            let run = house.run(&["run", "hello", "--agent", &agent, "--pace", "max"]);
            assert_eq!(code(&run), 0, "{}", stderr(&run));
        }
        let mut command = house.command(&["checkpoints", "prune", "--older-than", "0d"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Not a wait for anything: some moment of it.
        std::thread::sleep(Duration::from_millis(10 + round * 12));
        killed += u32::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
        if let Some(store) = store(&house) {
            let checked =
                Command::new("git").arg("--git-dir").arg(&store).args(["fsck", "--strict", "--no-dangling"]).output();
            let checked = checked.unwrap();
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        }
    }
    assert!(killed > 0, "every one was done before it was killed");
    let done = house.run(&["checkpoints", "prune", "--older-than", "0d"]);
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    // Each run is a session, which keeps its first and its last.
    assert!(names(&house).len() <= 48, "{:?}", names(&house));
}

/// What a server says at its start.
fn says(house: &House, config: &str, args: &[&str]) -> String {
    says_where(house, config, args, &[])
}

/// The same with other variables around it.
fn says_where(house: &House, config: &str, args: &[&str], around: &[(&str, &Path)]) -> String {
    let file = house.data().with_file_name("checkpoints.toml");
    fs::write(&file, config).unwrap();
    let agent = house.plays(&short_turn());
    let mut command = house.command(&["serve", "--port", "0", "--agent", &agent, "--config", file.to_str().unwrap()]);
    command.args(args).envs(around.iter().copied());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut url = [0; 4];
    // What there is to say is said before.
    let _ = child.stdout.take().unwrap().read_exact(&mut url);
    let _ = child.kill();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    said
}

#[test]
fn a_server_says_why_nothing_can_be_taken_back() {
    let house = House::new();
    let usual = says(&house, "", &[]);
    assert!(!usual.contains("checkpoints"), "{usual}");
    let off = says(&house, "[checkpoints]\nenabled = false", &[]);
    assert!(off.contains("tolka: checkpoints: off, by enabled = false under [checkpoints]; turns cannot"), "{off}");
    let wide = says(&house, "", &["--workspace", "/"]);
    assert!(wide.contains("tolka: checkpoints: none") && wide.contains("open a folder inside it"), "{wide}");
    let workspace = house.workspace();
    let home = says_where(&house, "", &[], &[("HOME", &workspace)]);
    assert!(home.contains("tolka: checkpoints: none") && home.contains("open a folder inside it"), "{home}");
    let no_git = says_where(&house, "", &[], &[("PATH", &workspace)]);
    assert!(
        no_git.contains("tolka: checkpoints: none") && no_git.contains("git was not found; install it"),
        "{no_git}"
    );
    let wrong = says(&house, "[checkpoints]\n\nmax_size = \"huge\"", &[]);
    assert!(wrong.contains("line 3: this is no size; write"), "{wrong}");
}

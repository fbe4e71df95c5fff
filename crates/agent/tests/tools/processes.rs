//! Commands that go on beside the work.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use tolka_agent::native::permission::{Leave, Rules};
use tolka_agent::native::processes::Processes;
use tolka_facts::{CallId, Event, SessionId};
use tolka_workspace::command::{Job, Level, Shell};
use tolka_workspace::obeyed::Obeyed;

use crate::hall::{Hall, Person, rule};

fn background(command: &str) -> serde_json::Value {
    json!({ "command": command, "description": "Go on", "run_in_background": true })
}

/// Reads what a process printed until a word is there.
async fn read_until(hall: &mut Hall, process: &str, word: &str) -> String {
    let mut all = String::new();
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        all += &hall.call("processes", json!({ "action": "output", "process": process })).await.went_well().said();
        all.push('\n');
        if all.contains(word) {
            return all;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{word} is not in {all}");
}

fn started(hall: &Hall) -> Vec<(String, String)> {
    hall.told().of(|event| match event {
        Event::ProcessStarted(told) => Some((told.process.clone(), told.command.clone())),
        _ => None,
    })
}

#[tokio::test]
async fn a_process_goes_on_and_is_read_and_ended() {
    let mut hall = Hall::allowing("bash");
    let line = "echo begun; until [ -e go ]; do sleep 0.05; done; echo went on; sleep 600";
    let ended = hall.call("bash", background(line)).await;
    let [(process, command)] = started(&hall).try_into().unwrap();
    assert_eq!(command, line);
    // The first look is after a second, and on a busy machine it may not have begun by then.
    if !ended.went_well().said().starts_with("begun\n[process p") {
        assert!(ended.said().starts_with("[process p"), "{}", ended.said());
        read_until(&mut hall, &process, "begun").await;
    }
    assert!(ended.said().contains(&process) && ended.said().contains("running"), "{}", ended.said());
    // Other work goes on meanwhile.
    hall.call("bash", json!({ "command": "touch go", "description": "Go" })).await.went_well();
    let said = read_until(&mut hall, &process, "went on").await;
    assert!(!said.contains("begun"), "what was read is not told again: {said}");
    let listed = hall.call("processes", json!({ "action": "list" })).await;
    assert!(listed.went_well().said().contains(&format!("{process}  running")), "{}", listed.said());
    let killed = hall.call("processes", json!({ "action": "kill", "process": process })).await;
    assert_eq!(killed.went_well().said(), format!("{process} was ended."));
    let killed = hall.call("processes", json!({ "action": "kill", "process": process })).await;
    assert_eq!(killed.went_well().said(), format!("{process} had ended by itself."));
    let listed = hall.call("processes", json!({ "action": "list" })).await;
    assert!(listed.said().contains("ended by agent"), "{}", listed.said());
    hall.call("processes", json!({ "action": "kill", "process": "p0" })).await.failed("no process is called `p0`");
    hall.call("processes", json!({ "action": "dance" })).await.failed("`action` is `list`, `output` or `kill`");
}

#[tokio::test]
async fn one_that_cannot_start_says_so_at_once() {
    let mut hall = Hall::allowing("bash");
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let ended = hall.call("bash", background("echo no such port >&2; exit 7")).await;
        let said = ended.went_well().said();
        // A machine that is too busy to start it within a second is given another chance.
        if said.contains("running") && Instant::now() < until {
            let [.., (process, _)] = &started(&hall)[..] else { panic!("{said}") };
            let process = process.clone();
            read_until(&mut hall, &process, "ended with exit code 7").await;
            continue;
        }
        assert!(said.contains("no such port\n[process p"), "{said}");
        return assert!(said.contains("ended with exit code 7"), "{said}");
    }
}

#[tokio::test]
async fn a_port_that_it_listens_on_is_found() {
    let mut hall = Hall::allowing("bash");
    let line = "python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); \
                print(f\"bound {s.getsockname()[1]}\",flush=True); time.sleep(600)' || echo bound none";
    let ended = hall.call("bash", background(line)).await;
    let [(process, _)] = started(&hall).try_into().unwrap();
    let mut said = ended.went_well().said();
    // On a busy machine it says so after the first look.
    if !said.starts_with("bound ") {
        said = read_until(&mut hall, &process, "bound ").await;
    }
    let port = said.lines().find_map(|line| line.strip_prefix("bound ")).unwrap().to_owned();
    if port == "none" {
        println!("skipped: there is no python3");
        return;
    }
    let listed = hall.call("processes", json!({ "action": "list" })).await;
    assert!(listed.went_well().said().contains(&format!("listens on port {port}")), "{port}: {}", listed.said());
}

#[tokio::test]
async fn not_too_many_run_at_once_and_leave_is_asked_for() {
    let mut hall = Hall::allowing("bash");
    for _ in 0..8 {
        hall.call("bash", background("sleep 600")).await.went_well();
    }
    hall.call("bash", background("sleep 600")).await.failed("8 processes run in this session already");
    let mut other = Hall::open();
    other.call("bash", background("sleep 600")).await.went_well();
    assert_eq!(other.asked().len(), 1);
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

/// The turn may go at any moment, also between what is told and what is kept.
#[tokio::test]
async fn one_whose_turn_is_dropped_while_it_is_told_is_ended_and_told_so() {
    let mut hall = Hall::allowing("bash");
    hall.dropped_at("bash", background("sleep 600"), |event| matches!(event, Event::ProcessStarted(_))).await;
    let (session, draft) = tokio::time::timeout(Duration::from_secs(60), hall.news.recv()).await.unwrap().unwrap();
    assert_eq!(session, SessionId::from("ses_test"));
    let Event::ProcessEnded(ended) = draft.event else { panic!("{draft:?}") };
    let id = Processes::id_of(&CallId::from("call_dropped"));
    assert_eq!((ended.process.as_str(), ended.by.as_deref()), (id.as_str(), Some("cancel")));
    assert!(!hall.processes.is_any_running(&session));
}

#[tokio::test]
async fn what_ended_processes_printed_is_kept_of_a_few_and_not_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let shell = Shell::at(Path::new(env!("CARGO_BIN_EXE_tolka-agent-keeper")), Level::None).unwrap();
    let (processes, _news) = Processes::new();
    let job = Job {
        line: "true".to_owned(),
        workspace: folder.path().to_owned(),
        folder: PathBuf::from("."),
        time_limit: Duration::MAX,
        env: Vec::new(),
    };
    let session = |n: usize| SessionId::from(format!("ses_{n}"));
    for n in 0..70 {
        let obeyed = (folder.path().to_owned(), Obeyed::at(folder.path()));
        let (session, call) = (session(n / 14), CallId::from(format!("call_{n}")));
        let running = shell.start(&job).unwrap();
        let process = processes.keep(session.clone(), call, "true".to_owned(), running, obeyed).told();
        until("its end", || process.ended().is_some()).await;
    }
    let counts = || (0..5).map(|n| processes.of(&session(n)).len()).collect::<Vec<_>>();
    until("the oldest to be forgotten", || counts() == [8, 14, 14, 14, 14]).await;
    let first = Processes::id_of(&CallId::from("call_0"));
    assert!(processes.find(&session(0), &first).is_none());
}

/// A hall in which a process has changed what git obeys by itself, under the sandbox that cannot keep it from that.
async fn hall_with_a_change() -> Option<Hall> {
    let rules = Rules::with([rule("bash", "*", Leave::Allow)]);
    let mut hall = Hall::under(Level::Landlock, rules)?;
    hall.call("bash", json!({ "command": "git init -q", "description": "Begin" })).await.went_well();
    let line = "until [ -e go ]; do sleep 0.05; done; git config core.fsmonitor evil; touch done; sleep 600";
    hall.call("bash", background(line)).await.went_well();
    hall.put("go", "");
    let done = hall.workspace.join("done");
    until("the change", || done.exists()).await;
    Some(hall)
}

/// The person may have done it as well, so nothing is put back before they say so.
#[tokio::test]
async fn what_git_obeys_and_a_process_changed_is_put_to_the_person() {
    for (answer, stays) in [(Some("Keep it as it was"), false), (Some("Let it stand"), true), (None, true)] {
        let Some(mut hall) = hall_with_a_change().await else { return };
        hall.person = answer.map_or(Person::IsAway, |label| Person::Answers(vec![vec![label.to_owned()]]));
        let command = json!({ "command": "git config core.fsmonitor || echo none", "description": "Look" });
        let said = hall.call("bash", command).await.went_well().said();
        assert_eq!(said.trim(), if stays { "evil" } else { "none" }, "{answer:?}: before the command that finds it");
        let [question] = hall.questions().try_into().unwrap();
        assert!(question.questions[0].question.contains(".git/config"), "{question:?}");
        let told = hall.told().of(|event| match event {
            Event::Noticed(notice) => notice.description.clone(),
            _ => None,
        });
        // The first is about the new repository.
        assert!(told[1].contains(".git/config") && told.len() == if stays { 2 } else { 3 }, "{told:?}");
        // Once is enough.
        hall.call("bash", json!({ "command": "true", "description": "Look" })).await.went_well();
        assert_eq!(hall.questions().len(), 1);
    }
}

#[tokio::test]
async fn who_ends_a_process_is_asked_about_what_it_changed() {
    let Some(mut hall) = hall_with_a_change().await else { return };
    hall.person = Person::Answers(vec![vec!["Keep it as it was".to_owned()]]);
    let [(process, _)] = started(&hall).try_into().unwrap();
    hall.call("processes", json!({ "action": "kill", "process": process })).await.went_well();
    assert_eq!(hall.questions().len(), 1);
    assert!(!hall.get(".git/config").contains("evil"));
    // Nothing runs beside the commands any more: what changes now is the person's.
    hall.put(".git/hooks/pre-push", "mine");
    hall.call("bash", json!({ "command": "true", "description": "Look" })).await.went_well();
    assert_eq!((hall.questions().len(), hall.get(".git/hooks/pre-push").as_str()), (1, "mine"));
}

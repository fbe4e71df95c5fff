//! Servers that are well behaved, and servers that are not: whatever they do, the one who uses them goes on.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Client, Url};
use serde_json::json;
use tokio::process::Command;
use tokio::sync::mpsc;
use tolka_mcp::{
    Config, Content, Hub, McpError, Piped, Program, Reach, Returned, Server, State, Times, Ways, tool_name,
};

/// Nothing here takes this long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(120);
/// For an answer that does not come. What does come may take longer than this on a busy machine.
const SHORT: Duration = Duration::from_millis(500);

/// Programs as they are, with nothing to wait for but themselves.
#[derive(Debug)]
struct Plain {
    /// For coming up.
    opening: Duration,
}

impl Ways for Plain {
    fn start(&self, program: &Program<'_>) -> std::io::Result<Piped> {
        let mut child = Command::new(&program.command[0])
            .args(&program.command[1..])
            .current_dir(program.workspace)
            .envs(program.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Piped {
            stdin: Box::new(stdin.unwrap()),
            stdout: Box::new(stdout.unwrap()),
            stderr: Box::new(stderr.unwrap()),
            leash: Box::new(child),
        })
    }

    fn client(&self, _: &Url) -> Result<Client, String> {
        Err("nobody is reached in these tests".to_owned())
    }

    fn times(&self) -> Times {
        let soon = Duration::from_millis(5);
        Times { pause: soon, lists: soon, opening: self.opening, ..Times::default() }
    }
}

fn ways() -> Arc<Plain> {
    Arc::new(Plain { opening: DEADLINE })
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/hostile.mjs").canonicalize().unwrap()
}

fn config(mode: &str, more: &[&str]) -> Config {
    let mut command = vec!["node".to_owned(), script().display().to_string(), mode.to_owned()];
    command.extend(more.iter().map(|&word| word.to_owned()));
    Config::new(mode, Reach::Program { command, env: Vec::new() })
}

fn start(config: Config) -> Server {
    let server = Server::new(config, std::env::temp_dir(), ways());
    server.need();
    server
}

async fn ready(mode: &str) -> Server {
    let server = start(config(mode, &[]));
    until_ready(&server).await;
    server
}

async fn until_ready(server: &Server) {
    let status = server.until(&[State::Ready, State::Failed], DEADLINE).await.expect("it is decided");
    assert_eq!(status.state, State::Ready, "{:?}", status.error);
}

async fn call(server: &Server, tool: &str) -> Result<Returned, McpError> {
    let (heard, _told) = mpsc::channel(16);
    tokio::time::timeout(DEADLINE, server.call(tool, json!({}), heard)).await.expect("every call ends")
}

/// That it can still be called.
async fn echoes(server: &Server) {
    let since = Instant::now();
    loop {
        match call(server, "echo").await {
            Ok(returned) => return assert_eq!(text(&returned), "echo: {}"),
            Err(error) => assert!(since.elapsed() < DEADLINE, "{error}"),
        }
    }
}

fn text(returned: &Returned) -> String {
    let text = |content: &Content| match content {
        Content::Text(text) | Content::Words(text) => text.clone(),
        other => format!("{other:?}"),
    };
    returned.content.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// What this process has had at most, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")).unwrap();
    peak.parse::<u64>().unwrap() * 1024
}

/// Another server beside it works as if nothing were.
async fn a_neighbour_works() {
    let neighbour = ready("good").await;
    assert_eq!(text(&call(&neighbour, "echo").await.unwrap()), "echo: {}");
}

#[tokio::test]
async fn a_good_server_is_started_when_it_is_needed_and_answers() {
    let server = Server::new(config("good", &[]), std::env::temp_dir(), ways());
    assert_eq!(server.status().state, State::Idle);
    assert_eq!(text(&call(&server, "echo").await.unwrap()), "echo: {}");
    let status = server.status();
    assert_eq!(status.about, Some(("good".to_owned(), "1".to_owned())));
    let names: Vec<&str> = status.lists.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["echo", "misbehave"]);
    server.disconnect();
    assert!(server.until(&[State::Disabled], DEADLINE).await.is_some());
    assert!(matches!(call(&server, "echo").await, Err(McpError::Gone(why)) if why == "it was disconnected"));
    server.connect();
    until_ready(&server).await;
    assert_eq!(text(&call(&server, "echo").await.unwrap()), "echo: {}");
}

#[tokio::test]
async fn one_that_never_answers_costs_its_caller_the_time_out_and_no_more() {
    let server = start(Config { timeout: SHORT, ..config("never-answers", &[]) });
    until_ready(&server).await;
    assert_eq!(call(&server, "misbehave").await, Err(McpError::TimedOut(SHORT)));
    echoes(&server).await;
    a_neighbour_works().await;
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_nobodys() {
    let server = start(Config { timeout: SHORT, ..config("answers-late", &[]) });
    until_ready(&server).await;
    assert_eq!(call(&server, "misbehave").await, Err(McpError::TimedOut(SHORT)));
    // The answer to the first comes with that to the second.
    echoes(&server).await;
}

#[tokio::test]
async fn one_that_is_silent_from_the_start_is_given_up() {
    let config = Config { timeout: SHORT, ..config("silent", &[]) };
    let server = Server::new(config, std::env::temp_dir(), Arc::new(Plain { opening: SHORT }));
    server.need();
    let status = server.until(&[State::Failed], DEADLINE).await.unwrap();
    assert_eq!(status.error.as_deref(), Some("it did not answer within 500 ms"));
    assert!(matches!(call(&server, "echo").await, Err(McpError::Gone(_))));
}

#[tokio::test]
async fn one_that_crashes_is_started_anew_and_its_last_words_are_told() {
    let server = ready("crashes").await;
    let Err(McpError::Gone(why)) = call(&server, "misbehave").await else { panic!() };
    assert!(why.contains("the disk is on fire"), "{why}");
    assert_eq!(text(&call(&server, "echo").await.unwrap()), "echo: {}", "it was started anew");
    assert_eq!(server.status().restarts, 1);
}

#[tokio::test]
async fn one_that_dies_at_once_is_tried_a_few_times_and_its_last_words_are_kept() {
    let server = start(config("dies-at-once", &[]));
    let status = server.until(&[State::Failed], DEADLINE).await.unwrap();
    assert_eq!(status.restarts, 5);
    assert!(status.error.unwrap().contains("cannot open the database"));
}

#[tokio::test]
async fn one_that_comes_back_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let server = start(config("comes-back", &[mark.to_str().unwrap()]));
    until_ready(&server).await;
    assert_eq!(text(&call(&server, "echo").await.unwrap()), "echo: {}");
}

#[tokio::test]
async fn a_program_that_is_not_there_says_so() {
    let reach = Reach::Program { command: vec!["/no/such/program".into()], env: Vec::new() };
    let server = start(Config::new("missing", reach));
    let status = server.until(&[State::Failed], DEADLINE).await.unwrap();
    assert!(status.error.unwrap().contains("it cannot be started"));
}

/// One after the other, so that what each takes of the memory is seen.
#[tokio::test(flavor = "multi_thread")]
async fn floods_harm_nobody_and_stay_small() {
    a_neighbour_works().await;
    let before = peak_memory();
    for mode in ["floods-garbage", "floods-without-end", "floods-news", "floods-words", "long-line", "asks-back"] {
        // The others are given up for what they say, or answer in the end.
        let timeout = if ["floods-news", "floods-words"].contains(&mode) { SHORT } else { DEADLINE };
        let server = start(Config { timeout, ..config(mode, &[]) });
        until_ready(&server).await;
        let given = call(&server, "misbehave").await;
        assert!(given.is_err() || mode == "asks-back", "{mode}: {given:?}");
        a_neighbour_works().await;
    }
    for mode in ["floods-at-start", "million-tools"] {
        let server = start(config(mode, &[]));
        let status = server.until(&[State::Failed], DEADLINE).await;
        assert!(status.is_some_and(|status| status.error.is_some()), "{mode} is given up, with words");
        a_neighbour_works().await;
    }
    let grown = peak_memory() - before;
    assert!(grown < 96 << 20, "{} MiB more than before", grown >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_news_does_not_keep_it_from_working() {
    let server = ready("storm").await;
    for _ in 0..3 {
        assert_eq!(text(&call(&server, "echo").await.unwrap()), "echo: {}");
    }
}

#[tokio::test]
async fn lists_without_end_are_cut() {
    let server = ready("endless-pages").await;
    let lists = server.status().lists;
    assert_eq!((lists.tools.len(), lists.is_cut), (256, true));
    let server = ready("same-page").await;
    assert_eq!(
        server.status().lists.tools.len(),
        2,
        "a page that leads to itself is the last, and nothing counts twice"
    );
}

#[tokio::test]
async fn what_is_no_list_is_no_server() {
    let server = start(config("no-list", &[]));
    let status = server.until(&[State::Failed], DEADLINE).await.unwrap();
    assert!(status.error.unwrap().contains("cannot be used"));
    assert_eq!(status.restarts, 1, "it is asked once: it would say the same again");
}

#[tokio::test]
async fn lies_and_nonsense_are_not_believed() {
    let server = ready("lies-about-ids").await;
    assert_eq!(text(&call(&server, "misbehave").await.unwrap()), "the truth");
    let server = ready("wrong-rpc").await;
    assert!(matches!(call(&server, "misbehave").await, Err(McpError::Unreadable(_))));
    assert_eq!(text(&call(&server, "echo").await.unwrap()), "echo: {}");
    let server = ready("wrong-error").await;
    assert!(matches!(call(&server, "misbehave").await, Err(McpError::Unreadable(_))));
    let server = ready("chatters").await;
    assert_eq!(text(&call(&server, "echo").await.unwrap()), "echo: {}");
}

#[tokio::test]
async fn one_that_does_not_read_is_not_waited_for() {
    let server = start(Config { timeout: SHORT, ..config("closes-stdin", &[]) });
    until_ready(&server).await;
    assert!(call(&server, "misbehave").await.is_err());
    for _ in 0..3 {
        assert!(call(&server, "echo").await.is_err());
    }
    a_neighbour_works().await;
}

#[tokio::test]
async fn progress_is_told() {
    let server = ready("progress").await;
    let (heard, mut told) = mpsc::channel(16);
    assert_eq!(text(&server.call("misbehave", json!({}), heard).await.unwrap()), "done");
    let mut words = Vec::new();
    while let Some(word) = told.recv().await {
        words.push(word);
    }
    assert_eq!(words, ["1 of 3: step", "2 of 3: step", "3 of 3: step"]);
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heard");
    let server = start(config("remembers-cancel", &[file.to_str().unwrap()]));
    until_ready(&server).await;
    let heard = || std::fs::read_to_string(&file).unwrap_or_default();
    let wait_for = async |words: &str| {
        let since = Instant::now();
        while !heard().contains(words) {
            assert!(since.elapsed() < DEADLINE, "{words}: {}", heard());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (line, _told) = mpsc::channel(1);
    tokio::select! {
        _ = server.call("misbehave", json!({}), line) => panic!("it does not answer"),
        () = wait_for("called") => {}
    }
    wait_for("cancelled").await;
}

#[tokio::test]
async fn what_it_was_given_as_a_secret_is_not_told() {
    let mut config = config("prints-secrets", &[]);
    let Reach::Program { env, .. } = &mut config.reach else { panic!() };
    env.push(("SECRET".to_owned(), "sk-very-secret".to_owned()));
    let server = start(config);
    until_ready(&server).await;
    let Err(McpError::Gone(why)) = call(&server, "misbehave").await else { panic!() };
    assert!(why.contains("SECRET=[secret]") && !why.contains("very"), "{why}");
    let status = server.until(&[State::Ready], DEADLINE).await.unwrap();
    assert!(!format!("{status:?}").contains("very"));
}

#[tokio::test]
async fn what_it_learns_and_forgets_is_noticed() {
    for (mode, is_so) in [
        ("learns", (|names| names.contains(&"learned-1".to_owned())) as fn(&[String]) -> bool),
        ("forgets", |names| !names.contains(&"misbehave".to_owned())),
    ] {
        let server = ready(mode).await;
        call(&server, "misbehave").await.unwrap();
        let since = Instant::now();
        loop {
            let names: Vec<String> = server.status().lists.tools.iter().map(|tool| tool.name.clone()).collect();
            if is_so(&names) {
                break;
            }
            assert!(since.elapsed() < DEADLINE, "{mode}: {names:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Waits until a file is there that a server writes.
async fn written(file: &Path) {
    let since = Instant::now();
    while !file.exists() {
        assert!(since.elapsed() < DEADLINE, "{}", file.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn news_that_comes_while_its_lists_are_read_is_not_lost() {
    for (mode, learned) in [("learns-slowly", "learned-1"), ("learns-again", "learned-2")] {
        let folder = tempfile::tempdir().unwrap();
        let (asked, release) = (folder.path().join("list.asked"), folder.path().join("list"));
        let server = start(config(mode, &[release.to_str().unwrap()]));
        until_ready(&server).await;
        call(&server, "misbehave").await.unwrap();
        written(&asked).await;
        if mode == "learns-slowly" {
            // Somebody presses the button meanwhile; it is connected already.
            server.connect();
        }
        std::fs::write(&release, "").unwrap();
        let since = Instant::now();
        while !server.status().lists.tools.iter().any(|tool| tool.name == learned) {
            assert!(since.elapsed() < DEADLINE, "{learned}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn schemas_and_names_are_made_safe() {
    let server = ready("bad-schemas").await;
    let lists = server.status().lists;
    let find = |name: &str| lists.tools.iter().find(|tool| tool.name == name).unwrap();
    let open = json!({ "type": "object", "properties": {} });
    for name in ["bomb", "list", "huge"] {
        assert_eq!(find(name).schema, open, "{name}");
    }
    assert_eq!(lists.tools.len(), 6, "what has no name is no tool");
    let long = tool_name("bad-schemas", &"x".repeat(150), |_| false);
    assert_eq!(long.len(), 64);
}

#[tokio::test]
async fn a_session_has_its_folders_servers_and_its_own() {
    let hub = Hub::new(vec![config("good", &[])], ways());
    let folder = std::env::temp_dir();
    let mine = Config { name: "mine".into(), ..config("good", &[]) };
    hub.add_to_session("ses_1", &folder, mine).unwrap();
    let names = |session: &str| {
        let kit = hub.of_session(session, &folder);
        kit.servers().iter().map(|server| server.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names("ses_1"), names("ses_2")), (vec!["good".to_owned(), "mine".to_owned()], vec!["good".to_owned()]));
    let kit = hub.of_session("ses_1", &folder);
    kit.settled(DEADLINE).await;
    let offered = kit.offered(|server, tool| tool_name(server, tool, |_| false));
    let offered: Vec<&str> = offered.iter().map(|offered| offered.name.as_str()).collect();
    assert_eq!(offered, ["good_echo", "good_misbehave", "mine_echo", "mine_misbehave"]);
    hub.forget("ses_1");
    assert_eq!(names("ses_1"), ["good"]);
    assert!(hub.add_to_session("ses_1", &folder, Config { name: "a b".into(), ..config("good", &[]) }).is_err());
    for n in 0..32 {
        hub.add_to_session("ses_1", &folder, Config { name: format!("n{n}"), ..config("good", &[]) }).unwrap();
    }
    let more = hub.add_to_session("ses_1", &folder, Config { name: "more".into(), ..config("good", &[]) });
    assert!(more.unwrap_err().to_string().contains("that is the most"));
}

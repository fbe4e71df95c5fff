//! Commands: what they say, how they end, and that nothing of them stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tolka_workspace::command::{CommandError, Exit, Heard, Job, Level, Running, Shell};

pub(crate) fn shell() -> Shell {
    Shell::at(Path::new(env!("CARGO_BIN_EXE_tolka-keeper")), Level::None).unwrap()
}

pub(crate) fn job(workspace: &Path, line: &str) -> Job {
    Job {
        line: line.to_owned(),
        workspace: workspace.to_owned(),
        folder: PathBuf::from("."),
        time_limit: Duration::from_secs(60),
        env: Vec::new(),
    }
}

pub(crate) fn code(code: i32) -> Exit {
    let (over, refused) = (Vec::new(), Vec::new());
    Exit { code: Some(code), signal: None, timed_out: false, left_behind: 0, lost: 0, over, refused }
}

/// All that it says, and how it ends.
pub(crate) async fn hear(running: &mut Running) -> (String, Exit) {
    let mut text = String::new();
    loop {
        match running.next().await.unwrap() {
            Heard::Output(piece) => text += &piece,
            Heard::Failed(words) => panic!("{words}; it said {text}"),
            Heard::Ended(exit) => {
                assert_eq!(running.next().await, None);
                return (text, exit);
            }
        }
    }
}

pub(crate) async fn run(line: &str) -> (String, Exit) {
    let workspace = tempfile::tempdir().unwrap();
    hear(&mut shell().start(&job(workspace.path(), line)).unwrap()).await
}

/// Reads on until the text is there; it is what stands for "it has come that far".
pub(crate) async fn wait_for(running: &mut Running, word: &str) -> String {
    let mut text = String::new();
    while !text.contains(word) {
        match running.next().await.unwrap() {
            Heard::Output(piece) => text += &piece,
            other => panic!("{other:?} after {text}"),
        }
    }
    text
}

/// By number, with their arguments.
pub(crate) fn processes() -> Vec<(String, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let found = entries.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some((entry.file_name().into_string().ok()?, String::from_utf8_lossy(&line).replace('\0', " ")))
    });
    found.filter(|(id, _)| id.parse() != Ok(std::process::id())).collect()
}

/// The processes whose arguments hold a word that no other process has.
pub(crate) fn living(word: &str) -> Vec<String> {
    processes().into_iter().map(|(_, line)| line).filter(|line| line.contains(word)).collect()
}

/// A word of which nobody else has the same: a number of seconds to sleep.
pub(crate) fn nap() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}{:03}", 1000 + std::process::id() % 100_000, NEXT.fetch_add(1, Ordering::Relaxed))
}

#[tokio::test]
async fn its_exit_code_and_its_signal_are_what_they_were() {
    for expected in [0, 1, 7, 125, 126, 127, 255] {
        assert_eq!(run(&format!("exit {expected}")).await, (String::new(), code(expected)));
    }
    let (_, exit) = run("kill -9 $$").await;
    assert_eq!(exit, Exit { code: None, signal: Some(9), ..code(0) });
    let (said, exit) = run("no-such-program-here").await;
    assert!(said.contains("not found"), "{said}");
    assert_eq!(exit, code(127));
}

#[tokio::test]
async fn stdout_and_stderr_come_in_the_order_in_which_they_were_written() {
    let line = "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done";
    let expected: String = (1..10).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(run(line).await, (expected, code(0)));
}

#[tokio::test]
async fn what_it_says_is_heard_while_it_runs() {
    let workspace = tempfile::tempdir().unwrap();
    let line = "echo first; until [ -e go ]; do sleep 0.02; done; echo second";
    let mut running = shell().start(&job(workspace.path(), line)).unwrap();
    assert_eq!(wait_for(&mut running, "first\n").await, "first\n");
    fs::write(workspace.path().join("go"), "").unwrap();
    assert_eq!(hear(&mut running).await, ("second\n".to_owned(), code(0)));
}

#[tokio::test]
async fn a_flood_is_kept_to_a_limit_and_the_command_goes_on() {
    let workspace = tempfile::tempdir().unwrap();
    let line = "yes | head -c 50000000; touch done";
    let mut running = shell().start(&job(workspace.path(), line)).unwrap();
    let (mut kept, mut pieces) = (0, 0);
    let exit = loop {
        match running.next().await.unwrap() {
            Heard::Output(piece) => {
                assert!(piece.len() <= 16 << 10);
                kept += piece.len();
                pieces += 1;
            }
            Heard::Ended(exit) => break exit,
            Heard::Failed(words) => panic!("{words}"),
        }
    };
    assert_eq!(kept, 10 << 20);
    assert!(pieces <= 2 * (10 << 20) / (16 << 10), "{pieces}");
    assert_eq!(exit, Exit { lost: 50_000_000 - (10 << 20), ..code(0) });
    assert!(workspace.path().join("done").exists());
}

#[tokio::test]
async fn characters_stay_whole_and_broken_bytes_are_shown() {
    let line = r"printf '\342'; sleep 0.1; printf '\202'; sleep 0.1; printf '\254\377x\342\202'";
    assert_eq!(run(line).await, ("€\u{fffd}x\u{fffd}".to_owned(), code(0)));
}

#[tokio::test]
async fn its_stdin_is_empty_and_it_has_no_terminal() {
    assert_eq!(run("cat; (: </dev/tty) 2>/dev/null || echo none").await, ("none\n".to_owned(), code(0)));
}

#[tokio::test]
async fn it_starts_in_its_folder_and_nowhere_outside() {
    let outer = tempfile::tempdir().unwrap();
    let workspace = outer.path().canonicalize().unwrap().join("the work space");
    fs::create_dir_all(workspace.join("in side")).unwrap();
    std::os::unix::fs::symlink("/", workspace.join("out")).unwrap();
    fs::write(workspace.join("file"), "").unwrap();
    let start = |folder: &Path| shell().start(&Job { folder: folder.to_owned(), ..job(&workspace, "pwd") });
    let inside = workspace.join("in side");
    let expected = (format!("{}\n", inside.display()), code(0));
    assert_eq!(hear(&mut start(Path::new("in side")).unwrap()).await, expected);
    assert_eq!(hear(&mut start(&inside).unwrap()).await, expected);
    for outside in ["..", "out", "out/tmp", "/", "file", "none", "in side/../.."] {
        assert!(matches!(start(Path::new(outside)), Err(CommandError::Folder(_))), "{outside}");
    }
}

#[tokio::test]
async fn a_line_that_no_system_takes_is_refused() {
    let workspace = tempfile::tempdir().unwrap();
    let start = |line: &str| shell().start(&job(workspace.path(), line));
    assert!(matches!(start(&"x".repeat(200_000)), Err(CommandError::TooLong(200_000))));
    assert!(matches!(start("echo \0"), Err(CommandError::Nul)));
    let most = format!("# {}\necho long", "x".repeat(131_071 - 12));
    assert_eq!(most.len(), 131_071);
    assert_eq!(hear(&mut start(&most).unwrap()).await, ("long\n".to_owned(), code(0)));
}

#[tokio::test]
async fn too_much_time_ends_it() {
    let workspace = tempfile::tempdir().unwrap();
    let nap = nap();
    let line = format!("echo begun; sleep {nap} & sleep {nap}");
    let began = Instant::now();
    // Long enough for it to begin on a busy machine.
    let limit = Duration::from_secs(5);
    let mut running = shell().start(&Job { time_limit: limit, ..job(workspace.path(), &line) }).unwrap();
    let (said, exit) = hear(&mut running).await;
    assert_eq!((said.as_str(), exit.timed_out, exit.code, exit.signal), ("begun\n", true, None, Some(15)));
    assert!(began.elapsed() >= limit);
    assert_eq!(living(&nap), Vec::<String>::new());
}

/// Each of them starts a `sleep` that tries to stay, and says `begun`.
pub(crate) fn runaways(nap: &str) -> [String; 6] {
    [
        format!("sleep {nap} & echo begun; wait"),
        format!("setsid sleep {nap} & echo begun; wait"),
        format!("( (setsid sh -c 'sleep {nap} & sleep {nap}' &) & ); echo begun; sleep {nap}"),
        format!("nohup setsid sleep {nap} >/dev/null 2>&1 & echo begun; sleep {nap}"),
        format!("(trap '' TERM HUP INT; setsid sh -c 'echo begun; while :; do sleep {nap}; done'); sleep {nap}"),
        format!("trap '' TERM; echo begun; while :; do sleep {nap}; done"),
    ]
}

#[tokio::test]
async fn stopping_it_ends_everything() {
    let workspace = tempfile::tempdir().unwrap();
    let nap = nap();
    for line in runaways(&nap) {
        let mut running = shell().start(&job(workspace.path(), &line)).unwrap();
        wait_for(&mut running, "begun\n").await;
        running.stop().await;
        assert_eq!(living(&nap), Vec::<String>::new(), "{line}");
        let (_, exit) = hear(&mut running).await;
        assert!(!exit.timed_out && exit.signal.is_some(), "{exit:?} of {line}");
    }
}

#[tokio::test]
async fn dropping_it_ends_everything() {
    let workspace = tempfile::tempdir().unwrap();
    let nap = nap();
    for line in runaways(&nap) {
        let mut running = shell().start(&job(workspace.path(), &line)).unwrap();
        wait_for(&mut running, "begun\n").await;
        drop(running);
        all_end(&nap).await;
    }
}

pub(crate) async fn all_end(word: &str) {
    let began = Instant::now();
    while !living(word).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", living(word));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_it_leaves_behind_is_ended_and_counted() {
    let nap = nap();
    let (said, exit) = run(&format!("sleep {nap} & setsid sleep {nap} & (sleep {nap} &) ; echo left; exit 3")).await;
    assert_eq!((said.as_str(), exit), ("left\n", Exit { left_behind: 3, ..code(3) }));
    assert_eq!(living(&nap), Vec::<String>::new());
}

#[tokio::test]
async fn what_ends_by_itself_right_after_is_heard() {
    assert_eq!(run("exec > >(sleep 0.02; cat); echo late").await, ("late\n".to_owned(), code(0)));
}

#[tokio::test]
async fn a_wait_that_is_dropped_loses_nothing() {
    let workspace = tempfile::tempdir().unwrap();
    let line = "for i in $(seq 2000); do echo $i; done";
    let mut running = shell().start(&job(workspace.path(), line)).unwrap();
    let mut text = String::new();
    let exit = loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(Duration::from_micros(300)) => {}
            heard = running.next() => match heard.unwrap() {
                Heard::Output(piece) => text += &piece,
                Heard::Ended(exit) => break exit,
                Heard::Failed(words) => panic!("{words}"),
            }
        }
    };
    assert_eq!(exit, code(0));
    assert_eq!(text, (1..=2000).map(|i| format!("{i}\n")).collect::<String>());
}

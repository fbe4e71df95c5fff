//! What edits and searches cost, beside `rg` where it is there:
//! `cargo test --profile measure -p tolka-workspace --test workspace speed -- --ignored --nocapture`

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tolka_workspace::diff::unified;
use tolka_workspace::edit::{Places, replace};
use tolka_workspace::files::Files;
use tolka_workspace::search::{Query, glob, grep, list};

/// The best of several: others work on this machine too.
fn best<T>(what: &str, mut work: impl FnMut() -> T) {
    let mut least = Duration::MAX;
    for _ in 0..7 {
        let began = Instant::now();
        drop(work());
        least = least.min(began.elapsed());
    }
    println!("{what}: {least:?}");
}

#[test]
#[ignore = "prints figures; it judges nothing"]
fn speed_of_edits() {
    let mut text = String::new();
    for n in 0..120_000 {
        writeln!(text, "    let value_{n} = compute({n}, \"some text\");").unwrap();
    }
    println!("{} bytes", text.len());
    let crlf = text.replace('\n', "\r\n");
    let one = |text: &str, old: &str| replace(text, old, "x", Places::One).map(|edited| edited.places).unwrap_or(0);
    let last = "    let value_119990 = compute(119990, \"some text\");\n";
    best("exact", || assert_eq!(one(&text, last), 1));
    best("exact, CRLF", || assert_eq!(one(&crlf, last), 1));
    best("indentation", || assert_eq!(one(&text, &last.trim_start().replace("text\");\n", "text\"); \n")), 1));
    best("runs of spaces", || assert_eq!(one(&text, &last.replace(" = ", "  =  ")), 1));
    best("within a line", || assert_eq!(one(&text, "119990  = compute"), 1));
    best("not there", || assert_eq!(one(&text, "not there\nat all\n"), 0));
    best("all", || replace(&text, "value", "worth", Places::All).unwrap());
    let same = "a\n".repeat(2_500_000);
    best("all lines alike, not there", || one(&same, &format!("{} b", "a \n".repeat(100_000))));
    let edited = text.replace("value_7 ", "v ").replace("value_119990 ", "v ");
    best("diff", || unified("a", Some(&text), Some(&edited)));
    let other: String = text.lines().map(|line| format!("{line};\n")).collect();
    best("diff of all lines", || unified("a", Some(&text), Some(&other)));
    let mut mixed: Vec<&str> = text.lines().collect();
    mixed.sort_by_key(|line| line.len() * 31 + line.bytes().map(usize::from).sum::<usize>() * 7919 % 1009);
    let mixed = mixed.join("\n");
    best("diff of lines in another order", || unified("a", Some(&text), Some(&mixed)));
    let dir = tempfile::tempdir().unwrap();
    let files = Files::open(dir.path()).unwrap();
    fs::write(dir.path().join("a"), &text).unwrap();
    best("read", || files.read("a", u64::MAX).unwrap());
    best("write", || files.write("a", text.as_bytes(), Some(text.as_bytes())).unwrap());
    fs::write(dir.path().join("b"), "small").unwrap();
    best("write of a small file", || files.write("b", b"small", Some(b"small")).unwrap());
}

#[test]
#[ignore = "prints figures; it judges nothing"]
fn speed_of_searches() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    for n in 0..20_000 {
        let folder = at.join(format!("d{}/e{}", n / 1000, n / 50));
        fs::create_dir_all(&folder).unwrap();
        let needle = if n % 1000 == 0 { "a needle here\n" } else { "" };
        let text = format!("some line of file {n}, long enough to be like code;\n").repeat(40);
        fs::write(folder.join(format!("f{n}.rs")), format!("{text}{needle}")).unwrap();
    }
    let query = |pattern| Query {
        workspace: at,
        within: ".",
        pattern,
        include: None,
        limit: 100,
        stop: Arc::new(AtomicBool::new(false)),
    };
    best("grep of a rare word", || assert_eq!(grep(&query("needle")).unwrap().items.len(), 20));
    best("grep of a common word", || grep(&query("code")).unwrap());
    best("grep of an expression", || grep(&query(r"file \d+9, .*like")).unwrap());
    best("glob", || assert!(glob(&query("*9.rs")).unwrap().is_cut));
    best("list", || list(at, ".", true, 1000).unwrap());
    rg(at, "rg of a rare word", &["-n", "--hidden", "--no-require-git", "needle"]);
    rg(at, "rg of a rare word, 2 threads", &["-n", "--hidden", "--no-require-git", "-j2", "needle"]);
    rg(at, "rg of a common word", &["-n", "--hidden", "--no-require-git", "code"]);
    rg(at, "rg of an expression", &["-n", "--hidden", "--no-require-git", r"file \d+9, .*like"]);
    rg(at, "rg --files by glob", &["--files", "--hidden", "--no-require-git", "-g", "*9.rs"]);
}

fn rg(at: &Path, what: &str, args: &[&str]) {
    let run = || Command::new("rg").args(args).arg(".").current_dir(at).stdout(Stdio::null()).status();
    match run() {
        Ok(_) => best(what, || run().unwrap()),
        Err(error) => println!("{what}: no figure, rg cannot be run: {error}"),
    }
}

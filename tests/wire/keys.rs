//! A key goes to its provider and nowhere else, however loud the log and however rude the provider.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::http::{get, new_session, prompt};
use crate::models::Provider;
use crate::server::{House, free_port, until};
use crate::sse::Stream;

const KEY: &str = "sk-fake-4c1d0b7e9a";

/// Every file beneath, as bytes.
fn all_bytes(folder: &Path, out: &mut Vec<u8>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => all_bytes(&entry.path(), out),
            kind if kind.is_file() => out.extend(std::fs::read(entry.path()).unwrap_or_default()),
            _ => {}
        }
    }
}

fn assert_hidden(what: &str, bytes: &[u8]) {
    let at = bytes.windows(KEY.len()).position(|window| window == KEY.as_bytes());
    if let Some(at) = at {
        let around = &bytes[at.saturating_sub(200)..(at + 100).min(bytes.len())];
        panic!("{what} has the key: {}", String::from_utf8_lossy(around));
    }
}

/// Whoever runs the server runs its commands too. Root sees everything, so it is somebody else where the tests can be.
#[cfg(target_os = "linux")]
#[test]
fn another_process_of_the_same_person_cannot_read_the_keys() {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65_534;
    let is_root = rustix::process::geteuid().is_root();
    let person = |mut command: std::process::Command| {
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    let house = House::new();
    let root = house.data().parent().unwrap().to_owned();
    // The target folder may not be for everybody.
    let program = root.join("tolka");
    std::fs::copy(env!("CARGO_BIN_EXE_tolka"), &program).unwrap();
    std::fs::create_dir(house.data()).unwrap();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
    if is_root {
        chown(house.data(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut command = person(std::process::Command::new(program));
    command.args(["serve", "--port", "0", "--agent", "demo", "--data"]).arg(house.data()).current_dir("/");
    command.env("OPENAI_API_KEY", KEY).env("HOME", house.data()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = match command.spawn() {
        Ok(server) => server,
        Err(error) => return println!("skipped: nobody cannot run it here: {error}"),
    };
    let mut up = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut up).unwrap();
    assert!(up.starts_with("http://"), "{up}");
    let read = |file: &str| {
        let mut cat = std::process::Command::new("cat");
        cat.arg(format!("/proc/{}/{file}", server.id())).current_dir("/");
        person(cat).output().unwrap()
    };
    let (seen, environ, memory) = (read("cmdline"), read("environ"), read("maps"));
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(String::from_utf8_lossy(&seen.stdout).contains("serve"), "it is there to be seen: {seen:?}");
    for refused in [environ, memory] {
        assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("ermission denied"), "{refused:?}");
    }
}

#[test]
fn a_key_is_in_no_log_no_stream_no_file_and_no_error() {
    let house = House::new();
    // It repeats the key, as some do when they refuse one.
    let refusal =
        json!({ "error": { "message": format!("Incorrect API key provided: {KEY}."), "code": "invalid_api_key" } });
    let provider = Provider::answering("401 Unauthorized", refusal.to_string());
    let base = format!("http://{}/v1", provider.address);
    let variables =
        [("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", &base), ("TOLKA_LOG", "debug"), ("TOLKA_MODEL", "openai/gpt-5")];

    for args in [&["models"] as &[_], &["models", "--json"], &["sessions"], &["permissions", "list"]] {
        let said = house.command(args).envs(variables).output().unwrap();
        assert_hidden(&args.join(" "), &[said.stdout, said.stderr].concat());
    }

    let log = house.data().with_file_name("stderr");
    let port = free_port();
    let mut command = house.command(&["serve", "--port", &port.to_string()]);
    command.envs(variables).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
    let mut server = command.spawn().unwrap();
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    until("the server", || std::net::TcpStream::connect(address).ok());
    let session = new_session(address);
    let mut facts = Stream::open(address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    prompt(address, &session);
    let failed = facts.fact("failed");
    facts.fact("turn_ended");
    assert!(provider.asked().iter().any(|head| head.contains(KEY)), "the provider itself has to get it");
    let message = failed["data"]["message"].as_str().unwrap();
    assert!(message.contains("OPENAI_API_KEY"), "it says what to do: {message}");
    for path in
        ["/v1/sessions", &format!("/v1/sessions/{session}"), "/config", "/config/providers", "/provider", "/metrics"]
    {
        assert_hidden(path, &get(address, path).body);
    }
    for dialect in ["tolka", "onyx", "onyx-steps", "agentsmithy", "opencode", "acp"] {
        let told = get(address, &format!("/v1/sessions/{session}/events?format=json&dialect={dialect}"));
        assert_hidden(dialect, &told.body);
    }
    server.kill().unwrap();
    server.wait().unwrap();
    assert_hidden("the log", &std::fs::read(&log).unwrap());
    let mut kept = Vec::new();
    all_bytes(&house.data(), &mut kept);
    assert!(kept.len() > 10_000, "the journal is there");
    assert_hidden("the data folder", &kept);
}

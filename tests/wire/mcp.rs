//! MCP servers from outside: two public ones from npm, over both ways to reach one, and hostile ones of our own.
//! The model is scripted; the servers, their processes and the sandbox they run in are real.

mod hostile;
mod public;
mod routes;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::http::{get, post};
use crate::native::stage::{Stage, Talk};
use crate::server::until;

const PACKAGES: &str = "tests/clients/node_modules";

/// A program of an npm package; the suite installs them.
fn installed(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PACKAGES);
    let program = folder.join("@modelcontextprotocol").join(name).join("dist/index.js");
    program.canonicalize().unwrap_or_else(|_| panic!("run scripts/needs.sh: {} is not there", program.display()))
}

/// The same where the sandbox lets it be read: of folders for temporary files, in which this checkout may be, it shows
/// only the workspace.
fn package(stage: &Stage, name: &str) -> PathBuf {
    let program = installed(name);
    if !["/tmp", "/var/tmp"].iter().any(|folder| program.starts_with(folder)) {
        return program;
    }
    let folder = program.ancestors().find(|folder| folder.ends_with(PACKAGES)).unwrap();
    let workspace = stage.house.workspace();
    let there = workspace.join("node_modules");
    if !there.exists() {
        let copied = Command::new("cp").arg("-a").arg(folder).arg(&there).status().unwrap();
        assert!(copied.success());
        std::fs::write(workspace.join(".gitignore"), "node_modules\n").unwrap();
    }
    there.join(program.strip_prefix(folder).unwrap())
}

/// Our own misbehaving server, put where the sandbox lets it be read.
fn hostile(stage: &Stage) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/hostile.mjs");
    let there = stage.house.workspace().join("hostile.mjs");
    std::fs::copy(here, &there).unwrap();
    there
}

fn command(words: &[&str]) -> String {
    json!(words).to_string()
}

/// The servers of a session by name.
fn servers(address: SocketAddr, session: &str) -> Value {
    let listed = get(address, &format!("/v1/sessions/{session}/mcp")).expect(200);
    let servers = listed["servers"].as_array().unwrap().iter();
    Value::Object(servers.map(|server| (server["name"].as_str().unwrap().to_owned(), server.clone())).collect())
}

/// Connects the servers of the configuration and waits until each is there: what a turn does by itself takes longer on a
/// busy machine than a turn waits.
fn connect(address: SocketAddr, talk: &Talk, names: &[&str]) {
    for name in names {
        post(address, &format!("/v1/mcp/{name}/connect"), &json!({})).expect(202);
    }
    for name in names {
        until(&format!("{name} is ready"), || {
            let known = servers(address, &talk.session);
            assert_ne!(known[name]["status"], "failed", "{}", known[name]);
            (known[name]["status"] == "ready").then_some(())
        });
    }
}

/// The text of a call's output.
fn output(ended: &Value) -> &str {
    ended["output"]["output"].as_str().unwrap_or_default()
}

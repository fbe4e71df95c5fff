//! `sandbox-agent server`, with a scripted agent of ours where its own mock agent would be.

use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Peer, Tokens, free_port, installed, started};

const PATH: &str = "/v1/acp/bench";

pub(super) async fn start() -> Result<Peer> {
    let scratch = tempfile::tempdir()?;
    // Installed without its install script, it is not executable.
    let program = scratch.path().join("sandbox-agent");
    std::fs::copy(installed("@sandbox-agent/cli-linux-x64/bin/sandbox-agent")?, &program)?;
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
    let agents = scratch.path().join("data/sandbox-agent/bin/agent_processes");
    std::fs::create_dir_all(&agents)?;
    let agent = agents.join("mock-acp");
    std::fs::write(&agent, format!("#!/bin/sh\nexec '{}' scripted-agent\n", std::env::current_exe()?.display()))?;
    std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o755))?;
    let port = free_port()?;
    let mut command = Command::new(program);
    command.args(["server", "--no-token", "--no-telemetry", "--port", &port.to_string()]);
    command.env("HOME", scratch.path()).env("XDG_DATA_HOME", scratch.path().join("data"));
    let (server, start) = started(command, port, "/v1/health").await?;
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    server.post(&format!("{PATH}?agent=mock"), &call(1, "initialize", &hello)).await?;
    let made = server.post(PATH, &call(2, "session/new", &json!({ "cwd": scratch.path(), "mcpServers": [] }))).await?;
    let session = made["result"]["sessionId"].as_str().context("no session")?.to_owned();
    Ok(Peer { server, path: PATH.to_owned(), session, start, _scratch: scratch, _model: None })
}

/// Its answer comes with the end of the turn, as ACP has it.
pub(super) async fn prompt(peer: &Peer, tokens: Tokens) -> Result<()> {
    let prompt = json!([{ "type": "text", "text": tokens.words() }]);
    let params = json!({ "sessionId": peer.session, "prompt": prompt });
    peer.server.post(PATH, &call(3, "session/prompt", &params)).await?;
    Ok(())
}

fn call(id: u32, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

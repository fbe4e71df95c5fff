//! `opencode serve`, offline: a model of ours on loopback, nothing fetched.

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::Command;

use super::{Peer, Tokens, free_port, installed, started};
use crate::process::Process;

pub(super) async fn start() -> Result<Peer> {
    let program = installed("opencode-linux-x64/bin/opencode")?;
    let model = Process::start(&std::env::current_exe()?, &["model-server"]).await?;
    let scratch = tempfile::tempdir()?;
    let (home, workspace) = (scratch.path().join("home"), scratch.path().join("workspace"));
    std::fs::create_dir_all(&home)?;
    std::fs::create_dir_all(&workspace)?;
    let config = json!({
        "enabled_providers": ["mock"],
        "provider": { "mock": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": { "baseURL": format!("http://{}/v1", model.address), "apiKey": "none" },
            "models": { "mock": { "name": "Scripted" } },
        } },
        "model": "mock/mock",
        "small_model": "mock/mock",
    });
    std::fs::write(workspace.join("opencode.json"), config.to_string())?;
    let port = free_port()?;
    let mut command = Command::new(program);
    command.args(["serve", "--hostname", "127.0.0.1", "--port", &port.to_string()]).current_dir(&workspace);
    for name in ["AUTOUPDATE", "SHARE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        command.env(format!("OPENCODE_DISABLE_{name}"), "1");
    }
    for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        command.env(name, &home);
    }
    let (server, start) = started(command, port, "/event").await?;
    let session = server.post("/session", &json!({})).await?;
    let session = session["id"].as_str().context("no session")?.to_owned();
    Ok(Peer { server, path: "/event".to_owned(), session, start, _scratch: scratch, _model: Some(model) })
}

pub(super) async fn prompt(peer: &Peer, tokens: Tokens) -> Result<()> {
    let body = json!({ "parts": [{ "type": "text", "text": tokens.words() }] });
    peer.server.post(&format!("/session/{}/prompt_async", peer.session), &body).await?;
    Ok(())
}

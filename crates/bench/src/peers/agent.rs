//! The script as an ACP agent on stdio.

use std::io::{BufRead, Stdout, Write};
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use super::Tokens;
use crate::reader::now;

pub(crate) fn run() -> Result<()> {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let call: Value = serde_json::from_str(&line)?;
        let result = match call["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": 1, "agentCapabilities": {}, "authMethods": [] }),
            Some("session/new") => json!({ "sessionId": "ses_1" }),
            Some("session/prompt") => {
                if let Some(tokens) = Tokens::in_words(&line) {
                    tell(tokens, &mut out)?;
                }
                json!({ "stopReason": "end_turn" })
            }
            _ => continue,
        };
        say(&json!({ "jsonrpc": "2.0", "id": call["id"], "result": result }), &mut out)?;
    }
    Ok(())
}

fn tell(tokens: Tokens, out: &mut Stdout) -> Result<()> {
    let began = Instant::now();
    for n in 0..tokens.count {
        let due = tokens.every * n as u32;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let content = json!({ "type": "text", "text": format!("{}@{} Some words. ", tokens.first + n, now()) });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        let params = json!({ "sessionId": "ses_1", "update": update });
        say(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }), out)?;
    }
    Ok(())
}

fn say(message: &Value, out: &mut Stdout) -> Result<()> {
    let mut line = message.to_string();
    line.push('\n');
    out.write_all(line.as_bytes())?;
    Ok(out.flush()?)
}

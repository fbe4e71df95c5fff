//! The script as a model: OpenAI's chat completions, streamed.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::Tokens;
use crate::reader::now;

pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        // A client that hangs up in the middle is no fault of the script.
        tokio::spawn(answer(socket));
    }
}

async fn answer(socket: TcpStream) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut socket = BufReader::new(socket);
    let (mut length, mut line) = (0, String::new());
    while socket.read_line(&mut line).await? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    let request: Value = serde_json::from_slice(&body)?;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    let asked = request["messages"].as_array().and_then(|messages| messages.last()).context("no message")?.to_string();
    // A call without tools is for the session's title.
    let tokens = Tokens::in_words(&asked).filter(|_| request.get("tools").is_some());
    match tokens {
        None => socket.write_all(chunk(&json!({ "content": "A title" }), None).as_bytes()).await?,
        Some(tokens) => {
            let mut ticks = (!tokens.every.is_zero()).then(|| tokio::time::interval(tokens.every));
            for n in 0..tokens.count {
                if let Some(ticks) = &mut ticks {
                    ticks.tick().await;
                }
                let delta = json!({ "content": format!("{}@{} Some words. ", tokens.first + n, now()) });
                socket.write_all(chunk(&delta, None).as_bytes()).await?;
                socket.flush().await?;
            }
        }
    }
    socket.write_all(chunk(&json!({}), Some("stop")).as_bytes()).await?;
    socket.write_all(b"data: [DONE]\n\n").await?;
    Ok(socket.shutdown().await?)
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    let chunk = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [choice] });
    format!("data: {chunk}\n\n")
}

//! The provider from outside: over sockets, as a process, with the bytes that the real ones write.

#![allow(clippy::unwrap_used, reason = "clippy sees tests only in functions that are marked so, and these help them")]

mod bytes;
mod choice;
mod judge;
mod process;

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

/// One request on a connection of its own; the status and the body without its chunks.
pub(crate) fn request(url: &str, method: &str, path: &str, body: &str, headers: &[&str]) -> (u16, String) {
    let address = url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n");
    socket.write_all(format!("{head}{headers}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    // A connection that breaks is part of some plays; what came before it counts.
    let _ = socket.read_to_string(&mut answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
    (status, body)
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").unwrap();
    }
    whole
}

pub(crate) fn chat(url: &str, messages: &Value) -> (u16, String) {
    let body = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}, "messages": messages});
    request(url, "POST", "/v1/chat/completions", &body.to_string(), &[])
}

pub(crate) fn messages(url: &str, messages: &Value) -> (u16, String) {
    let body = json!({"model": "m", "stream": true, "max_tokens": 9000, "messages": messages});
    request(url, "POST", "/v1/messages", &body.to_string(), &["anthropic-version: 2023-06-01"])
}

pub(crate) fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

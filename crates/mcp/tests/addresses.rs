//! Servers at an address that do not do what they should.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Url};
use rustls::crypto::ring;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tolka_mcp::{Config, Content, McpError, Piped, Program, Reach, Server, State, Ways};

const DEADLINE: Duration = Duration::from_secs(120);
/// For what never answers; it has to come up in this time as well.
const SHORT: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Plain;

impl Ways for Plain {
    fn start(&self, _: &Program<'_>) -> std::io::Result<Piped> {
        Err(std::io::Error::other("no program is started in these tests"))
    }

    fn client(&self, _: &Url) -> Result<Client, String> {
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let tls = tls.with_safe_default_protocol_versions().unwrap();
        let tls = tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let client = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        client.tls_backend_preconfigured(tls).build().map_err(|error| error.to_string())
    }
}

/// What is answered to `tools/call`; everything before that is as it should be.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Events,
    HugeBody,
    HugeEvent,
    Never,
    Nothing,
    Forgets,
    Unauthorized,
    Redirects,
}

async fn serve(mode: Mode) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://me:password@{}/mcp?key=sk-in-the-url", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(socket, mode));
        }
    });
    url
}

/// One request, and the end of the connection.
async fn answer(mut socket: TcpStream, mode: Mode) -> Option<()> {
    let mut read = Vec::new();
    let (head, body) = loop {
        socket.read_buf(&mut read).await.ok().filter(|count| *count > 0)?;
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    let json = |body: String, more: &str| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let said = match message["method"].as_str() {
        _ if mode == Mode::Unauthorized => "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_owned(),
        _ if mode == Mode::Redirects => {
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n".to_owned()
        }
        None => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned(),
        Some("initialize") => {
            let welcome = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} } });
            json(result(welcome), "mcp-session-id: one\r\n")
        }
        Some("tools/list") => {
            let is_told = head.contains("mcp-session-id: one") && head.contains("mcp-protocol-version: 2025-06-18");
            json(result(json!({ "tools": [{ "name": if is_told { "told" } else { "untold" } }] })), "")
        }
        Some("tools/call") => {
            let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
            match mode {
                Mode::Events => {
                    let ask = json!({ "jsonrpc": "2.0", "id": "q", "method": "ping" });
                    let text = result(json!({ "content": [{ "type": "text", "text": "in events" }] }));
                    format!("{events}: hello\n\nevent: message\ndata: {ask}\n\ndata: {text}\n\n")
                }
                Mode::HugeBody | Mode::HugeEvent => {
                    let head = match mode {
                        Mode::HugeBody => "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_owned(),
                        _ => format!("{events}data: "),
                    };
                    socket.write_all(head.as_bytes()).await.ok()?;
                    // For ever, or until nobody listens.
                    loop {
                        socket.write_all(&[b'x'; 1 << 16]).await.ok()?;
                    }
                }
                Mode::Never => std::future::pending().await,
                Mode::Nothing => events,
                Mode::Forgets => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
                Mode::Unauthorized | Mode::Redirects => unreachable!(),
            }
        }
        Some(_) => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
    };
    socket.write_all(said.as_bytes()).await.ok()
}

async fn start(mode: Mode) -> Server {
    let reach = Reach::Http { url: serve(mode).await, headers: vec![("x-key".into(), "sk-very-secret".into())] };
    // Whoever answers has all the time of a busy machine.
    let timeout = if mode == Mode::Never { SHORT } else { DEADLINE };
    let config = Config { timeout, ..Config::new("remote", reach) };
    let server = Server::new(config, std::env::temp_dir(), Arc::new(Plain));
    server.need();
    server
}

async fn call(mode: Mode) -> (Server, Result<tolka_mcp::Returned, McpError>) {
    let server = start(mode).await;
    let status = server.until(&[State::Ready, State::Failed], DEADLINE).await.unwrap();
    assert_eq!(status.state, State::Ready, "{:?}", status.error);
    assert_eq!(status.lists.tools[0].name, "told", "it is told what was agreed on");
    let (heard, _told) = mpsc::channel(1);
    let called = tokio::time::timeout(DEADLINE, server.call("told", json!({}), heard)).await.unwrap();
    (server, called)
}

#[tokio::test]
async fn an_answer_may_come_as_events() {
    let (_server, called) = call(Mode::Events).await;
    assert_eq!(called.unwrap().content, [Content::Text("in events".into())]);
}

#[tokio::test]
async fn what_never_ends_is_given_up() {
    for mode in [Mode::HugeBody, Mode::HugeEvent] {
        let (_server, called) = call(mode).await;
        assert!(matches!(called, Err(McpError::Unreadable(_))), "{called:?}");
    }
    let (_server, called) = call(Mode::Never).await;
    assert_eq!(called, Err(McpError::TimedOut(SHORT)));
    let (_server, called) = call(Mode::Nothing).await;
    assert!(matches!(called, Err(McpError::Unreadable(_))), "{called:?}");
}

#[tokio::test]
async fn one_that_forgets_the_connection_is_connected_anew() {
    let (server, called) = call(Mode::Forgets).await;
    assert_eq!(called, Err(McpError::Gone("it has forgotten the connection".into())));
    let mut restarts = 0;
    while restarts == 0 {
        restarts = server.until(&[State::Connecting, State::Ready], DEADLINE).await.unwrap().restarts;
        tokio::task::yield_now().await;
    }
    assert!(server.until(&[State::Ready], DEADLINE).await.is_some());
}

#[tokio::test]
async fn one_that_asks_who_we_are_or_leads_elsewhere_says_so() {
    let server = start(Mode::Unauthorized).await;
    let status = server.until(&[State::NeedsAuth], DEADLINE).await.unwrap();
    let why = status.error.unwrap();
    assert!(why.contains("put what it wants into `headers`"), "{why}");
    let server = start(Mode::Redirects).await;
    let status = server.until(&[State::Failed], DEADLINE).await.unwrap();
    let why = status.error.unwrap();
    assert!(why.contains("use the address that it leads to"), "{why}");
    let shown = format!("{:?} {:?} {why}", server.config(), server.config().reach.shown());
    for secret in ["password", "sk-in-the-url", "very"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

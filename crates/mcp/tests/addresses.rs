//! Servers at an address that do not do what they should.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Client, Url};
use rustls::crypto::ring;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tolka_mcp::{Config, Content, McpError, Piped, Program, Reach, Server, State, Times, Ways};

const DEADLINE: Duration = Duration::from_secs(120);
/// For an answer that does not come.
const SHORT: Duration = Duration::from_millis(500);

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

    fn times(&self) -> Times {
        let soon = Duration::from_millis(5);
        Times { pause: soon, lists: soon, overhear: soon, opening: DEADLINE, ..Times::default() }
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
    /// What it says when it is listened to is one thing, and then it hangs up.
    Restless,
    /// Between a lot of nonsense it says something now and then.
    Chatters,
    /// Repeats all that it is told, where an answer should be.
    Repeats,
    /// The same instead of an answer.
    RepeatsRefusing,
}

const NEWS: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// Where it is, and how often it was listened to.
async fn serve(mode: Mode) -> (String, watch::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    let url = format!("http://me:password@{place}/mcp/a-key-in-the-path?key=sk-in-the-url");
    let (listened, count) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(socket, mode, listened.clone()));
        }
    });
    (url, count)
}

/// One request, and the end of the connection.
async fn answer(mut socket: TcpStream, mode: Mode, listened: watch::Sender<usize>) -> Option<()> {
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
    if mode == Mode::Repeats && message["method"] == "tools/call" {
        listened.send_modify(|count| *count += 1);
    }
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
        None if mode == Mode::Restless => {
            listened.send_modify(|count| *count += 1);
            format!("{EVENTS}data: {NEWS}\n\n")
        }
        None => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned(),
        Some("initialize") => {
            let welcome = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} } });
            json(result(welcome), "mcp-session-id: one\r\n")
        }
        Some("tools/list") if mode == Mode::Repeats && listened.borrow().to_owned() > 0 => {
            json(result(json!(head)), "")
        }
        Some("tools/list") => {
            let is_told = head.contains("mcp-session-id: one") && head.contains("mcp-protocol-version: 2025-06-18");
            json(result(json!({ "tools": [{ "name": if is_told { "told" } else { "untold" } }] })), "")
        }
        Some("tools/call") => {
            let (events, text) = (EVENTS, |text: &str| json!({ "content": [{ "type": "text", "text": text }] }));
            match mode {
                Mode::Events => {
                    let ask = json!({ "jsonrpc": "2.0", "id": "q", "method": "ping" });
                    format!("{events}: hello\n\nevent: message\ndata: {ask}\n\ndata: {}\n\n", result(text("in events")))
                }
                Mode::Chatters => {
                    let nonsense = "data: nonsense\n\n".repeat(900);
                    let said = result(text("at last"));
                    format!("{events}{nonsense}data: {NEWS}\n\n{nonsense}data: {said}\n\n")
                }
                // The next look at its lists fails in the same way.
                Mode::Repeats => format!("{events}data: {NEWS}\n\ndata: {}\n\n", result(json!(head))),
                Mode::RepeatsRefusing => {
                    let error = json!({ "code": -1, "message": head });
                    json(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string(), "")
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
                Mode::Nothing => events.to_owned(),
                Mode::Forgets => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
                Mode::Unauthorized | Mode::Redirects | Mode::Restless => unreachable!(),
            }
        }
        Some(_) => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
    };
    socket.write_all(said.as_bytes()).await.ok()
}

async fn start(mode: Mode) -> Server {
    started(serve(mode).await.0, if mode == Mode::Never { SHORT } else { DEADLINE })
}

fn started(url: String, timeout: Duration) -> Server {
    let reach = Reach::Http { url, headers: vec![("x-key".into(), "sk-very-secret".into())] };
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

#[tokio::test]
async fn one_that_says_something_is_listened_to_as_often_as_it_hangs_up() {
    let (url, mut listened) = serve(Mode::Restless).await;
    let _server = started(url, DEADLINE);
    tokio::time::timeout(DEADLINE, listened.wait_for(|count| *count >= 12)).await.expect("it is heard").unwrap();
}

#[tokio::test]
async fn nonsense_that_ends_is_forgiven() {
    let (_server, called) = call(Mode::Chatters).await;
    assert_eq!(called.unwrap().content, [Content::Text("at last".into())]);
}

/// What is logged in this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_it_repeats_of_its_address_and_its_headers_is_told_nowhere() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    let _logging = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
    let logged = || String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let mut told = String::new();
    for mode in [Mode::RepeatsRefusing, Mode::Repeats] {
        let (server, called) = call(mode).await;
        told += &format!("{called:?} {} {:?}", called.clone().unwrap_err(), server.status());
        let since = std::time::Instant::now();
        while mode == Mode::Repeats && !logged().contains("what it has is not known") {
            assert!(since.elapsed() < DEADLINE, "{}", logged());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert!(told.contains("x-key: [secret]") && told.contains("/mcp/[secret]?key=[secret]"), "{told}");
    let ours: String = logged().lines().filter(|line| line.contains("tolka_mcp")).collect();
    assert!(ours.contains("x-key: [secret]"), "{ours}");
    // me:password, as a request says who asks.
    for secret in ["password", "sk-in-the-url", "a-key-in-the-path", "very", "bWU6cGFzc3dvcmQ"] {
        assert!(!told.contains(secret) && !ours.contains(secret), "{secret}: {told}\n{ours}");
    }
}

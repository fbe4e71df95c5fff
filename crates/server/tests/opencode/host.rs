//! A server of our own with an agent that does as its prompt says, and a client that speaks bare HTTP: what
//! these tests look at is what is on the wire.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tolka_agent::{Agent, Agents};
use tolka_facts::Ids;
use tolka_journal::{Sqlite, SqliteOptions};
use tolka_mcp::Hub;
use tolka_server::{Config, Hands, Server};
use tolka_session::Desk;

use crate::agent::Obedient;

/// A test that waits for what never comes should say so.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    /// The workspace, and beside it the data and a folder that is neither.
    pub(crate) root: TempDir,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Host {
    pub(crate) async fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("workspace/inner")).unwrap();
        std::fs::create_dir_all(root.path().join("workspace-not")).unwrap();
        Host::open(root).await
    }

    /// Begins to stop; `restart` waits for the end of it.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Stops, and starts again on the same data.
    pub(crate) async fn restart(self) -> Self {
        self.stop();
        self.serving.await.unwrap();
        Host::open(self.root).await
    }

    /// With an agent of the test's own.
    pub(crate) async fn with(agent: Arc<dyn Agent>) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("workspace")).unwrap();
        Host::open_with(root, Arc::from([agent]), Hands::default()).await
    }

    /// With MCP servers.
    pub(crate) async fn with_servers(hub: Arc<Hub>) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("workspace")).unwrap();
        let agents: Agents = Arc::from([Arc::new(Obedient("first")) as Arc<dyn Agent>]);
        Host::open_with(root, agents, Hands { mcp: Some(hub), ..Hands::default() }).await
    }

    async fn open(root: TempDir) -> Self {
        let agents: Agents =
            Arc::from([Arc::new(Obedient("first")) as Arc<dyn Agent>, Arc::new(Obedient("second")) as Arc<dyn Agent>]);
        Host::open_with(root, agents, Hands::default()).await
    }

    async fn open_with(root: TempDir, agents: Agents, hands: Hands) -> Self {
        let base = root.path().canonicalize().unwrap();
        let journal = Sqlite::open(&SqliteOptions::new(base.join("data"))).unwrap();
        let desk = Desk::new(journal.clone(), agents, Arc::new(Ids::seeded(tolka_facts::Time::now().micros())));
        let config = Config {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            workspace: base.join("workspace"),
            data: base.join("data"),
            token: None,
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            max_readers: 100,
            hands,
            gather: Duration::ZERO,
        };
        let server = Server::bind(config, desk).await.unwrap();
        let address = server.address();
        let (stop, mut stopped) = watch::channel(false);
        let serving = tokio::spawn(async move {
            server.run(async move { drop(stopped.wait_for(|stop| *stop).await) }).await;
            tokio::task::spawn_blocking(move || journal.close()).await.unwrap();
        });
        Host { address, root, stop, serving }
    }

    pub(crate) fn workspace(&self, inner: &str) -> String {
        self.root
            .path()
            .canonicalize()
            .unwrap()
            .join("workspace")
            .join(inner)
            .display()
            .to_string()
            .trim_end_matches('/')
            .to_owned()
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.call(Method::GET, path, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.call(Method::POST, path, &body.to_string()).await
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: &str) -> (StatusCode, Value) {
        let response = self.send(method, path, &[], body).await;
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() })
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Incoming> {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", self.address.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        sender.send_request(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await.unwrap()
    }

    pub(crate) async fn new_session(&self) -> String {
        let (status, session) = self.post("/session", serde_json::json!({})).await;
        assert_eq!(status, StatusCode::OK);
        session["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn listen(&self, path: &str, headers: &[(&str, &str)]) -> Feed {
        let response = self.send(Method::GET, path, headers, "").await;
        assert_eq!(response.status(), StatusCode::OK);
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/event-stream"));
        Feed { body: response.into_body(), read: String::new() }
    }
}

/// The events of a stream, one at a time.
pub(crate) struct Feed {
    body: Incoming,
    read: String,
}

pub(crate) struct Told {
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

impl Feed {
    /// Whether the connection breaks off rather than end, whatever is told before.
    pub(crate) async fn ends_badly(mut self) -> bool {
        loop {
            match self.body.frame().await {
                Some(Ok(_)) => {}
                Some(Err(_)) => return true,
                None => return false,
            }
        }
    }

    /// The next event; `None` when the stream is over.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(end) = self.read.find("\n\n") {
                let chunk: String = self.read.drain(..end + 2).collect();
                let field = |name: &str| chunk.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let Some(data) = field("data: ") {
                    return Some(Told { id: field("id: "), data: serde_json::from_str(&data).unwrap() });
                }
                continue;
            }
            let frame = timeout(PATIENCE, self.body.frame()).await.expect("nothing was told in time");
            let frame = frame?.ok()?;
            self.read.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }

    /// Everything up to the end of the stream.
    pub(crate) async fn until_over(&mut self) -> Vec<Value> {
        let mut told = Vec::new();
        while let Some(next) = self.next().await {
            told.push(next.data);
        }
        told
    }

    /// Waits for an event that has these words in it.
    pub(crate) async fn until_said(&mut self, words: &str) {
        while !self.next().await.expect("the stream ended early").data.to_string().contains(words) {}
    }

    pub(crate) async fn is_silent_for(&mut self, time: Duration) -> bool {
        timeout(time, self.next()).await.is_err()
    }

    /// Everything up to the first event of this type, and that one.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Told> {
        let mut told = Vec::new();
        loop {
            told.push(self.next().await.expect("the stream ended early"));
            if told.last().unwrap().data["type"] == kind {
                return told;
            }
        }
    }
}

//! A server with a replayed agent, and a client that knows HTTP and nothing else.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tolka_agent::{Agent, Pace, Recording, Replay};
use tolka_facts::Ids;
use tolka_journal::{Sqlite, SqliteOptions};
use tolka_server::{Config, Hands, Server};
use tolka_session::{Desk, DeskOptions};
use tolka_workspace::Checkpoints;

use crate::reader::{Frame, OnyxReader, frames};

/// Streams are never silent for longer than their keep-alives are apart.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn recording(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/recordings/acp");
    std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap()
}

fn workspace(folder: &Path) -> PathBuf {
    let workspace = folder.canonicalize().unwrap().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    workspace
}

fn replay(script: &str, pace: Pace) -> Arc<dyn Agent> {
    Arc::new(Replay::new("replay", Recording::parse(script).unwrap(), pace))
}

pub(crate) struct House {
    address: SocketAddr,
    folder: TempDir,
    pub(crate) journal: Arc<Sqlite>,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
    agent: Arc<dyn Agent>,
    saves: bool,
}

impl House {
    /// A server whose agent plays a recording by its name.
    pub(crate) async fn playing(name: &str, pace: Pace) -> Self {
        House::with(recording(name), pace).await
    }

    pub(crate) async fn with(script: String, pace: Pace) -> Self {
        House::of(replay(&script, pace)).await
    }

    /// One whose agent plays what is written for the folder it works in.
    pub(crate) async fn written(script: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agent = replay(&script(&workspace(folder.path())), Pace::AtOnce);
        House::at(folder, agent, 100, false).await
    }

    pub(crate) async fn of(agent: Arc<dyn Agent>) -> Self {
        House::at(tempfile::tempdir().unwrap(), agent, 100, false).await
    }

    /// One that saves its workspace before and after every turn.
    pub(crate) async fn saving(agent: Arc<dyn Agent>) -> Self {
        House::at(tempfile::tempdir().unwrap(), agent, 100, true).await
    }

    /// One that lets only so many streams be open at once.
    pub(crate) async fn for_readers(max_readers: usize, name: &str, pace: Pace) -> Self {
        House::at(tempfile::tempdir().unwrap(), replay(&recording(name), pace), max_readers, false).await
    }

    async fn at(folder: TempDir, agent: Arc<dyn Agent>, max_readers: usize, saves: bool) -> Self {
        let data = folder.path().join("data");
        let journal = Sqlite::open(&SqliteOptions::new(data.clone())).unwrap();
        let checkpoints = saves.then(|| Arc::new(Checkpoints::new(&data)));
        let options = DeskOptions { checkpoints, ..DeskOptions::default() };
        let ids = Arc::new(Ids::seeded(7));
        let desk = Desk::with_options(journal.clone(), Arc::from([agent.clone()]), ids, options);
        let config = Config {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            workspace: workspace(folder.path()),
            data,
            token: None,
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            max_readers,
            hands: Hands::default(),
            gather: Duration::ZERO,
        };
        let server = Server::bind(config, desk).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        House { address, folder, journal, stop: Some(stop), running: Some(running), agent, saves }
    }

    /// Goes down as it should and comes up again on the same folder.
    pub(crate) async fn restart(mut self) -> Self {
        drop(self.stop.take());
        self.running.take().unwrap().await.unwrap();
        self.journal.close();
        House::at(self.folder, self.agent, 100, self.saves).await
    }

    /// Where its agents work.
    pub(crate) fn workspace(&self) -> PathBuf {
        workspace(self.folder.path())
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.open("GET", path, &[], None).await.whole().await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.open("POST", path, &[], Some(body.to_string())).await.whole().await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &str) -> Reply {
        self.open(method, path, &[], Some(body.to_owned())).await.whole().await
    }

    /// A session made the documents' way; its id.
    pub(crate) async fn session(&self) -> String {
        let made = self.post("/sessions", serde_json::json!({})).await;
        assert_eq!(made.status, 200, "{}", made.text());
        made.json()["id"].as_str().unwrap().to_owned()
    }

    /// A prompt of the documents' client; its stream.
    pub(crate) async fn prompt(&self, session: &str, content: &str) -> Stream {
        let body = serde_json::json!({ "content": content }).to_string();
        let stream = self.open("POST", &format!("/sessions/{session}/send-message"), &[], Some(body)).await;
        assert_eq!(stream.status, 200);
        stream
    }

    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Stream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let body = body.unwrap_or_default();
        request += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        socket.write_all(request.as_bytes()).await.unwrap();
        let head = tokio::time::timeout(PATIENCE, Stream::read_head(BufReader::new(socket))).await;
        head.unwrap_or_else(|_| panic!("no answer to {method} {path}"))
    }
}

/// A response whose body is still to come.
pub(crate) struct Stream {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    socket: BufReader<TcpStream>,
    pub(crate) bytes: Vec<u8>,
    reader: OnyxReader,
    unread: std::collections::VecDeque<Value>,
}

impl Stream {
    async fn read_head(mut socket: BufReader<TcpStream>) -> Self {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            socket.read_line(&mut line).await.unwrap();
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &String| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let headers = lines[1..].iter().filter_map(header).collect();
        let (bytes, reader, unread) = (Vec::new(), OnyxReader::default(), Default::default());
        Stream { status, headers, socket, bytes, reader, unread }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reads on; false at the end. A body that breaks off is no end.
    async fn more(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.read_piece()).await;
        read.unwrap_or_else(|_| panic!("nothing came after {:?}", String::from_utf8_lossy(&self.bytes)))
    }

    async fn read_piece(&mut self) -> bool {
        let mut piece = Vec::new();
        if self.header("transfer-encoding") == Some("chunked") {
            let mut size = String::new();
            self.socket.read_line(&mut size).await.unwrap();
            let size = usize::from_str_radix(size.trim_end(), 16).expect("the body broke off");
            piece.resize(size + 2, 0);
            self.socket.read_exact(&mut piece).await.unwrap();
            piece.truncate(size);
        } else {
            self.socket.read_to_end(&mut piece).await.unwrap();
        }
        self.unread.extend(self.reader.feed(&piece));
        self.bytes.extend_from_slice(&piece);
        !piece.is_empty()
    }

    /// The next packet, or `None` at the end of the stream.
    pub(crate) async fn packet(&mut self) -> Option<Value> {
        loop {
            if let Some(packet) = self.unread.pop_front() {
                return Some(packet);
            }
            if !self.more().await {
                return None;
            }
        }
    }

    pub(crate) async fn packet_of(&mut self, kind: &str) -> Value {
        loop {
            let packet = self.packet().await.expect("the stream ended before the packet came");
            if packet["type"] == kind {
                return packet;
            }
        }
    }

    /// Reads until the text has come.
    pub(crate) async fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.bytes).contains(text) {
            assert!(self.more().await, "the stream ended before {text:?} came");
        }
    }

    pub(crate) async fn whole(mut self) -> Reply {
        // Keep-alives would keep a stream that never ends going for ever.
        let all = tokio::time::timeout(3 * PATIENCE, async { while self.more().await {} }).await;
        assert!(all.is_ok(), "no end after {:?}", String::from_utf8_lossy(&self.bytes));
        Reply { status: self.status, headers: self.headers, bytes: self.bytes }
    }
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) bytes: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    pub(crate) fn packets(&self) -> Vec<Value> {
        OnyxReader::default().feed(&self.bytes)
    }

    pub(crate) fn frames(&self) -> Vec<Frame> {
        frames(&self.text())
    }
}

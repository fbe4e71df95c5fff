//! A server of bytes: it answers every request with the same ones, cut into HTTP chunks as told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(crate) const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
pub(crate) const JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

pub(crate) struct Raw {
    pub(crate) address: SocketAddr,
    reply: Arc<Mutex<Reply>>,
    task: JoinHandle<()>,
    /// The heads of the requests.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Reply {
    head: String,
    chunks: Vec<Vec<u8>>,
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Raw {
    pub(crate) async fn start(head: &str, chunks: &[&[u8]]) -> Raw {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let reply = Arc::new(Mutex::new(Reply { head: String::new(), chunks: Vec::new() }));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (replies, heads) = (Arc::clone(&reply), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(socket, Arc::clone(&replies), Arc::clone(&heads)));
            }
        });
        let raw = Raw { address, reply, task, asked };
        raw.say(head, chunks);
        raw
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What is answered from now on.
    pub(crate) fn say(&self, head: &str, chunks: &[&[u8]]) {
        let chunks = chunks.iter().map(|chunk| chunk.to_vec()).collect();
        *self.reply.lock().unwrap() = Reply { head: head.to_owned(), chunks };
    }
}

/// Requests on one connection until it is closed.
async fn answer(mut socket: TcpStream, reply: Arc<Mutex<Reply>>, asked: Arc<Mutex<Vec<String>>>) {
    let mut bytes = Vec::new();
    socket.set_nodelay(true).unwrap();
    loop {
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse::<usize>().unwrap();
        while bytes.len() < end + length {
            if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        }
        bytes.drain(..end + length);
        asked.lock().unwrap().push(head);
        let Reply { head, chunks } = reply.lock().unwrap().clone();
        let mut out = format!("{head}transfer-encoding: chunked\r\n\r\n").into_bytes();
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        if socket.write_all(&out).await.is_err() {
            return;
        }
    }
}

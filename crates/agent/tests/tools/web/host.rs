//! A server on loopback that behaves badly, each path in its own way.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, watch};

pub(crate) struct Host {
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<String>>>,
    open: watch::Sender<usize>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Host {
    pub(crate) async fn start() -> Host {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (heard, open) = (Arc::<Mutex<Vec<String>>>::default(), watch::Sender::new(0));
        let (ears, guests, two) = (heard.clone(), open.clone(), Arc::new(Barrier::new(2)));
        let serving = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (ears, guests, two) = (ears.clone(), guests.clone(), two.clone());
                guests.send_modify(|count| *count += 1);
                tokio::spawn(async move {
                    let head = head(&mut socket).await;
                    ears.lock().unwrap().push(head.clone());
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    // The other side goes away in the middle, as it should.
                    let _ = answer(&mut socket, &path, &two).await;
                    let _ = socket.shutdown().await;
                    guests.send_modify(|count| *count -= 1);
                });
            }
        });
        Host { port, heard, open, serving }
    }

    pub(crate) fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.place())
    }

    /// The head of every request so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until no connection is left.
    pub(crate) async fn all_gone(&self) {
        let mut open = self.open.subscribe();
        let gone = open.wait_for(|count| *count == 0);
        tokio::time::timeout(Duration::from_secs(30), gone).await.expect("connections are closed").unwrap();
    }
}

async fn head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

async fn whole(socket: &mut TcpStream, status: &str, head: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{head}\r\n\r\n");
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body).await
}

/// Until the other side has had enough.
async fn endless(socket: &mut TcpStream, head: &str, piece: &[u8]) -> std::io::Result<()> {
    socket.write_all(format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\n\r\n").as_bytes()).await?;
    loop {
        socket.write_all(piece).await?;
    }
}

/// A byte, and a while later the next, until the other side is gone.
async fn drip(socket: &mut TcpStream, byte: &[u8]) -> std::io::Result<()> {
    loop {
        socket.write_all(byte).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn answer(socket: &mut TcpStream, path: &str, two: &Barrier) -> std::io::Result<()> {
    const PAGE: &str = "<!doctype html><html><head><title>T</title><script>x()</script></head><body>\
        <h1>Hello</h1><p>Some <b>bold</b> words and a <a href=\"/there\">link</a>.</p>";
    const HTML: &str = "Content-Type: text/html";
    const TEXT: &str = "Content-Type: text/plain";
    const GZIP: &str = "Content-Type: text/plain\r\nContent-Encoding: gzip";
    if let Some(to) = path.strip_prefix("/to/") {
        return whole(socket, "302 Found", &format!("Location: {to}"), b"").await;
    }
    if let Some(hops) = path.strip_prefix("/hops/").and_then(|hops| hops.parse::<u32>().ok()).filter(|hops| *hops > 0) {
        return whole(socket, "307 Temporary Redirect", &format!("Location: /hops/{}", hops - 1), b"").await;
    }
    match path {
        "/page" => whole(socket, "200 OK", HTML, PAGE.as_bytes()).await,
        "/hops/0" => whole(socket, "200 OK", TEXT, b"arrived").await,
        "/json" => whole(socket, "200 OK", "Content-Type: application/json", b"{\"a\": [1, 2]}").await,
        "/png" => whole(socket, "200 OK", "Content-Type: image/png", b"\x89PNG\r\n\x1a\n\0\0\0\0").await,
        "/pdf" => whole(socket, "200 OK", "Content-Type: application/pdf", b"%PDF-1.7\n\xff").await,
        "/binary" => whole(socket, "200 OK", TEXT, b"\x7fELF\0\0\0").await,
        "/missing" => whole(socket, "404 Not Found", HTML, b"<p>Not here").await,
        "/unsaid" => whole(socket, "200 OK", "X-Nothing: said", b"\n<!DOCTYPE html><h1>Unsaid</h1>").await,
        "/loop" => whole(socket, "301 Moved Permanently", "Location: /loop", b"").await,
        "/endless" => endless(socket, TEXT, "all work and no play\n".repeat(1000).as_bytes()).await,
        "/endless-page" => endless(socket, HTML, "<div><p>all work<b> and no play".repeat(1000).as_bytes()).await,
        "/bomb" => endless(socket, GZIP, &packed(&vec![b'0'; 8 << 20])).await,
        "/hollow" => endless(socket, GZIP, &packed(b"").repeat(1000)).await,
        "/no-gzip" => whole(socket, "200 OK", GZIP, b"these are plain words").await,
        "/brotli" => whole(socket, "200 OK", "Content-Type: text/plain\r\nContent-Encoding: br", b"\x0b").await,
        "/gzip" => whole(socket, "200 OK", GZIP, &packed(b"packed words")).await,
        "/drip" => {
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n").await?;
            drip(socket, b"x").await
        }
        "/silent" => socket.read_u8().await.map(drop),
        "/slow-head" => drip(socket, b"H").await,
        "/endless-head" => {
            socket.write_all(b"HTTP/1.1 200 OK\r\n").await?;
            loop {
                socket.write_all(b"X-More: and more\r\n").await?;
            }
        }
        "/short" => {
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: text/plain\r\n\r\nsome").await
        }
        "/nonsense" => socket.write_all(b"this is no HTTP\r\n\r\n").await,
        "/latin1" => whole(socket, "200 OK", "Content-Type: text/plain; charset=iso-8859-1", b"gr\xfcn").await,
        "/latin1-as-utf8" => whole(socket, "200 OK", "Content-Type: text/plain; charset=utf-8", b"gr\xfcn").await,
        "/unknown-charset" => {
            whole(socket, "200 OK", "Content-Type: text/plain; charset=klingon", "grün".as_bytes()).await
        }
        "/meta" => {
            let page = [b"<meta charset=koi8-r>".as_slice(), &[0xd0, 0xd2, 0xc9, 0xd7, 0xc5, 0xd4]].concat();
            whole(socket, "200 OK", HTML, &page).await
        }
        "/utf16" => {
            let page: Vec<u8> = "\u{feff}grün".encode_utf16().flat_map(u16::to_le_bytes).collect();
            whole(socket, "200 OK", TEXT, &page).await
        }
        "/together" => {
            two.wait().await;
            whole(socket, "200 OK", TEXT, b"together").await
        }
        _ => whole(socket, "404 Not Found", TEXT, b"Not here").await,
    }
}

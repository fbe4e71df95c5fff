//! Bytes from one side to the other, and back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::request;

/// A connection over which nothing went for so long is closed.
const IDLE: Duration = Duration::from_secs(300);

/// Up to the empty line, and what came after it already.
pub(super) async fn head(client: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut read = Vec::with_capacity(1024);
    loop {
        if client.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return Some((String::from_utf8(read).ok()?, rest));
        }
        if read.len() > request::LONGEST {
            return None;
        }
    }
}

/// Until both have ended, or nothing goes either way.
pub(super) async fn relay(client: impl AsyncRead + AsyncWrite + Unpin, host: TcpStream) {
    let (from_client, to_client) = split(client);
    let (from_host, to_host) = split(host);
    let beat = Beat { began: Instant::now(), last: AtomicU64::new(0) };
    tokio::join!(one_way(from_client, to_host, &beat), one_way(from_host, to_client, &beat));
}

/// When something last went over a connection, in either direction.
struct Beat {
    began: Instant,
    /// Milliseconds since it began.
    last: AtomicU64,
}

impl Beat {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

async fn one_way(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, beat: &Beat) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        match timeout(IDLE, from.read(&mut buffer)).await {
            Ok(Ok(count @ 1..)) => {
                beat.last.store(beat.now(), Ordering::Relaxed);
                if !matches!(timeout(IDLE, to.write_all(&buffer[..count])).await, Ok(Ok(()))) {
                    break;
                }
            }
            Ok(_) => break,
            Err(_) => {
                let idle = beat.now().saturating_sub(beat.last.load(Ordering::Relaxed));
                if u128::from(idle) >= IDLE.as_millis() {
                    break;
                }
            }
        }
    }
    let _ = to.shutdown().await;
}

//! A client's socket that knows since when its client has taken nothing.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Since when a write has waited, and of what. Shared with the loop, because hyper keeps the socket to itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Stall(Arc<Mutex<Waits>>);

#[derive(Debug, Default)]
struct Waits {
    since: Option<Instant>,
    of_stream: bool,
}

impl Stall {
    /// Whether the client has taken nothing since that moment although there was something.
    pub(super) fn lasts_since(&self, moment: Instant) -> bool {
        self.waits().since.is_some_and(|since| since <= moment)
    }

    /// Whether what is being answered is a stream that can be taken up again.
    pub(super) fn is_of_stream(&self) -> bool {
        self.waits().of_stream
    }

    pub(super) fn answers(&self, with_stream: bool) {
        self.waits().of_stream = with_stream;
    }

    /// Only one task ever looks, and nothing panics while it does.
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    stall: Stall,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, stall: Stall) -> Self {
        Socket { stream, stall }
    }

    /// Closes it and drops what waits in the kernel's buffer, which would else outlive the connection by minutes.
    pub(super) fn cut(self) {
        // Without it the buffer stays for a while, and the connection is closed all the same.
        let _ = self.stream.set_zero_linger();
    }

    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let mut waits = self.stall.waits();
        match &written {
            Poll::Pending => waits.since = waits.since.or_else(|| Some(Instant::now())),
            Poll::Ready(_) => waits.since = None,
        }
        drop(waits);
        written
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let written = Pin::new(&mut socket.stream).poll_write(cx, buf);
        socket.noted(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let written = Pin::new(&mut socket.stream).poll_write_vectored(cx, bufs);
        socket.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_client_that_takes_bytes_again_no_longer_stalls() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let stall = Stall::default();
        let mut socket = Socket::new(listener.accept().await.unwrap().0, stall.clone());
        let (before, piece) = (Instant::now(), [7; 65536]);
        let mut sent = 0;
        let mut fill = async |socket: &mut Socket| {
            poll_fn(|cx| {
                while let Poll::Ready(written) = Pin::new(&mut *socket).poll_write(cx, &piece) {
                    sent += written.unwrap();
                }
                Poll::Ready(())
            })
            .await;
        };
        assert!(!stall.lasts_since(Instant::now()));
        fill(&mut socket).await;
        assert!(stall.lasts_since(Instant::now()) && !stall.lasts_since(before));
        let since = Instant::now();
        fill(&mut socket).await;
        assert!(stall.lasts_since(since), "a second try is the same stall");

        let mut taken = vec![0; sent];
        client.read_exact(&mut taken).await.unwrap();
        socket.write_all(b"more").await.unwrap();
        assert!(!stall.lasts_since(Instant::now()));
    }
}

//! Raw TCP: the same bytes, in pieces of the same size, to as many sockets.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Writes the file to every socket that connects, once it has asked.
pub(crate) async fn serve(file: &Path, piece: usize) -> Result<()> {
    let listener = listen().await?;
    let bytes: Arc<[u8]> = std::fs::read(file)?.into();
    loop {
        let mut socket = asked(&listener).await?;
        let bytes = bytes.clone();
        tokio::spawn(async move {
            let mut request = [0; 512];
            if socket.read(&mut request).await.is_ok_and(|read| read > 0) {
                for piece in bytes.chunks(piece.max(1)) {
                    if socket.write_all(piece).await.is_err() {
                        return;
                    }
                }
                // Open until the reader goes, as the server's own streams are.
                let _ = socket.read(&mut request).await;
            }
        });
    }
}

/// Writes the head of the file to so many sockets, then a frame of it to all of them at every tick: the least that
/// telling facts at once can cost.
pub(crate) async fn serve_paced(file: &Path, readers: usize, every: Duration) -> Result<()> {
    let listener = listen().await?;
    let mut sockets = Vec::new();
    let mut request = [0; 512];
    while sockets.len() < readers {
        let mut socket = asked(&listener).await?;
        let _ = socket.read(&mut request).await?;
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\nid: 0.0\ndata: {}\n\n").await?;
        sockets.push(socket);
    }
    let bytes = std::fs::read(file)?;
    let frames: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\0').collect();
    // The first reader says when, so that all have been counted in.
    let _ = sockets[0].read(&mut request).await?;
    let mut ticks = tokio::time::interval(every);
    for frame in frames {
        ticks.tick().await;
        for socket in &sockets {
            // A frame is small and readers read: there is room. If not, the reader's count shows it.
            let _ = socket.try_write(&frame[..frame.len() - 1]);
        }
    }
    for mut socket in sockets {
        let _ = socket.read(&mut request).await;
    }
    Ok(())
}

async fn asked(listener: &TcpListener) -> Result<TcpStream> {
    let (socket, _) = listener.accept().await?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

pub(super) async fn listen() -> Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    Ok(listener)
}

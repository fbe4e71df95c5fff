//! The same facts, encoded for each reader: what a server costs that shares nothing.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tolka_facts::Fact;

use super::raw::listen;

/// As much as is gathered before a write.
const WRITE: usize = 64 * 1024;

/// Tells the facts of a file, a line each, to everyone who asks.
pub(crate) async fn serve(file: &Path) -> Result<()> {
    let text = std::fs::read(file)?;
    let facts: Result<Arc<[Fact]>, _> =
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(Fact::from_json).collect();
    let facts = facts?;
    drop(text);
    let listener = listen().await?;
    loop {
        let (mut socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let facts = facts.clone();
        tokio::spawn(async move {
            let mut request = [0; 512];
            let _ = socket.read(&mut request).await?;
            let mut out = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
            for fact in facts.iter() {
                out.extend_from_slice(format!("id: {}.0\ndata: ", fact.seq).as_bytes());
                fact.write_json(&mut out);
                out.extend_from_slice(b"\n\n");
                if out.len() >= WRITE {
                    socket.write_all(&out).await?;
                    out.clear();
                }
            }
            socket.write_all(&out).await?;
            let _ = socket.read(&mut request).await?;
            anyhow::Ok(())
        });
    }
}

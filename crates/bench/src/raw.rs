//! The reference: a program that writes the same number of bytes to as many sockets, and does nothing else.

use std::sync::Arc;

use anyhow::Result;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// As much as the server puts into one write.
const WRITE: usize = 64 * 1024;

/// Writes `bytes` to every socket that connects, once it has said something.
pub(crate) async fn serve(bytes: usize) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let block: Arc<[u8]> = vec![b'x'; WRITE].into();
    loop {
        let (mut socket, _) = listener.accept().await?;
        let block = block.clone();
        tokio::spawn(async move {
            socket.set_nodelay(true)?;
            let mut asked = [0; 1];
            tokio::io::AsyncReadExt::read_exact(&mut socket, &mut asked).await?;
            let mut left = bytes;
            while left > 0 {
                let now = left.min(WRITE);
                socket.write_all(&block[..now]).await?;
                left -= now;
            }
            anyhow::Ok(())
        });
    }
}

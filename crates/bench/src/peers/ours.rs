//! Ours, on OpenCode's wire: the readers read the same events from both.

use std::time::Instant;

use anyhow::{Context, Result};
use tokio::io::AsyncReadExt;

use super::{Peer, Tokens};
use crate::Bench;
use crate::burst::facts_of;
use crate::reader::Reader;
use crate::server::{Script, new_session, readers};

pub(super) async fn start(bench: &Bench, tokens: Tokens) -> Result<Peer> {
    let script = Script::paced(tokens.count as usize, tokens.every);
    let started = Instant::now();
    let (server, scratch) = bench.tolka.play(&script, &[]).await?;
    server.open_stream("/event").await?.read_exact(&mut [0; 1]).await?;
    let start = started.elapsed().as_secs_f64() * 1e3;
    Ok(Peer { server, path: "/event".to_owned(), session: String::new(), start, _scratch: scratch, _model: None })
}

/// A new session, and a reader of its own wire, which has the time of every fact. The feed tells all sessions.
pub(super) struct Watching {
    pub(super) session: String,
    reader: Reader,
}

pub(super) async fn watch(peer: &Peer) -> Result<Watching> {
    let session = new_session(&peer.server).await?;
    let reader = readers(&peer.server, &session, 1).await?.remove(0);
    Ok(Watching { session, reader })
}

impl Watching {
    /// When each token was stamped.
    pub(super) async fn stamps(mut self, count: u64) -> Result<Vec<u64>> {
        let captured = loop {
            let so_far = self.reader.captured.as_deref().context("it keeps its bytes")?;
            if memchr::memmem::rfind(so_far, format!("\"text\":\"{}@0 ", count - 1).as_bytes()).is_some() {
                break so_far;
            }
            self.reader.read().await?;
        };
        let mut stamps = vec![0; count as usize];
        for line in facts_of(captured)?.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let fact: serde_json::Value = serde_json::from_slice(line)?;
            let text = fact["data"]["text"].as_str().and_then(|text| text.split_once('@'));
            if let Some(number) = text.and_then(|(number, _)| number.parse::<usize>().ok())
                && let Some(place) = stamps.get_mut(number)
            {
                *place = fact["time"].as_u64().context("no time")?;
            }
        }
        Ok(stamps)
    }
}

//! One reader: a cursor that moves when its client takes bytes, and waits when there are none.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tolka_facts::TurnId;
use tolka_journal::JournalError;

use super::chunk::Chunk;
use super::tongue::{Found, Tongue};
use super::{Channel, Cursor, Follow, Tongues, Voice};

const PAGE: usize = 256;

/// When a stream is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    Never,
    TurnEnds(TurnId),
}

#[derive(Debug)]
pub struct Reader {
    channel: Channel,
    tongues: Tongues,
    cursor: Cursor,
    until: Until,
    source: Source,
    /// Sent before anything else, without a position.
    greeting: Option<Bytes>,
    /// Sent after this much silence, for proxies and clients that give up on a silent stream.
    heartbeat: (Duration, Bytes),
    over: bool,
}

enum Source {
    /// Behind: reads the journal for itself.
    Own { follow: Follow, voice: Voice },
    /// At the head: shares what the channel's task encodes.
    Shared { tongue: Arc<Tongue>, head: watch::Receiver<u64> },
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Source::Own { .. } => "Own",
            Source::Shared { .. } => "Shared",
        })
    }
}

impl Reader {
    pub fn new(tongues: &Tongues, channel: Channel, cursor: Cursor, until: Until) -> Self {
        let tongue = tongues.join(&channel);
        let head = tongue.watch();
        Reader {
            channel,
            tongues: tongues.clone(),
            cursor,
            until,
            source: Source::Shared { tongue, head },
            greeting: None,
            heartbeat: (Duration::from_secs(10), Bytes::from_static(b": keepalive\n\n")),
            over: false,
        }
    }

    #[must_use]
    pub fn greet(mut self, greeting: impl Into<Bytes>) -> Self {
        self.greeting = Some(greeting.into());
        self
    }

    #[must_use]
    pub fn heartbeat(mut self, heartbeat: impl Into<Bytes>) -> Self {
        self.heartbeat.1 = heartbeat.into();
        self
    }

    /// The next bytes to write, or `None` when the stream is over.
    pub async fn next(&mut self) -> Option<Result<Bytes, JournalError>> {
        if let Some(greeting) = self.greeting.take() {
            return Some(Ok(greeting));
        }
        loop {
            if self.over {
                return None;
            }
            match self.chunks().await {
                Ok(Some(chunks)) => {
                    let bytes = self.take(&chunks);
                    if !bytes.is_empty() {
                        return Some(Ok(bytes));
                    }
                }
                Ok(None) => return Some(Ok(self.heartbeat.1.clone())),
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            }
        }
    }

    /// What comes after the cursor, or `None` after a silence. Only the wait at the head can be cut short:
    /// elsewhere an encoder's state would be ahead of what was told.
    async fn chunks(&mut self) -> Result<Option<Vec<Arc<Chunk>>>, JournalError> {
        let silence = Instant::now() + self.heartbeat.0;
        loop {
            match &mut self.source {
                Source::Own { follow, voice } => {
                    let entries = follow.ready(PAGE).await?;
                    if !entries.is_empty() {
                        let chunks = voice.speak(&entries, self.cursor).await?;
                        return Ok(Some(chunks.into_iter().map(Arc::new).collect()));
                    }
                    self.share();
                }
                Source::Shared { tongue, head } => match tongue.chunk_after(self.cursor.before()) {
                    Found::Chunk(chunk) => return Ok(Some(vec![chunk])),
                    Found::Behind => self.read_alone(),
                    Found::AtHead => {
                        let at = self.cursor.before();
                        match timeout_at(silence, head.wait_for(|head| *head > at)).await {
                            Ok(Ok(_)) => {}
                            Ok(Err(_)) => {
                                self.over = true;
                                return Ok(Some(Vec::new()));
                            }
                            Err(_) => return Ok(None),
                        }
                    }
                },
            }
        }
    }

    fn take(&mut self, chunks: &[Arc<Chunk>]) -> Bytes {
        let mut gathered = BytesMut::new();
        for chunk in chunks {
            let ending = match &self.until {
                Until::TurnEnds(turn) => chunk.up_to_end(self.cursor, turn),
                Until::Never => None,
            };
            self.over = ending.is_some();
            let bytes = ending.unwrap_or_else(|| chunk.after(self.cursor));
            self.cursor = Cursor::whole(chunk.to);
            if chunks.len() == 1 || self.over && gathered.is_empty() {
                return bytes;
            }
            gathered.extend_from_slice(&bytes);
            if self.over {
                break;
            }
        }
        gathered.freeze()
    }

    fn share(&mut self) {
        let tongue = self.tongues.join(&self.channel);
        let head = tongue.watch();
        self.source = Source::Shared { tongue, head };
    }

    fn read_alone(&mut self) {
        let journal = self.tongues.journal().clone();
        self.source = Source::Own {
            follow: Follow::new(journal.clone(), self.channel.scope(), self.cursor.before()),
            voice: Voice::new(journal, self.channel.clone()),
        };
    }
}

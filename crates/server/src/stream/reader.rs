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
use super::{Channel, Cursor, Dress, Follow, Tongues, Voice};

const PAGE: usize = 256;
/// Milliseconds until a client that was cut off should come back. OpenCode's SDK waits three seconds, then six, and
/// never forgets; unless it is told otherwise.
const RETRY: u32 = 250;

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
    /// Behind: reads the journal for itself. Boxed: most readers are not, and should stay small.
    Own(Box<Own>),
    /// At the head: shares what the channel's task encodes.
    Shared { tongue: Arc<Tongue>, head: watch::Receiver<u64> },
}

struct Own {
    follow: Follow,
    voice: Voice,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Source::Own(_) => "Own",
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

    /// Greets with where the stream starts and how soon to come back, then with `connected`. The position
    /// comes as a block without data: clients remember it and show nothing. Without it one that is cut off
    /// before the first event would come back without a position, and miss what happened meanwhile.
    #[must_use]
    pub fn greet(mut self, connected: &[u8]) -> Self {
        let cursor = match self.channel.dress {
            Dress::Positions | Dress::Messages => self.cursor.to_string(),
            Dress::Feed | Dress::GlobalFeed => format!("{}.{}", self.tongues.journal().epoch(), self.cursor),
        };
        let mut greeting = format!("retry: {RETRY}\nid: {cursor}\n\n").into_bytes();
        greeting.extend_from_slice(connected);
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
                Source::Own(own) => {
                    let entries = own.follow.ready(PAGE).await?;
                    if !entries.is_empty() {
                        let chunks = own.voice.speak(&entries, self.cursor).await?;
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

    /// Whether everything that is durable by now has been told.
    pub fn is_at_head(&self) -> bool {
        self.over || self.cursor.before() >= *self.tongues.journal().watch(&self.channel.scope()).borrow()
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
        self.source = Source::Own(Box::new(Own {
            follow: Follow::new(journal.clone(), self.channel.scope(), self.cursor.before()),
            voice: Voice::new(journal, self.channel.clone()),
        }));
    }
}

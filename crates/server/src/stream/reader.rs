//! One reader: a cursor that moves when its client takes bytes, and waits when there are none.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tolka_facts::{Head, TurnId};
use tolka_journal::{Entry, JournalError};

use super::chunk::{Chunk, FrameEnd};
use super::tongue::{Found, Tongue};
use super::turn::{Fate, Waiting};
use super::{Channel, Cursor, Dress, Follow, Tongues, Voice};

const PAGE: usize = 256;
/// Milliseconds until a client that was cut off should come back. OpenCode's SDK waits three seconds, then six, and
/// never forgets; unless it is told otherwise.
const RETRY: u32 = 250;

/// When a stream is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Until {
    Never,
    /// `at`: the place of its last fact, if it has ended already.
    TurnEnds {
        turn: TurnId,
        at: Option<u64>,
    },
}

#[derive(Debug)]
pub(crate) struct Reader {
    channel: Channel,
    tongues: Tongues,
    cursor: Cursor,
    until: Until,
    source: Source,
    /// Sent before anything else, without a position.
    greeting: Option<Bytes>,
    /// Sent after this much silence, for proxies and clients that give up on a silent stream.
    heartbeat: (Duration, Bytes),
    /// Facts that give no frames are silence to a client.
    silent_since: Instant,
    over: bool,
}

enum Source {
    /// Its turn has not started.
    Waiting(Box<Waiting>),
    /// Behind, with nothing read yet.
    Behind,
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
            Source::Waiting(_) => "Waiting",
            Source::Behind => "Behind",
            Source::Own(_) => "Own",
            Source::Shared { .. } => "Shared",
        })
    }
}

impl Reader {
    pub(crate) fn new(tongues: &Tongues, channel: Channel, cursor: Cursor, until: Until) -> Self {
        let tongue = tongues.join(&channel);
        let head = tongue.watch();
        Reader::from(tongues, channel, cursor, until, Source::Shared { tongue, head })
    }

    pub(super) fn waiting(tongues: &Tongues, channel: Channel, had: Cursor, until: Until, waiting: Waiting) -> Self {
        Reader::from(tongues, channel, had, until, Source::Waiting(Box::new(waiting)))
    }

    fn from(tongues: &Tongues, channel: Channel, cursor: Cursor, until: Until, source: Source) -> Self {
        // A reader that has all of a turn that is over needs nothing more.
        let over = matches!(until, Until::TurnEnds { at: Some(end), .. } if cursor.before() >= end);
        Reader {
            channel,
            tongues: tongues.clone(),
            cursor,
            until,
            source,
            greeting: None,
            heartbeat: (Duration::from_secs(10), Bytes::from_static(b": keepalive\n\n")),
            silent_since: Instant::now(),
            over,
        }
    }

    /// Greets with where the stream starts and how soon to come back, then with `connected`. The position
    /// comes as a block without data: clients remember it and show nothing. Without it one that is cut off
    /// before the first event would come back without a position, and miss what happened meanwhile.
    #[must_use]
    pub(crate) fn greet(mut self, connected: &[u8]) -> Self {
        let cursor = match self.channel.dress {
            Dress::Bare | Dress::Positions | Dress::Messages => self.cursor.to_string(),
            Dress::Feed | Dress::GlobalFeed => format!("{}.{}", self.tongues.journal().epoch(), self.cursor),
        };
        let mut greeting = format!("retry: {RETRY}\nid: {cursor}\n\n").into_bytes();
        greeting.extend_from_slice(connected);
        self.greeting = Some(greeting.into());
        self
    }

    #[must_use]
    pub(crate) fn beat_with(mut self, heartbeat: impl Into<Bytes>) -> Self {
        self.heartbeat.1 = heartbeat.into();
        self
    }

    /// The next bytes to write, or `None` when the stream is over.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, JournalError>> {
        if let Some(greeting) = self.greeting.take() {
            return Some(Ok(greeting));
        }
        while !self.over {
            match self.chunks().await {
                Ok(Some(chunks)) => {
                    let bytes = self.take(&chunks);
                    if !bytes.is_empty() {
                        self.silent_since = Instant::now();
                        return Some(Ok(bytes));
                    }
                    if self.silent_since + self.heartbeat.0 <= Instant::now() {
                        return Some(Ok(self.heartbeat()));
                    }
                }
                Ok(None) => return Some(Ok(self.heartbeat())),
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// What comes after the cursor, or `None` after a silence. It may be dropped while it waits: the cursor
    /// moves only when bytes are taken.
    async fn chunks(&mut self) -> Result<Option<Vec<Arc<Chunk>>>, JournalError> {
        let silence = self.silent_since + self.heartbeat.0;
        loop {
            match &mut self.source {
                Source::Waiting(waiting) => {
                    let Ok(page) = timeout_at(silence, waiting.follow.next(PAGE)).await else { return Ok(None) };
                    let farewell = self.look_for_start(&page?);
                    if self.over {
                        return Ok(Some(farewell.map(Arc::new).into_iter().collect()));
                    }
                }
                Source::Behind => {
                    let journal = self.tongues.journal().clone();
                    let follow = Follow::new(journal.clone(), self.channel.scope(), self.cursor.before());
                    self.source =
                        Source::Own(Box::new(Own { follow, voice: Voice::new(journal, self.channel.clone()) }));
                }
                Source::Own(_) => {
                    // Taken out while it works: should this be dropped half way, what is left is a reader that
                    // starts again at its cursor, not an encoder that is ahead of it.
                    let Source::Own(mut own) = std::mem::replace(&mut self.source, Source::Behind) else { continue };
                    let entries = own.follow.ready(PAGE).await?;
                    if entries.is_empty() && own.follow.is_gone() {
                        self.over = true;
                        return Ok(Some(Vec::new()));
                    }
                    if entries.is_empty() {
                        self.share();
                    } else {
                        let chunks = own.voice.speak(&entries, self.cursor).await?;
                        self.source = Source::Own(own);
                        return Ok(Some(chunks.into_iter().map(Arc::new).collect()));
                    }
                }
                Source::Shared { tongue, head } => match tongue.chunk_after(self.cursor.before()) {
                    Found::Chunk(chunk) => return Ok(Some(vec![chunk])),
                    Found::Behind => self.source = Source::Behind,
                    Found::AtHead => {
                        let at = self.cursor.before();
                        let waited = timeout_at(silence, head.wait_for(|head| *head > at)).await;
                        let Ok(has_more) = waited.map(|more| more.is_ok()) else { return Ok(None) };
                        if !has_more {
                            // The channel's task has ended: the session was purged, or an error waits for us too.
                            self.source = Source::Behind;
                        }
                    }
                },
            }
        }
    }

    /// Whether everything that is durable by now has been told.
    pub(crate) fn is_at_head(&self) -> bool {
        match &self.source {
            Source::Waiting(waiting) => self.over || !waiting.follow.has_more(),
            Source::Behind | Source::Own(_) | Source::Shared { .. } => {
                self.over || self.cursor.before() >= *self.tongues.journal().watch(&self.channel.scope()).borrow()
            }
        }
    }

    fn take(&mut self, chunks: &[Arc<Chunk>]) -> Bytes {
        let mut gathered = BytesMut::new();
        for chunk in chunks {
            let ending = match &self.until {
                Until::TurnEnds { turn, .. } => chunk.up_to_end(self.cursor, turn),
                Until::Never => None,
            };
            self.over |= ending.is_some();
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

    fn heartbeat(&mut self) -> Bytes {
        self.silent_since = Instant::now();
        self.heartbeat.1.clone()
    }

    fn share(&mut self) {
        let tongue = self.tongues.join(&self.channel);
        let head = tongue.watch();
        self.source = Source::Shared { tongue, head };
    }

    /// Gives what to say if the turn will never start.
    fn look_for_start(&mut self, page: &[Entry]) -> Option<Chunk> {
        let (Source::Waiting(waiting), Until::TurnEnds { turn, .. }) = (&self.source, &self.until) else { return None };
        match waiting.fate(turn, page) {
            // An empty page: the session was purged meanwhile.
            Fate::StillWaits => self.over = page.is_empty(),
            Fate::StartsAt(place) => {
                self.cursor = self.cursor.max(Cursor::whole(place - 1));
                self.share();
            }
            Fate::Never(place, farewell) => {
                self.over = true;
                let (mut bytes, mut frames) = (Vec::new(), Vec::new());
                let epoch = self.tongues.journal().epoch();
                for (n, payload) in (0..).zip(farewell).filter(|(n, _)| self.cursor.lacks(place, *n)) {
                    self.channel.dress.write(&mut bytes, epoch, place, n, &Head::default(), &payload);
                    frames.push(FrameEnd { place, n, end: bytes.len() });
                }
                return Some(Chunk { to: place, bytes: bytes.into(), frames, ends: Vec::new() });
            }
        }
        None
    }
}

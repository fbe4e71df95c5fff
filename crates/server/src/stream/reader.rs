//! One reader: a cursor that moves when its client takes bytes, and waits when there are none.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};
use tolka_facts::{Head, TurnId};
use tolka_journal::JournalError;

use super::chunk::Rest;
use super::own::{Own, Read};
use super::tongue::Listener;
use super::turn::{Fate, Waiting};
use super::{Channel, Cursor, Dress, Tongues};

/// Milliseconds until a client that was cut off should come back. OpenCode's SDK waits three seconds, then six, and
/// never forgets; unless it is told otherwise.
const RETRY: u32 = 250;
/// After this much silence a heartbeat is sent, for proxies and clients that give up on a silent stream.
const SILENCE: Duration = Duration::from_secs(10);

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

/// Polled, not awaited: a thousand of them are woken by each fact, and what they wait on should stay as it is.
pub(crate) struct Reader {
    channel: Arc<Channel>,
    tongues: Tongues,
    cursor: Cursor,
    until: Until,
    source: Source,
    /// Sent before anything else, without a position.
    greeting: Option<Bytes>,
    heartbeat: Bytes,
    /// Facts that give no frames are silence to a client.
    silent_since: Instant,
    /// Rings when it may be time for a heartbeat; set anew only when it has rung, not with every fact.
    alarm: Option<Pin<Box<Sleep>>>,
    over: bool,
}

enum Source {
    /// Its turn has not started.
    Waiting(Box<Waiting>),
    /// At the head: shares what the channel's task encodes.
    Shared(Listener),
    /// Behind: reads the journal for itself.
    Own(Reading),
}

type Reading = Pin<Box<dyn Future<Output = Result<Read, JournalError>> + Send>>;

impl Reader {
    pub(crate) fn new(tongues: &Tongues, channel: Channel, cursor: Cursor, until: Until) -> Self {
        Reader::shared(tongues, Arc::new(channel), cursor, until)
    }

    pub(super) fn shared(tongues: &Tongues, channel: Arc<Channel>, cursor: Cursor, until: Until) -> Self {
        let listener = Listener::new(tongues.join(&channel));
        Reader::from(tongues, channel, cursor, until, Source::Shared(listener))
    }

    pub(super) fn waiting(
        tongues: &Tongues,
        channel: Arc<Channel>,
        had: Cursor,
        until: Until,
        waiting: Waiting,
    ) -> Self {
        Reader::from(tongues, channel, had, until, Source::Waiting(Box::new(waiting)))
    }

    fn from(tongues: &Tongues, channel: Arc<Channel>, cursor: Cursor, until: Until, source: Source) -> Self {
        // A reader that has all of a turn that is over needs nothing more.
        let over = matches!(until, Until::TurnEnds { at: Some(end), .. } if cursor.before() >= end);
        Reader {
            channel,
            tongues: tongues.clone(),
            cursor,
            until,
            source,
            greeting: None,
            heartbeat: Bytes::from_static(b": keepalive\n\n"),
            silent_since: Instant::now(),
            alarm: None,
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
        self.heartbeat = heartbeat.into();
        self
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The next bytes to write, or `None` when the stream is over.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, JournalError>>> {
        if let Some(greeting) = self.greeting.take() {
            return Poll::Ready(Some(Ok(greeting)));
        }
        while !self.over {
            match self.poll_rest(cx) {
                Poll::Ready(Ok(rest)) => {
                    self.over |= rest.over;
                    self.cursor = self.cursor.max(Cursor::whole(rest.to));
                    if !rest.bytes.is_empty() {
                        self.silent_since = Instant::now();
                        return Poll::Ready(Some(Ok(rest.bytes)));
                    }
                }
                Poll::Ready(Err(error)) => {
                    self.over = true;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Pending => return self.poll_silence(cx).map(|beat| Some(Ok(beat))),
            }
        }
        Poll::Ready(None)
    }

    /// Whether everything that is durable by now has been told.
    pub(crate) fn is_at_head(&self) -> bool {
        let seen = match &self.source {
            Source::Waiting(waiting) => waiting.seen,
            Source::Shared(_) | Source::Own(_) => self.cursor.before(),
        };
        self.over || seen >= *self.tongues.journal().watch(&self.channel.scope()).borrow()
    }

    #[cfg(test)]
    pub(super) fn cursor(&self) -> Cursor {
        self.cursor
    }

    #[cfg(test)]
    pub(super) fn is_sharing(&self) -> bool {
        matches!(self.source, Source::Shared(_))
    }

    /// What comes after the cursor.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Result<Rest, JournalError>> {
        loop {
            match &mut self.source {
                Source::Waiting(waiting) => {
                    let Until::TurnEnds { turn, .. } = &self.until else { return Poll::Ready(Ok(self.nothing_more())) };
                    match ready!(waiting.poll_fate(turn, cx))? {
                        Fate::StartsAt(place) => {
                            self.cursor = self.cursor.max(Cursor::whole(place - 1));
                            self.share();
                        }
                        Fate::TakenAt(place, into) => {
                            self.until = Until::TurnEnds { turn: into, at: None };
                            self.cursor = self.cursor.max(Cursor::whole(place - 1));
                            self.share();
                        }
                        Fate::Never(place, farewell) => return Poll::Ready(Ok(self.farewell(place, &farewell))),
                        Fate::Gone => return Poll::Ready(Ok(self.nothing_more())),
                    }
                }
                Source::Shared(listener) => match ready!(listener.poll(self.cursor, &self.until, cx)) {
                    Some(rest) => return Poll::Ready(Ok(rest)),
                    None => self.read_on(None),
                },
                Source::Own(reading) => match ready!(reading.as_mut().poll(cx))? {
                    Read::Chunk(own, chunk) => {
                        let rest = chunk.rest(self.cursor, &self.until);
                        self.cursor = Cursor::whole(rest.to);
                        self.read_on(Some(own));
                        return Poll::Ready(Ok(rest));
                    }
                    Read::CaughtUp => self.share(),
                    Read::Gone => return Poll::Ready(Ok(self.nothing_more())),
                },
            }
        }
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let due = self.silent_since + SILENCE;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            ready!(alarm.as_mut().poll(cx));
            let now = Instant::now();
            if now >= due {
                self.silent_since = now;
                alarm.as_mut().reset(now + SILENCE);
                return Poll::Ready(self.heartbeat.clone());
            }
            alarm.as_mut().reset(due);
        }
    }

    fn share(&mut self) {
        self.source = Source::Shared(Listener::new(self.tongues.join(&self.channel)));
    }

    /// Not a step is taken before its client asks for more.
    fn read_on(&mut self, own: Option<Box<Own>>) {
        let reading = Own::read_on(own, self.tongues.clone(), self.channel.clone(), self.cursor);
        self.source = Source::Own(Box::pin(reading));
    }

    fn nothing_more(&self) -> Rest {
        Rest { bytes: Bytes::new(), to: self.cursor.place, over: true }
    }

    /// What to say if the turn will never start.
    fn farewell(&self, place: u64, farewell: &[Vec<u8>]) -> Rest {
        let (mut bytes, epoch) = (Vec::new(), self.tongues.journal().epoch());
        for (n, payload) in (0..).zip(farewell).filter(|(n, _)| self.cursor.lacks(place, *n)) {
            self.channel.dress.write(&mut bytes, epoch, place, n, &Head::default(), payload);
        }
        Rest { bytes: bytes.into(), to: place, over: true }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("channel", &self.channel).field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

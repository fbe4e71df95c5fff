//! The stream of one turn, from wherever its reader stands to the turn's end.
//!
//! A turn may still wait for others when its stream begins. The reader then gets heartbeats and nothing of the
//! turns before: what it reads is its own turn, from the first frame to the last.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tolka_facts::{Event, Fact, TurnId};
use tolka_journal::{Entry, JournalError, Mark, Scope};

use super::{Channel, Cursor, Ending, Follow, Reader, Tongues, Until, Voice};

const PAGE: usize = 256;

/// Where a reader of a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Had {
    Nothing,
    UpTo(Cursor),
    /// So many frames of the turn, for streams without positions.
    Frames(u64),
}

/// Why a turn cannot be told.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum TurnError {
    #[error("Turn not found")]
    Unknown,
    #[error("The turn has {told} events so far, not {had}.")]
    TooFew { told: u64, had: u64 },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The frames that a stream has in place of those of a turn that will never start.
pub(crate) type Farewell = fn(&Fact) -> Vec<Vec<u8>>;

/// A turn that waits in the queue.
pub(super) struct Waiting {
    page: NextPage,
    /// The place up to which there was nothing of the turn.
    pub(super) seen: u64,
    farewell: Farewell,
}

type NextPage = Pin<Box<dyn Future<Output = (Follow, Result<Vec<Entry>, JournalError>)> + Send>>;

/// What becomes of a turn that waits.
pub(super) enum Fate {
    StartsAt(u64),
    /// The turn that was open took its prompt: the rest of that one is what comes of it.
    TakenAt(u64, TurnId),
    /// It was dropped, or its session deleted, by the fact at this place; with the farewell to send.
    Never(u64, Vec<Vec<u8>>),
    /// The session was purged.
    Gone,
}

impl Waiting {
    fn new(follow: Follow, farewell: Farewell) -> Self {
        Waiting { seen: follow.at(), page: next_page(follow), farewell }
    }

    pub(super) fn poll_fate(&mut self, turn: &TurnId, cx: &mut Context<'_>) -> Poll<Result<Fate, JournalError>> {
        loop {
            let (follow, page) = ready!(self.page.as_mut().poll(cx));
            let page = page?;
            if page.is_empty() {
                return Poll::Ready(Ok(Fate::Gone));
            }
            if let Some(fate) = self.fate(turn, &page) {
                return Poll::Ready(Ok(fate));
            }
            self.seen = follow.at();
            self.page = next_page(follow);
        }
    }

    fn fate(&self, turn: &TurnId, page: &[Entry]) -> Option<Fate> {
        page.iter().find_map(|entry| match &entry.fact.event {
            Event::TurnStarted(e) if e.turn == *turn => Some(Fate::StartsAt(entry.place)),
            Event::PromptSteered(e) if e.turn == *turn => Some(Fate::TakenAt(entry.place, e.into.clone())),
            event => {
                Ending::of(turn, event)?;
                Some(Fate::Never(entry.place, (self.farewell)(&entry.fact)))
            }
        })
    }
}

fn next_page(mut follow: Follow) -> NextPage {
    Box::pin(async move {
        let page = follow.next(PAGE).await;
        (follow, page)
    })
}

impl Reader {
    /// A reader of one turn, whether it waits, runs or is long over.
    pub(crate) async fn of_turn(
        tongues: &Tongues,
        channel: Channel,
        turn: &TurnId,
        had: Had,
        farewell: Farewell,
    ) -> Result<Self, TurnError> {
        let channel = Arc::new(channel);
        let Scope::Session(session) = channel.scope() else { return Err(TurnError::Unknown) };
        let journal = tongues.journal();
        let mark = async |mark: Mark<'_>| journal.mark(&session, &mark.to_string()).await;
        let queued = mark(Mark::Prompt(turn)).await?.ok_or(TurnError::Unknown)?;
        let (started, ended) = (mark(Mark::TurnStart(turn)).await?, mark(Mark::TurnEnd(turn)).await?);
        let until = Until::TurnEnds { turn: turn.clone(), at: ended };
        let Some(started) = started else {
            let had = match had {
                Had::Frames(had @ 1..) => return Err(TurnError::TooFew { told: 0, had }),
                Had::UpTo(cursor) => cursor,
                Had::Nothing | Had::Frames(0) => Cursor::whole(queued),
            };
            let follow = Follow::new(journal.clone(), channel.scope(), queued);
            return Ok(Reader::waiting(tongues, channel, had, until, Waiting::new(follow, farewell)));
        };
        let begin = Cursor::whole(started - 1);
        let cursor = match had {
            Had::Nothing => begin,
            Had::UpTo(cursor) => cursor.max(begin),
            Had::Frames(had) => after_frames(tongues, &channel, begin, ended, had).await?,
        };
        Ok(Reader::shared(tongues, channel, cursor, until))
    }
}

/// The cursor of a reader that has had so many frames since `begin`.
async fn after_frames(
    tongues: &Tongues,
    channel: &Arc<Channel>,
    begin: Cursor,
    ended: Option<u64>,
    had: u64,
) -> Result<Cursor, TurnError> {
    let mut voice = Voice::new(tongues, channel.clone());
    let (mut told, mut cursor, mut at) = (0, begin, begin.place);
    while told < had {
        let mut page = tongues.journal().read(&channel.scope(), at, PAGE).await?;
        page.retain(|entry| ended.is_none_or(|end| entry.place <= end));
        let Some(last) = page.last() else { return Err(TurnError::TooFew { told, had }) };
        at = last.place;
        let count = |here, _: &[u8]| {
            if told < had {
                told += 1;
                cursor = here;
            }
        };
        voice.payloads(&page, begin, count).await?;
    }
    Ok(cursor)
}

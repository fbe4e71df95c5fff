//! An encoder with all it needs to speak: for each session the tip, and the state of its dialect.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tolka_dialect::{Dialect, Encoder, Frames, Growing};
use tolka_facts::{Blobs, Event, Hash, SessionId, Tip};
use tolka_journal::{Entry, Journal, JournalError, Kept, MarkKind, Scope, TIP, tip_at};

use super::budget::Budget;
use super::chunk::{Chunk, FrameEnd, TurnEnd};
use super::{Channel, Cursor, Tongues, Whose};

const PAGE: usize = 512;
/// A state is kept after this many facts, so that a resume folds no more than that.
const KEEP_EVERY: u64 = 512;
/// Speakers of idle sessions are made again from the journal when needed; a feed need not hold them all.
const SPEAKERS: usize = 64;

/// Reads blobs where encoders run: on the server's threads, which may block for the length of a disk read only if the
/// runtime knows of it.
#[derive(Debug, Clone)]
pub(crate) struct JournalBlobs {
    journal: Arc<dyn Journal>,
    /// Why a blob could not be read. An encoder cannot say so, and a frame without it would be told differently the
    /// next time. A std mutex: held for a swap.
    failed: Arc<Mutex<Option<JournalError>>>,
}

impl JournalBlobs {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        JournalBlobs { journal, failed: Arc::default() }
    }

    /// Whether every blob that was asked for could be read.
    pub(crate) fn check(&self) -> Result<(), JournalError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

impl Blobs for JournalBlobs {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        tokio::task::block_in_place(|| self.journal.blob(hash)).unwrap_or_else(|error| {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            None
        })
    }
}

/// States of another version are not found under this name, and cost time only.
fn state_name(dialect: Dialect) -> String {
    const VERSION: u32 = 2;
    format!("{dialect}.{VERSION}")
}

pub(crate) struct Voice {
    journal: Arc<dyn Journal>,
    blobs: JournalBlobs,
    budget: Arc<Budget>,
    channel: Arc<Channel>,
    speakers: HashMap<SessionId, Speaker>,
    frames: Frames,
    /// See [`Voice::keep_states`].
    states: Vec<(SessionId, Kept)>,
    growing: Growing,
}

struct Speaker {
    tip: Tip,
    encoder: Box<dyn Encoder>,
    kept: u64,
    /// Bytes told since a state was kept; see [`Speaker::state_to_keep`].
    told: usize,
}

/// What is kept of a speaker.
#[derive(Serialize, Deserialize)]
struct KeptSpeaker {
    tip: Tip,
    encoder: String,
}

impl Voice {
    pub(crate) fn new(tongues: &Tongues, channel: impl Into<Arc<Channel>>) -> Self {
        let (journal, budget) = (tongues.journal().clone(), tongues.budget().clone());
        let blobs = JournalBlobs::new(journal.clone());
        Voice {
            journal,
            blobs,
            budget,
            channel: channel.into(),
            speakers: HashMap::new(),
            frames: Frames::default(),
            states: Vec::new(),
            growing: Growing::Told,
        }
    }

    /// For the next [`Voice::payloads`]. No state is kept of what they tell, so streams never meet it.
    pub(crate) fn set_growing(&mut self, growing: Growing) {
        self.growing = growing;
    }

    /// Encodes facts in a row until there are `enough` bytes; frames that a reader at `cursor` has are left out.
    pub(super) async fn speak(
        &mut self,
        entries: &[Entry],
        cursor: Cursor,
        enough: usize,
    ) -> Result<Chunk, JournalError> {
        let mut open = OpenChunk::default();
        for entry in entries {
            let session = &entry.fact.session;
            self.ready_speaker(session, entry.fact.seq - 1).await?;
            let Some(speaker) = self.speakers.get_mut(session) else { continue };
            let keep = speaker.encode(
                entry,
                cursor,
                &self.channel,
                &self.blobs,
                self.journal.epoch(),
                &mut self.frames,
                &mut open,
            );
            self.blobs.check()?;
            self.states.extend(keep.map(|state| (session.clone(), state)));
            open.chunk.to = entry.place;
            if open.bytes.len() >= enough {
                break;
            }
        }
        // What frames are made in grows with the largest, and a reader that stands still need not hold it.
        self.frames = Frames::default();
        self.forget_idle();
        Ok(open.seal(&self.budget))
    }

    /// Keeps the states that came up. It waits for the disk: to be called when nobody waits for a turn, or for what was
    /// spoken.
    pub(super) async fn keep_states(&mut self) {
        let name = state_name(self.channel.dialect);
        for (session, state) in self.states.drain(..) {
            // A state that cannot be kept, on a full disk say, must not end a stream.
            if let Err(error) = self.journal.keep(&session, &name, state).await {
                tracing::debug!(%session, %error, "a state was not kept");
            }
        }
    }

    /// Forgets all sessions; they are made again from the journal when needed.
    pub(super) fn forget(&mut self) {
        self.speakers = HashMap::new();
    }

    /// About what it remembers of turns that are open.
    pub(super) fn weight(&self) -> usize {
        self.speakers.values().map(|speaker| speaker.tip.open_bytes()).sum()
    }

    /// The payloads of facts in a row, with their positions: for readers that want no stream.
    pub(crate) async fn payloads(
        &mut self,
        entries: &[Entry],
        cursor: Cursor,
        mut each: impl FnMut(Cursor, &[u8]),
    ) -> Result<(), JournalError> {
        for entry in entries {
            let session = &entry.fact.session;
            self.ready_speaker(session, entry.fact.seq - 1).await?;
            let Some(speaker) = self.speakers.get_mut(session) else { continue };
            speaker.encoder.set_growing(self.growing);
            speaker.frames(entry, &self.blobs, &mut self.frames);
            self.blobs.check()?;
            for (n, payload) in (0..).zip(self.frames.iter()) {
                if cursor.lacks(entry.place, n) {
                    each(Cursor { place: entry.place, n }, payload);
                }
            }
        }
        self.keep_states().await;
        Ok(())
    }

    /// The tip of a session at the last fact spoken.
    pub(crate) fn tip(&self, session: &SessionId) -> Option<&Tip> {
        self.speakers.get(session).map(|speaker| &speaker.tip)
    }

    async fn ready_speaker(&mut self, session: &SessionId, seq: u64) -> Result<(), JournalError> {
        if self.speakers.get(session).is_none_or(|speaker| speaker.tip.seq != seq) {
            let (speaker, state) =
                Speaker::load(&self.journal, &self.blobs, session, self.channel.dialect, seq).await?;
            self.states.extend(state.map(|state| (session.clone(), state)));
            self.speakers.insert(session.clone(), speaker);
        }
        Ok(())
    }

    fn forget_idle(&mut self) {
        if self.speakers.len() > SPEAKERS {
            self.speakers.retain(|_, speaker| !speaker.tip.is_idle());
        }
    }
}

impl std::fmt::Debug for Voice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voice").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl Speaker {
    /// The speaker as it stands after fact `seq`: from the nearest kept state, be it one of this dialect or
    /// the session's tip at an idle moment, when an encoder has no state. With a state to keep, if it was far.
    async fn load(
        journal: &Arc<dyn Journal>,
        blobs: &JournalBlobs,
        session: &SessionId,
        dialect: Dialect,
        seq: u64,
    ) -> Result<(Self, Option<Kept>), JournalError> {
        let idle = journal
            .kept(session, TIP, seq, true)
            .await?
            .and_then(|kept| serde_json::from_slice::<Tip>(&kept.state).ok());
        let spoken = journal.kept(session, &state_name(dialect), seq, false).await?;
        let spoken = spoken.and_then(|kept| serde_json::from_slice::<KeptSpeaker>(&kept.state).ok());
        let spoken = spoken.and_then(|kept| Some((kept.tip, dialect.resume(kept.encoder.as_bytes())?)));
        let idle = idle.map(|tip| (tip, dialect.encoder()));
        let nearest = [idle, spoken].into_iter().flatten().max_by_key(|(tip, _)| tip.seq);
        let (mut tip, mut encoder) = nearest.unwrap_or_else(|| (Tip::default(), dialect.encoder()));
        if seq - tip.seq > KEEP_EVERY {
            // Tips are not always kept at idle moments; but any tip leads to the one where the last turn ended.
            let ended = journal.marks(session, MarkKind::TurnEnd, seq.saturating_add(1), 1).await?;
            if let Some(ended) = ended.into_iter().next().filter(|ended| *ended > tip.seq) {
                let there = tip_at(journal.as_ref(), session, ended).await?;
                if there.is_idle() {
                    (tip, encoder) = (there, dialect.encoder());
                }
            }
        }
        let mut speaker = Speaker { kept: tip.seq, tip, encoder, told: 0 };
        let (scope, mut frames, mut last) = (Scope::Session(session.clone()), Frames::default(), None);
        while speaker.tip.seq < seq {
            let wanted = usize::try_from(seq - speaker.tip.seq).unwrap_or(PAGE).min(PAGE);
            let page = journal.read(&scope, speaker.tip.seq, wanted).await?;
            if page.is_empty() {
                break;
            }
            for entry in &page {
                speaker.frames(entry, blobs, &mut frames);
                last = speaker.state_to_keep().or(last);
            }
            blobs.check()?;
        }
        Ok((speaker, last))
    }

    fn frames(&mut self, entry: &Entry, blobs: &JournalBlobs, frames: &mut Frames) {
        frames.clear();
        self.tip.apply(&entry.fact);
        self.encoder.encode(&entry.fact, &self.tip, blobs, frames);
        self.told += frames.iter().map(<[u8]>::len).sum::<usize>();
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a voice, borrowed one by one")]
    fn encode(
        &mut self,
        entry: &Entry,
        cursor: Cursor,
        channel: &Channel,
        blobs: &JournalBlobs,
        epoch: &str,
        frames: &mut Frames,
        open: &mut OpenChunk,
    ) -> Option<Kept> {
        self.frames(entry, blobs, frames);
        let is_wanted = match &channel.whose {
            Whose::Session(_) | Whose::Feed { directory: None } => true,
            Whose::Feed { directory: Some(wanted) } => {
                entry.fact.session.is_server() || self.tip.head.workspace == *wanted
            }
        };
        for (n, payload) in (0..).zip(frames.iter()) {
            if is_wanted && cursor.lacks(entry.place, n) {
                channel.dress.write(&mut open.bytes, epoch, entry.place, n, &self.tip.head, payload);
                open.chunk.frames.push(FrameEnd { place: entry.place, n, end: open.bytes.len() });
            }
        }
        if let Event::TurnEnded(e) = &entry.fact.event {
            open.chunk.ends.push(TurnEnd { turn: e.turn.clone(), place: entry.place, end: open.bytes.len() });
        }
        self.state_to_keep()
    }

    /// Only inside a turn: an idle moment needs no state of the encoder. And never more bytes of states than
    /// were told, however large what is open has grown.
    fn state_to_keep(&mut self) -> Option<Kept> {
        if self.tip.is_idle() || self.tip.seq - self.kept < KEEP_EVERY {
            return None;
        }
        self.kept = self.tip.seq;
        if self.tip.open_bytes() > self.told {
            return None;
        }
        let encoder = String::from_utf8(self.encoder.state()).unwrap_or_default();
        let state = serde_json::to_vec(&KeptSpeaker { tip: self.tip.clone(), encoder }).ok()?;
        if state.len() > self.told {
            return None;
        }
        self.told = 0;
        Some(Kept { seq: self.tip.seq, idle: false, state })
    }
}

#[derive(Default)]
struct OpenChunk {
    chunk: Chunk,
    bytes: Vec<u8>,
}

impl OpenChunk {
    fn seal(mut self, budget: &Arc<Budget>) -> Chunk {
        self.chunk.frames.shrink_to_fit();
        self.chunk.bytes = budget.count(self.bytes, self.chunk.beside());
        self.chunk
    }
}

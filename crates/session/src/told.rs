//! What was told and is not durable yet, made ready to be stamped: cut to size, long values moved out to blobs.

use tolka_agent::{Contents, Room};
use tolka_facts::{Draft, Event, Hash, INLINE_LIMIT};

/// A group commit of the journal takes about as many.
const BATCH: usize = 256;
/// What is moved out may be large: a batch is in memory until it is durable, and once more while it is written.
const BATCH_BYTES: usize = 8 << 20;

/// Whatever is refused comes back as this, not as the drafts that were given: a value that is moved out twice would be a
/// reference to a reference.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) blobs: Vec<(Hash, Vec<u8>)>,
    /// Of the contents among the blobs; given back once they are durable.
    pub(crate) room: Vec<Room>,
}

impl Told {
    pub(crate) fn len(&self) -> usize {
        self.drafts.len()
    }

    /// Enough for one commit.
    pub(crate) fn is_full(&self) -> bool {
        let bytes = || self.blobs.iter().map(|(_, content)| content.len()).sum::<usize>();
        self.drafts.len() >= BATCH || bytes() >= BATCH_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// Text needs no blob: it is cut into facts that are short enough, and what the agent sent stays with the first.
    pub(crate) fn push(&mut self, mut draft: Draft) {
        let Some(text) = text_of(&mut draft.event).filter(|text| text.len() > INLINE_LIMIT) else {
            return self.spill(draft);
        };
        let whole = std::mem::take(text);
        let mut rest = whole.as_str();
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(rest.floor_char_boundary(INLINE_LIMIT));
            let mut event = draft.event.clone();
            text_of(&mut event).into_iter().for_each(|text| piece.clone_into(text));
            self.spill(Draft { cause: draft.cause, event, raw: draft.raw.take() });
            rest = tail;
        }
    }

    /// With contents that the draft names by their hashes.
    pub(crate) fn push_with(&mut self, draft: Draft, contents: Contents) {
        self.room.push(contents.room);
        self.push_contents(draft, contents.whole);
    }

    /// The same with contents that are few.
    pub(crate) fn push_contents(&mut self, draft: Draft, contents: Vec<Vec<u8>>) {
        self.blobs.extend(contents.into_iter().map(|content| (Hash::of(&content), content)));
        self.push(draft);
    }

    pub(crate) fn push_all(&mut self, drafts: Vec<Draft>) {
        drafts.into_iter().for_each(|draft| self.push(draft));
    }

    /// Adds what was told after this.
    pub(crate) fn append(&mut self, mut later: Told) {
        self.drafts.append(&mut later.drafts);
        self.blobs.append(&mut later.blobs);
        self.room.append(&mut later.room);
    }

    /// How much there is; see [`Told::truncate`].
    pub(crate) fn extent(&self) -> (usize, usize) {
        (self.drafts.len(), self.blobs.len())
    }

    /// Back to an earlier extent.
    pub(crate) fn truncate(&mut self, (drafts, blobs): (usize, usize)) {
        self.drafts.truncate(drafts);
        self.blobs.truncate(blobs);
    }

    fn spill(&mut self, mut draft: Draft) {
        draft.spill(&mut |content| self.blobs.push((Hash::of(content), content.to_vec())));
        self.drafts.push(draft);
    }
}

fn text_of(event: &mut Event) -> Option<&mut String> {
    match event {
        Event::TextAppended(e) => Some(&mut e.text),
        Event::ThoughtAppended(e) => Some(&mut e.text),
        Event::OutputAppended(e) => Some(&mut e.text),
        Event::InputAppended(e) => Some(&mut e.text),
        _ => None,
    }
}

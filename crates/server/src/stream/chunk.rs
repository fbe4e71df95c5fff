use bytes::Bytes;
use tolka_facts::TurnId;

use super::{Cursor, Until};

/// The frames of some facts in a row, dressed and ready to be written.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// The place of its last fact.
    pub(super) to: u64,
    pub(super) bytes: Bytes,
    pub(super) frames: Vec<FrameEnd>,
    pub(super) ends: Vec<TurnEnd>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct FrameEnd {
    pub(super) place: u64,
    pub(super) n: u32,
    pub(super) end: usize,
}

/// Where the frames of a turn end: streams of one turn stop there.
#[derive(Debug, Clone)]
pub(super) struct TurnEnd {
    pub(super) turn: TurnId,
    pub(super) place: u64,
    pub(super) end: usize,
}

/// What a chunk has for one reader.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) bytes: Bytes,
    /// The place up to which the reader has everything then.
    pub(super) to: u64,
    /// What the reader waited for has ended.
    pub(super) over: bool,
}

impl Chunk {
    /// What it takes in memory beside its bytes: a chunk without any is not nothing.
    pub(super) fn beside(&self) -> usize {
        size_of::<Chunk>() + self.frames.capacity() * size_of::<FrameEnd>()
    }

    pub(super) fn weight(&self) -> usize {
        self.bytes.len() + self.beside()
    }

    pub(super) fn rest(&self, cursor: Cursor, until: &Until) -> Rest {
        let ending = match until {
            Until::TurnEnds { turn, .. } => self.up_to_end(cursor, turn),
            Until::Never => None,
        };
        let over = ending.is_some();
        Rest { bytes: ending.unwrap_or_else(|| self.after(cursor)), to: self.to, over }
    }

    /// The bytes that a reader at `cursor` lacks.
    fn after(&self, cursor: Cursor) -> Bytes {
        let had = self.frames.partition_point(|frame| !cursor.lacks(frame.place, frame.n));
        let start = had.checked_sub(1).map_or(0, |last| self.frames[last].end);
        self.bytes.slice(start..)
    }

    /// The bytes that a reader at `cursor` lacks up to the end of the turn, if the turn ends here.
    fn up_to_end(&self, cursor: Cursor, turn: &TurnId) -> Option<Bytes> {
        let end = self.ends.iter().find(|end| end.turn == *turn && end.place > cursor.before())?;
        let rest = self.after(cursor);
        let surplus = self.bytes.len() - end.end;
        Some(rest.slice(..rest.len() - surplus))
    }
}

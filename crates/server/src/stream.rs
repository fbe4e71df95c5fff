//! Streams: how facts reach a reader as bytes, shared where many read the same and resumed anywhere.
//!
//! A reader is a cursor. Those at the head of a channel share chunks that one task encodes; one that is
//! behind, because it resumes or because it is slow, encodes pages of the journal for itself until it
//! has caught up. Nothing is queued for anybody, so nothing can overflow and nothing is dropped.

mod budget;
mod channel;
mod chunk;
mod dress;
mod end;
mod follow;
mod own;
mod position;
mod reader;
#[cfg(test)]
mod tests;
mod tongue;
mod tongues;
mod turn;
mod voice;
mod waiters;

pub(crate) use budget::WRITE;
pub(crate) use channel::{Channel, Whose};
pub(crate) use dress::Dress;
pub(crate) use end::{Ending, until_end};
pub(crate) use follow::Follow;
pub(crate) use position::Cursor;
pub(crate) use reader::{Reader, Until};
pub(crate) use tongues::Tongues;
pub(crate) use turn::{Had, TurnError};
pub(crate) use voice::{JournalBlobs, Voice};

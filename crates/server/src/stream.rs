//! Streams: how facts reach a reader as bytes, shared where many read the same and resumed anywhere.
//!
//! A reader is a cursor. Those at the head of a channel share chunks that one task encodes; one that is
//! behind, because it resumes or because it is slow, encodes pages of the journal for itself until it
//! has caught up. Nothing is queued for anybody, so nothing can overflow and nothing is dropped.

mod channel;
mod chunk;
mod dress;
mod follow;
mod position;
mod reader;
mod tongue;
mod voice;

pub use channel::{Channel, Whose};
pub use dress::Dress;
pub use follow::Follow;
pub use position::Cursor;
pub use reader::{Reader, Until};
pub use tongue::Tongues;
pub use voice::{JournalBlobs, Voice};

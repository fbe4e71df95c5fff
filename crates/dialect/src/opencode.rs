//! OpenCode's wire: document 004, and what OpenCode's clients of today need beside it.
//!
//! A frame is `{"id","type","properties"}`. Every id in it that the facts do not carry is made from the
//! place of a fact in the journal, so a retelling is byte for byte the same. Where this wire repeats
//! whole state (the text of a part, the output of a command), it does so at marks that grow with the
//! state, so that a long answer costs a multiple of its length and not its square.

mod carriage;
pub mod decode;
mod encode;
mod error;
mod history;
mod info;
mod input;
mod law;
mod marks;
mod tools;
mod wire;

pub(crate) use carriage::CARRIAGE;
pub use decode::Decoder;
pub use encode::Encoder;
pub use error::error_json;
pub use history::History;
pub use info::{project_id, session_info};
pub use input::{InputError, blocks_from_parts};
pub(crate) use law::law;
pub use wire::{SPOKEN_VERSION, ask_json};

/// Document 004 and today's server disagree on how text streams; a request chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Profile {
    /// Both at once, such that either client is right: a delta event per piece, and at marks the whole
    /// part with all that came since the last mark.
    Superset,
    /// What OpenCode 1.18 sends, and nothing else.
    Current,
    /// What document 004 shows: the whole part and the new piece, every time.
    Documented,
}

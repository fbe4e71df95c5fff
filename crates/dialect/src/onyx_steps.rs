//! The first wire of Onyx Build Mode: document 001.
//!
//! Where the family's later wire passes ACP updates on, this one tells them as seventeen packets of its own: steps with
//! the agent's thoughts in them, tool calls, segments of output, plans, modes, files, artifacts, permissions and the
//! turn's end. [`Encoder`] writes every packet that the document shows, [`Decoder`] reads them.
//!
//! Invariant: what starts ends exactly once, and before its turn does; a turn ends with exactly one `done` or `error`.
//! Fields beside the document's stand where a reader would otherwise lose something (`content`, `options`, `output`, …);
//! a client that knows only the document can leave them.

mod artifact;
mod block;
mod carriage;
mod decode;
mod encode;
mod law;
mod packet;
mod plan;
mod tool;
mod words;

pub(crate) use carriage::CARRIAGE;
pub use decode::Decoder;
pub use encode::{Encoder, in_workspace};
pub(crate) use law::law;
pub use packet::{cancelled_packet, error_packet};

//! The wire of AgentSmithy, document 003: one request, one stream, from `user` to `done`.
//!
//! Invariant: a turn is told as one `user`, then segments (`chat`, `reasoning`, `summary`) that are closed before
//! anything else is told and never stand in one another, then, if it failed, one `error`, and at last one `done`. The
//! document's client reads an event only if it is one `data: ` line with nothing beside it.
//!
//! A tool is named once, when it is invoked; what came of it is a [`ToolResult`], which a client asks for. [`History`] is
//! the same telling as it is read page by page.

mod ask;
mod blocks;
mod carriage;
mod decode;
mod diff;
mod encode;
mod file;
mod history;
mod law;
mod packet;
mod patch;
mod piece;
mod result;
mod tally;
mod tools;

pub(crate) use carriage::CARRIAGE;
pub use decode::Decoder;
pub use encode::Encoder;
pub use history::{Entry, EntryKind, History, Page};
pub(crate) use law::law;
pub use packet::farewell_packets;
pub use result::{Hit, Problem, Run, ToolResult, Web, WebHit, read_result, result};
pub use tally::{Counts, Tally};
pub use tools::Call;

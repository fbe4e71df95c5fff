//! The Agent Client Protocol, version 1: what coding agents say on their standard output.
//!
//! [`Message`] is a line of it, [`Recorded`] one of a recording; [`Interpreter`] turns the messages of one session into drafts of facts.
//! Nothing an agent sends is lost: the draft that reads a message carries it as it came (`raw`), and
//! what we have no word for is a `Foreign` draft. Drafts that no message stands behind (steps, a plan
//! read out of a todo list) have `Cause::Tolka` and no `raw`.
//!
//! Agents differ from the schema and from each other, so reading is lenient: a field of the wrong type
//! is as if it were absent, and only a message whose heart is missing is foreign.

mod ask;
mod block;
mod carriage;
mod decode;
mod encode;
mod interpreter;
mod law;
mod mark;
mod method;
mod passed;
mod plain;
mod plan;
mod recorded;
mod rpc;
mod tool;
mod waiting;
mod wire;
mod write;

pub(crate) use carriage::CARRIAGE;
pub use decode::Decoder;
pub use encode::Encoder;
pub use interpreter::Interpreter;
pub(crate) use law::law;
pub use method::Side;
pub use recorded::{Recorded, RecordedError};
pub use rpc::{Id, Message, MessageError};

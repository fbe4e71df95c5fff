//! The wire of Onyx Build Mode: ACP updates as JSON packets, one per server-sent event.
//!
//! Two documents of that project describe it, a packet overview and a packet reference with detection
//! rules; [`rules`] holds the latter as functions, [`Packet`] reads every packet and fragment that they
//! show, and the [`Encoder`] writes them. [`Rows`] is the same telling as it is stored, for a page that
//! loads a session.
//!
//! Invariant: a tool is told as one start, then its whole state at each visible change, then exactly one
//! end; a turn ends with exactly one `prompt_response` or `error`. Clients drop a progress without a
//! start, and wait for ever on a turn without an end.

mod carriage;
mod content;
mod decode;
mod encode;
mod error;
pub(crate) mod fields;
mod law;
mod output;
mod packet;
mod rows;
pub mod rules;
pub(crate) mod stamp;
mod tool;
mod write;

pub(crate) use carriage::CARRIAGE;
pub use decode::Decoder;
pub use encode::Encoder;
pub(crate) use error::INTERRUPTED;
pub use error::{CommonError, error_packet};
pub(crate) use law::law;
pub use packet::{Approval, Artifact, ErrorPacket, Packet, PacketError, ToolPacket, read_content};
pub use rows::{Row, RowMetadata, RowType, Rows};
pub use stamp::timestamp;
pub use write::cancelled_packet;

/// Which of the clients of this wire is listening; the request's body tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Profile {
    /// As the documents have it: `_meta` is null. For a body of `content` alone.
    Documented,
    /// Today's client, known by `client_request_id`: it looks for the tool's name and for the subagent's
    /// session in `_meta`.
    Current,
}

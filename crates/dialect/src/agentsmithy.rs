//! The wire of AgentSmithy: document 003.

mod decode;
mod encode;
mod law;

pub use decode::Decoder;
pub use encode::Encoder;
pub(crate) use law::{CARRIAGE, law};

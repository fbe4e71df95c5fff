//! The first packets of Onyx Build Mode: document 001.

mod decode;
mod encode;
mod law;

pub use decode::Decoder;
pub use encode::Encoder;
pub(crate) use law::{CARRIAGE, law};

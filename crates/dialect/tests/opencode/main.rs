//! OpenCode's wire: every shape that its document shows, what the real server sent, and what must hold
//! for any run of facts.

mod clients;
mod decoder;
mod document;
mod encoder;
mod recordings;
mod runs;
mod support;
mod transcript;

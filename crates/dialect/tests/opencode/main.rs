//! OpenCode's wire: every shape that its document shows, what the real server sent, and what must hold
//! for any run of facts.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` is written where it is used")]

mod clients;
mod decoder;
mod document;
mod encoder;
mod faults;
mod law;
mod recordings;
mod runs;
mod support;
mod transcript;

//! The wires to models, against a scripted provider that is as strict as the real ones, and against bytes by hand.

#![allow(clippy::unwrap_used, reason = "clippy sees tests only in functions that are marked so, and these help them")]

mod cost;
mod cuts;
mod faults;
#[cfg(feature = "genai")]
mod genai;
mod raw;
mod said;
mod secret;
mod shapes;
mod talk;

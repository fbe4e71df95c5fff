//! The native agent's loop, against models that say what was written for them.

#![allow(clippy::unwrap_used, reason = "clippy sees tests only in functions that are marked so, and these help them")]

mod hall;
mod script;

mod begins;
mod compaction;
mod demo;
mod edges;
mod halted;
mod rebuilt;
mod speed;
mod talk;
mod told;
mod tools;
mod wire;

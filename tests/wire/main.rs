//! The product from outside: the `tolka` binary as it is shipped, spoken to over its socket, cut off, starved,
//! misused and killed. Nothing here is a stand-in; everything ends by itself.
//!
//! `TOLKA_KILLS=5000` makes the kill test a long one; `TOLKA_SEED=…` makes it choose the same moments again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod check;
mod checkpoint;
mod checkpoints_cli;
mod checkpoints_restore;
mod cli;
mod commands;
mod convert;
mod demo;
mod dialects;
mod doctor;
mod door;
mod fork;
mod http;
mod keys;
mod kill;
mod limits;
mod mcp;
mod models;
mod native;
mod recording;
mod rewind;
mod run;
mod scripts;
mod server;
mod shutdown;
mod sse;
mod stall;
mod steer;

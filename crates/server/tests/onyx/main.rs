//! The routes of Onyx Build Mode, spoken to over a socket as their clients speak to them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approvals;
mod files;
#[allow(dead_code, reason = "it serves the tests of other families as well")]
mod house;
mod queue;
mod reader;
mod resume;
mod sessions;
mod steps;
mod turns;

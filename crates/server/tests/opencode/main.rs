//! OpenCode's routes as its clients meet them.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod agent;
mod asks;
mod feeds;
mod host;
mod prompts;
mod servers;
mod sessions;
mod surroundings;
mod ways;

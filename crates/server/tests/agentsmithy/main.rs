//! AgentSmithy's routes, spoken to over a socket as their clients speak to them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod chat;
mod dialogs;
mod guard;
mod history;
#[path = "../onyx/house.rs"]
#[allow(dead_code, reason = "it serves the tests of another family as well")]
mod house;
mod queue;
#[path = "../onyx/reader.rs"]
#[allow(dead_code, reason = "the house brings it")]
mod reader;
mod refused;
mod resume;
mod skeleton;

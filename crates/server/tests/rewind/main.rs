//! Going back over HTTP, by the routes of two families, in a workspace with real files and real snapshots.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agentsmithy;
mod failures;
mod full;
#[path = "../onyx/house.rs"]
#[allow(dead_code, reason = "it serves the tests of another family as well")]
mod house;
mod opencode;
mod parts;
#[path = "../onyx/reader.rs"]
#[allow(dead_code, reason = "the house brings it")]
mod reader;
mod shop;
mod two;
mod waiting;
mod worker;

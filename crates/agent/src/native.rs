//! The agent of our own: a model that is asked step after step, and hands of ours that do what it calls for.
//!
//! A turn is a loop: the [model](model::Model) is sent the conversation and says text, thoughts and calls; the
//! [tools](tools::Tools) run the calls; their results go back; until it calls for nothing more. Everything on
//! the way is told as facts, and the conversation that is sent is made from those facts, so that a restart
//! loses nothing.

pub mod model;
pub mod permission;
pub mod settings;
mod tools;

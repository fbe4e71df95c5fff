//! Servers of the Model Context Protocol: programs and addresses that offer tools, resources and prompts to an agent.
//!
//! Each is somebody else's code, so each is kept at arm's length: it is connected when somebody first needs it, every wait
//! for it has an end, all that is read from it is bounded, and what it does wrong is told in words and harms nobody else.
//! This crate knows the protocol and nothing of ours: how a program is started and an address is reached is the
//! [`Ways`] of whoever uses it.

mod config;
mod connection;
mod content;
mod error;
mod http;
mod hub;
mod lines;
mod lists;
mod name;
mod pace;
mod peer;
mod schema;
mod server;
mod sse;
mod stdio;
mod ways;

pub use config::{Config, ConfigError, Reach};
pub use content::{Content, Contents, Given, Returned, Said};
pub use error::McpError;
pub use hub::{Hub, Kit, Offered, Seen};
pub use lists::{Lists, Prompt, PromptArgument, Resource, Tool};
pub use name::tool_name;
pub use server::{Server, State, Status};
pub use ways::{Piped, Program, Times, Ways};

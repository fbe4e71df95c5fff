//! The door: one port, on which each family of clients finds its own routes and errors in its own shape.
//!
//! Nothing here builds a fact: requests become calls to the desk, and streams are read from the journal.
//! Closed by default: every request passes the guard before it reaches a route.

mod agentsmithy;
mod app;
mod fault;
mod guard;
mod late;
mod listen;
mod listing;
mod mcp;
mod metrics;
mod onyx;
mod opencode;
mod page;
mod past;
mod request;
mod stream;
mod token;
mod v1;

pub use app::{Config, Hands, Sandbox, Server, StartError};
pub use token::{Scope, Token, TokenError, TokenFile};

//! The keeper of a command that an agent runs: this program, started again by its own server.
//!
//! It is no command of the command line: nobody else should start one, and it must be there before anything else
//! is, since every command of an agent waits for it.

use std::process::ExitCode;

use tolka_workspace::command::{KEEP, keep};

/// Keeps a command, if that is what this process was started for.
pub(crate) fn asked() -> Option<ExitCode> {
    let is_asked = std::env::args_os().nth(1).is_some_and(|first| first == KEEP);
    is_asked.then(keep)
}

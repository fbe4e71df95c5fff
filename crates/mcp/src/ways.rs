use std::any::Any;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use reqwest::{Client, Url};
use tokio::io::{AsyncRead, AsyncWrite};

/// How programs are started and addresses reached: in which sandbox, with which certificates.
pub trait Ways: Send + Sync + fmt::Debug {
    /// Starts a program that goes on until what is given back is dropped, with all that it started. Within a tokio
    /// runtime.
    fn start(&self, program: &Program<'_>) -> std::io::Result<Piped>;

    /// Connections to this address. They must follow no redirect: headers hold keys.
    fn client(&self, url: &Url) -> Result<Client, String>;

    /// Who tries what becomes of servers need not wait as long as people do.
    fn times(&self) -> Times {
        Times::default()
    }
}

/// How long this and that takes with servers that do not do as they should.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Before one that died is started anew; each time twice as long.
    pub pause: Duration,
    /// After this time somebody who needs a server that was given up lets it be tried once more.
    pub cool: Duration,
    /// Between two looks at lists that change.
    pub lists: Duration,
    /// Before one at an address is listened to again; twice as long each time that it had nothing to say.
    pub overhear: Duration,
    /// For coming up, where that is more than the time for an answer.
    pub opening: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Times {
            pause: Duration::from_millis(500),
            cool: Duration::from_secs(60),
            lists: Duration::from_secs(1),
            overhear: Duration::from_secs(1),
            opening: Duration::ZERO,
        }
    }
}

/// A program to be started.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    pub command: &'a [String],
    /// Added to what every program gets.
    pub env: &'a [(String, String)],
    /// Where it works.
    pub workspace: &'a Path,
}

impl fmt::Debug for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("command", &self.command.first()).finish_non_exhaustive()
    }
}

/// A program that runs.
pub struct Piped {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The program ends when this is dropped.
    pub leash: Box<dyn Any + Send>,
}

impl fmt::Debug for Piped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Piped")
    }
}

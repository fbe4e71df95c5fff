//! What a keeper is told, as an argument, and what it reports, as lines on its stderr.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::group::Place;
use super::limits::{Bound, Limits};
use super::sandbox::Bounds;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) program: PathBuf,
    pub(super) time_limit: Duration,
    pub(super) input: Input,
    pub(super) sandbox: Sandbox,
    /// The program that makes the sandbox, where one does.
    pub(super) wrapper: Option<PathBuf>,
    pub(super) way: Way,
    pub(super) limits: Limits,
    /// Where the kernel itself counts; else the keeper does.
    pub(super) group: Option<Place>,
}

/// What the command reads, and where its errors go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Input {
    /// It reads nothing, and its errors are part of its output.
    Nothing,
    /// The leash: what is sent over it is the command's input. Its errors stand before the report.
    Leash,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sandbox {
    Bubblewrap(Bounds),
    Landlock(Bounds),
    /// Inside Bubblewrap.
    Inside,
    None,
}

/// The command's way to the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    Open,
    Closed,
    /// Only through the server's proxy: at this port of the loopback, and from a network of its own over this socket.
    Proxy {
        port: u16,
        socket: Option<PathBuf>,
    },
}

/// How a command ended, as its keeper saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        timed_out: bool,
        left_behind: usize,
        over: Vec<Bound>,
    },
    Failed {
        words: String,
    },
    /// What the kernel counted, from the keeper outside of a sandbox; the one inside tells the rest.
    Over(Vec<Bound>),
}

impl Report {
    pub(super) fn failed(what: &str, error: &io::Error) -> Self {
        Report::Failed { words: format!("{what}: {error}") }
    }

    /// The report among what came from a keeper; whatever else it said is why there is none. `None`: it was killed.
    pub(super) fn find(said: &[u8]) -> Option<Self> {
        let said = String::from_utf8_lossy(said);
        let (mut found, mut counted) = (None, Vec::new());
        for line in said.lines() {
            match serde_json::from_str(line) {
                Ok(Report::Over(bounds)) => counted.extend(bounds),
                // The last one: what a program with a leash for its input says stands before it.
                Ok(report) => found = Some(report),
                Err(_) => {}
            }
        }
        match found {
            Some(Report::Ended { code, signal, timed_out, left_behind, mut over }) => {
                over.extend(counted);
                over.dedup();
                Some(Report::Ended { code, signal, timed_out, left_behind, over })
            }
            None if said.trim().is_empty() => None,
            None => Some(Report::Failed { words: said.trim().to_owned() }),
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_found_with_what_was_counted_outside() {
        let ended =
            |over: Vec<Bound>| Report::Ended { code: Some(0), signal: None, timed_out: false, left_behind: 0, over };
        let line = |report: &Report| serde_json::to_string(report).unwrap();
        let said = format!("a warning\n{}\n{}\n", line(&ended(Vec::new())), line(&Report::Over(vec![Bound::Memory])));
        assert_eq!(Report::find(said.as_bytes()), Some(ended(vec![Bound::Memory])));
        assert_eq!(Report::find(b"no such file\n"), Some(Report::Failed { words: "no such file".to_owned() }));
        assert_eq!(Report::find(b"  \n"), None);
    }
}

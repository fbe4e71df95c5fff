//! What a keeper is told, as an argument, and what it reports, as a line on its stderr.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::sandbox::Bounds;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    /// The shell.
    pub(super) program: PathBuf,
    pub(super) time_limit: Duration,
    pub(super) sandbox: Sandbox,
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

/// How a command ended, as its keeper saw it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    Ended { code: Option<i32>, signal: Option<i32>, timed_out: bool, left_behind: usize },
    Failed { words: String },
}

impl Report {
    pub(super) fn failed(what: &str, error: &io::Error) -> Self {
        Report::Failed { words: format!("{what}: {error}") }
    }

    /// The first report among what came from a keeper; whatever else it said is why there is none. `None`: it was killed.
    pub(super) fn find(said: &[u8]) -> Option<Self> {
        let said = String::from_utf8_lossy(said);
        let report = said.lines().find_map(|line| serde_json::from_str(line).ok());
        report.or_else(|| match said.trim() {
            "" => None,
            said => Some(Report::Failed { words: said.to_owned() }),
        })
    }
}

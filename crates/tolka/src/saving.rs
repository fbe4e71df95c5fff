//! How workspaces are saved: `[checkpoints]` of `tolka.toml`, as the desk and the pruning want it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tolka_session::DeskOptions;
use tolka_workspace::checkpoint::Policy;
use tolka_workspace::{Caps, Checkpoints};

use crate::config::CheckpointsEntry;

#[derive(Debug, Clone)]
pub(crate) struct Saving {
    /// `None`: they are switched off.
    pub(crate) checkpoints: Option<Arc<Checkpoints>>,
    /// How long a prompt waits for its snapshot.
    pub(crate) budget: Duration,
    /// What is kept.
    pub(crate) policy: Policy,
}

impl Saving {
    pub(crate) fn of(entry: &CheckpointsEntry, data: &Path) -> Self {
        let (caps, policy) = (Caps::default(), Policy::default());
        let caps = Caps {
            largest_file: entry.largest_file.map_or(caps.largest_file, |size| size.0),
            most_files: entry.most_files.map_or(caps.most_files, u64::from),
        };
        let is_on = entry.enabled.unwrap_or(true);
        Saving {
            checkpoints: is_on.then(|| Arc::new(Checkpoints::with_caps(data, caps))),
            budget: entry.budget.map_or(DeskOptions::default().checkpoint_budget, |time| time.0),
            policy: Policy {
                keep_for: entry.keep_days.map_or(policy.keep_for, |days| days.0),
                most_bytes: entry.max_size.map_or(policy.most_bytes, |size| size.0),
            },
        }
    }

    /// Where no files are touched.
    pub(crate) fn off(data: &Path) -> Self {
        Saving::of(&CheckpointsEntry { enabled: Some(false), ..CheckpointsEntry::default() }, data)
    }

    pub(crate) fn options(&self) -> DeskOptions {
        DeskOptions { checkpoints: self.checkpoints.clone(), checkpoint_budget: self.budget }
    }

    /// Why what turns do cannot be taken back, where that is so: one line for people.
    pub(crate) async fn says(&self, workspace: &Path) -> Result<Option<String>> {
        if self.checkpoints.is_none() {
            return Ok(Some(
                "checkpoints: off, by enabled = false under [checkpoints]; turns cannot be taken back".into(),
            ));
        }
        let workspace = workspace.to_owned();
        let obstacle = tokio::task::spawn_blocking(move || Checkpoints::obstacle(&workspace)).await?;
        Ok(obstacle.map(|why| format!("checkpoints: none, and turns cannot be taken back: {why}")))
    }
}

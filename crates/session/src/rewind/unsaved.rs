//! What turns did to files that no snapshot holds: nothing can give it back, and so people are told where it was.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use tolka_workspace::checkpoint::{Content, Plan, Wrote};

use super::prepare::{Study, checkpoint_error};
use crate::SessionError;

/// More are not named.
const NAMED: usize = 1000;

impl Study {
    /// Files that turns since the target told of, that are not as they were, and that neither end of the plan holds: they
    /// are ignored, too large or unreadable. Each once.
    pub(super) async fn unsaved(&self, plan: &Plan, since: Option<u64>) -> Result<Vec<PathBuf>, SessionError> {
        let from = match since {
            Some(since) => since,
            None => self.history.named(&plan.target).await?,
        };
        let wrote = self.history.wrote(from, u64::MAX).await?;
        let known = plan.steps.iter().map(|step| &step.path).chain(plan.kept.iter().map(|kept| &kept.path));
        let known: HashSet<PathBuf> = known.cloned().collect();
        let folder = self.history.folder.canonical.clone();
        let looking = tokio::task::spawn_blocking(move || changed(&folder, &known, wrote));
        let paths = looking.await.unwrap_or_default();
        if paths.is_empty() {
            return Ok(paths);
        }
        let (store, ends) = (self.store()?, [plan.target.as_str(), &plan.now]);
        store.checkpoints.in_none(&store.folder.named, &ends, paths).await.map_err(checkpoint_error)
    }
}

/// Those that are there and were made or changed, or that were there and are gone. Blocks.
fn changed(folder: &Path, known: &HashSet<PathBuf>, wrote: HashMap<PathBuf, Wrote>) -> Vec<PathBuf> {
    let mut paths = BTreeSet::new();
    for (path, Wrote { was, is }) in wrote {
        let Some(path) = direct(folder, path).filter(|path| !known.contains(path)) else { continue };
        let there = folder.join(&path).symlink_metadata();
        let is_there = there.as_ref().is_ok_and(|found| !found.is_dir());
        let is_as_it_was = match was {
            Content::Nothing => !is_there,
            Content::Holds(_) => is_there && was == is,
            Content::Unknown => false,
        };
        if !is_as_it_was {
            paths.insert(path);
        }
    }
    paths.into_iter().take(NAMED).collect()
}

/// By the folder that it is really in: it may have been told by way of a link. `None`: that leads out.
fn direct(folder: &Path, path: PathBuf) -> Option<PathBuf> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let Some(Ok(real)) = above.map(|above| folder.join(above).canonicalize()) else { return Some(path) };
    Some(real.strip_prefix(folder).ok()?.join(path.file_name()?))
}

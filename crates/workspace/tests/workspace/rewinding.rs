//! What tests of plans and restores share: turns, spans, and what is on the disk.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tolka_facts::event::{KeptWhy, Overwrite};
use tolka_workspace::checkpoint::{Plan, PlanRequest, Restored, Span, Whose};

use crate::house::House;

pub(crate) fn span(from: &str, to: &str, whose: Whose) -> Span {
    Span { from: from.to_owned(), to: to.to_owned(), whose }
}

pub(crate) fn both(ours: &[&str], theirs: &[&str]) -> Whose {
    let set = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<HashSet<_>>();
    Whose::Both { ours: set(ours), theirs: set(theirs) }
}

pub(crate) fn request(spans: Vec<Span>) -> PlanRequest {
    let (target, now) = (spans[0].from.clone(), spans[spans.len() - 1].to.clone());
    PlanRequest { target, now, spans, overwrite: Overwrite::Nothing }
}

impl House {
    pub(crate) async fn commit(&self) -> String {
        self.save().await.commit
    }

    pub(crate) async fn plan(&self, spans: Vec<Span>) -> Plan {
        self.plan_of(&request(spans)).await
    }

    pub(crate) async fn plan_of(&self, request: &PlanRequest) -> Plan {
        self.checkpoints.plan(&self.workspace, request).await.unwrap()
    }

    /// What was promised just before is what is done.
    pub(crate) async fn carry_out(&self, plan: &Plan) -> Restored {
        let promised = self.checkpoints.look(&self.workspace, plan).await.unwrap();
        let restored = self.checkpoints.restore(&self.workspace, plan).await.unwrap();
        assert_eq!(promised, restored);
        restored
    }

    /// All since a snapshot was the session's.
    pub(crate) async fn undo_all(&self, target: &str) -> Restored {
        let now = self.commit().await;
        let plan = self.plan(vec![span(target, &now, Whose::Ours)]).await;
        self.carry_out(&plan).await
    }

    pub(crate) fn remove(&self, path: impl AsRef<Path>) {
        fs::remove_file(self.workspace.join(path)).unwrap();
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.workspace.join(path)).unwrap()
    }

    pub(crate) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.workspace.join(path).symlink_metadata().is_ok()
    }

    /// What tells whether anybody wrote a file: which one it is, and when it was written.
    pub(crate) fn written(&self, path: impl AsRef<Path>) -> (u64, i64, i64) {
        let about = self.workspace.join(path).symlink_metadata().unwrap();
        (about.ino(), about.mtime(), about.mtime_nsec())
    }
}

pub(crate) fn steps(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| step.path.display().to_string()).collect()
}

pub(crate) fn done(restored: &Restored) -> Vec<String> {
    restored.done.iter().map(|step| step.path.display().to_string()).collect()
}

pub(crate) fn kept(all: &[tolka_workspace::checkpoint::Kept]) -> Vec<(String, KeptWhy)> {
    all.iter().map(|kept| (kept.path.display().to_string(), kept.why)).collect()
}

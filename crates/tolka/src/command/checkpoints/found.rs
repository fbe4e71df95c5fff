//! Checkpoints by the first digits of their names, and as JSON.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tolka_facts::event::FileOperation;
use tolka_workspace::checkpoint::{FileDiff, Snapshot, StoreInfo};

/// A name that fewer digits could be of too many.
const FEWEST: usize = 4;

pub(super) struct Found {
    pub(super) store: StoreInfo,
    pub(super) snapshot: Snapshot,
    /// The one after it, of the same session.
    pub(super) next: Option<Snapshot>,
}

/// By its name, and by its session if several have it: else the oldest, since a fork has those of its parent too.
pub(super) fn find(stores: Vec<StoreInfo>, name: &str, session: Option<&str>) -> Result<Found> {
    let is_name = name.len() >= FEWEST && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_name {
        bail!(
            "a checkpoint is named by the first digits of its name, {FEWEST} at least; `tolka checkpoints list` shows them"
        );
    }
    let name = name.to_ascii_lowercase();
    let mut found: Option<Found> = None;
    for store in stores {
        let is_meant = |it: &Snapshot| {
            it.commit.starts_with(&name) && session.is_none_or(|session| it.session.as_str() == session)
        };
        let meant = store.snapshots.iter().enumerate().filter(|(_, it)| is_meant(it));
        // The ids of sessions descend.
        let oldest = meant.max_by(|(_, a), (_, b)| a.session.as_str().cmp(b.session.as_str()));
        let Some((at, _)) = oldest else { continue };
        let snapshot = store.snapshots[at].clone();
        let is_other = |it: &Snapshot| it.commit.starts_with(&name) && it.commit != snapshot.commit;
        if store.snapshots.iter().any(is_other) || found.is_some() {
            bail!("`{name}` could be several checkpoints; say more of it");
        }
        let next = store.snapshots[at + 1..].iter().find(|it| it.session == snapshot.session).cloned();
        found = Some(Found { store, snapshot, next });
    }
    match found {
        Some(found) => Ok(found),
        None => bail!("no checkpoint is called `{name}`; `tolka checkpoints list` shows what there is"),
    }
}

pub(super) fn store(store: &StoreInfo) -> Value {
    json!({
        "workspace": store.workspace.to_string_lossy(),
        "orphan": store.is_orphan,
        "bytes": store.bytes,
        "checkpoints": store.snapshots.iter().map(snapshot).collect::<Vec<Value>>(),
    })
}

pub(super) fn snapshot(snapshot: &Snapshot) -> Value {
    json!({
        "checkpoint": snapshot.commit,
        "session": snapshot.session,
        "taken": snapshot.taken,
        "words": snapshot.words,
    })
}

pub(super) fn change(diff: &FileDiff, with_patch: bool) -> Value {
    let change = &diff.change;
    let mut shown = json!({
        "path": tolka_workspace::names::told(&change.path),
        "operation": operation(change.operation),
        "added": change.added,
        "removed": change.removed,
        "binary": change.is_binary,
    });
    if with_patch {
        shown["patch"] = json!(diff.patch);
    }
    shown
}

pub(super) fn operation(operation: FileOperation) -> &'static str {
    match operation {
        FileOperation::Create => "create",
        FileOperation::Update => "update",
        FileOperation::Delete => "delete",
    }
}

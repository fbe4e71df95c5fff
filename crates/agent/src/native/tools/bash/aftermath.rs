//! What a command changed: found by looking before and after it.

use std::collections::HashMap;

use tolka_facts::Draft;
use tolka_facts::event::{FileOperation, Noticed, Severity};
use tolka_workspace::changes::{Changed, Look};

use super::super::act::{Act, Stop};
use super::super::change::{self, Change, Content};
use tolka_workspace::files::Files;

/// Files that are told of one command; somebody who unpacks an archive does not want to see them all.
const MOST: usize = 1_000;

/// The workspace before a command.
pub(super) struct Before<'a> {
    act: &'a Act<'a>,
    look: Look,
    /// What is known to be in files that were read or changed before.
    kept: HashMap<String, Content>,
}

impl<'a> Before<'a> {
    pub(super) async fn look(act: &'a Act<'a>) -> Result<Self, Stop> {
        let workspace = act.workspace();
        let memory = act.tools.memory.clone();
        let (look, kept) = act.looking(move |_| (Look::at(&workspace), memory.kept(&workspace))).await?;
        Ok(Before { act, look, kept })
    }

    pub(super) async fn tell_changes(self) -> Result<(), Stop> {
        let Before { act, look, kept } = self;
        let workspace = act.workspace();
        let changes = act.doing(move || look.changes(&Look::at(&workspace))).await?;
        let left_out = changes.len().saturating_sub(MOST);
        let told = &changes[..changes.len() - left_out];
        let mut saved = saved(act, told, &kept).await;
        for changed in told {
            let before = kept.get(&changed.path).cloned().or_else(|| saved.remove(&changed.path));
            tell(act, changed.clone(), before).await?;
        }
        if left_out == 0 {
            return Ok(());
        }
        let notice = Noticed {
            severity: Severity::Info,
            title: format!("{left_out} more files were changed"),
            description: Some(format!("A command changed {} files; the first {MOST} are told.", left_out + MOST)),
        };
        Ok(act.scene.teller.tell(Draft::tolka(notice)).await?)
    }
}

/// What the checkpoint before the turn has of those files of which nothing better is known.
async fn saved(act: &Act<'_>, changes: &[Changed], kept: &HashMap<String, Content>) -> HashMap<String, Content> {
    let (Some(checkpoints), Some(commit)) = (&act.tools.settings.checkpoints, &act.scene.checkpoint) else {
        return HashMap::new();
    };
    let was_there = |changed: &&Changed| changed.operation != FileOperation::Create;
    let unknown = changes.iter().filter(was_there).filter(|changed| !kept.contains_key(&changed.path));
    let paths: Vec<String> = unknown.map(|changed| changed.path.clone()).collect();
    if paths.is_empty() {
        return HashMap::new();
    }
    match checkpoints.contents(&act.tools.workspace, commit, &paths).await {
        Ok(contents) => {
            let found = paths.into_iter().zip(contents);
            let hash = move || found.filter_map(|(path, content)| Some((path, Content::new(content?)))).collect();
            act.doing(hash).await.unwrap_or_default()
        }
        Err(error) => {
            tracing::warn!(%error, "what files held before a command is not known");
            HashMap::new()
        }
    }
}

async fn tell(act: &Act<'_>, changed: Changed, before: Option<Content>) -> Result<(), Stop> {
    let Changed { path, operation } = changed;
    let (workspace, wanted) = (act.workspace(), path.clone());
    let after = match operation {
        FileOperation::Delete => None,
        FileOperation::Create | FileOperation::Update => {
            let read =
                move || Files::open(&workspace)?.read(&wanted, change::MOST).map(|content| Content::new(content.bytes));
            match act.doing(read).await? {
                Ok(content) => Some(content),
                // Too large, a link, or gone again: that it changed is all there is to say.
                Err(_) => return act.changed_somehow(&path, operation).await,
            }
        }
    };
    match (operation, &before) {
        (FileOperation::Update | FileOperation::Delete, None) => act.changed_somehow(&path, operation).await,
        // Somebody touched it, and no more.
        (FileOperation::Update | FileOperation::Delete, Some(_)) if before == after => Ok(()),
        (FileOperation::Create | FileOperation::Update | FileOperation::Delete, _) => {
            let before = before.filter(|_| operation != FileOperation::Create);
            let compared = act.doing(move || Change::new(&path, before, after)).await?;
            act.changed(&compared).await
        }
    }
}

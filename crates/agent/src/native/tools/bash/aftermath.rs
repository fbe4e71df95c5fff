//! What a command, or a program that was asked to do something, changed: found by looking before and after it.

use std::collections::HashMap;
use std::path::PathBuf;

use tolka_facts::Draft;
use tolka_facts::event::{FileOperation, Noticed, Severity};
use tolka_workspace::changes::{Changed, Look, Watch};
use tolka_workspace::files::Files;
use tolka_workspace::limits;
use tolka_workspace::obeyed::Obeyed;

use super::super::act::{Act, Stop};
use super::super::change::{Change, Content};
use super::guarded::{self, Asking};

/// Files that are told of one command; somebody who unpacks an archive does not want to see them all.
const MOST: usize = 1_000;

/// The workspace before a command.
pub(in super::super) struct Before<'a> {
    act: &'a Act<'a>,
    look: Look,
    watch: Watch,
    /// Looked at though they may be ignored: checkpoints have them.
    also: Vec<PathBuf>,
    /// What is known to be in files that were read or changed before.
    kept: HashMap<String, Content>,
    /// `None`: it has been looked after.
    obeyed: Option<Obeyed>,
}

impl<'a> Before<'a> {
    pub(in super::super) async fn look(act: &'a Act<'a>) -> Result<Self, Stop> {
        guarded::look_between(act).await?;
        let workspace = act.workspace();
        let memory = act.tools.memory.clone();
        let checkpoints = act.tools.settings.checkpoints.clone();
        let watch = Watch::begin();
        let look = move |_| {
            let also = checkpoints.map(|checkpoints| checkpoints.beyond_rules(&workspace)).unwrap_or_default();
            (Look::also_at(&workspace, &also), also, memory.kept(&workspace), Obeyed::at(&workspace))
        };
        let (look, also, kept, obeyed) = act.looking(look).await?;
        Ok(Before { act, look, watch, also, kept, obeyed: Some(obeyed) })
    }

    /// Gives back what the model should know of it.
    pub(in super::super) async fn tell_changes(mut self, asking: Asking) -> Result<Option<String>, Stop> {
        // First: somebody may be about to use git.
        let note = self.guard(asking).await?;
        let Before { act, look, watch, also, kept, .. } = self;
        let workspace = act.workspace();
        let found = act.doing(move || {
            let now = Look::also_at(&workspace, &also);
            let is_partial = look.is_partial() || now.is_partial();
            let mut changes = look.changes(&now);
            changes.retain(|changed| !look.is_told_elsewhere(&now, changed, &watch));
            (changes, is_partial, look)
        });
        let (changes, is_partial, look) = found.await?;
        let left_out = changes.len().saturating_sub(MOST);
        let told = &changes[..changes.len() - left_out];
        let mut saved = saved(act, told, &kept, &look).await;
        for changed in told {
            let before = kept.get(&changed.path).cloned().or_else(|| saved.remove(&changed.path));
            tell(act, changed.clone(), before).await?;
        }
        if left_out > 0 {
            let title = format!("{left_out} more files were changed");
            let words = format!("A command changed {} files; the first {MOST} are told.", left_out + MOST);
            act.notice(Severity::Info, &title, words).await?;
        }
        if is_partial && act.tools.memory.tells_partial() {
            let words = "There are too many files in the workspace to look at all of them: which ones a command makes or \
                         deletes is not told, and changes of some are missed.";
            act.notice(Severity::Warning, "Not all that commands change is told", words.to_owned()).await?;
        }
        Ok(note)
    }
}

impl Before<'_> {
    /// The part that cannot wait: what git obeys. Once is enough; gives back what the model should know of it.
    pub(super) async fn guard(&mut self, asking: Asking) -> Result<Option<String>, Stop> {
        match self.obeyed.take() {
            Some(obeyed) => guarded::look_after(self.act, obeyed, asking).await,
            None => Ok(None),
        }
    }
}

impl Act<'_> {
    /// What commands wanted to reach and may not: each host once, to the person who can put it on the list.
    pub(in super::super) async fn tell_refused(&self, hosts: &[String]) -> Result<(), Stop> {
        let news: Vec<&str> = hosts.iter().map(String::as_str).filter(|host| self.tools.memory.is_news(host)).collect();
        if news.is_empty() {
            return Ok(());
        }
        let words = format!(
            "{}: not on the list of hosts. If that is fine with you, add it to `network` in the [sandbox] part of tolka.toml \
             and start the server again.",
            news.join(", ")
        );
        self.notice(Severity::Warning, "A command wanted to reach a host that is not allowed", words).await
    }

    pub(super) async fn notice(&self, severity: Severity, title: &str, description: String) -> Result<(), Stop> {
        let notice = Noticed { severity, title: title.to_owned(), description: Some(description) };
        Ok(self.scene.teller.tell(Draft::tolka(notice)).await?)
    }
}

/// What the checkpoint before the turn has of those files of which nothing better is known, and that nobody had touched
/// since: of the others it would not be true.
async fn saved(
    act: &Act<'_>,
    changes: &[Changed],
    kept: &HashMap<String, Content>,
    look: &Look,
) -> HashMap<String, Content> {
    let (Some(checkpoints), Some(commit)) = (&act.tools.settings.checkpoints, &act.scene.checkpoint) else {
        return HashMap::new();
    };
    let was_there = |changed: &&Changed| changed.operation != FileOperation::Create;
    let is_as_saved = |changed: &&Changed| look.is_older(&changed.path, act.scene.since);
    let unknown = changes.iter().filter(was_there).filter(|changed| !kept.contains_key(&changed.path));
    let unknown = unknown.filter(is_as_saved);
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
            let read = move || Files::open(&workspace)?.read(&wanted, limits::KEPT).map(Content::new);
            match act.doing(read).await? {
                Ok(content) => Some(content),
                // Too large, a link, or gone again: that it changed is all there is to say.
                Err(_) => return act.hand().changed_somehow(&path, operation).await,
            }
        }
    };
    match (operation, &before) {
        (FileOperation::Update | FileOperation::Delete, None) => act.hand().changed_somehow(&path, operation).await,
        // Somebody touched it, and no more.
        (FileOperation::Update | FileOperation::Delete, Some(_)) if before == after => Ok(()),
        (FileOperation::Create | FileOperation::Update | FileOperation::Delete, _) => {
            let before = before.filter(|_| operation != FileOperation::Create);
            let compared = act.doing(move || Change::new(&path, before, after)).await?;
            act.hand().changed(&compared).await
        }
    }
}

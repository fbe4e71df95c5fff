//! `delete`: one file. Folders are for commands. Of a link it is the link that goes, wherever it leads.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tolka_facts::event::FileOperation;
use tolka_workspace::files::Files;

use super::act::{Act, Done, Stop, blocking};
use super::ask::Want;
use super::change::Change;
use super::field::{FILE, Fields};
use super::read::fields as map;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let path = act.relative(&fields.need_words(FILE)?)?;
    let before = match act.content(&path).await {
        Ok(Some(before)) => before,
        Err(stop @ (Stop::Gone(_) | Stop::Cancelled(_))) => return Err(stop),
        // What it leads to is no file of the workspace, and is not touched.
        missing => match act.link(&path).await? {
            Some(target) => return unlink(act, path, target).await,
            None => {
                let none = || Stop::Failed(format!("there is no file {path} in the workspace; nothing was deleted"));
                return Err(missing.err().unwrap_or_else(none));
            }
        },
    };
    let named = path.clone();
    let change = Arc::new(act.looking(move |_| Change::new(&named, Some(before), None)).await?);
    act.carry_out(&path, &change).await?;
    let metadata = json!({ "filepath": act.absolute(&path), "diff": change.diff.text, "truncated": false });
    Ok(act.changed(path, &change, "Deleted file successfully.", metadata))
}

async fn unlink(act: &Act<'_>, path: String, target: PathBuf) -> Result<Done, Stop> {
    act.leave(Want::edit(&[&path], path.clone(), ""), &[&path]).await?;
    act.running_for_good(&path, &[&path]).await?;
    let (hand, workspace, named) = (act.hand(), act.workspace(), path.clone());
    act.effect(async move {
        let gone = named.clone();
        blocking(move || Files::open(&workspace)?.remove_link(&gone, &target)).await??;
        hand.changed_somehow(&hand.real(&named), FileOperation::Delete).await
    })
    .await?;
    let metadata = map(json!({ "filepath": act.absolute(&path), "diff": "", "truncated": false }));
    let output = "Deleted the link; what it led to is as it was.".to_owned();
    Ok(Done { title: path, output, metadata, ..Done::default() })
}

impl Act<'_> {
    /// Where a link leads, if one is at the path itself.
    async fn link(&self, path: &str) -> Result<Option<PathBuf>, Stop> {
        let (workspace, path) = (self.workspace(), path.to_owned());
        Ok(self.looking(move |_| Files::open(&workspace)?.link(&path)).await??)
    }
}

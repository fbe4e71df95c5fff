//! `write`: a whole file. One that is there is written over only if the model has seen what is in it now.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tolka_workspace::files::{FileError, Files};
use tolka_workspace::folder::FolderError;
use tolka_workspace::limits;

use super::act::{Act, Done, Stop, blocking};
use super::ask::Want;
use super::change::{Change, Content};
use super::field::{CONTENT, FILE, Fields};
use super::read::fields as map;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let path = act.relative(&fields.need_words(FILE)?)?;
    let content = fields.need(CONTENT)?;
    let before = act.content(&path).await?;
    if let Some(before) = &before
        && !act.tools.memory.is_seen(&path, before)
    {
        return Err(Stop::Failed(format!(
            "{path} is there already, and you have not read what is in it now; read it first, then write it"
        )));
    }
    let named = path.clone();
    let compare = move |_| {
        let content = match before.as_ref().is_some_and(ends_lines_with_crlf) && !content.contains('\r') {
            true => content.replace('\n', "\r\n"),
            false => content,
        };
        Change::new(&named, before, Some(Content::new(content.into_bytes())))
    };
    let change = Arc::new(act.looking(compare).await?);
    act.leave(Want::edit(&[&path], path.clone(), &change.diff.text), &[&path]).await?;
    act.running_for_good(&path, &[&path]).await?;
    act.make(&change).await?;
    change.after.iter().for_each(|after| act.tools.memory.has_seen(&path, after));
    let absolute = act.absolute(&path);
    let mut metadata = map(json!({
        "diagnostics": {},
        "filepath": absolute,
        "exists": change.before.is_some(),
        "diff": change.diff.text,
        "truncated": false,
    }));
    metadata.extend(change.filediff(&absolute).map(|filediff| ("filediff".to_owned(), filediff)));
    let output = "Wrote file successfully.".to_owned();
    Ok(Done { title: path, output, metadata, content: vec![change.content(absolute)], ..Done::default() })
}

/// The model is shown lines without their ends, so it cannot know of these.
fn ends_lines_with_crlf(before: &Content) -> bool {
    let lines = before.bytes.iter().filter(|byte| **byte == b'\n').count();
    lines > 0 && before.bytes.windows(2).filter(|pair| pair == b"\r\n").count() == lines
}

impl Act<'_> {
    /// What is in a file of the workspace. `None`: nothing is there.
    pub(super) async fn content(&self, path: &str) -> Result<Option<Content>, Stop> {
        let (workspace, path) = (self.workspace(), path.to_owned());
        self.looking(move |_| content(&workspace, &path)).await?
    }

    /// Makes a change on the disk, unless somebody else was faster, and tells of it.
    pub(super) async fn make(&self, change: &Arc<Change>) -> Result<(), Stop> {
        if change.before == change.after {
            return Ok(());
        }
        let (hand, change) = (self.hand(), change.clone());
        self.effect(async move {
            let (workspace, made) = (hand.workspace.clone(), change.clone());
            blocking(move || make(&workspace, &made)).await??;
            hand.made(&change).await
        })
        .await
    }
}

pub(super) fn content(workspace: &Path, path: &str) -> Result<Option<Content>, Stop> {
    match Files::open(workspace)?.read(path, limits::WHOLE) {
        Ok(content) => Ok(Some(Content::new(content))),
        Err(FileError::Folder(FolderError::NotFound { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn make(workspace: &Path, change: &Change) -> Result<(), FileError> {
    let files = Files::open(workspace)?;
    match (&change.before, &change.after) {
        (before, Some(after)) => files.write(&change.path, &after.bytes, before.as_ref().map(|before| &*before.bytes)),
        (Some(before), None) => files.remove(&change.path, &before.bytes),
        (None, None) => Ok(()),
    }
}

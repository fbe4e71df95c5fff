//! `write`: a whole file. One that is there is written over only if the model has seen what is in it now.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
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
    act.carry_out(&path, &change).await?;
    let metadata = json!({
        "diagnostics": {},
        "filepath": act.absolute(&path),
        "exists": change.before.is_some(),
        "diff": change.diff.text,
        "truncated": false,
    });
    Ok(act.changed(path, &change, "Wrote file successfully.", metadata))
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

    /// Asks for leave for a change of one file, makes it, and remembers what the model knows of the file now.
    pub(super) async fn carry_out(&self, path: &str, change: &Arc<Change>) -> Result<(), Stop> {
        self.leave(Want::edit(&[path], path.to_owned(), &change.diff.text), &[path]).await?;
        self.running_for_good(path, &[path]).await?;
        self.make(change).await?;
        change.after.iter().for_each(|after| self.tools.memory.has_seen(path, after));
        Ok(())
    }

    /// What there is to say of a change of one file: `metadata`, and the change itself.
    pub(super) fn changed(&self, path: String, change: &Change, output: &str, metadata: Value) -> Done {
        let absolute = self.absolute(&path);
        let mut metadata = map(metadata);
        metadata.extend(change.filediff(&absolute).map(|filediff| ("filediff".to_owned(), filediff)));
        let content = vec![change.content(absolute)];
        Done { title: path, output: output.to_owned(), metadata, content, ..Done::default() }
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

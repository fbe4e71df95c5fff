//! `delete`: one file. Folders are for commands.

use std::sync::Arc;

use serde_json::json;

use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::change::Change;
use super::field::{FILE, Fields};
use super::read::fields as map;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let path = act.relative(&fields.need_words(FILE)?)?;
    let Some(before) = act.content(&path).await? else {
        return Err(Stop::Failed(format!("there is no file {path} in the workspace; nothing was deleted")));
    };
    let named = path.clone();
    let change = Arc::new(act.looking(move |_| Change::new(&named, Some(before), None)).await?);
    act.leave(Want::edit(&[&path], path.clone(), &change.diff.text), &[&path]).await?;
    act.running_for_good(&path, &[&path]).await?;
    act.make(&change).await?;
    let absolute = act.absolute(&path);
    let mut metadata = map(json!({ "filepath": absolute, "diff": change.diff.text, "truncated": false }));
    metadata.extend(change.filediff(&absolute).map(|filediff| ("filediff".to_owned(), filediff)));
    let output = "Deleted file successfully.".to_owned();
    Ok(Done { title: path, output, metadata, content: vec![change.content(absolute)], ..Done::default() })
}

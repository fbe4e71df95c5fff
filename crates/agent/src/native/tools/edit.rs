//! `edit`: a piece of a file replaced. It need not have been read: the old text must be in it, in one place.

use std::sync::Arc;

use serde_json::json;
use tolka_workspace::edit::{Places, replace};

use super::act::{Act, Done, Stop};
use super::change::{Change, Content};
use super::field::{ALL, FILE, Fields, NEW, OLD};

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let path = act.relative(&fields.need_words(FILE)?)?;
    let (old, new) = (fields.need(OLD)?, fields.need(NEW)?);
    let places = if fields.flag(ALL) { Places::All } else { Places::One };
    let Some(before) = act.content(&path).await? else {
        return Err(Stop::Failed(format!("there is no file {path} in the workspace; find it with glob, or write it")));
    };
    let (content, named) = (before.clone(), path.clone());
    let (places, is_tolerant, change) = act
        .looking(move |_| {
            let text = content.text().ok_or_else(|| not_text(&named))?;
            let edited =
                replace(text, &old, &new, places).map_err(|error| Stop::Failed(format!("{named}: {error}")))?;
            let after = Content::new(edited.text.as_bytes());
            let change = Change::new(&named, Some(content), Some(after));
            Ok::<_, Stop>((edited.places, edited.is_tolerant, Arc::new(change)))
        })
        .await??;
    act.carry_out(&path, &change).await?;
    let metadata = json!({
        "diagnostics": {},
        "filepath": act.absolute(&path),
        "diff": change.diff.text,
        "truncated": false,
    });
    let mut done = act.changed(path, &change, "Edit applied successfully.", metadata);
    let mut notes = Vec::new();
    if places > 1 {
        notes.push(format!("[{} places were replaced]", places));
    }
    if is_tolerant {
        notes.push(
            "[the old text was found with other white space than you gave; look whether the result is right]".into(),
        );
    }
    if !notes.is_empty() {
        done.metadata.insert("note".to_owned(), notes.join("\n").into());
    }
    Ok(done)
}

pub(super) fn not_text(path: &str) -> Stop {
    Stop::Failed(format!("{path} is not UTF-8 text and cannot be edited; use a command"))
}

//! `list`: what is in a folder, a name on each line; folders end in `/`.

use serde_json::json;
use tolka_workspace::search;

use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::field::{Fields, RECURSIVE};
use super::glob::place;
use super::read::fields as map;

const MOST: usize = 1_000;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let within = act.tools.folder(fields)?;
    let recursive = fields.flag(RECURSIVE);
    act.leave(Want::look("list", &within), &place(&within)).await?;
    act.running(&within, &place(&within)).await?;
    let (workspace, wanted) = (act.workspace(), within.clone());
    let found =
        act.looking(move |_| search::list(&workspace, &wanted, recursive, MOST)).await?.map_err(Stop::failed)?;
    let count = found.items.len();
    let mut metadata = map(json!({ "count": count, "truncated": found.is_cut }));
    let note = match (count, found.is_cut) {
        (0, _) => Some("[the folder is empty]".to_owned()),
        (_, true) => Some(format!("[only {MOST} are shown; list a folder of it]")),
        (_, false) => None,
    };
    metadata.extend(note.map(|note| ("note".to_owned(), note.into())));
    Ok(Done { title: within, output: found.items.join("\n"), metadata, ..Done::default() })
}

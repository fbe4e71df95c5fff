//! `artifact`: shows the person something that was made: a file, or a folder with a page in it.

use serde_json::json;
use tolka_facts::event::ArtifactKind;
use tolka_facts::{Draft, Time};
use tolka_workspace::artifact_from_file;

use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::field::{FILE, Fields, KIND, NAME};
use super::read::fields as map;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let path = act.relative(&fields.need_words(FILE)?)?;
    let name = fields.words(NAME);
    let kind = fields.words(KIND).map(|kind| read_kind(&kind)).transpose()?;
    act.leave(Want::look("artifact", &path), &[&path]).await?;
    act.running(&path, &[&path]).await?;
    let id = act.scene.teller.ids().artifact(Time::now());
    let workspace = act.workspace();
    let saved = act
        .looking(move |_| artifact_from_file(id, &workspace, &path, kind, name.as_deref()))
        .await?
        .map_err(Stop::failed)?;
    let output = format!("The user is shown {} ({}).", saved.name, saved.path);
    let metadata = map(json!({ "artifact": saved, "truncated": false }));
    let title = saved.name.clone();
    act.scene.teller.tell(Draft::agent(saved)).await?;
    Ok(Done { title, output, metadata, ..Done::default() })
}

fn read_kind(kind: &str) -> Result<ArtifactKind, Stop> {
    let kind = kind.to_lowercase().replace(['-', ' '], "_");
    serde_json::from_value(kind.clone().into()).map_err(|_| {
        Stop::Failed(format!(
            "there is no kind `{kind}`; leave it out, or use one of file, image, web_app, nextjs_app, markdown, document, \
             presentation, spreadsheet, pdf, code"
        ))
    })
}

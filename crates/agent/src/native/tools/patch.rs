//! `apply_patch`: several files at once, all of them or none.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tolka_facts::event::FileOperation;
use tolka_workspace::files::Files;
use tolka_workspace::limits;
use tolka_workspace::patch::{self, Patch, carry_out};

use super::act::{Act, Done, Stop, blocking};
use super::ask::Want;
use super::change::{Change, Content, Hand};
use super::field::{Fields, PATCH};
use super::read::fields as map;
use super::write;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let text = fields.need(PATCH)?;
    let workspace = act.workspace();
    let plan: Arc<[patch::Change]> = act.looking(move |_| plan(&workspace, &text)).await??.into();
    let planned = plan.clone();
    let changes: Arc<[Change]> = act.looking(move |_| planned.iter().map(change).collect()).await?;
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let diff: String = changes.iter().map(|change| change.diff.text.as_str()).collect();
    let title = paths.join(", ");
    act.leave(Want::edit(&paths, title.clone(), &diff), &paths).await?;
    act.running_for_good(&title, &paths).await?;
    act.effect(carried_out(act.hand(), plan, changes.clone())).await?;
    let memory = &act.tools.memory;
    for change in changes.iter() {
        change.after.iter().for_each(|after| memory.has_seen(&change.path, after));
    }
    let output = format!("Success. Updated the following files:\n{}", lines(&changes));
    let sides = changes.iter().flat_map(|change| [&change.before, &change.after]);
    let is_cut = sides.flatten().map(|content| content.blob.size).sum::<u64>() > limits::REPEATED as u64;
    let file = |change: &Change| {
        let mut file = change.patched(&act.absolute(&change.path));
        if is_cut {
            (file["before"], file["after"]) = (Value::from(""), Value::from(""));
        }
        file
    };
    let files: Vec<Value> = changes.iter().map(file).collect();
    let metadata = json!({ "diff": diff, "files": files, "diagnostics": {}, "truncated": is_cut });
    let content = changes.iter().map(|change| change.content(act.absolute(&change.path))).collect();
    Ok(Done { title: output.clone(), output, metadata: map(metadata), content, ..Done::default() })
}

async fn carried_out(hand: Hand, plan: Arc<[patch::Change]>, changes: Arc<[Change]>) -> Result<(), Stop> {
    let (workspace, planned) = (hand.workspace.clone(), plan.clone());
    let carry = move || carry_out(&Files::open(&workspace)?, &planned).map_err(Stop::failed);
    let Err(stop) = blocking(carry).await? else {
        for change in changes.iter() {
            hand.made(change).await?;
        }
        return Ok(());
    };
    // What could not be put back has changed all the same.
    let workspace = hand.workspace.clone();
    for change in blocking(move || left(&workspace, &plan)).await? {
        hand.made(&change).await?;
    }
    Err(stop)
}

fn plan(workspace: &Path, text: &str) -> Result<Vec<patch::Change>, Stop> {
    let files = Files::open(workspace)?;
    Patch::parse(text).and_then(|patch| patch.plan(&files)).map_err(Stop::failed)
}

fn change(planned: &patch::Change) -> Change {
    let content = |side: &Option<Vec<u8>>| side.as_deref().map(Content::new);
    Change::new(&planned.path, content(&planned.before), content(&planned.after))
}

/// The changes of a patch that failed which are there nevertheless.
fn left(workspace: &Path, plan: &[patch::Change]) -> Vec<Change> {
    let now = |planned: &patch::Change| {
        let now = write::content(workspace, &planned.path).ok()?;
        let before = planned.before.as_deref().map(Content::new);
        (now != before).then(|| Change::new(&planned.path, before, now))
    };
    plan.iter().filter_map(now).collect()
}

fn lines(changes: &[Change]) -> String {
    let line = |change: &Change| {
        let letter = match change.operation() {
            FileOperation::Create => 'A',
            FileOperation::Update => 'M',
            FileOperation::Delete => 'D',
        };
        format!("{letter} {}", change.path)
    };
    changes.iter().map(line).collect::<Vec<_>>().join("\n")
}

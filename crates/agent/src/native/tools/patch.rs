//! `apply_patch`: several files at once. Everything is worked out before anything is written.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tolka_facts::event::FileOperation;
use tolka_workspace::files::Files;
use tolka_workspace::patch::{FilePatch, Patch, apply};

use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::change::{Change, Content};
use super::field::{Fields, PATCH};
use super::read::fields as map;
use super::{edit, write};

/// Texts of together more bytes are not repeated in the output: the facts have them.
const REPEATED: u64 = 1 << 20;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let text = fields.need(PATCH)?;
    let workspace = act.workspace();
    let changes = act.looking(move |_| changes(&workspace, &text)).await??;
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let diff: String = changes.iter().map(|change| change.diff.text.as_str()).collect();
    let title = paths.join(", ");
    act.leave(Want::edit(&paths, title.clone(), &diff), &paths).await?;
    act.running_for_good(&title, &paths).await?;
    for (made, change) in changes.iter().enumerate() {
        if let Err(stop) = act.make(change).await {
            return Err(half_done(stop, &changes[..made], &changes[made..]));
        }
        let memory = &act.tools.memory;
        let known = change.before.as_ref().is_none_or(|before| memory.is_seen(&change.path, before));
        if let Some(after) = change.after.as_ref().filter(|_| known) {
            memory.has_seen(&change.path, after);
        }
    }
    let output = format!("Success. Updated the following files:\n{}", lines(&changes));
    let sides = changes.iter().flat_map(|change| [&change.before, &change.after]);
    let bytes: u64 = sides.flatten().map(|content| content.blob.size).sum();
    let is_cut = bytes > REPEATED;
    let files: Vec<Value> = changes
        .iter()
        .map(|change| {
            let mut file = change.patched(&act.absolute(&change.path));
            if is_cut {
                (file["before"], file["after"]) = (Value::from(""), Value::from(""));
            }
            file
        })
        .collect();
    let metadata = json!({ "diff": diff, "files": files, "diagnostics": {}, "truncated": is_cut });
    let content = changes.iter().map(|change| change.content(act.absolute(&change.path))).collect();
    Ok(Done { title: output.clone(), output, metadata: map(metadata), content, ..Done::default() })
}

/// What the patch would change, by path, each file once.
fn changes(workspace: &Path, text: &str) -> Result<Vec<Change>, Stop> {
    let patch = Patch::parse(text).map_err(Stop::failed)?;
    let files = Files::open(workspace)?;
    let mut work = Work { workspace, order: Vec::new(), sides: BTreeMap::new() };
    for file in &patch.files {
        match file {
            FilePatch::Add { path, content } => {
                let path = files.relative(path)?;
                if work.now(&path)?.is_some() {
                    return Err(Stop::Failed(format!("{path} is there already; update it, or delete it first")));
                }
                work.put(&path, Some(Content::new(content.as_bytes())));
            }
            FilePatch::Delete { path } => {
                let path = files.relative(path)?;
                work.need(&path)?;
                work.put(&path, None);
            }
            FilePatch::Update { path, to, hunks } => {
                let path = files.relative(path)?;
                let old = work.need(&path)?;
                let text = old.text().ok_or_else(|| edit::not_text(&path))?;
                let new = apply(text, hunks).map_err(|error| Stop::Failed(format!("{path}: {error}")))?;
                let to = to.as_deref().map(|to| files.relative(to)).transpose()?.filter(|to| *to != path);
                if let Some(to) = to {
                    if work.now(&to)?.is_some() {
                        return Err(Stop::Failed(format!(
                            "{path} cannot be moved to {to}: something is there already"
                        )));
                    }
                    work.put(&to, Some(Content::new(new.as_bytes())));
                    work.put(&path, None);
                } else {
                    work.put(&path, Some(Content::new(new.as_bytes())));
                }
            }
        }
    }
    Ok(work.done())
}

/// The files of a patch while it is worked out: one may be in it twice.
struct Work<'a> {
    workspace: &'a Path,
    order: Vec<String>,
    /// As it was on the disk, and as it will be.
    sides: BTreeMap<String, (Option<Content>, Option<Content>)>,
}

impl Work<'_> {
    fn now(&mut self, path: &str) -> Result<Option<Content>, Stop> {
        if let Some((_, now)) = self.sides.get(path) {
            return Ok(now.clone());
        }
        let content = write::content(self.workspace, path)?;
        self.order.push(path.to_owned());
        self.sides.insert(path.to_owned(), (content.clone(), content.clone()));
        Ok(content)
    }

    fn need(&mut self, path: &str) -> Result<Content, Stop> {
        self.now(path)?.ok_or_else(|| Stop::Failed(format!("there is no file {path} in the workspace")))
    }

    /// Only what [`Work::now`] was asked of is put.
    fn put(&mut self, path: &str, content: Option<Content>) {
        if let Some((_, now)) = self.sides.get_mut(path) {
            *now = content;
        }
    }

    fn done(mut self) -> Vec<Change> {
        let order = std::mem::take(&mut self.order);
        let sides = order.into_iter().filter_map(|path| self.sides.remove(&path).map(|sides| (path, sides)));
        let changed = sides.filter(|(_, (before, after))| before != after);
        changed.map(|(path, (before, after))| Change::new(&path, before, after)).collect()
    }
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

/// What is made is made, and told; the model must know where it stands.
fn half_done(stop: Stop, made: &[Change], left: &[Change]) -> Stop {
    match stop {
        Stop::Failed(why) if !made.is_empty() => Stop::Failed(format!(
            "{why}\nThe patch is half done. These files were changed:\n{}\nThese were not:\n{}",
            lines(made),
            lines(left)
        )),
        stop => stop,
    }
}

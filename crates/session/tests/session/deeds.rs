//! What a puppet does to files: it does them in words, one after the other.

use std::fs;
use std::path::Path;

use tolka_agent::Teller;
use tolka_facts::event::{FileChanged, FileOperation};
use tolka_facts::{BlobRef, Draft, Hash};

use crate::Strings;

/// `do: a=1; tell b=2; rm c; tell rm d; step; wait`: writes `a` as a command would, writes `b` and tells it, removes `c`,
/// removes `d` and tells it, starts a step,
/// waits for [`Strings::go`].
pub(crate) async fn carry_out(strings: &Strings, deeds: &str, teller: &Teller) {
    let folder = Path::new(&strings.workspace);
    for deed in deeds.split(';').map(str::trim).filter(|deed| !deed.is_empty()) {
        if deed == "wait" {
            teller.settled().await.unwrap();
            strings.waits.notify_one();
            strings.go.notified().await;
        } else if let Some(path) = deed.strip_prefix("rm ") {
            fs::remove_file(folder.join(path)).unwrap();
        } else if deed == "step" {
            let message = teller.ids().message(tolka_facts::Time::now());
            teller.tell(Draft::agent(tolka_facts::event::StepStarted { message, model: None })).await.unwrap();
        } else if let Some(path) = deed.strip_prefix("tell rm ") {
            let before = blob(folder, path);
            fs::remove_file(folder.join(path)).unwrap();
            teller.tell(Draft::agent(changed(folder, path, before))).await.unwrap();
        } else if let Some(deed) = deed.strip_prefix("tell ") {
            let before = blob(folder, deed.split_once('=').unwrap().0);
            let path = write(folder, deed);
            teller.tell(Draft::agent(changed(folder, path, before))).await.unwrap();
        } else {
            write(folder, deed);
        }
    }
}

fn write<'a>(folder: &Path, deed: &'a str) -> &'a str {
    let (name, content) = deed.split_once('=').unwrap();
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{content}\n")).unwrap();
    name
}

fn blob(folder: &Path, path: &str) -> Option<BlobRef> {
    let content = fs::read(folder.join(path)).ok()?;
    Some(BlobRef { hash: Hash::of(&content), size: content.len() as u64 })
}

fn changed(folder: &Path, path: &str, before: Option<BlobRef>) -> FileChanged {
    let after = blob(folder, path);
    let operation = match (&before, &after) {
        (None, _) => FileOperation::Create,
        (_, None) => FileOperation::Delete,
        _ => FileOperation::Update,
    };
    let path = folder.join(path).to_str().unwrap().to_owned();
    FileChanged { path, operation, before, after, added: 1, removed: 1, call: None, diff: None }
}

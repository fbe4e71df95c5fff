//! What a puppet does to files: it does them in words, one after the other.

use std::fs;
use std::path::Path;

use tolka_agent::Teller;
use tolka_facts::Draft;
use tolka_facts::event::{FileChanged, FileOperation};

use crate::Strings;

/// `do: a=1; tell b=2; rm c; step; wait`: writes `a` as a command would, writes `b` and tells it, removes `c`, starts a step,
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
        } else if let Some(deed) = deed.strip_prefix("tell ") {
            let path = write(folder, deed);
            teller.tell(Draft::agent(changed(path))).await.unwrap();
        } else {
            write(folder, deed);
        }
    }
}

fn write(folder: &Path, deed: &str) -> String {
    let (path, content) = deed.split_once('=').unwrap();
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{content}\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

fn changed(path: String) -> FileChanged {
    let operation = FileOperation::Update;
    FileChanged { path, operation, before: None, after: None, added: 1, removed: 1, call: None, diff: None }
}

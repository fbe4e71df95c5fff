//! Events that belong to no session.

use serde_json::json;
use tolka_facts::event::{
    BranchChanged, FileChanged, FileOperation, InstanceDisposed, Noticed, PtyChange, PtyChanged, Severity, UpdateFound,
    VersionChanged,
};
use tolka_facts::{Draft, Json};

use super::event::{Toast, WireEvent};
use super::{failure, foreign};

pub(super) fn tell(event: WireEvent, kind: &str, directory: Option<&str>, raw: &str, out: &mut Vec<Draft>) {
    let directory = directory.unwrap_or_default();
    match event {
        WireEvent::ServerConnected(_) | WireEvent::ServerHeartbeat(_) => {}
        WireEvent::InstanceDisposed(e) => out.push(Draft::agent(InstanceDisposed { directory: e.directory })),
        WireEvent::FileEdited(e) => out.push(Draft::agent(FileChanged {
            path: e.file,
            // The wire does not say which of the three it was.
            operation: FileOperation::Update,
            before: None,
            after: None,
            added: 0,
            removed: 0,
            diff: None,
            call: None,
        })),
        WireEvent::Toast(e) => out.push(Draft::agent(notice(e))),
        WireEvent::InstallationUpdated(e) => out.push(Draft::agent(VersionChanged { version: e.version })),
        WireEvent::UpdateAvailable(e) => out.push(Draft::agent(UpdateFound { version: e.version })),
        WireEvent::BranchUpdated(e) => {
            out.push(Draft::agent(BranchChanged { directory: directory.to_owned(), branch: e.branch }));
        }
        WireEvent::PtyCreated(e) => out.push(pty(PtyChange::Created, e.info)),
        WireEvent::PtyUpdated(e) => out.push(pty(PtyChange::Updated, e.info)),
        WireEvent::PtyExited(e) => {
            let info = Json::from_value(&json!({ "exitCode": e.exit_code }));
            out.push(Draft::agent(PtyChanged { id: e.id, change: PtyChange::Exited, info: Some(info) }));
        }
        WireEvent::PtyDeleted(e) => {
            out.push(Draft::agent(PtyChanged { id: e.id, change: PtyChange::Deleted, info: None }));
        }
        WireEvent::SessionError(e) => out.push(Draft::agent(failure::failed(e.error.as_ref()))),
        _ => out.push(foreign(kind, raw)),
    }
}

fn pty(change: PtyChange, info: Json) -> Draft {
    let id = info.value().get("id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
    Draft::agent(PtyChanged { id, change, info: Some(info) })
}

fn notice(toast: Toast) -> Noticed {
    Noticed {
        severity: match toast.variant.as_str() {
            "warning" => Severity::Warning,
            "error" => Severity::Error,
            _ => Severity::Info,
        },
        title: toast.title.unwrap_or_default(),
        description: Some(toast.message).filter(|message| !message.is_empty()),
    }
}

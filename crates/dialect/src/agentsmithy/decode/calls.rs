//! The calls of a stream. The wire names each once and does not say how it ends.

use tolka_facts::event::{FileChanged, FileOperation, ToolChanged};
use tolka_facts::{Body, CallId, Draft, ToolStatus};

use super::super::patch;
use super::super::tools::Call;

/// Calls that wait for the word of their file. A turn that names more at once ends the oldest.
const LIMIT: usize = 64;

#[derive(Debug, Default)]
pub(super) struct OpenCalls(Vec<OpenCall>);

#[derive(Debug)]
struct OpenCall {
    id: CallId,
    path: Option<String>,
    removes: bool,
    /// It is there to change a file, and no `file_edit` has told so yet.
    awaits_edit: bool,
}

impl OpenCalls {
    /// Ends the calls before it, but for those whose file may still be told: calls may run side by side.
    pub(super) fn open(&mut self, id: CallId, call: &Call, out: &mut Vec<Draft>) -> ToolChanged {
        let is_full = self.0.len() >= LIMIT;
        for (at, open) in std::mem::take(&mut self.0).into_iter().enumerate() {
            match open.awaits_edit && !(is_full && at == 0) {
                true => self.0.push(open),
                false => out.push(open.end()),
            }
        }
        self.0.push(OpenCall {
            id: id.clone(),
            path: call.text("path"),
            removes: call.removes_a_file(),
            awaits_edit: call.edits_a_file(),
        });
        let (name, kind, input) = call.ours();
        let (name, kind, status, input) = (Some(name), Some(kind), Some(ToolStatus::Running), Some(input));
        ToolChanged { name, kind, status, input, ..ToolChanged::of(id) }
    }

    /// A change of a file is that of the call that names it, else of the last one that it can be of.
    pub(super) fn file_changed(&mut self, file: &str, diff: Option<&str>) -> FileChanged {
        let fits = |call: &OpenCall| call.awaits_edit && call.path.as_deref().is_some_and(|path| is_same(path, file));
        let by_path = self.0.iter().rposition(fits);
        let at = by_path.or_else(|| self.0.iter().rposition(|call| call.awaits_edit));
        let mut call = at.or(self.0.len().checked_sub(1)).and_then(|at| self.0.get_mut(at));
        let patch = diff.and_then(|diff| patch::read(diff).ok());
        let operation = match &patch {
            Some(patch) if patch.makes_a_file => FileOperation::Create,
            Some(patch) if patch.removes_a_file => FileOperation::Delete,
            None if call.as_ref().is_some_and(|call| call.removes) => FileOperation::Delete,
            _ => FileOperation::Update,
        };
        call.iter_mut().for_each(|call| call.awaits_edit = false);
        FileChanged {
            path: file.to_owned(),
            operation,
            before: None,
            after: None,
            added: patch.as_ref().map_or(0, |patch| patch.added),
            removed: patch.as_ref().map_or(0, |patch| patch.removed),
            call: call.map(|call| call.id.clone()),
            diff: diff.map(Body::from),
        }
    }

    pub(super) fn end(&mut self, out: &mut Vec<Draft>) {
        out.extend(self.0.drain(..).map(OpenCall::end));
    }
}

impl OpenCall {
    /// A call that changes a file tells of it if it ends well, says the document; of the others nobody can tell.
    fn end(self) -> Draft {
        let (status, error) = match self.awaits_edit {
            true => (ToolStatus::Failed, Some("No file was changed.".into())),
            false => (ToolStatus::Completed, None),
        };
        Draft::tolka(ToolChanged { status: Some(status), error, ..ToolChanged::of(self.id) })
    }
}

/// A call may name its file from the workspace on.
fn is_same(path: &str, file: &str) -> bool {
    let path = path.strip_prefix("./").unwrap_or(path);
    let rest = file.strip_suffix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

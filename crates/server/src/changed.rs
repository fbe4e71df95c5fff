//! The word for what became of a file, which is the same in AgentSmithy's and in OpenCode's lists of changes.

use tolka_facts::event::FileOperation;

pub(crate) fn status(operation: FileOperation) -> &'static str {
    match operation {
        FileOperation::Create => "added",
        FileOperation::Update => "modified",
        FileOperation::Delete => "deleted",
    }
}

//! Patches of several files, as models write them: `*** Begin Patch`, or a unified diff.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub files: Vec<FilePatch>,
}

/// What a patch does to one file. Paths are as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePatch {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, to: Option<String>, hunks: Vec<Hunk> },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    /// A line before it that says where to look (a function's head), as some patches give it.
    pub near: Option<String>,
    pub old: Vec<String>,
    pub new: Vec<String>,
    /// It stands at the end of the file.
    pub is_last: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the patch cannot be used: {0}")]
pub struct PatchError(pub String);

impl Patch {
    pub fn parse(_text: &str) -> Result<Self, PatchError> {
        Err(PatchError("not built".to_owned()))
    }
}

/// The text with all hunks applied, or why not; a hunk that fits in two places is refused.
pub fn apply(_text: &str, _hunks: &[Hunk]) -> Result<String, PatchError> {
    Err(PatchError("not built".to_owned()))
}

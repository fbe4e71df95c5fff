//! Patches of several files, as models write them: `*** Begin Patch`, or a unified diff; bare, fenced or as a shell's
//! here-document.
//!
//! Lines are found as in an [`edit`](crate::edit): where they stand, else where they stand but for white space, never
//! where two places could be meant. Line numbers only help to choose, since models count badly. A patch is done whole
//! or not at all.

mod apply;
mod begin;
mod carry;
mod parse;
mod unified;

pub use apply::apply;
pub use carry::{Change, carry_out};

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
    /// Lines before it that say where to look (a class, then a function's head), as some patches give them.
    pub near: Vec<String>,
    /// The line of the file where it says it starts, from 1.
    pub line: Option<usize>,
    pub old: Vec<String>,
    pub new: Vec<String>,
    /// It stands at the end of the file.
    pub is_last: bool,
    pub last_end: LastEnd,
}

/// What becomes of the line end of the file's last line, if the hunk has that line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastEnd {
    #[default]
    Kept,
    Added,
    Removed,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the patch cannot be used: {0}")]
pub struct PatchError(pub String);

impl PatchError {
    fn at(line: usize, problem: impl std::fmt::Display) -> Self {
        PatchError(format!("line {line} of it: {problem}"))
    }

    fn of(path: &str, problem: impl std::fmt::Display) -> Self {
        PatchError(format!("{path}: {problem}"))
    }
}

impl Patch {
    pub fn parse(text: &str) -> Result<Self, PatchError> {
        parse::parse(text)
    }
}

#[cfg(test)]
mod tests;

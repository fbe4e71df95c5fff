//! Which files of a workspace changed between two looks at it.

use std::path::Path;

use tolka_facts::event::FileOperation;

/// A look at every file that its `.gitignore` files let through.
#[derive(Debug, Clone, Default)]
pub struct Look {}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// From the workspace on.
    pub path: String,
    pub operation: FileOperation,
}

impl Look {
    pub fn at(_workspace: &Path) -> Self {
        Look {}
    }

    /// What is different now, by path.
    pub fn changes(&self, _now: &Look) -> Vec<Changed> {
        Vec::new()
    }
}

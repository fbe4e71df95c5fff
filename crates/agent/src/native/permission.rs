//! What the agent may do without asking, what it must ask, and what it may not do at all.

use std::path::Path;

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    Allow,
    Ask,
    Deny,
}

/// One line of the rules: a permission (`bash`, `edit`, `read`, `outside`, `*`), a pattern of what it is wanted for, and
/// what is said to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub permission: String,
    pub pattern: String,
    pub leave: Leave,
}

/// Rules in their order; the last one that matches counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules(pub Vec<Rule>);

/// What people have allowed always, by workspace; a file in the data folder.
#[derive(Debug)]
pub struct Grants {}

impl Grants {
    /// Nothing is read before it is needed.
    pub fn new(_data: &Path) -> Self {
        Grants {}
    }
}

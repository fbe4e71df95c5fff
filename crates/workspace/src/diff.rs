//! What changed between two texts, as people and `git apply` read it.

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// Unified, `a/<path>` and `b/<path>`, with `/dev/null` where there is no file.
    pub text: String,
    pub added: u64,
    pub removed: u64,
}

/// `None`: there is no file then.
pub fn unified(_path: &str, _before: Option<&str>, _after: Option<&str>) -> Diff {
    Diff::default()
}

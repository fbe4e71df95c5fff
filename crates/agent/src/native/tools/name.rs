//! The tools by name.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Bash,
    Read,
    Write,
    Edit,
    ApplyPatch,
    Delete,
    Glob,
    Grep,
    List,
    TodoWrite,
    Question,
    Artifact,
    WebFetch,
    WebSearch,
    Task,
    Processes,
}

/// What rules call the reading of what lies outside of the workspace.
pub(super) const OUTSIDE: &str = "outside";

/// What rules call the tools of MCP servers.
pub const MCP: &str = "mcp";

/// All that rules can be about.
pub fn permissions() -> Vec<&'static str> {
    let mut all = vec!["*"];
    for permission in Name::ALL.iter().map(|name| name.permission()).chain([OUTSIDE, MCP]) {
        if !all.contains(&permission) {
            all.push(permission);
        }
    }
    all
}

impl Name {
    /// In the order in which a model is offered them.
    pub(super) const ALL: [Name; 16] = [
        Name::Bash,
        Name::Read,
        Name::Write,
        Name::Edit,
        Name::ApplyPatch,
        Name::Delete,
        Name::Glob,
        Name::Grep,
        Name::List,
        Name::TodoWrite,
        Name::Question,
        Name::Artifact,
        Name::WebFetch,
        Name::WebSearch,
        Name::Task,
        Name::Processes,
    ];

    /// Models do not agree on capitals.
    pub(super) fn of(name: &str) -> Option<Self> {
        Name::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(name.trim()))
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Name::Bash => "bash",
            Name::Read => "read",
            Name::Write => "write",
            Name::Edit => "edit",
            Name::ApplyPatch => "apply_patch",
            Name::Delete => "delete",
            Name::Glob => "glob",
            Name::Grep => "grep",
            Name::List => "list",
            Name::TodoWrite => "todowrite",
            Name::Question => "question",
            Name::Artifact => "artifact",
            Name::WebFetch => "webfetch",
            Name::WebSearch => "websearch",
            Name::Task => "task",
            Name::Processes => "processes",
        }
    }

    /// What rules call it.
    pub(super) fn permission(self) -> &'static str {
        match self {
            // What runs was allowed to.
            Name::Processes => Name::Bash.as_str(),
            name if name.changes_files() => "edit",
            name => name.as_str(),
        }
    }

    pub(super) fn changes_files(self) -> bool {
        match self {
            Name::Write | Name::Edit | Name::ApplyPatch | Name::Delete => true,
            Name::Bash
            | Name::Read
            | Name::Glob
            | Name::Grep
            | Name::List
            | Name::TodoWrite
            | Name::Question
            | Name::Artifact
            | Name::WebFetch
            | Name::WebSearch
            | Name::Task
            | Name::Processes => false,
        }
    }
}

//! The tools that more than one agent has, whatever each calls it.

use tolka_facts::{Tool, ToolKind};

/// No agent's name of a known tool has more bytes.
const LONGEST: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownTool {
    Bash,
    Read,
    Write,
    Edit,
    Delete,
    ApplyPatch,
    Glob,
    Grep,
    List,
    Task,
    TodoWrite,
    WebFetch,
    WebSearch,
    Skill,
    Lsp,
    Question,
    Invalid,
}

impl KnownTool {
    /// By the name of the call, or by its kind if it has none.
    pub(crate) fn of(tool: &Tool) -> Option<Self> {
        match super::told_name(tool) {
            Some(name) => KnownTool::named(name),
            None => KnownTool::of_kind(tool.kind),
        }
    }

    /// By any agent's name of it. Agents do not agree on capitals.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut lower = [0; LONGEST];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        Some(match std::str::from_utf8(lower).ok()? {
            "bash" | "exec_command" | "shell" | "local_shell" | "run_shell_command" => KnownTool::Bash,
            "read" | "read_file" => KnownTool::Read,
            "write" | "write_file" => KnownTool::Write,
            "edit" | "edit_file" | "replace" | "multiedit" => KnownTool::Edit,
            "delete" | "delete_file" => KnownTool::Delete,
            "apply_patch" | "applypatch" => KnownTool::ApplyPatch,
            "glob" => KnownTool::Glob,
            "grep" | "search_file_content" => KnownTool::Grep,
            "list" | "ls" | "list_directory" => KnownTool::List,
            "task" => KnownTool::Task,
            "todowrite" | "todo_write" | "write_todos" => KnownTool::TodoWrite,
            "webfetch" | "web_fetch" => KnownTool::WebFetch,
            "websearch" | "web_search" | "google_web_search" => KnownTool::WebSearch,
            "skill" => KnownTool::Skill,
            "lsp" => KnownTool::Lsp,
            "question" => KnownTool::Question,
            "invalid" => KnownTool::Invalid,
            _ => return None,
        })
    }

    fn of_kind(kind: ToolKind) -> Option<Self> {
        match kind {
            ToolKind::Execute => Some(KnownTool::Bash),
            ToolKind::Read => Some(KnownTool::Read),
            ToolKind::Edit | ToolKind::Move => Some(KnownTool::Edit),
            ToolKind::Delete => Some(KnownTool::Delete),
            ToolKind::Search => Some(KnownTool::Grep),
            ToolKind::Fetch => Some(KnownTool::WebFetch),
            ToolKind::Think | ToolKind::SwitchMode | ToolKind::Other => None,
        }
    }

    /// Its input names the one file that it is about.
    pub(crate) fn is_of_a_file(self) -> bool {
        matches!(self, KnownTool::Read | KnownTool::Write | KnownTool::Edit | KnownTool::Delete)
    }

    /// Our name of it: the one that OpenCode has, so its clients know how to draw what any agent does.
    pub(crate) fn name(self) -> &'static str {
        match self {
            KnownTool::Bash => "bash",
            KnownTool::Read => "read",
            KnownTool::Write => "write",
            KnownTool::Edit => "edit",
            KnownTool::Delete => "delete",
            KnownTool::ApplyPatch => "apply_patch",
            KnownTool::Glob => "glob",
            KnownTool::Grep => "grep",
            KnownTool::List => "list",
            KnownTool::Task => "task",
            KnownTool::TodoWrite => "todowrite",
            KnownTool::WebFetch => "webfetch",
            KnownTool::WebSearch => "websearch",
            KnownTool::Skill => "skill",
            KnownTool::Lsp => "lsp",
            KnownTool::Question => "question",
            KnownTool::Invalid => "invalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(told: Option<&str>, kind: ToolKind) -> String {
        crate::tool::name(&Tool { name: told.map(str::to_owned), kind, ..Tool::default() }).to_owned()
    }

    #[test]
    fn a_tool_has_one_name_whatever_it_is_called() {
        for (ours, theirs) in [
            ("bash", &["Bash", "shell", "exec_command", "run_shell_command"][..]),
            ("read", &["Read", "read_file"]),
            ("write", &["Write", "WRITE", "write_file"]),
            ("edit", &["Edit", "MultiEdit", "replace"]),
            ("list", &["LS", "list_directory"]),
            ("todowrite", &["TodoWrite", "todo_write", "write_todos"]),
            ("lamp", &["lamp"]),
            ("Lamp", &["Lamp"]),
        ] {
            for told in theirs {
                assert_eq!(name(Some(told), ToolKind::Other), ours);
            }
        }
    }

    #[test]
    fn a_call_without_a_name_is_named_by_its_kind() {
        for told in [None, Some("")] {
            assert_eq!(name(told, ToolKind::Execute), "bash");
            assert_eq!(name(told, ToolKind::Delete), "delete");
            assert_eq!(name(told, ToolKind::Move), "edit");
            assert_eq!(name(told, ToolKind::Think), "tool");
        }
        assert_eq!(name(Some("lamp"), ToolKind::Execute), "lamp");
    }
}

use tolka_facts::ToolKind;

/// What sort of thing a tool does, for clients that draw calls by it.
pub(super) fn kind_of(tool: &str) -> ToolKind {
    match tool {
        "read" | "mcp_resource" | "mcp_prompt" => ToolKind::Read,
        "write" | "edit" => ToolKind::Edit,
        "delete" => ToolKind::Delete,
        "glob" | "grep" | "list" => ToolKind::Search,
        "bash" | "processes" => ToolKind::Execute,
        "webfetch" | "websearch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

//! The one table between our tools and theirs: names, arguments and units, read in both directions.

use tolka_facts::ToolKind;

use crate::tool::{Field, KnownTool};

/// The document's tools that do what one of ours does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum TheirTool {
    RunCommand,
    ReadFile,
    WriteToFile,
    ReplaceInFile,
    DeleteFile,
    ListFiles,
    SearchFiles,
    WebFetch,
    WebSearch,
}

pub(super) struct Row {
    pub(super) ours: KnownTool,
    pub(super) theirs: TheirTool,
    pub(super) name: &'static str,
    pub(super) kind: ToolKind,
    /// Without these there is nothing to invoke: some agents begin with part of the input.
    pub(super) needs: &'static [&'static str],
    pub(super) args: &'static [Arg],
}

pub(super) struct Arg {
    pub(super) name: &'static str,
    pub(super) field: Field,
    pub(super) unit: Unit,
}

#[derive(Clone, Copy)]
pub(super) enum Unit {
    Same,
    /// Milliseconds with us, seconds with them.
    Seconds,
    /// A line for a shell. Some agents tell a list of words.
    Command,
}

impl Row {
    pub(super) fn of(ours: KnownTool) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.ours == ours)
    }

    pub(super) fn named(theirs: &str) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.name == theirs)
    }
}

const fn same(name: &'static str, field: Field) -> Arg {
    Arg { name, field, unit: Unit::Same }
}

const PATH: Arg = same("path", Field::File);

const TABLE: &[Row] = &[
    Row {
        ours: KnownTool::Bash,
        theirs: TheirTool::RunCommand,
        name: "run_command",
        kind: ToolKind::Execute,
        needs: &["command"],
        args: &[
            Arg { name: "command", field: Field::Command, unit: Unit::Command },
            same("cwd", Field::Workdir),
            Arg { name: "timeout", field: Field::Timeout, unit: Unit::Seconds },
        ],
    },
    Row {
        ours: KnownTool::Read,
        theirs: TheirTool::ReadFile,
        name: "read_file",
        kind: ToolKind::Read,
        needs: &["path"],
        args: &[PATH],
    },
    Row {
        ours: KnownTool::Write,
        theirs: TheirTool::WriteToFile,
        name: "write_to_file",
        kind: ToolKind::Edit,
        needs: &["path", "content"],
        args: &[PATH, same("content", Field::Content)],
    },
    Row {
        ours: KnownTool::Edit,
        theirs: TheirTool::ReplaceInFile,
        name: "replace_in_file",
        kind: ToolKind::Edit,
        needs: &["path"],
        args: &[PATH, same("diff", Field::Diff)],
    },
    Row {
        ours: KnownTool::Delete,
        theirs: TheirTool::DeleteFile,
        name: "delete_file",
        kind: ToolKind::Delete,
        needs: &["path"],
        args: &[PATH],
    },
    Row {
        ours: KnownTool::List,
        theirs: TheirTool::ListFiles,
        name: "list_files",
        kind: ToolKind::Search,
        needs: &["path"],
        args: &[same("path", Field::Folder), same("recursive", Field::Recursive)],
    },
    Row {
        ours: KnownTool::Grep,
        theirs: TheirTool::SearchFiles,
        name: "search_files",
        kind: ToolKind::Search,
        needs: &["regex"],
        args: &[same("path", Field::Folder), same("regex", Field::Pattern), same("file_pattern", Field::Include)],
    },
    Row {
        ours: KnownTool::WebFetch,
        theirs: TheirTool::WebFetch,
        name: "web_fetch",
        kind: ToolKind::Fetch,
        needs: &["url"],
        args: &[same("url", Field::Url)],
    },
    Row {
        ours: KnownTool::WebSearch,
        theirs: TheirTool::WebSearch,
        name: "web_search",
        kind: ToolKind::Fetch,
        needs: &["query"],
        args: &[same("query", Field::Query), same("num_results", Field::Count)],
    },
];

//! What came of a call. It is not streamed: a client asks for it by the call's id.
//!
//! The document names the types; their fields are those of today's server, which calls every failure `tool_error`. We
//! say the document's name where it has one. A result that the document has no name for is a `tool_result`.

mod output;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tolka_facts::{Blobs, Tool, ToolStatus};

use super::tools::{Call, TheirTool};
use crate::path::absolute;
use crate::tool::{self, error_text, output_text};
use output::Output;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolResult {
    ReadFileResult {
        path: String,
        content: String,
    },
    ReadFileError(Problem),
    WriteFileResult {
        path: String,
    },
    ReplaceFileResult {
        path: String,
        #[serde(default)]
        diff: String,
    },
    DeleteFileResult {
        path: String,
    },
    SearchFilesResult {
        results: Vec<Hit>,
        /// What the tool said, where it could not be read as hits.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        output: Option<String>,
    },
    SearchFilesError(Problem),
    ListFilesResult {
        path: String,
        items: Vec<String>,
    },
    ListFilesError(Problem),
    RunCommandResult(Run),
    RunCommandError(Problem),
    RunCommandTimeout(Run),
    WebBrowseResult(Web),
    WebBrowseError(Problem),
    WebSearchResult {
        query: String,
        results: Vec<WebHit>,
        count: usize,
        /// What the tool said, where it could not be read as hits.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        output: Option<String>,
    },
    WebSearchError(Problem),
    ToolError(Problem),
    ToolResult {
        name: String,
        output: Value,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Of the tool.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub error: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<Value>,
}

/// A place where something was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    pub file: String,
    pub line: u64,
    pub context: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebHit {
    pub title: String,
    pub url: String,
    #[serde(default)]
    pub snippet: String,
}

/// A command that was run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    pub command: String,
    pub cwd: Option<String>,
    pub exit_code: Option<i64>,
    pub stdout: String,
    pub stderr: String,
    pub stdout_truncated: bool,
    pub stderr_truncated: bool,
    pub stdout_truncated_bytes: u64,
    pub stderr_truncated_bytes: u64,
    pub timed_out: bool,
    pub duration_ms: u64,
    pub os: Map<String, Value>,
}

/// A page that was fetched.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Web {
    pub mode: String,
    pub url: String,
    pub final_url: String,
    pub status: Option<u64>,
    pub content_type: Option<String>,
    pub encoding: Option<String>,
    pub text: String,
}

impl ToolResult {
    pub fn is_error(&self) -> bool {
        match self {
            ToolResult::ReadFileError(_)
            | ToolResult::SearchFilesError(_)
            | ToolResult::ListFilesError(_)
            | ToolResult::RunCommandError(_)
            | ToolResult::RunCommandTimeout(_)
            | ToolResult::WebBrowseError(_)
            | ToolResult::WebSearchError(_)
            | ToolResult::ToolError(_) => true,
            ToolResult::ReadFileResult { .. }
            | ToolResult::WriteFileResult { .. }
            | ToolResult::ReplaceFileResult { .. }
            | ToolResult::DeleteFileResult { .. }
            | ToolResult::SearchFilesResult { .. }
            | ToolResult::ListFilesResult { .. }
            | ToolResult::RunCommandResult(_)
            | ToolResult::WebBrowseResult(_)
            | ToolResult::WebSearchResult { .. }
            | ToolResult::ToolResult { .. } => false,
        }
    }
}

/// A result as some server of this family gave it; `None` if it is of a type that the document does not name.
pub fn read_result(value: &Value) -> Option<ToolResult> {
    ToolResult::deserialize(value).ok()
}

/// What came of a call that ended; `None` while it is open. Paths are told from `workspace` on.
pub fn result(tool: &Tool, workspace: &str, blobs: &dyn Blobs) -> Option<ToolResult> {
    if tool.is_open() {
        return None;
    }
    let call = Call::of(tool, blobs);
    let output = Output::of(tool, blobs);
    Some(match tool.status {
        ToolStatus::Completed => went_well(tool, call, &output, workspace, blobs),
        ToolStatus::Pending | ToolStatus::Running | ToolStatus::Failed | ToolStatus::Cancelled => {
            went_wrong(tool, &call, &output, workspace, blobs)
        }
    })
}

fn went_well(tool: &Tool, call: Call, output: &Output, workspace: &str, blobs: &dyn Blobs) -> ToolResult {
    let text = output_text(tool, blobs);
    let path = || absolute(&call.text("path").unwrap_or_default(), workspace);
    match call.tool() {
        Some(TheirTool::RunCommand) => ran(tool, &call, output, workspace, blobs),
        Some(TheirTool::ReadFile) => ToolResult::ReadFileResult { path: path(), content: text },
        Some(TheirTool::WriteToFile) => ToolResult::WriteFileResult { path: path() },
        Some(TheirTool::ReplaceInFile) => {
            ToolResult::ReplaceFileResult { path: path(), diff: call.text("diff").unwrap_or_default() }
        }
        Some(TheirTool::DeleteFile) => ToolResult::DeleteFileResult { path: path() },
        Some(TheirTool::SearchFiles) => {
            let results = output::hits(&text, workspace);
            let output = Some(text).filter(|text| results.is_empty() && !text.is_empty());
            ToolResult::SearchFilesResult { results, output }
        }
        Some(TheirTool::ListFiles) => {
            ToolResult::ListFilesResult { path: path(), items: output::items(&text, &path()) }
        }
        Some(TheirTool::WebFetch) => {
            let url = call.text("url").unwrap_or_default();
            ToolResult::WebBrowseResult(Web {
                mode: "http".to_owned(),
                final_url: output.text(&["final_url", "finalUrl", "url"]).unwrap_or_else(|| url.clone()),
                url,
                status: output.number(&["status", "statusCode", "code"]).and_then(|n| u64::try_from(n).ok()),
                content_type: output.text(&["content_type", "contentType"]),
                encoding: output.text(&["encoding"]),
                text,
            })
        }
        Some(TheirTool::WebSearch) => {
            let results = output.web_hits();
            let output = Some(text).filter(|text| results.is_empty() && !text.is_empty());
            let query = call.text("query").unwrap_or_default();
            ToolResult::WebSearchResult { query, count: results.len(), results, output }
        }
        None => {
            let told = tool::output(tool, blobs).filter(|told| !told.is_null());
            ToolResult::ToolResult { name: call.name, output: told.unwrap_or_else(|| Value::from(text)) }
        }
    }
}

fn went_wrong(tool: &Tool, call: &Call, output: &Output, workspace: &str, blobs: &dyn Blobs) -> ToolResult {
    let problem = || problem(tool, call, blobs);
    match call.tool() {
        Some(TheirTool::RunCommand) => ran(tool, call, output, workspace, blobs),
        Some(TheirTool::ReadFile) => ToolResult::ReadFileError(problem()),
        Some(TheirTool::SearchFiles) => ToolResult::SearchFilesError(problem()),
        Some(TheirTool::ListFiles) => ToolResult::ListFilesError(problem()),
        Some(TheirTool::WebFetch) => ToolResult::WebBrowseError(problem()),
        Some(TheirTool::WebSearch) => ToolResult::WebSearchError(problem()),
        Some(TheirTool::WriteToFile | TheirTool::ReplaceInFile | TheirTool::DeleteFile) | None => {
            ToolResult::ToolError(problem())
        }
    }
}

fn problem(tool: &Tool, call: &Call, blobs: &dyn Blobs) -> Problem {
    let code = if tool.status == ToolStatus::Cancelled { "cancelled" } else { "execution_failed" };
    Problem {
        name: call.name.clone(),
        code: code.to_owned(),
        error: error_text(tool, blobs),
        error_type: None,
        details: None,
    }
}

/// A command that ran and said no has run: only one that could not be started, or not be ended, is an error.
fn ran(tool: &Tool, call: &Call, output: &Output, workspace: &str, blobs: &dyn Blobs) -> ToolResult {
    let exit_code = output.number(&["exit_code", "exitCode", "exit"]);
    let has_ended = tool.status == ToolStatus::Completed || exit_code.is_some();
    let timed_out = output.is_true(&["timed_out", "timedOut"])
        || (tool.status == ToolStatus::Failed && output::tells_of_timeout(&error_text(tool, blobs)));
    if !has_ended && !timed_out {
        return ToolResult::RunCommandError(problem(tool, call, blobs));
    }
    let span = tool.started.zip(tool.ended).map(|(start, end)| end.millis().saturating_sub(start.millis()));
    let run = Run {
        command: call.text("command").unwrap_or_default(),
        cwd: Some(call.text("cwd").map_or_else(|| workspace.to_owned(), |cwd| absolute(&cwd, workspace))),
        exit_code: exit_code.or_else(|| (tool.status == ToolStatus::Completed && !timed_out).then_some(0)),
        stdout: output.text(&["stdout"]).unwrap_or_else(|| output_text(tool, blobs)),
        stderr: output.text(&["stderr"]).unwrap_or_default(),
        stdout_truncated: output.is_true(&["stdout_truncated", "truncated"]),
        timed_out,
        duration_ms: span.unwrap_or_default(),
        ..Run::default()
    };
    match timed_out {
        true => ToolResult::RunCommandTimeout(run),
        false => ToolResult::RunCommandResult(run),
    }
}

//! A tool call in words that are no wire's: which tool it is, where its input has what, and what came of it.
//!
//! Agents name the same tools and the same fields in ways of their own. Those names stand here and nowhere else; a
//! dialect knows only how its own wire says what is ours.

mod field;
mod known;
mod outcome;

use tolka_facts::Tool;

pub(crate) use field::{Field, respelled, text};
pub(crate) use known::KnownTool;
pub(crate) use outcome::{UNEXPLAINED, error_text, output, output_text};

/// Our name of the tool. A name that no agent we know has passes through.
pub(crate) fn name(tool: &Tool) -> &str {
    match KnownTool::of(tool) {
        Some(known) => known.name(),
        None => told_name(tool).unwrap_or("tool"),
    }
}

fn told_name(tool: &Tool) -> Option<&str> {
    tool.name.as_deref().filter(|name| !name.is_empty())
}

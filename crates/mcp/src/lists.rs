//! What a server has: its tools, resources and prompts, page by page, and not more of them than is of use.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::config::Config;
use crate::connection::{Connection, read};
use crate::error::{McpError, cut};
use crate::schema;

/// Each is sent with every request to a model; no model finds its way among more.
const TOOLS: usize = 256;
/// Of all tools together.
const TOOL_BYTES: usize = 512 << 10;
const RESOURCES: usize = 1_000;
const PROMPTS: usize = 200;
const PAGES: usize = 50;
const DESCRIPTION: usize = 4 << 10;
const SHORT: usize = 500;
const LONGEST_NAME: usize = 200;
const LONGEST_URI: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lists {
    pub tools: Vec<Tool>,
    pub resources: Vec<Resource>,
    pub prompts: Vec<Prompt>,
    /// There is more than is kept.
    pub is_cut: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    /// Made safe.
    pub schema: Value,
    /// It says that it changes nothing.
    pub is_read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub description: Option<String>,
    pub mime: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub name: String,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub is_required: bool,
}

impl Lists {
    /// All lists, each page within `limit`. A server that cannot tell its tools is of no use; one that fails at the others
    /// still is.
    pub(crate) async fn of(connection: &Connection, config: &Config, limit: Duration) -> Result<Self, McpError> {
        let mut lists = Lists::default();
        let about = &connection.about;
        if about.has_tools {
            let (mut bytes, mut names) = (0, HashSet::new());
            let take = |item: &RawValue| {
                // A provider refuses a whole conversation for two tools of one name.
                let is_new = |tool: &Tool| config.wants(&tool.name) && names.insert(tool.name.clone());
                let tool = Tool::read(item).filter(is_new);
                if let Some(tool) = &tool {
                    bytes += tool.schema.to_string().len() + tool.description.len();
                }
                (tool, bytes <= TOOL_BYTES)
            };
            (lists.tools, lists.is_cut) = all(connection, "tools", TOOLS, limit, take).await?;
        }
        if about.has_resources {
            let taken = all(connection, "resources", RESOURCES, limit, |item| (Resource::read(item), true)).await;
            let (resources, is_cut) = taken.unwrap_or_default();
            lists.resources = resources;
            lists.is_cut |= is_cut;
        }
        if about.has_prompts {
            let taken = all(connection, "prompts", PROMPTS, limit, |item| (Prompt::read(item), true)).await;
            let (prompts, is_cut) = taken.unwrap_or_default();
            lists.prompts = prompts;
            lists.is_cut |= is_cut;
        }
        Ok(lists)
    }
}

/// Reads a list to its end, or until there is enough. What is no item is left out.
async fn all<T>(
    connection: &Connection,
    what: &str,
    most: usize,
    limit: Duration,
    mut take: impl FnMut(&RawValue) -> (Option<T>, bool),
) -> Result<(Vec<T>, bool), McpError> {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow, alias = "tools", alias = "resources", alias = "prompts")]
        items: Vec<&'a RawValue>,
        #[serde(rename = "nextCursor", default)]
        next: Option<String>,
    }
    let mut taken = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let answer = connection.request(&format!("{what}/list"), params, limit, None).await?;
        let page: Page<'_> = read(&answer)?;
        for item in page.items {
            if taken.len() == most {
                return Ok((taken, true));
            }
            match take(item) {
                (_, false) => return Ok((taken, true)),
                (item, true) => taken.extend(item),
            }
        }
        match page.next.filter(|next| !next.is_empty() && next.len() <= LONGEST_URI) {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => return Ok((taken, false)),
        }
    }
    Ok((taken, true))
}

impl Tool {
    fn read(item: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct Read<'a> {
            name: String,
            #[serde(default)]
            title: Option<String>,
            #[serde(default)]
            description: Option<String>,
            #[serde(borrow, rename = "inputSchema", default)]
            schema: Option<&'a RawValue>,
            #[serde(default)]
            annotations: Option<Annotations>,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Annotations {
            title: Option<String>,
            #[serde(rename = "readOnlyHint")]
            is_read_only: Option<bool>,
        }
        let read: Read<'_> = serde_json::from_str(item.get()).ok()?;
        let annotations = read.annotations.unwrap_or_default();
        let small = read.schema.filter(|schema| schema.get().len() <= schema::LARGEST);
        let given = small.and_then(|schema| serde_json::from_str(schema.get()).ok()).unwrap_or_default();
        Some(Tool {
            name: named(read.name)?,
            title: read.title.or(annotations.title).map(|title| cut(title.trim(), LONGEST_NAME)),
            description: cut(read.description.unwrap_or_default().trim(), DESCRIPTION),
            schema: schema::safe(given),
            is_read_only: annotations.is_read_only.unwrap_or(false),
        })
    }
}

impl Resource {
    fn read(item: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct Read {
            uri: String,
            #[serde(default)]
            name: Option<String>,
            #[serde(default)]
            description: Option<String>,
            #[serde(rename = "mimeType", default)]
            mime: Option<String>,
        }
        let read: Read = serde_json::from_str(item.get()).ok()?;
        let uri = Some(read.uri).filter(|uri| !uri.is_empty() && uri.len() <= LONGEST_URI)?;
        let name = read.name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| uri.clone());
        Some(Resource {
            name: cut(&name, LONGEST_NAME),
            uri,
            description: read.description.map(|text| cut(text.trim(), SHORT)),
            mime: read.mime.map(|mime| cut(&mime, 100)),
        })
    }
}

impl Prompt {
    fn read(item: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct Read {
            name: String,
            #[serde(default)]
            description: Option<String>,
            #[serde(default)]
            arguments: Option<Vec<Argument>>,
        }
        #[derive(Deserialize)]
        struct Argument {
            name: String,
            #[serde(default)]
            required: Option<bool>,
        }
        let read: Read = serde_json::from_str(item.get()).ok()?;
        let arguments = read.arguments.unwrap_or_default().into_iter().take(20);
        Some(Prompt {
            name: named(read.name)?,
            description: read.description.map(|text| cut(text.trim(), SHORT)),
            arguments: arguments
                .map(|argument| PromptArgument { name: argument.name, is_required: argument.required.unwrap_or(false) })
                .collect(),
        })
    }
}

/// Longer ones could not be called by their names.
fn named(name: String) -> Option<String> {
    Some(name).filter(|name| !name.trim().is_empty() && name.len() <= LONGEST_NAME)
}

//! What a prompt names of MCP servers: resources as `@server:uri` or as a link, a prompt as `/server:prompt` at its
//! beginning. Each becomes a call that reads it, so that what was read stands in the facts.

use serde_json::{Map, Value, json};
use tolka_facts::{Block, Json, NoBlobs};
use tolka_mcp::Kit;
use tolka_workspace::slash::words;

use super::tools::{PROMPT, RESOURCE};

/// The calls that read what is named, each once.
pub(super) fn named(content: &[Block], kit: &Kit) -> Vec<(&'static str, Json)> {
    let mut calls = Vec::<(&'static str, Value)>::new();
    if kit.is_empty() {
        return Vec::new();
    }
    let mut is_first = true;
    for block in content {
        match block {
            Block::Text { text, .. } => {
                let text = text.text(&NoBlobs);
                if std::mem::take(&mut is_first) {
                    calls.extend(command(&text, kit).map(|call| (PROMPT, call)));
                }
                calls.extend(mentions(&text, kit).into_iter().map(|call| (RESOURCE, call)));
            }
            Block::Link { uri, .. } => calls.extend(link(uri, kit).map(|call| (RESOURCE, call))),
            Block::Image { .. } | Block::Audio { .. } | Block::Resource { .. } => {}
        }
    }
    let mut once = Vec::<(&'static str, Value)>::new();
    for call in calls {
        if !once.contains(&call) {
            once.push(call);
        }
    }
    once.into_iter().map(|(name, input)| (name, Json::from(input))).collect()
}

/// `@server:uri`, where there is such a server, up to white space.
fn mentions(text: &str, kit: &Kit) -> Vec<Value> {
    let words = text.split_whitespace().filter_map(|word| {
        let (server, uri) = word.trim_start_matches(['(', '[', '"', '\'', '`']).strip_prefix('@')?.split_once(':')?;
        let uri = uri.trim_end_matches([',', ';', ')', ']', '"', '\'', '`', '!', '?']).trim_end_matches('.');
        (kit.get(server).is_some() && !uri.is_empty()).then(|| json!({ "server": server, "uri": uri }))
    });
    words.collect()
}

/// A link to something that a server lists. Files of this machine are read as files.
fn link(uri: &str, kit: &Kit) -> Option<Value> {
    if let Some((server, uri)) = uri.strip_prefix("mcp:").and_then(|rest| rest.split_once(':')) {
        return kit.get(server).map(|_| json!({ "server": server, "uri": uri }));
    }
    if uri.starts_with("file://") {
        return None;
    }
    let (server, _) = kit.resources().into_iter().find(|(_, resource)| resource.uri == uri)?;
    Some(json!({ "server": server.name(), "uri": uri }))
}

/// `/server:prompt`, and what follows it as its arguments: `name=value`, or in their order.
fn command(text: &str, kit: &Kit) -> Option<Value> {
    let line = text.trim_start().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (server, prompt) = name.split_once(':')?;
    let known = kit.prompts().into_iter().find(|(its, known)| its.name() == server && known.name == prompt);
    let (_, known) = known?;
    let mut arguments = Map::new();
    let mut words = words(rest);
    let wanted: Vec<&str> = known.arguments.iter().map(|argument| argument.name.as_str()).collect();
    words.retain(|word| match word.split_once('=').filter(|(name, _)| wanted.contains(name)) {
        Some((name, value)) => {
            arguments.insert(name.to_owned(), value.into());
            false
        }
        None => true,
    });
    let open: Vec<&str> = wanted.into_iter().filter(|name| !arguments.contains_key(*name)).collect();
    let mut words = words.into_iter();
    for (at, name) in open.iter().enumerate() {
        // The last one takes all that is left.
        let value = match at + 1 == open.len() {
            true => Some(words.by_ref().collect::<Vec<_>>().join(" ")).filter(|rest| !rest.is_empty()),
            false => words.next(),
        };
        arguments.extend(value.map(|value| ((*name).to_owned(), value.into())));
    }
    Some(json!({ "server": server, "prompt": prompt, "arguments": arguments }))
}

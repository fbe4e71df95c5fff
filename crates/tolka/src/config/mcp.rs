//! `[mcp.NAME]`: servers of tools.

use tolka_mcp::{Config as Server, Reach};

use super::file::{Config, McpEntry};
use super::values::Ordered;
use crate::environment::Environment;
use tolka_agent::native::model::Secret;

/// Begins a word that stands for the value of an environment variable.
const REFERENCE: &str = "env:";

/// The servers of the file. One whose variables are not set is left out, and a line for people says so: it harms nobody else.
pub(crate) fn servers(config: &Config, environment: &Environment) -> (Vec<Server>, Vec<String>) {
    let (mut servers, mut says) = (Vec::new(), Vec::new());
    for entry in &config.mcp.0 {
        match self::config(&entry.name, &entry.value, &|name| environment.get(name).map(str::to_owned)) {
            Ok(server) => servers.push(server),
            Err(why) => says.push(format!("mcp: {why}; it is left out")),
        }
    }
    (servers, says)
}

/// With its variables looked up.
pub(super) fn config(name: &str, entry: &McpEntry, find: &dyn Fn(&str) -> Option<String>) -> Result<Server, String> {
    let all = |pairs: &Ordered<Secret>| {
        let pair = |(key, value): (&String, &Secret)| Ok((key.clone(), resolved(name, value.expose(), find)?));
        pairs.0.iter().map(|entry| pair((&entry.name, &entry.value))).collect::<Result<Vec<_>, String>>()
    };
    let reach = match (&entry.command, &entry.url) {
        (Some(_), Some(_)) => return Err(format!("`{name}` has both command and url; give one")),
        (None, None) => return Err(format!("`{name}` has neither command nor url; give one")),
        (Some(_), None) if !entry.headers.0.is_empty() => {
            return Err(format!("`{name}` is a program and has no headers; give it env"));
        }
        (None, Some(_)) if !entry.env.0.is_empty() => {
            return Err(format!("`{name}` is an address and has no env; give it headers"));
        }
        (Some(command), None) => Reach::Program { command: command.clone(), env: all(&entry.env)? },
        (None, Some(url)) => Reach::Http { url: resolved(name, url.expose(), find)?, headers: all(&entry.headers)? },
    };
    let mut server = Server::new(name, reach);
    server.enabled = entry.enabled.unwrap_or(true);
    server.timeout = entry.timeout.map_or(server.timeout, |time| time.0);
    server.tools = entry.tools.clone();
    Ok(server)
}

/// A text with what its references stand for.
fn resolved(server: &str, text: &str, find: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let word = |word: &str| match word.strip_prefix(REFERENCE) {
        None => Ok(word.to_owned()),
        Some(name) => find(name).ok_or_else(|| format!("`{server}` wants the variable {name}, which is not set")),
    };
    Ok(text.split(' ').map(word).collect::<Result<Vec<_>, _>>()?.join(" "))
}

pub(super) fn has_reference(text: &str) -> bool {
    text.split(' ').any(|word| word.starts_with(REFERENCE))
}

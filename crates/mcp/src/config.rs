//! What a person says of a server: how it is reached, and what of it is wanted.

use std::fmt;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use tolka_secret::{Secrets, hidden_in, spellings};

/// For an answer, unless it is said otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// They begin the names of tools, which providers limit to 64 characters.
const LONGEST_NAME: usize = 32;

/// One server. Values of its environment and its headers may be secrets: no `Debug` shows them.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub name: String,
    pub reach: Reach,
    pub enabled: bool,
    /// For an answer; a call that tells how far it is may take longer.
    pub timeout: Duration,
    /// Names of the tools that are offered, `*` standing for anything; `None`: all.
    pub tools: Option<Vec<String>>,
}

#[derive(Clone, PartialEq)]
pub enum Reach {
    /// A program that is spoken to over its input and output.
    Program { command: Vec<String>, env: Vec<(String, String)> },
    /// An address that speaks streamable HTTP.
    Http { url: String, headers: Vec<(String, String)> },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("`{0}` cannot be the name of an MCP server: 1 to {LONGEST_NAME} letters, digits, `-` and `_`")]
    Name(String),
    #[error("the MCP server `{0}` has an empty command")]
    NoCommand(String),
    #[error("the MCP server `{0}` has a NUL character in its command or its environment")]
    Nul(String),
    #[error("the MCP server `{0}` has an environment variable without a usable name")]
    Variable(String),
    #[error("the url of the MCP server `{0}` has to begin with http:// or https://")]
    Url(String),
    #[error("there are {0} MCP servers here already; that is the most")]
    TooMany(usize),
    #[error(
        "MCP servers were added to {0} sessions and folders already; that is the most. Delete a session that has some"
    )]
    TooManyPlaces(usize),
    #[error("the MCP server `{0}` has a header `{1}` that cannot be sent")]
    Header(String, String),
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        match self {
            Reach::Program { command, env } => {
                f.debug_struct("Program").field("command", &command.first()).field("env", &names(env)).finish()
            }
            Reach::Http { headers, .. } => {
                f.debug_struct("Http").field("url", &self.shown()).field("headers", &names(headers)).finish()
            }
        }
    }
}

impl Reach {
    pub fn kind(&self) -> &'static str {
        match self {
            Reach::Program { .. } => "stdio",
            Reach::Http { .. } => "http",
        }
    }

    /// Where it is, for people: arguments, passwords, paths and queries may hold keys.
    pub fn shown(&self) -> String {
        match self {
            Reach::Program { command, .. } => command.first().cloned().unwrap_or_default(),
            Reach::Http { url, .. } => {
                Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
            }
        }
    }
}

impl Config {
    pub fn new(name: impl Into<String>, reach: Reach) -> Self {
        Config { name: name.into(), reach, enabled: true, timeout: TIMEOUT, tools: None }
    }

    /// Whether it can be used at all; nothing is started or reached by this.
    pub fn check(&self) -> Result<(), ConfigError> {
        let name = &self.name;
        let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if name.is_empty() || name.len() > LONGEST_NAME || !is_plain(name) {
            return Err(ConfigError::Name(name.chars().take(80).collect()));
        }
        match &self.reach {
            Reach::Program { command, env } => {
                if command.first().is_none_or(|program| program.trim().is_empty()) {
                    return Err(ConfigError::NoCommand(name.clone()));
                }
                let words = command.iter().chain(env.iter().flat_map(|(name, value)| [name, value]));
                if words.into_iter().any(|word| word.contains('\0')) {
                    return Err(ConfigError::Nul(name.clone()));
                }
                if env.iter().any(|(variable, _)| variable.is_empty() || variable.contains('=')) {
                    return Err(ConfigError::Variable(name.clone()));
                }
            }
            Reach::Http { url, headers } => {
                let is_url =
                    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
                if !is_url {
                    return Err(ConfigError::Url(name.clone()));
                }
                let is_good = |(name, value): &&(String, String)| {
                    HeaderName::try_from(name.as_str()).is_ok() && HeaderValue::try_from(value.as_str()).is_ok()
                };
                if let Some((header, _)) = headers.iter().find(|header| !is_good(header)) {
                    return Err(ConfigError::Header(name.clone(), header.chars().take(80).collect()));
                }
            }
        }
        Ok(())
    }

    /// Whether the tool of this name is wanted.
    pub fn wants(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|wanted| wanted.iter().any(|pattern| matches(pattern, tool)))
    }

    /// `text` with nothing in it that was given as a secret: a server may well print its environment when it dies, and
    /// repeat the address at which it is asked.
    pub(crate) fn scrubbed(&self, text: &str) -> String {
        /// Of an environment and of headers: shorter ones are `true` and `8080`.
        const VALUE: usize = 6;
        /// A part of a path that is so long is a key, or nobody misses it.
        const PART: usize = 16;
        let (given, hidden) = match &self.reach {
            Reach::Program { env, .. } => (env, Vec::new()),
            Reach::Http { url, headers } => {
                let url = Url::parse(url);
                let mut hidden = url.as_ref().map(hidden_in).unwrap_or_default();
                let parts = url.iter().flat_map(|url| url.path().split('/')).filter(|part| part.len() >= PART);
                hidden.extend(parts.flat_map(spellings));
                (headers, hidden)
            }
        };
        // A header's key stands behind its scheme, and is told without it.
        let keys = given.iter().filter_map(|(_, value)| value.split_once(' ').map(|(_, key)| key));
        let values = given.iter().map(|(_, value)| value.as_str()).chain(keys).filter(|value| value.len() >= VALUE);
        Secrets::new(values.chain(hidden.iter().map(String::as_str))).scrubbed(text)
    }
}

/// `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(command: &[&str]) -> Config {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        Config::new("files", Reach::Program { command, env: vec![("KEY".into(), "sk-very-secret".into())] })
    }

    #[test]
    fn secrets_are_neither_shown_nor_repeated() {
        let config = program(&["npx"]);
        assert!(!format!("{config:?}").contains("very"), "{config:?}");
        assert_eq!(config.scrubbed("KEY=sk-very-secret"), "KEY=[secret]");
        let headers = vec![("Authorization".into(), "Bearer abcdef123".into())];
        let url = "https://me-too:p%20ass@host:1/mcp/0123456789abcdef?key=sk-query".to_owned();
        let config = Config::new("x", Reach::Http { url: url.clone(), headers });
        assert_eq!(config.reach.shown(), "https://host:1");
        assert!(!format!("{config:?}").contains("ass"), "{config:?}");
        assert_eq!(config.scrubbed("abcdef123 is wrong, and p ass"), "[secret] is wrong, and [secret]");
        assert_eq!(config.scrubbed(&url), "https://[secret]:[secret]@host:1/mcp/[secret]?key=[secret]");
    }

    #[test]
    fn what_cannot_work_is_refused() {
        assert_eq!(program(&["npx"]).check(), Ok(()));
        assert_eq!(program(&[]).check(), Err(ConfigError::NoCommand("files".into())));
        assert_eq!(program(&["a\0"]).check(), Err(ConfigError::Nul("files".into())));
        for name in ["", "a b", "a.b", "ö", &"x".repeat(33)] {
            let config = Config { name: name.to_owned(), ..program(&["npx"]) };
            assert_eq!(config.check(), Err(ConfigError::Name(name.to_owned())));
        }
        for url in ["", "file:///etc/passwd", "example.com"] {
            let config = Config::new("x", Reach::Http { url: url.into(), headers: Vec::new() });
            assert_eq!(config.check(), Err(ConfigError::Url("x".into())), "{url}");
        }
    }

    #[test]
    fn tools_are_chosen_by_name_or_pattern() {
        let chosen = Config { tools: Some(vec!["read_*".into(), "list".into()]), ..program(&["npx"]) };
        for (tool, is_wanted) in [("read_file", true), ("list", true), ("lists", false), ("write_file", false)] {
            assert_eq!(chosen.wants(tool), is_wanted, "{tool}");
        }
        assert!(program(&["npx"]).wants("anything"));
    }
}

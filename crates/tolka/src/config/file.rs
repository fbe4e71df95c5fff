//! What `tolka.toml` may hold, key by key. docs/configuration.md says the same for people.

use std::ops::Range;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny};
use tolka_agent::native::model::Secret;
use tolka_agent::native::permission::Leave;
use tolka_agent::native::tools::{MCP, permissions};

use super::mcp;
use super::sandbox::SandboxEntry;
use super::values::{BaseUrl, Compact, Days, Entry, Ordered, Size, Time, Variable, Which};
use super::web::WebEntry;
use crate::models::known;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The file itself.
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
    /// Where it lies: paths in it are from there.
    #[serde(skip)]
    pub(crate) folder: Option<PathBuf>,
    pub(crate) model: Option<Which>,
    pub(crate) instructions: Option<PathBuf>,
    pub(crate) titles: TitleSource,
    pub(crate) compact: Compact,
    pub(crate) sandbox: SandboxEntry,
    pub(crate) limits: Limits,
    pub(crate) ask: Ask,
    pub(crate) checkpoints: CheckpointsEntry,
    pub(crate) permissions: Ordered<Permission>,
    pub(crate) providers: Ordered<ProviderEntry>,
    pub(crate) web: WebEntry,
    pub(crate) mcp: Ordered<McpEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TitleSource {
    #[default]
    Prompt,
    Model,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    #[serde(deserialize_with = "at_least_one")]
    pub(crate) steps: Option<u32>,
    pub(crate) turn: Option<Time>,
    #[serde(deserialize_with = "at_least_one")]
    pub(crate) tries: Option<u32>,
    pub(crate) command: Option<Time>,
    #[serde(deserialize_with = "at_least_one")]
    pub(crate) subagents: Option<u32>,
    pub(crate) subagent_depth: Option<u32>,
}

pub(super) fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(D::Error::custom("this is a count of at least 1")),
        count => Ok(Some(count)),
    }
}

/// What is saved of a workspace, and for how long.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CheckpointsEntry {
    pub(crate) enabled: Option<bool>,
    pub(crate) budget: Option<Time>,
    pub(crate) largest_file: Option<Size>,
    #[serde(deserialize_with = "at_least_one")]
    pub(crate) most_files: Option<u32>,
    pub(crate) keep_days: Option<Days>,
    pub(crate) max_size: Option<Size>,
}

/// What becomes of a permission or a question that nobody answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ask {
    pub(crate) alone: Option<Time>,
    pub(crate) attended: Option<Time>,
    pub(crate) otherwise: Otherwise,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Otherwise {
    #[default]
    Reject,
    Allow,
}

/// `bash = "ask"`, or a table of patterns.
#[derive(Debug, Clone)]
pub(crate) enum Permission {
    All(LeaveEntry),
    By(Ordered<LeaveEntry>),
}

impl<'de> Deserialize<'de> for Permission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> serde::de::Visitor<'de> for Read {
            type Value = Permission;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"allow\", \"ask\", \"deny\" or a table of patterns to these")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Permission, E> {
                LeaveEntry::deserialize(serde::de::value::StrDeserializer::new(text)).map(Permission::All)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Permission, A::Error> {
                Ordered::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Permission::By)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LeaveEntry {
    Allow,
    Ask,
    Deny,
}

impl From<LeaveEntry> for Leave {
    fn from(entry: LeaveEntry) -> Leave {
        match entry {
            LeaveEntry::Allow => Leave::Allow,
            LeaveEntry::Ask => Leave::Ask,
            LeaveEntry::Deny => Leave::Deny,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wire {
    OpenAi,
    Anthropic,
    GenAi,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProviderEntry {
    pub(crate) wire: Option<Wire>,
    pub(crate) base_url: Option<BaseUrl>,
    pub(crate) key_env: Option<Variable>,
    pub(crate) key_file: Option<PathBuf>,
    /// Only here to be refused with advice.
    #[serde(deserialize_with = "no_key")]
    #[allow(dead_code, reason = "nothing is ever in it")]
    key: (),
    #[serde(deserialize_with = "no_key")]
    #[allow(dead_code, reason = "nothing is ever in it")]
    api_key: (),
    pub(crate) headers: Ordered<Secret>,
    pub(crate) connect_timeout: Option<Time>,
    pub(crate) answer_timeout: Option<Time>,
    pub(crate) idle_timeout: Option<Time>,
    pub(crate) models: Vec<ModelEntry>,
}

fn no_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(deserializer)?;
    Err(D::Error::custom(
        "keys do not belong into this file: name an environment variable with key_env or a file with key_file",
    ))
}

/// A server of tools: a program or an address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpEntry {
    pub(crate) command: Option<Vec<String>>,
    pub(crate) env: Ordered<Secret>,
    pub(crate) url: Option<Secret>,
    pub(crate) headers: Ordered<Secret>,
    pub(crate) enabled: Option<bool>,
    pub(crate) timeout: Option<Time>,
    pub(crate) tools: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelEntry {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) context: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) price: Option<PriceEntry>,
    pub(crate) images: Option<bool>,
    pub(crate) effort: Option<String>,
    pub(crate) thinking: Option<u64>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PriceEntry {
    pub(crate) input: f64,
    pub(crate) output: f64,
    pub(crate) cache_read: f64,
    pub(crate) cache_write: f64,
}

const KEY_HEADERS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/// `None`: no single line is wrong.
type Mistake = (Option<Range<usize>>, String);

impl Config {
    /// What no single value shows.
    pub(super) fn check(&self) -> Result<(), Mistake> {
        // A name that is none would be a rule that never holds, and a person who thinks it does.
        let permissions = permissions();
        for permission in &self.permissions.0 {
            if !permissions.contains(&permission.name.as_str()) {
                let known = permissions.join("`, `");
                let message = format!("no permission is called `{}`; there are `{known}`", permission.name);
                return Err((Some(permission.span.clone()), message));
            }
            if permission.name == MCP
                && let Permission::By(patterns) = &permission.value
                && let Some(vain) =
                    patterns.0.iter().find(|entry| !entry.name.starts_with('*') && !entry.name.contains(':'))
            {
                // A rule that says `deny` and never fits would be believed in.
                let message = format!("`{}` fits no tool of an MCP server: write `<server>:<tool>`", vain.name);
                return Err((Some(vain.span.clone()), message));
            }
        }
        self.web.check().map_err(|message| (None, message.to_owned()))?;
        for provider in &self.providers.0 {
            provider.value.check(&provider.name).map_err(|problem| match problem {
                (Some(span), message) => (Some(span), message),
                (None, message) => (Some(provider.span.clone()), message),
            })?;
        }
        for server in &self.mcp.0 {
            server
                .value
                .check(&server.name)
                .map_err(|(span, message)| (Some(span.unwrap_or(server.span.clone())), message))?;
        }
        Ok(())
    }
}

impl McpEntry {
    fn check(&self, name: &str) -> Result<(), (Option<Range<usize>>, String)> {
        let is_key = |header: &&Entry<Secret>| KEY_HEADERS.contains(&header.name.to_lowercase().as_str());
        let is_written = |header: &&Entry<Secret>| !mcp::has_reference(header.value.expose());
        if let Some(header) = self.headers.0.iter().find(|header| is_key(header) && is_written(header)) {
            let message = format!(
                "the header `{}` carries a key, and keys do not belong into this file: name an environment variable, as in \
                 \"Bearer env:MY_KEY\"",
                header.name
            );
            return Err((Some(header.span.clone()), message));
        }
        // Whatever the environment holds: this is about the file.
        let config = mcp::config(name, self, &|_| Some("x".to_owned())).map_err(|message| (None, message))?;
        config.check().map_err(|error| (None, error.to_string()))
    }
}

impl ProviderEntry {
    fn check(&self, name: &str) -> Result<(), (Option<Range<usize>>, String)> {
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !is_name {
            return Err((
                None,
                format!("`{name}` cannot be a provider's name: letters, digits, `-`, `_` and `.` only"),
            ));
        }
        if name == DEMO {
            return Err((None, format!("`{DEMO}` is the demo's own name; call the provider otherwise")));
        }
        if self.key_env.is_some() && self.key_file.is_some() {
            return Err((None, format!("`{name}` has both key_env and key_file; give one")));
        }
        if known::provider(name).is_none()
            && (self.wire.is_none() || (self.base_url.is_none() && self.wire != Some(Wire::GenAi)))
        {
            let known = known::PROVIDERS.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
            let message = format!(
                "`{name}` is no provider that is known ({known}): it needs wire = \"openai\" or \"anthropic\" and base_url"
            );
            return Err((None, message));
        }
        if let Some(header) =
            self.headers.0.iter().find(|header| KEY_HEADERS.contains(&header.name.to_lowercase().as_str()))
        {
            let message = format!("the header `{}` carries a key: use key_env or key_file, which send it", header.name);
            return Err((Some(header.span.clone()), message));
        }
        for header in &self.headers.0 {
            let is_good = header.name.parse::<hyper::header::HeaderName>().is_ok()
                && header.value.expose().parse::<hyper::header::HeaderValue>().is_ok();
            if !is_good {
                return Err((Some(header.span.clone()), format!("`{}` is no header that can be sent", header.name)));
            }
        }
        for (at, model) in self.models.iter().enumerate() {
            if model.id.trim().is_empty() {
                return Err((None, format!("a model of `{name}` has an empty id")));
            }
            if self.models[..at].iter().any(|other| other.id == model.id) {
                return Err((None, format!("`{name}` has the model `{}` twice", model.id)));
            }
            let price = model.price.unwrap_or_default();
            let prices = [price.input, price.output, price.cache_read, price.cache_write];
            if prices.iter().any(|price| !price.is_finite() || *price < 0.0) {
                return Err((None, format!("a price of `{name}/{}` is no sum of dollars", model.id)));
            }
        }
        Ok(())
    }
}

/// The provider that the demo's model says it is of.
const DEMO: &str = "demo";

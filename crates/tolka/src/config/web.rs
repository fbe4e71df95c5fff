//! `[web]`: what may be fetched beside the public web, and what searches it.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use tolka_agent::native::web::{Engine, Place};

use super::values::{BaseUrl, Variable};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebEntry {
    #[serde(deserialize_with = "places")]
    pub(crate) allow: Vec<Place>,
    pub(crate) search: Option<EngineEntry>,
    pub(crate) search_url: Option<BaseUrl>,
    pub(crate) search_key: Option<KeyPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EngineEntry {
    SearXng,
    Brave,
    Tavily,
}

impl From<EngineEntry> for Engine {
    fn from(entry: EngineEntry) -> Engine {
        match entry {
            EngineEntry::SearXng => Engine::SearXng,
            EngineEntry::Brave => Engine::Brave,
            EngineEntry::Tavily => Engine::Tavily,
        }
    }
}

/// `env:NAME`: where a key is found, and never the key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct KeyPlace(pub(crate) Variable);

impl TryFrom<String> for KeyPlace {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        const WRONG: &str = "search_key is where the key is, as in \"env:BRAVE_API_KEY\"; not the key itself";
        let name = text.strip_prefix("env:").ok_or(WRONG)?;
        Variable::try_from(name.to_owned()).map(KeyPlace).map_err(|_| WRONG)
    }
}

fn places<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Place>, D::Error> {
    let written = Vec::<String>::deserialize(deserializer)?;
    written.iter().map(|place| place.parse().map_err(D::Error::custom)).collect()
}

impl WebEntry {
    /// What no single value shows.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self.search.map(Engine::from) {
            None if self.search_url.is_some() || self.search_key.is_some() => {
                Err("[web] says where to search and not what with: search is \"searxng\", \"brave\" or \"tavily\"")
            }
            Some(engine) if engine.usual_url().is_none() && self.search_url.is_none() => {
                Err("[web] needs search_url: the address of your SearXNG")
            }
            Some(engine) if engine.needs_key() && self.search_key.is_none() => {
                Err("[web] needs search_key: where the key of the search engine is, as in \"env:BRAVE_API_KEY\"")
            }
            None | Some(_) => Ok(()),
        }
    }
}

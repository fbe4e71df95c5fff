//! What the native agent may do on the web, and how that is said.

use std::sync::Arc;

use tolka_agent::native::model::{Endpoint, Secret};
use tolka_agent::native::web::{Allowed, Engine, Search, Web};

use crate::config::Config;
use crate::environment::Environment;

/// With the one line that people are told of the search.
pub(crate) fn web(config: &Config, environment: &Environment) -> (Web, String) {
    let entry = &config.web;
    let allowed = Allowed(entry.allow.clone());
    let (search, says) = match entry.search.map(Engine::from) {
        None => (None, "off: name an engine with `search` under [web] in tolka.toml".to_owned()),
        Some(engine) => match endpoint(config, environment, engine) {
            Ok(endpoint) => (Some(Arc::new(Search { engine, endpoint })), engine.name().to_owned()),
            Err(why) => (None, format!("off: {why}")),
        },
    };
    (Web { allowed, search, ..Web::default() }, format!("web search: {says}"))
}

fn endpoint(config: &Config, environment: &Environment, engine: Engine) -> Result<Endpoint, String> {
    let entry = &config.web;
    let url = entry.search_url.as_ref().map(|url| url.as_str()).or(engine.usual_url()).unwrap_or_default();
    let mut endpoint = Endpoint::new(url);
    if let Some(place) = &entry.search_key {
        let name = &place.0.0;
        let key = environment.get(name).ok_or_else(|| format!("{engine} needs a key, and {name} is not set"))?;
        let is_word = key.chars().all(|c| c.is_ascii_graphic());
        if !is_word {
            return Err(format!("the key in {name} is not one word"));
        }
        endpoint.key = Some(Secret::new(key));
        endpoint.key_name = Some(name.clone());
    }
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn a_search_is_there_if_it_is_configured_and_has_its_key() {
        let none = Environment::default();
        let keyed = Environment::default().with("A_KEY", "secret-word");
        let broken = Environment::default().with("A_KEY", "two words");
        for (text, environment, says) in [
            ("", &none, "web search: off: name an engine with `search` under [web] in tolka.toml"),
            ("[web]\nsearch = \"searxng\"\nsearch_url = \"http://localhost:8888\"", &none, "web search: searxng"),
            ("[web]\nsearch = \"brave\"\nsearch_key = \"env:A_KEY\"", &keyed, "web search: brave"),
            (
                "[web]\nsearch = \"tavily\"\nsearch_key = \"env:A_KEY\"",
                &none,
                "web search: off: tavily needs a key, and A_KEY is not set",
            ),
            (
                "[web]\nsearch = \"tavily\"\nsearch_key = \"env:A_KEY\"",
                &broken,
                "web search: off: the key in A_KEY is not one word",
            ),
        ] {
            let (web, said) = web(&parse(text).unwrap(), environment);
            assert_eq!((said.as_str(), web.search.is_some()), (says, !says.contains("off")));
            assert!(!format!("{web:?}").contains("secret"), "{web:?}");
        }
    }
}

//! What models there are: those of `tolka.toml`, those that the usual environment variables open, and those of a server on
//! this machine; with the reason for each provider that cannot be used.

pub(crate) mod known;
mod local;
mod make;

use std::path::Path;

use futures_util::future::join_all;
use tolka_agent::native::model::Secret;

use crate::config::{BaseUrl, Config, ModelEntry, ProviderEntry, Which, Wire};
use crate::environment::Environment;
use known::{KnownProvider, OLLAMA, PROVIDERS};
use local::NoList;

#[derive(Debug, Clone)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) wire: Wire,
    pub(crate) base_url: BaseUrl,
    pub(crate) key: Option<Secret>,
    /// Where people put the key; errors name it.
    pub(crate) key_name: Option<String>,
    pub(crate) entry: ProviderEntry,
    /// The usual one first. Empty: whatever is named.
    pub(crate) models: Vec<ModelEntry>,
}

#[derive(Debug, Clone)]
pub(crate) struct Unusable {
    pub(crate) provider: String,
    pub(crate) why: String,
    pub(crate) set_up: SetUp,
}

/// Whether somebody did something for a provider to be used: then it is not passed over in silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetUp {
    /// In the file, by a key, or by an address on this machine.
    Here,
    Nowhere,
}

/// The model that was asked for, and why it cannot be had.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    /// As it was written.
    pub(crate) model: String,
    pub(crate) why: String,
    /// Both, in a sentence.
    pub(crate) says: String,
}

/// All that was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    pub(crate) usable: Vec<Provider>,
    pub(crate) unusable: Vec<Unusable>,
    /// What was named, or else the first; `None` if there is no model at all, or not the one that was named.
    pub(crate) usual: Option<Which>,
    pub(crate) refused: Option<Refused>,
}

/// Whether servers on this machine are asked, beside those that the configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Everywhere,
    /// Only if there is nothing else: looking costs a moment at every start.
    WhereNeeded,
}

impl Catalogue {
    /// `named` is what the person asks for now; without it `TOLKA_MODEL` and the configuration count.
    pub(crate) async fn gather(config: &Config, environment: &Environment, named: Option<&Which>, look: Look) -> Self {
        let mut found = Catalogue::default();
        let named = match (named, environment.get("TOLKA_MODEL")) {
            (Some(named), _) => Some(named.clone()),
            (None, Some(named)) => named.parse().map_or_else(
                |why: String| {
                    let says = format!("TOLKA_MODEL: {why}");
                    found.refused = Some(Refused { model: named.to_owned(), why, says });
                    None
                },
                Some,
            ),
            (None, None) => config.model.clone(),
        };
        let mut locals = Vec::new();
        for (name, entry) in entries(config) {
            match provider(name, entry, config, environment) {
                Ok(provider) if provider.models.is_empty() && provider.base_url.is_local() => locals.push(provider),
                Ok(provider) => found.usable.push(provider),
                Err(why) => {
                    let set_up =
                        if entry.is_some() || has_key(name, environment) { SetUp::Here } else { SetUp::Nowhere };
                    found.unusable.push(Unusable { provider: name.to_owned(), why, set_up });
                }
            }
        }
        found.look_around(locals, config, environment, named.as_ref(), look).await;
        found.usual = match named {
            Some(named) => found.named(named),
            None if found.refused.is_some() => None,
            None => found.usable.iter().find_map(|provider| {
                let model = provider.models.first()?;
                Some(Which { provider: provider.name.clone(), id: model.id.clone() })
            }),
        };
        found
    }

    /// Why there is no model although somebody set up a provider, and what to do; `None` where nobody did.
    pub(crate) fn stuck(&self) -> Option<String> {
        if let Some(refused) = &self.refused {
            return Some(refused.says.clone());
        }
        if self.usual.is_some() {
            return None;
        }
        if let Some(Provider { name, base_url, .. }) = self.usable.first() {
            return Some(format!(
                "which models {} has is not known; name a model: --model {name}/<id>, TOLKA_MODEL={name}/<id>, or \
                 model = \"{name}/<id>\" in tolka.toml",
                if base_url.shown().is_empty() { name } else { base_url.shown() }
            ));
        }
        let meant = self.unusable.iter().filter(|unusable| unusable.set_up == SetUp::Here);
        let whys: Vec<String> = meant.map(|unusable| format!("{}: {}", unusable.provider, unusable.why)).collect();
        (!whys.is_empty()).then(|| {
            let whys = whys.join("; ");
            format!(
                "no model can be used ({whys}); mend that, or name another with --model; --agent demo plays the demo"
            )
        })
    }

    /// Adds the servers of this machine, after all others: what a key was set for is what a person means.
    async fn look_around(
        &mut self,
        locals: Vec<Provider>,
        config: &Config,
        environment: &Environment,
        named: Option<&Which>,
        look: Look,
    ) {
        let has_model = named.is_some() || self.usable.iter().any(|provider| !provider.models.is_empty());
        let asked = locals.into_iter().map(|mut provider| async {
            let is_meant = config.providers.get(&provider.name).is_some()
                || (provider.name == OLLAMA && environment.get("OLLAMA_HOST").is_some());
            if !is_meant && look == Look::WhereNeeded && has_model {
                return (provider, None);
            }
            let models = local::models(&provider).await;
            let none = models.as_ref().err().cloned();
            provider.models = models.unwrap_or_default();
            (provider, none)
        });
        for (provider, none) in join_all(asked).await {
            // One that is named is used as named, whatever it lists: it may be about to start. Who only wants to know is
            // told how it is now.
            let is_named = named.is_some_and(|named| named.provider == provider.name);
            let none = none.filter(|none| match none {
                NoList::Silent(_) => look == Look::Everywhere || !is_named,
                NoList::Unlisted(_) => !is_named,
            });
            match none {
                Some(NoList::Silent(why) | NoList::Unlisted(why)) => {
                    // Of Ollama the variable is as often as not set for Ollama itself.
                    let is_meant = config.providers.get(&provider.name).is_some() || provider.name != OLLAMA;
                    let set_up = if is_meant { SetUp::Here } else { SetUp::Nowhere };
                    self.unusable.push(Unusable { provider: provider.name, why, set_up });
                }
                None => self.usable.push(provider),
            }
        }
    }

    fn named(&mut self, named: Which) -> Option<Which> {
        let Some(provider) = self.usable.iter_mut().find(|provider| provider.name == named.provider) else {
            let unusable = self.unusable.iter().find(|unusable| unusable.provider == named.provider);
            let (why, says) = match unusable {
                Some(unusable) => (unusable.why.clone(), format!("the model {named} cannot be used: {}", unusable.why)),
                None => {
                    let names: Vec<&str> = PROVIDERS.iter().map(|known| known.name).collect();
                    let why = format!("of no provider that is configured or known ({})", names.join(", "));
                    let says = format!("the model {named} is {why}; `tolka models` shows what there is");
                    (why, says)
                }
            };
            self.refused = Some(Refused { model: named.to_string(), why, says });
            return None;
        };
        if !provider.models.iter().any(|model| model.id == named.id) {
            let entry = ModelEntry { id: named.id.clone(), ..ModelEntry::default() };
            provider.models.insert(0, entry);
        }
        Some(named)
    }
}

/// Whether the variable of a known provider holds anything.
fn has_key(name: &str, environment: &Environment) -> bool {
    known::provider(name).and_then(|known| known.key_env).is_some_and(|variable| environment.get(variable).is_some())
}

/// The configured ones in their order, then those that are known.
fn entries(config: &Config) -> impl Iterator<Item = (&str, Option<&ProviderEntry>)> {
    let configured = config.providers.0.iter().map(|entry| (entry.name.as_str(), Some(&entry.value)));
    let known = PROVIDERS.iter().filter(|known| config.providers.get(known.name).is_none());
    configured.chain(known.map(|known| (known.name, None)))
}

/// Or why not, for people.
fn provider(
    name: &str,
    entry: Option<&ProviderEntry>,
    config: &Config,
    environment: &Environment,
) -> Result<Provider, String> {
    let known = known::provider(name);
    let entry = entry.cloned().unwrap_or_default();
    let wire = entry.wire.or(known.map(|known| known.wire)).ok_or("it has no wire")?;
    if wire == Wire::GenAi && !cfg!(feature = "genai") {
        return Err("this tolka was built without the feature `genai`".to_owned());
    }
    let base_url = base_url(&entry, known, environment)?;
    let key_name = key_name(&entry, known);
    let key = key(&entry, key_name.as_deref(), config.folder.as_deref(), environment);
    // A server of one's own, under the name of one that wants a key, wants none.
    let key = if base_url.is_local() { key.unwrap_or_default() } else { key? };
    // Not every provider of that crate wants one: if it does, it says so when it is asked.
    let (key, key_name) = match (key, key_name, genai_key(wire, name)) {
        (None, None, Some(usual)) => (environment.get(usual).and_then(usable), Some(usual.to_owned())),
        (key, key_name, _) => (key, key_name),
    };
    let of_known = |model: ModelEntry| match known.and_then(|known| known.model(&model.id)) {
        Some(known) => known.complete(model),
        None => model,
    };
    let listed: Vec<ModelEntry> = match known {
        // Whoever puts a gateway before the maker means the maker's models; a server on this machine is asked for its own.
        Some(known) if entry.models.is_empty() && !base_url.is_local() => {
            known.models.iter().map(|model| ModelEntry { id: model.id.to_owned(), ..ModelEntry::default() }).collect()
        }
        _ => entry.models.clone(),
    };
    let models = listed.into_iter().map(of_known).collect();
    Ok(Provider { name: name.to_owned(), wire, base_url, key, key_name, entry, models })
}

fn base_url(
    entry: &ProviderEntry,
    known: Option<&KnownProvider>,
    environment: &Environment,
) -> Result<BaseUrl, String> {
    if let Some(base_url) = &entry.base_url {
        return Ok(base_url.clone());
    }
    let variable = known.and_then(|known| known.base_env).and_then(|name| Some((name, environment.get(name)?)));
    match (variable, known) {
        (Some((name @ "OLLAMA_HOST", host)), _) => {
            BaseUrl::try_from(ollama(host)).map_err(|_| format!("{name} is no address"))
        }
        (Some((name, url)), _) => BaseUrl::try_from(url.to_owned()).map_err(|error| format!("{name}: {error}")),
        (None, Some(known)) => BaseUrl::try_from(known.base_url.to_owned()),
        (None, None) => Ok(BaseUrl::unsaid()),
    }
}

/// What `OLLAMA_HOST` may say: `host`, `host:port`, a URL, or `0.0.0.0`, which is meant for the server's side.
fn ollama(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix("/v1").unwrap_or(rest);
    let rest = rest.replacen("0.0.0.0", "127.0.0.1", 1);
    let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if has_port || scheme == "https" { "" } else { ":11434" };
    format!("{scheme}://{rest}{port}/v1")
}

fn key(
    entry: &ProviderEntry,
    key_name: Option<&str>,
    folder: Option<&Path>,
    environment: &Environment,
) -> Result<Option<Secret>, String> {
    if let Some(file) = &entry.key_file {
        return key_file(&crate::settings::beside(folder, file, environment)).map(Some);
    }
    let Some(name) = key_name else { return Ok(None) };
    match environment.get(name) {
        Some(key) => usable(key)
            .ok_or_else(|| format!("{name} holds no key: it has blanks or control characters in it"))
            .map(Some),
        None => Err(format!("no {name}")),
    }
}

fn key_name(entry: &ProviderEntry, known: Option<&KnownProvider>) -> Option<String> {
    if let Some(file) = &entry.key_file {
        return Some(file.display().to_string());
    }
    let configured = entry.key_env.as_ref().map(|variable| variable.0.clone());
    configured.or_else(|| known.and_then(|known| known.key_env).map(str::to_owned))
}

/// Where the `genai` crate would look for a key.
fn genai_key(wire: Wire, provider: &str) -> Option<&'static str> {
    #[cfg(feature = "genai")]
    if wire == Wire::GenAi {
        return tolka_agent::native::model::GenAi::key_env(provider);
    }
    let _ = (wire, provider);
    None
}

fn key_file(path: &Path) -> Result<Secret, String> {
    use std::io::Read;
    /// No key is so long; something else might be.
    const LONGEST: u64 = 64 * 1024;
    let place = path.display();
    let read = std::fs::File::open(path).and_then(|file| {
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).map(|_| text)
    });
    let text = read.map_err(|error| format!("its key file {place} cannot be read: {error}"))?;
    usable(text.trim()).ok_or_else(|| format!("its key file {place} holds no key, which is one word"))
}

/// A key goes into a header: one word of visible letters.
fn usable(text: &str) -> Option<Secret> {
    (!text.is_empty() && text.chars().all(|c| c.is_ascii_graphic())).then(|| Secret::new(text))
}

#[cfg(test)]
mod tests;

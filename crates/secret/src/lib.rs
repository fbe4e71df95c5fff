//! Words with nothing secret in them. Whoever is given keys knows its [`Secrets`], and tells no words of somebody else's
//! that were not [`Secrets::scrubbed`]: a provider repeats a key that it refuses, a program prints its environment as it dies.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use url::Url;

/// Shorter ones protect nothing, and would be found in every word.
const SHORTEST: usize = 4;

/// What must not be told, the longest first: one may be a part of another.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    pub fn new<'a>(given: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all: Vec<String> = given.into_iter().map(|secret| secret.trim().to_owned()).collect();
        all.retain(|secret| secret.len() >= SHORTEST);
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Secrets(all)
    }

    /// `text` with nothing in it that is secret.
    pub fn scrubbed(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

/// What an address has in it beside its place: a name, a password, and the values of its query, each as it is written and
/// as it is meant; and name and password as they are sent.
pub fn hidden_in(url: &Url) -> Vec<String> {
    let [_, name] = spellings(url.username());
    let [_, password] = spellings(url.password().unwrap_or_default());
    let has_some = !name.is_empty() || !password.is_empty();
    let sent = has_some.then(|| STANDARD.encode(format!("{name}:{password}")));
    let pairs = url.query().unwrap_or_default().split('&');
    let values = pairs.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    values.chain([url.username()]).chain(url.password()).flat_map(spellings).chain(sent).collect()
}

/// A part of an address as it is written there, and as it is meant.
pub fn spellings(part: &str) -> [String; 2] {
    [part.to_owned(), percent_decode_str(part).decode_utf8_lossy().into_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_told_nowhere() {
        let secrets = Secrets::new(["sk-very-secret", " sk-very-secret-too\n", "abc"]);
        assert_eq!(secrets.scrubbed("no sk-very-secret-too, no sk-very-secret. abc"), "no [secret], no [secret]. abc");
        assert_eq!(format!("{secrets:?}"), "2 secrets");
    }

    #[test]
    fn what_an_address_hides_is_secret_too() {
        let url = Url::parse("https://me-too:pass%2Fword@host/v1?v=1&key=sk%2Fquery&sk-alone").unwrap();
        let hidden = hidden_in(&url);
        let secrets = Secrets::new(hidden.iter().map(String::as_str));
        for (said, told) in [
            ("no sk/query, nor sk%2Fquery", "no [secret], nor [secret]"),
            ("me-too:pass/word, pass%2Fword", "[secret]:[secret], [secret]"),
            ("Basic bWUtdG9vOnBhc3Mvd29yZA==", "Basic [secret]"),
            ("v=1 sk-alone at host/v1", "v=1 [secret] at host/v1"),
        ] {
            assert_eq!(secrets.scrubbed(said), told);
        }
    }
}

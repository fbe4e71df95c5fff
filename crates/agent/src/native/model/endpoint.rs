//! Where a provider is, and what proves to it who we are.
//!
//! A key is a [`Secret`]: no `Debug`, `Display`, error or log shows it, and it goes to one host only, since redirects are
//! not followed.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Deserializer};
use tolka_secret::{Secrets, hidden_in};

/// What nobody is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Without the white space around it, which files and environments tend to have.
    pub fn new(text: &str) -> Self {
        Secret(text.trim().into())
    }

    /// For those who send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Secret::new(&text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// One provider's address. Models of the same provider share it, and with it its connections.
pub struct Endpoint {
    /// What the wire's own path is added to: `https://api.openai.com/v1`.
    pub base_url: String,
    pub key: Option<Secret>,
    /// Where people put the key (`OPENAI_API_KEY`); errors name it.
    pub key_name: Option<String>,
    /// Sent with each request, after our own. Their values are as secret as the key.
    pub headers: Vec<(String, Secret)>,
    /// Until there is a connection.
    pub connect: Duration,
    /// From the request to the first byte of the answer: a long conversation is read for a while.
    pub first: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    client: OnceLock<Result<Client, String>>,
}

impl Endpoint {
    pub fn new(base_url: impl Into<String>) -> Self {
        Endpoint {
            base_url: base_url.into(),
            key: None,
            key_name: None,
            headers: Vec::new(),
            connect: Duration::from_secs(15),
            first: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            client: OnceLock::new(),
        }
    }

    /// `path` beneath the base URL; what stands there after `?` stays behind it.
    pub(in crate::native) fn url(&self, path: &str) -> Result<Url, String> {
        let mut url = Url::parse(self.base_url.trim()).map_err(|problem| problem.to_string())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err("it has to begin with http:// or https://".to_owned());
        }
        let whole = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&whole);
        Ok(url)
    }

    /// The connections; made at the first request, since reading the machine's certificates takes time.
    pub(in crate::native) fn client(&self, url: &Url) -> Result<&Client, String> {
        self.client.get_or_init(|| self.connector(url)).as_ref().map_err(Clone::clone)
    }

    fn connector(&self, url: &Url) -> Result<Client, String> {
        let mut builder = Client::builder()
            .user_agent(concat!("tolka/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.connect)
            .tls_backend_preconfigured(tls(url.scheme() == "https")?);
        if is_loopback(url) {
            builder = builder.no_proxy();
        }
        builder.build().map_err(|problem| problem.without_url().to_string())
    }

    /// Our headers, then those of the settings, which win.
    pub(in crate::native) fn head(&self, own: &[(&'static str, String)]) -> Result<HeaderMap, String> {
        let mut head = HeaderMap::new();
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let theirs = self.headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
        for (name, value) in own.chain(theirs) {
            let name = HeaderName::try_from(name).map_err(|_| format!("{name:?} is no name of a header"))?;
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| format!("the value of {name} has characters that cannot be sent"))?;
            value.set_sensitive(true);
            head.insert(name, value);
        }
        Ok(head)
    }

    /// `text` with nothing in it that is secret: keys, headers, and what a base URL has beside its place.
    pub(in crate::native) fn scrubbed(&self, text: &str) -> String {
        let given = self.key.iter().chain(self.headers.iter().map(|(_, value)| value)).map(Secret::expose);
        let hidden = Url::parse(self.base_url.trim()).map(|url| hidden_in(&url)).unwrap_or_default();
        Secrets::new(given.chain(hidden.iter().map(String::as_str))).scrubbed(text)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url("").map_or_else(|_| "unreadable".to_owned(), |url| shown(&url));
        f.debug_struct("Endpoint").field("base_url", &url).field("key_name", &self.key_name).finish_non_exhaustive()
    }
}

/// The address as people may see it: a base URL may have a password or a key in it.
pub(in crate::native) fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

pub(in crate::native) fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// A machine without certificates can still talk to a model of its own.
pub(in crate::native) fn tls(is_needed: bool) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if is_needed {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("this machine has no root certificates; install ca-certificates".to_owned());
        }
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|problem| problem.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let mut endpoint = Endpoint::new("https://api.example.com/v1");
        endpoint.key = Some(Secret::new(" sk-very-secret\n"));
        endpoint.headers.push(("x-team".to_owned(), Secret::new("sk-very-secret-too")));
        let shown = format!("{endpoint:?} {} {:?}", Secret::new("sk-very-secret"), endpoint.head(&[]));
        assert!(!shown.contains("very"), "{shown}");
        assert_eq!(endpoint.scrubbed("no sk-very-secret-too, no sk-very-secret."), "no [secret], no [secret].");
        assert_eq!(endpoint.key.as_ref().map(Secret::expose), Some("sk-very-secret"));
    }

    #[test]
    fn what_a_base_url_hides_is_secret_too() {
        let endpoint = Endpoint::new("https://me-too:pass%2Fword@host/v1?v=1&key=sk%2Fquery");
        assert_eq!(endpoint.scrubbed("me-too:pass/word v=1 sk/query"), "[secret]:[secret] v=1 [secret]");
    }

    #[test]
    fn a_path_is_added_to_the_base_url() {
        for (base, whole) in [
            ("http://localhost:1/v1", "http://localhost:1/v1/chat"),
            ("http://localhost:1/v1/", "http://localhost:1/v1/chat"),
            ("http://localhost:1", "http://localhost:1/chat"),
            ("https://azure/openai?api-version=1", "https://azure/openai/chat?api-version=1"),
        ] {
            assert_eq!(Endpoint::new(base).url("chat").unwrap().as_str(), whole);
        }
        for bad in ["", "localhost:8080", "api.openai.com/v1", "file:///etc/passwd"] {
            Endpoint::new(bad).url("chat").unwrap_err();
        }
        let url = Url::parse("https://me:secret@host:8/v1?key=secret").unwrap();
        assert_eq!(shown(&url), "https://host:8/v1");
    }
}

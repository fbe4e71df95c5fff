//! One request for a page: where it leads, whether that may be reached, and what is there.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Response, Url};
use rustls::ClientConfig;

use super::Web;
use super::body::{self, Body};
use crate::native::model::endpoint::tls;

/// Until there is a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Addresses that one name may have; more are tried by nobody.
const ADDRESSES: usize = 32;
/// Of an address, for the words of an error.
const SHOWN: usize = 200;

/// What one request came to.
#[derive(Debug)]
pub(in crate::native) enum Answer {
    /// It is elsewhere.
    Moved(Url),
    Here(Arrived),
}

/// The head of an answer; its body is still to be read.
#[derive(Debug)]
pub(in crate::native) struct Arrived {
    pub(in crate::native) status: u16,
    /// Without its parameters, in small letters.
    pub(in crate::native) mime: Option<String>,
    pub(in crate::native) charset: Option<String>,
    packed: Option<String>,
    response: Response,
}

impl Arrived {
    /// All of the body, or its beginning where it is too long.
    pub(in crate::native) async fn body(self) -> Result<Body, String> {
        body::read(self.response, self.packed.as_deref()).await
    }
}

/// The address of a page as a model wrote it, or why nothing can be fetched from there.
pub(in crate::native) fn url(written: &str) -> Result<Url, String> {
    let shown = &written[..written.floor_char_boundary(SHOWN)];
    let url = Url::parse(written).map_err(|problem| {
        format!("`{shown}` is no URL ({problem}); give a whole one, such as https://example.com/page")
    })?;
    checked(url)
}

fn checked(mut url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(format!("`{}:` cannot be fetched; only http:// and https:// can", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL with a name or a password in it is not fetched; leave them out".to_owned());
    }
    url.set_fragment(None);
    Ok(url)
}

/// What rules know a place by: its host, and its port where that is not the usual one.
pub(in crate::native) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Asks for what is at `url`, and no further.
pub(in crate::native) async fn step(web: &Web, url: &Url, head: &HeaderMap) -> Result<Answer, String> {
    let addresses = judged(web, url).await?;
    let client = client(url, &addresses)?;
    let request = client.get(url.clone()).headers(head.clone()).header(ACCEPT_ENCODING, "gzip");
    let response =
        request.header(ACCEPT_LANGUAGE, "en, *;q=0.5").send().await.map_err(|error| no_answer(url, &error))?;
    let status = response.status();
    if status.is_redirection()
        && let Some(location) = response.headers().get(LOCATION)
    {
        return moved(url, &String::from_utf8_lossy(location.as_bytes())).map(Answer::Moved);
    }
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let kind = text(CONTENT_TYPE);
    let mime = kind.and_then(|kind| kind.split(';').next()).map(|mime| mime.trim().to_ascii_lowercase());
    Ok(Answer::Here(Arrived {
        status: status.as_u16(),
        mime: mime.filter(|mime| !mime.is_empty()),
        charset: kind.and_then(charset),
        packed: text(CONTENT_ENCODING).map(str::to_ascii_lowercase),
        response,
    }))
}

/// What is wanted, for the servers that have a page in more than one form.
pub(in crate::native) fn wanting(accept: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, reqwest::header::HeaderValue::from_static(accept))])
}

fn charset(kind: &str) -> Option<String> {
    let parameters = kind.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut named = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    named.next().map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
}

/// Where a redirect leads.
fn moved(from: &Url, location: &str) -> Result<Url, String> {
    let shown = &location[..location.floor_char_boundary(SHOWN)];
    let to =
        from.join(location).map_err(|problem| format!("it redirects to `{shown}`, which is no URL ({problem})"))?;
    let to = checked(to).map_err(|why| format!("it redirects to another place, but {why}"))?;
    match (from.scheme(), to.scheme()) {
        ("https", "http") => Err(format!(
            "it redirects from https to {}, where anybody on the way could read and change it; that is not followed",
            host(&to)
        )),
        _ => Ok(to),
    }
}

/// The addresses of a place, if each of them may be reached.
pub(super) async fn judged(web: &Web, url: &Url) -> Result<Vec<SocketAddr>, String> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let addresses = match literal {
        Some(address) => vec![address],
        None => {
            let found = web.names.look_up(host).await;
            found.map_err(|error| format!("the name `{host}` cannot be looked up: {error}"))?
        }
    };
    if addresses.is_empty() {
        return Err(format!("the name `{host}` has no address"));
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Some(near) = addresses.iter().find(|address| !web.allowed.admits(bare, **address, port)) {
        let leads = if literal.is_some() { String::new() } else { format!(" leads to {near}, which") };
        return Err(format!(
            "`{}`{leads} is an address of this machine or a private network; nothing is fetched from there unless \
             `[web] allow` in tolka.toml names it",
            super::host(url)
        ));
    }
    Ok(addresses.into_iter().take(ADDRESSES).map(|address| SocketAddr::new(address, port)).collect())
}

/// For one request: it connects to these addresses and to nothing else.
fn client(url: &Url, addresses: &[SocketAddr]) -> Result<Client, String> {
    let builder = Client::builder()
        .user_agent(concat!("Mozilla/5.0 (compatible; Tolka/", env!("CARGO_PKG_VERSION"), ")"))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .referer(false)
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT)
        .dns_resolver(Arc::new(Fixed(addresses.to_vec())))
        .tls_backend_preconfigured(certificates(url.scheme() == "https")?);
    builder.build().map_err(|problem| problem.without_url().to_string())
}

/// Whatever name is asked for: it was looked up and judged before.
struct Fixed(Vec<SocketAddr>);

impl Resolve for Fixed {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// Read once: there are a hundred and more of them.
fn certificates(is_needed: bool) -> Result<ClientConfig, String> {
    static KNOWN: OnceLock<Result<ClientConfig, String>> = OnceLock::new();
    match is_needed {
        true => KNOWN.get_or_init(|| tls(true)).clone(),
        false => tls(false),
    }
}

/// The innermost reason is the one that says something.
fn no_answer(url: &Url, error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let how = if error.is_connect() { "cannot be reached" } else { "gave no answer that can be read" };
    format!("{} {how}: {reason}", host(url))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::{Allowed, LookedUp, Names};
    use super::*;

    /// Tells another address at every question.
    #[derive(Debug)]
    struct Rebinding(AtomicUsize, &'static [&'static [&'static str]]);

    impl Names for Rebinding {
        fn look_up(&self, name: &str) -> LookedUp {
            let at = self.0.fetch_add(1, Ordering::Relaxed).min(self.1.len() - 1);
            let known = self.1[at].iter().map(|address| address.parse().unwrap()).collect();
            let is_known = name.ends_with("evil.test");
            Box::pin(async move { if is_known { Ok(known) } else { Err(io::Error::other("no such name")) } })
        }
    }

    fn web(answers: &'static [&'static [&'static str]], allowed: &[&str]) -> Web {
        let names = Arc::new(Rebinding(AtomicUsize::new(0), answers));
        let allowed = Allowed(allowed.iter().map(|place| place.parse().unwrap()).collect());
        Web { allowed, search: None, names }
    }

    async fn judge(web: &Web, text: &str) -> Result<Vec<String>, String> {
        judged(web, &url(text).unwrap()).await.map(|found| found.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn every_address_of_a_name_is_judged() {
        const NEAR: [&[&[&str]]; 4] = [
            &[&["127.0.0.1"]],
            &[&["1.1.1.1", "10.0.0.1"]],
            &[&["2606:4700::1111", "::ffff:127.0.0.1"]],
            &[&["169.254.169.254"]],
        ];
        for answers in NEAR {
            let refused = judge(&web(answers, &[]), "http://evil.test/").await.unwrap_err();
            assert!(refused.starts_with("`evil.test` leads to "), "{refused}");
        }
        let fine = judge(&web(&[&["1.1.1.1", "2606:4700::1111"]], &[]), "https://evil.test/").await.unwrap();
        assert_eq!(fine, ["1.1.1.1:443", "[2606:4700::1111]:443"]);
        assert_eq!(
            judge(&web(&[&[]], &[]), "http://evil.test/").await.unwrap_err(),
            "the name `evil.test` has no address"
        );
        assert!(judge(&web(&[&[]], &[]), "http://none.test/").await.unwrap_err().contains("cannot be looked up"));
    }

    #[tokio::test]
    async fn a_name_is_looked_up_once_for_each_request() {
        let rebinding = web(&[&["1.1.1.1"], &["127.0.0.1"]], &[]);
        let judged = judge(&rebinding, "http://evil.test:81/").await.unwrap();
        assert_eq!(judged, ["1.1.1.1:81"], "and these are what is connected to");
        assert!(judge(&rebinding, "http://evil.test:81/").await.is_err(), "the next request asks anew");
    }

    #[tokio::test]
    async fn an_address_by_any_spelling_is_that_address() {
        let none = web(&[&[]], &[]);
        for near in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://0/",
            "http://[::]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://１２７.０.０.１/",
            "http://127.0.0.1./",
        ] {
            let refused = judge(&none, near).await.unwrap_err();
            assert!(refused.contains("is an address of this machine or a private network"), "{near}: {refused}");
        }
    }

    #[tokio::test]
    async fn what_was_named_is_reached_by_its_port() {
        let some = web(&[&["127.0.0.1"]], &["127.0.0.1:8080", "ok.evil.test"]);
        assert!(judge(&some, "http://127.0.0.1:8080/").await.is_ok());
        assert!(judge(&some, "http://evil.test:8080/").await.is_ok());
        assert!(judge(&some, "http://127.0.0.1:8081/").await.is_err());
        assert!(judge(&some, "http://ok.evil.test:1/").await.is_ok());
        assert!(judge(&some, "http://evil.test/").await.is_err());
    }

    #[test]
    fn what_cannot_be_fetched_says_why() {
        for (bad, why) in [
            ("example.com", "is no URL"),
            ("", "is no URL"),
            ("file:///etc/passwd", "`file:` cannot be fetched"),
            ("ftp://example.com/", "`ftp:` cannot be fetched"),
            ("data:text/plain,x", "`data:` cannot be fetched"),
            ("http://", "is no URL"),
            ("https://me:secret@example.com/", "with a name or a password"),
            ("https://me@example.com/", "with a name or a password"),
        ] {
            let said = url(bad).unwrap_err();
            assert!(said.contains(why) && !said.contains("secret"), "{bad}: {said}");
        }
        assert_eq!(url("HTTPS://Example.COM:443/a#b").unwrap().as_str(), "https://example.com/a");
        assert_eq!(host(&url("http://Example.com:8080/").unwrap()), "example.com:8080");
    }

    #[test]
    fn a_redirect_is_judged_as_a_url_is() {
        let from = url("https://example.com/a/b").unwrap();
        assert_eq!(moved(&from, "../c?d").unwrap().as_str(), "https://example.com/c?d");
        assert_eq!(moved(&from, "//other.test/").unwrap().as_str(), "https://other.test/");
        for (bad, why) in [
            ("http://example.com/", "from https to example.com"),
            ("file:///etc/passwd", "`file:`"),
            ("https://me:x@example.com", "a password"),
            ("https://[", "no URL"),
        ] {
            assert!(moved(&from, bad).unwrap_err().contains(why), "{bad}");
        }
    }

    #[test]
    fn a_charset_is_read_from_the_type() {
        for (kind, expected) in [
            ("text/html; charset=ISO-8859-1", Some("ISO-8859-1")),
            ("text/html;Charset=\"utf-8\"; x=y", Some("utf-8")),
            ("text/html", None),
        ] {
            assert_eq!(charset(kind).as_deref(), expected);
        }
    }
}

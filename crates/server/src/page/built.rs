//! The page that `web/` builds, from inside the binary. Its text stands there compressed, and is sent so to whoever can
//! read it.

use std::borrow::Cow;
use std::io::Read;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::read::GzDecoder;
use tolka_facts::Hash;

use super::admitted;
use crate::app::App;

/// By name, in the order of their names; see `build.rs`. Empty if the page was not built.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/built.rs"));

fn file(name: &str) -> Option<&'static [u8]> {
    let at = FILES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(FILES[at].1)
}

const INDEX: &str = "index.html";
/// What the index says of its own place. It is always the root; how to get there depends on where the browser is.
const BASE: &str = r#"<base href="./" />"#;
const BASE_OF_SESSION: &str = r#"<base href="../" />"#;
/// Nothing from elsewhere, nothing inline: text of an agent cannot become code. `base-uri` is for the line above.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; \
                      img-src 'self' data: blob:; worker-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'";
const FOR_EVER: &str = "public, max-age=31536000, immutable";

pub(super) fn is_there() -> bool {
    file(INDEX).is_some()
}

pub(super) fn routes() -> Router<App> {
    Router::new().route("/", get(root)).route("/s/{id}", get(session)).route("/assets/{*path}", get(asset))
}

async fn root(State(app): State<App>, request: Request) -> Response {
    admitted(&app, &request).unwrap_or_else(|| index(request.headers(), BASE))
}

async fn session(State(app): State<App>, request: Request) -> Response {
    admitted(&app, &request).unwrap_or_else(|| index(request.headers(), BASE_OF_SESSION))
}

fn index(asked: &HeaderMap, base: &'static str) -> Response {
    let Some(content) = file(INDEX) else { return StatusCode::NOT_FOUND.into_response() };
    let text = String::from_utf8_lossy(content).replace(BASE, base).into_bytes();
    let tag = tag(&text);
    answer(asked, "text/html; charset=utf-8", "no-cache", &tag, || text.into())
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    let name = format!("assets/{path}");
    let cache = if is_hashed(&path) { FOR_EVER } else { "no-cache" };
    if let Some(content) = file(&name) {
        return answer(&headers, kind(&path), cache, &tag(content), || content.into());
    }
    let Some(packed) = file(&format!("{name}.gz")) else { return StatusCode::NOT_FOUND.into_response() };
    let reads_gzip = headers.get_all(header::ACCEPT_ENCODING).iter().any(names_gzip);
    // What is sent differs, so its tag does.
    let tag = if reads_gzip { tag(packed) } else { tag(&unpacked(packed)) };
    let mut response =
        answer(&headers, kind(&path), cache, &tag, || if reads_gzip { packed.into() } else { unpacked(packed).into() });
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if reads_gzip && response.status() == StatusCode::OK {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn answer(
    asked: &HeaderMap,
    kind: &'static str,
    cache: &'static str,
    tag: &str,
    body: impl FnOnce() -> Cow<'static, [u8]>,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, cache),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::ETAG, tag),
    ];
    let known = asked.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, body()).into_response()
}

fn names_gzip(value: &HeaderValue) -> bool {
    let codings = value.to_str().unwrap_or_default().split(',').map(str::trim);
    codings.filter(|coding| !coding.ends_with("q=0")).any(|coding| coding == "gzip" || coding.starts_with("gzip;"))
}

fn tag(content: &[u8]) -> String {
    format!("\"{}\"", &Hash::of(content).as_str()[..24])
}

/// Whether the name changes with the content: `index-Do-MT9sp.js`.
fn is_hashed(path: &str) -> bool {
    let stem = path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
    let hash = stem.len().checked_sub(9).and_then(|at| stem.get(at..)).and_then(|end| end.strip_prefix('-'));
    hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'))
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        "png" => "image/png",
        _ => "application/octet-stream",
    }
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    if let Err(error) = GzDecoder::new(packed).read_to_end(&mut plain) {
        tracing::error!(%error, "a file of the page is damaged");
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_embedded_if_it_was_built() {
        assert_eq!(cfg!(web_ui), is_there());
        if let Some(index) = file(INDEX) {
            assert!(String::from_utf8_lossy(index).contains(BASE), "the index says where it stands");
        }
    }

    #[test]
    fn only_names_with_a_hash_are_kept_for_ever() {
        for name in ["index-Do-MT9sp.js", "c-DEggOQPh.js", "inter-latin-wght-normal-Dx4kXJAl.woff2", "x/a-12345678.css"]
        {
            assert!(is_hashed(name), "{name}");
        }
        for name in ["theme.js", "icon.svg", "highlight.js", "a-1234.js", ""] {
            assert!(!is_hashed(name), "{name}");
        }
    }
}

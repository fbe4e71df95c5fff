//! Who may come in: the request must be meant for this server (`Host`), come from a page of ours or
//! from no page at all (`Origin`), and carry a token with the right scope if any token exists.
//!
//! A web page of somebody else's can make a browser on this machine send requests here; that is why
//! loopback alone is no protection, and why these checks stand before every route.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use bytes::Bytes;
use hyper::body::Frame;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tolka_facts::Hash;
use tolka_session::Attendance;

use crate::app::App;
use crate::fault::{Family, Fault};
use crate::request::{Attends, decoded};
use crate::token::Scope;

pub(crate) const COOKIE: &str = "tolka_token";

/// Who sent a request, as far as tokens tell; facts name them.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) name: String,
    /// What it showed, if anything had to be shown.
    token: Option<Hash>,
    pub(crate) may_approve: bool,
}

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Stands before the routes as a whole, not as a layer on each of them: that would be built again for every route.
pub(crate) async fn guard(app: App, mut request: Request, router: TowerToHyperService<Router>) -> Response {
    let path = request.uri().path().to_owned();
    let family = Family::of(&path);
    app.metrics.request(family);
    if path != "/healthz" {
        app.begun().await;
    }
    match admit(&app, &request, &path) {
        Ok(Admitted::Preflight(origin)) => with_cors(StatusCode::NO_CONTENT.into_response(), Some(origin)),
        Ok(Admitted::Caller(caller, origin)) => {
            let (token, may_approve) = (caller.token.clone(), caller.may_approve);
            request.extensions_mut().insert(caller);
            let Ok(response) = router.call(request).await;
            let response = shaped(response, family).await;
            // A long poll may have waited for a minute.
            if path != "/healthz" && !still_holds(&app, token.as_ref()) {
                let gone = Fault::Unauthorized("The token was revoked while this request waited.".to_owned());
                return with_cors(gone.into_response(family), origin);
            }
            with_cors(while_token_holds(response, app, token, may_approve), origin)
        }
        Err(fault) => {
            tracing::debug!(%path, reason = fault.message(), "turned away");
            app.metrics.turned_away();
            // A page that may use the server may read why it was refused.
            let origin =
                check_host(&app, &request).and_then(|host| check_origin(&app, request.headers(), &host, &path));
            with_cors(fault.into_response(family), origin.ok().flatten())
        }
    }
}

/// What an extractor refuses (a path that is not UTF-8, a number that is none) it refuses in plain text. Each
/// family has a shape for that.
async fn shaped(response: Response, family: Family) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_plain = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if response.status() != StatusCode::BAD_REQUEST || !is_plain {
        return response;
    }
    let words = axum::body::to_bytes(response.into_body(), 4096).await.unwrap_or_default();
    Fault::BadRequest(String::from_utf8_lossy(&words).into_owned()).into_response(family)
}

/// Whether a request that was let in would be let in now: its token may have been taken back, or the first one made.
fn still_holds(app: &App, token: Option<&Hash>) -> bool {
    match token {
        Some(token) => app.keyring.knows(token),
        None => !app.keyring.is_locked(),
    }
}

/// A stream outlives the look at its token; it is cut when that no longer holds. Looked at once a second at the most,
/// and with every heartbeat.
///
/// As long as it is open its client is there to answer, if it may.
fn while_token_holds(mut response: Response, app: App, token: Option<Hash>, may_approve: bool) -> Response {
    let attends = response.extensions_mut().remove::<Attends>().filter(|_| may_approve);
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    let attendance = attends.map(|Attends(place)| app.desk.attend(place));
    response.map(|body| Body::new(Watched { body, looked: Instant::now(), app, token, _attendance: attendance }))
}

struct Watched {
    body: Body,
    looked: Instant,
    app: App,
    token: Option<Hash>,
    /// Given back with the stream.
    _attendance: Option<Attendance>,
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_some() && self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            if !still_holds(&self.app, self.token.as_ref()) {
                return Poll::Ready(Some(Err(axum::Error::new("the token was revoked"))));
            }
        }
        Poll::Ready(frame)
    }
}

enum Admitted {
    Preflight(HeaderValue),
    Caller(Caller, Option<HeaderValue>),
}

fn admit(app: &App, request: &Request, path: &str) -> Result<Admitted, Fault> {
    let headers = request.headers();
    let host = check_host(app, request)?;
    let origin = check_origin(app, headers, &host, path)?;
    if request.method() == Method::OPTIONS
        && let Some(origin) = origin
    {
        return Ok(Admitted::Preflight(origin));
    }
    if path == "/healthz" || !app.keyring.is_locked() {
        return Ok(Admitted::Caller(Caller { name: "local".to_owned(), token: None, may_approve: true }, origin));
    }
    let wanted = scope_of(request.method(), path);
    // The page's first link carries the token, and gets a cookie for it; see `page`.
    let linked = (path == "/").then(|| linked_token(request.uri().query())).flatten();
    let presented = linked.or_else(|| presented_token(headers));
    let Some(presented) = presented else {
        return Err(Fault::Unauthorized(
            "A token is needed: send it as `Authorization: Bearer <token>`, as the password of Basic, or open /?token=<token> once in a browser."
                .to_owned(),
        ));
    };
    let Some(token) = app.keyring.find(&presented) else {
        return Err(Fault::Unauthorized(
            "This token is not known here; `tolka token list` shows which are.".to_owned(),
        ));
    };
    if !token.allows(wanted) {
        return Err(Fault::Forbidden(format!(
            "The token `{}` lacks the scope `{wanted}` that this needs.",
            token.name
        )));
    }
    let may_approve = token.allows(Scope::Approve);
    Ok(Admitted::Caller(Caller { name: token.name, token: Some(token.hash), may_approve }, origin))
}

fn check_host(app: &App, request: &Request) -> Result<String, Fault> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(|authority| authority.as_str())).unwrap_or_default();
    let name = host_name(host);
    let is_ours = matches!(name, "localhost" | "127.0.0.1" | "[::1]")
        || name.trim_matches(['[', ']']).parse() == Ok(app.config.host)
        || app.config.allow_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    if is_ours {
        return Ok(host.to_owned());
    }
    Err(Fault::Forbidden(format!(
        "This server does not answer to the name `{}`; allow it with --allow-host.",
        name.chars().take(80).collect::<String>()
    )))
}

/// The name without its port; an address in brackets keeps them.
fn host_name(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if host[colon + 1..].bytes().all(|b| b.is_ascii_digit()) && !host.ends_with(']') => &host[..colon],
        _ => host,
    }
}

/// Gives the origin that may read the answer, if the request comes from a page.
fn check_origin(app: &App, headers: &HeaderMap, host: &str, path: &str) -> Result<Option<HeaderValue>, Fault> {
    let foreign = || {
        Fault::Forbidden("Pages of another origin may not use this server; allow one with --allow-origin.".to_owned())
    };
    if let Some(origin) = headers.get(header::ORIGIN) {
        let text = origin.to_str().map_err(|_| foreign())?;
        let is_own = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) == Some(host);
        let is_allowed = app.config.allow_origins.iter().any(|allowed| allowed == text);
        return if is_own || is_allowed { Ok(Some(origin.clone())) } else { Err(foreign()) };
    }
    // Images, scripts and forms of a foreign page carry no Origin, but browsers say where they come from. A
    // link that a person follows to the page itself is fine.
    let fetched_from = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_link = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate") && is_page(path);
    match fetched_from {
        Some("cross-site" | "same-site") if !is_link => Err(foreign()),
        _ => Ok(None),
    }
}

fn is_page(path: &str) -> bool {
    path == "/" || path.starts_with("/s/")
}

fn presented_token(headers: &HeaderMap) -> Option<String> {
    if let Some(authorization) = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) {
        let (scheme, value) = authorization.split_once(' ')?;
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(value.trim().to_owned());
        }
        if scheme.eq_ignore_ascii_case("basic") {
            let decoded = base64::engine::general_purpose::STANDARD.decode(value.trim()).ok()?;
            let decoded = String::from_utf8(decoded).ok()?;
            return decoded.split_once(':').map(|(_, password)| password.to_owned());
        }
        return None;
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|line| line.split(';')).find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE).then(|| value.to_owned())
    })
}

pub(crate) fn linked_token(query: Option<&str>) -> Option<String> {
    query?.split('&').find_map(|pair| pair.strip_prefix("token=")).map(decoded)
}

/// What a request needs. Reading is `view`; what steers an agent is `prompt`; what lets it act is `approve`;
/// what cannot be taken back is `admin`.
fn scope_of(method: &Method, path: &str) -> Scope {
    let is_answer = ["/permission", "/permissions/", "/question", "/answer", "/approvals"];
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => Scope::View,
        // To take leave back is for those who can give it.
        Method::DELETE if path.starts_with("/v1/permissions/") => Scope::Approve,
        Method::DELETE if !path.contains("/queue/") && !path.contains("/processes/") => Scope::Admin,
        // It starts programs.
        _ if is_mcp(path) => Scope::Admin,
        _ if is_answer.iter().any(|part| path.contains(part)) => Scope::Approve,
        _ => Scope::Prompt,
    }
}

/// The routes by which servers of tools are added, connected and disconnected.
fn is_mcp(path: &str) -> bool {
    let of_session = || path.strip_prefix("/v1/sessions/").is_some_and(|rest| rest.split('/').nth(1) == Some("mcp"));
    path.starts_with("/v1/mcp") || path == "/mcp" || path.starts_with("/mcp/") || of_session()
}

fn with_cors(mut response: Response, origin: Option<HeaderValue>) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Some(origin) = origin {
        let fixed: [(HeaderName, &'static str); 5] = [
            (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, last-event-id, x-opencode-directory"),
            (header::ACCESS_CONTROL_EXPOSE_HEADERS, "content-location, tolka-session, tolka-turn, x-next-cursor"),
            (header::VARY, "origin"),
        ];
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_lose_their_port_and_nothing_else() {
        for (host, name) in [
            ("localhost:4096", "localhost"),
            ("localhost", "localhost"),
            ("[::1]:4096", "[::1]"),
            ("[::1]", "[::1]"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("evil.example:80", "evil.example"),
            ("127.0.0.1.evil.example", "127.0.0.1.evil.example"),
        ] {
            assert_eq!(host_name(host), name);
        }
    }

    #[test]
    fn scopes_follow_what_a_request_can_do() {
        let scope = |method: Method, path: &str| scope_of(&method, path);
        assert_eq!(scope(Method::GET, "/session"), Scope::View);
        assert_eq!(scope(Method::POST, "/session/ses_1/message"), Scope::Prompt);
        assert_eq!(scope(Method::POST, "/permission/per_1/reply"), Scope::Approve);
        assert_eq!(scope(Method::POST, "/session/ses_1/permissions/per_1"), Scope::Approve);
        assert_eq!(scope(Method::POST, "/v1/sessions/ses_1/answers/per_1"), Scope::Approve);
        assert_eq!(scope(Method::DELETE, "/session/ses_1"), Scope::Admin);
        assert_eq!(scope(Method::DELETE, "/v1/sessions/ses_1/queue/trn_1"), Scope::Prompt);
        assert_eq!(scope(Method::DELETE, "/v1/sessions/ses_1/processes/p1"), Scope::Prompt);
        assert_eq!(scope(Method::DELETE, "/v1/permissions/grant_1"), Scope::Approve);
        assert_eq!(scope(Method::GET, "/v1/permissions"), Scope::View);
        for path in ["/mcp", "/mcp/files/connect", "/v1/sessions/ses_1/mcp", "/v1/mcp/files/connect"] {
            assert_eq!(scope(Method::POST, path), Scope::Admin, "{path}");
            assert_eq!(scope(Method::GET, path), Scope::View, "{path}");
        }
        assert_eq!(scope(Method::GET, "/api/dialogs/ses_1/history"), Scope::View);
        assert_eq!(scope(Method::POST, "/api/chat"), Scope::Prompt);
        assert_eq!(scope(Method::PATCH, "/api/dialogs/current"), Scope::Prompt);
        assert_eq!(scope(Method::DELETE, "/api/dialogs/ses_1"), Scope::Admin);
        assert_eq!(scope(Method::POST, "/api/build/approvals/per_1/decision"), Scope::Approve);
    }
}

//! A small page, written by hand: it lists sessions, follows one, prompts and answers. It runs on the
//! `/v1` routes like any other client.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use crate::app::App;
use crate::guard::{COOKIE, linked_token};

const INDEX: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// Nothing from elsewhere, nothing inline: text of an agent cannot become code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(index))
        .route("/s/{id}", get(index))
        .route("/assets/page.css", get(|| async { asset("text/css; charset=utf-8", STYLE) }))
        .route("/assets/page.js", get(|| async { asset("text/javascript; charset=utf-8", SCRIPT) }))
}

async fn index(State(app): State<App>, request: Request) -> Response {
    // A link carries the token once; from then on it is in a cookie that scripts cannot read. One that is not known
    // must not take a good one's place.
    let linked = linked_token(request.uri().query()).filter(|token| app.keyring.find(token).is_some());
    if let Some(token) = linked {
        let mut response = Redirect::to("/").into_response();
        let cookie = format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict");
        return match HeaderValue::from_str(&cookie) {
            Ok(cookie) => {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
                response
            }
            Err(_) => StatusCode::BAD_REQUEST.into_response(),
        };
    }
    asset("text/html; charset=utf-8", INDEX)
}

fn asset(kind: &'static str, content: &'static str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache"), (header::CONTENT_SECURITY_POLICY, POLICY)];
    (headers, content).into_response()
}

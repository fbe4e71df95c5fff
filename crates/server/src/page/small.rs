//! A small page, written by hand: it lists sessions, follows one, prompts and answers.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::admitted;
use crate::app::App;

const INDEX: &str = include_str!("index.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Nothing from elsewhere, nothing inline: text of an agent cannot become code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(index))
        .route("/s/{id}", get(index))
        .route("/assets/page.css", get(|| async { asset("text/css; charset=utf-8", STYLE) }))
        .route("/assets/page.js", get(|| async { asset("text/javascript; charset=utf-8", SCRIPT) }))
}

async fn index(State(app): State<App>, request: Request) -> Response {
    admitted(&app, &request).unwrap_or_else(|| asset("text/html; charset=utf-8", INDEX))
}

fn asset(kind: &'static str, content: &'static str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache"), (header::CONTENT_SECURITY_POLICY, POLICY)];
    (headers, content).into_response()
}

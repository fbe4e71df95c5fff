//! The page at `/` and `/s/<id>`. It runs on the `/v1` routes like any other client. What `web/` builds is in the binary;
//! without it, and where the environment says `TOLKA_PAGE=small`, a small page written by hand stands in its place.

mod built;
mod small;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};

use crate::app::App;
use crate::guard::{COOKIE, linked_token};

pub(crate) fn routes() -> Router<App> {
    let wants_small = std::env::var_os("TOLKA_PAGE").is_some_and(|page| page == "small");
    if built::is_there() && !wants_small { built::routes() } else { small::routes() }
}

/// A link carries the token once; from then on it is in a cookie that scripts cannot read. One that is not known must not
/// take a good one's place.
fn admitted(app: &App, request: &Request) -> Option<Response> {
    let token = linked_token(request.uri().query()).filter(|token| app.keyring.find(token).is_some())?;
    // Relative: a proxy may have put the page below a prefix.
    let mut response = Redirect::to("./").into_response();
    let cookie = format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict");
    Some(match HeaderValue::from_str(&cookie) {
        Ok(cookie) => {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            response
        }
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    })
}

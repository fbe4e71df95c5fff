//! The folder that a request is about: every route of this family takes one, in the query or in a header.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::query::Params;
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};

#[derive(Debug, Clone, Default)]
pub(super) struct Folder(Option<String>);

impl Folder {
    /// Where a new session works: the folder asked for if agents may work there, else the configured one.
    pub(super) fn to_work_in(&self, app: &App) -> Result<String, Fault> {
        app.workspace(self.0.as_deref()).map_err(|fault| match fault {
            // In this family a folder that will not do is a bad parameter, not a lack of rights.
            Fault::Forbidden(message) => Fault::BadRequest(message),
            other => other,
        })
    }

    /// What lists and feeds are narrowed to. A folder that is not there has no sessions, which is no error.
    pub(super) fn to_filter_by(&self, app: &App) -> Option<String> {
        self.0.as_ref().map(|wanted| app.workspace(Some(wanted)).unwrap_or_else(|_| wanted.clone()))
    }
}

impl FromRequestParts<App> for Folder {
    type Rejection = OpenCodeError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, OpenCodeError> {
        let query = Params::of(&parts.uri)?;
        let header = || parts.headers.get("x-opencode-directory").and_then(|value| value.to_str().ok()).map(decoded);
        let asked = query.text("directory").map(str::to_owned).or_else(header);
        Ok(Folder(asked.filter(|folder| !folder.is_empty())))
    }
}

/// The SDK writes the header with `encodeURIComponent`; what does not decode was meant as it stands.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|hex| byte == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        let value = hex.and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match value {
            Some(value) => {
                bytes.push(value);
                rest = &tail[2..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_decode_as_the_sdk_encodes_them() {
        assert_eq!(decoded("%2Fhome%2Fu%20v%2Fm%C3%A5l"), "/home/u v/mål");
        for plain in ["/home/u", "/a%", "/a%2", "/a%zz", "/a%+1", "/a%ff"] {
            assert_eq!(decoded(plain), plain);
        }
    }
}

use std::collections::HashMap;

use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;

use crate::app::App;
use crate::fault::{Fault, OpenCodeError};

/// A query whose mistakes are told in this family's shape. Names that nobody asks for are ignored: clients of
/// many versions come here, each with its own.
#[derive(Debug, Default)]
pub(super) struct Params(HashMap<String, String>);

impl Params {
    pub(super) fn of(uri: &Uri) -> Result<Self, Fault> {
        let query = Query::<HashMap<String, String>>::try_from_uri(uri);
        query.map(|Query(all)| Params(all)).map_err(|error| Fault::BadRequest(error.to_string()))
    }

    /// `None` also for what was left empty, as clients do with values that they do not have.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(wrong("\"true\" or \"false\"", other, name)),
        }
    }

    /// A count, or milliseconds; JavaScript may write either with a fraction.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Fault> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        // In range by the check above, but for numbers beyond any clock or list; those saturate.
        number.map(|number| Some(number as u64)).ok_or_else(|| wrong("a number", text, name))
    }
}

fn wrong(expected: &str, given: &str, name: &str) -> Fault {
    let given: String = given.chars().take(80).collect();
    Fault::BadRequest(format!("Expected {expected}, got \"{given}\"\n  at [\"{name}\"]"))
}

impl FromRequestParts<App> for Params {
    type Rejection = OpenCodeError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, OpenCodeError> {
        Ok(Params::of(&parts.uri)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_clients_write_them() {
        let uri = Uri::from_static("/session?start=1792110485705.5&path=&roots=true&limit=x&search=a%20b");
        let params = Params::of(&uri).unwrap();
        assert_eq!(params.number("start").unwrap(), Some(1_792_110_485_705));
        assert_eq!((params.text("path"), params.text("search")), (None, Some("a b")));
        assert!(params.flag("roots").unwrap() && !params.flag("other").unwrap());
        assert!(params.number("limit").unwrap_err().message().ends_with("at [\"limit\"]"));
    }
}

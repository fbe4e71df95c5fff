//! The folder that a request is about: every route of this family takes one, in the query or in a header.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::query::Params;
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};
use crate::request::decoded;

#[derive(Debug, Clone, Default)]
pub(super) struct Folder(Option<String>);

impl Folder {
    /// Where a new session works: the folder asked for if agents may work there, else the configured one.
    pub(super) async fn to_work_in(&self, app: &App) -> Result<String, Fault> {
        app.workspace(self.0.as_deref()).await.map_err(|fault| match fault {
            // In this family a folder that will not do is a bad parameter, not a lack of rights.
            Fault::Forbidden(message) => Fault::BadRequest(message),
            other => other,
        })
    }

    /// What lists and feeds are narrowed to. A folder that is not there has no sessions, which is no error.
    pub(super) async fn to_filter_by(&self, app: &App) -> Option<String> {
        let wanted = self.0.as_ref()?;
        Some(app.workspace(Some(wanted)).await.unwrap_or_else(|_| wanted.clone()))
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

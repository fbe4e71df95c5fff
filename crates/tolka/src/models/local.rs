//! Asks a server on this machine which models it has. It is there at once or it is not there.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Limited};
use hyper::header::{ACCEPT, HeaderName, HeaderValue};
use serde_json::Value;

use super::Provider;
use crate::config::{ModelEntry, Wire};
use crate::fetch::Question;

/// On this machine a port that somebody listens on is connected to in far less.
const CONNECTED: Duration = Duration::from_millis(200);
/// A list of models is at hand in whatever keeps them.
const ANSWERED: Duration = Duration::from_secs(2);
const LONGEST: usize = 1024 * 1024;
/// A list for people to choose from.
const MOST: usize = 200;

/// Why there are none, for people.
#[derive(Debug, Clone)]
pub(super) enum NoList {
    /// Nobody is there.
    Silent(String),
    /// Somebody is, who may have models all the same.
    Unlisted(String),
}

pub(super) async fn models(provider: &Provider) -> Result<Vec<ModelEntry>, NoList> {
    let place = place(provider);
    match tokio::time::timeout(CONNECTED, is_there(&place)).await {
        Ok(true) => {}
        Ok(false) | Err(_) => return Err(NoList::Silent(format!("nothing answers at {place}"))),
    }
    let listed = match tokio::time::timeout(ANSWERED, list(provider)).await {
        Ok(listed) => {
            listed.map_err(|error| NoList::Unlisted(format!("{place} does not list its models: {error:#}")))?
        }
        Err(_) => {
            let why = format!("{place} does not list its models within {} s", ANSWERED.as_secs());
            return Err(NoList::Unlisted(why));
        }
    };
    if listed.is_empty() && provider.name == super::known::OLLAMA {
        return Err(NoList::Unlisted(format!("{place} has no model yet; get one, as with `ollama pull qwen3`")));
    }
    if listed.is_empty() {
        return Err(NoList::Unlisted(format!("{place} has no model")));
    }
    Ok(listed)
}

/// As people know it: without the path of the wire.
fn place(provider: &Provider) -> String {
    provider.base_url.shown().trim_end_matches("/v1").to_owned()
}

async fn is_there(place: &str) -> bool {
    let Ok(uri) = place.parse::<hyper::Uri>() else { return false };
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    let Some(host) = uri.host() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    tokio::net::TcpStream::connect((host, port)).await.is_ok()
}

async fn list(provider: &Provider) -> Result<Vec<ModelEntry>> {
    let base = provider.base_url.as_str();
    let mut headers = vec![(ACCEPT, HeaderValue::from_static("application/json"))];
    let key = provider.key.as_ref().map(|key| key.expose());
    let (url, token) = match provider.wire {
        Wire::OpenAi | Wire::GenAi => (format!("{base}/models"), key),
        Wire::Anthropic => {
            let key = key.map(HeaderValue::from_str).transpose().context("its key is no header's value")?;
            headers.extend(key.map(|key| (HeaderName::from_static("x-api-key"), key)));
            headers.push((HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01")));
            (format!("{}/v1/models", base.trim_end_matches("/v1")), None)
        }
    };
    let response = Question { url: &url, post: None, headers: &headers, token }.ask().await?;
    let status = response.status();
    if !status.is_success() {
        bail!("it answers {status}");
    }
    let body = Limited::new(response.into_body(), LONGEST).collect().await.map_err(anyhow::Error::from_boxed)?;
    let body: Value = serde_json::from_slice(&body.to_bytes()).context("its answer is no JSON")?;
    let listed = body["data"].as_array().context("its answer has no `data`")?;
    let ids = listed.iter().filter_map(|model| model["id"].as_str()).filter(|id| !id.trim().is_empty());
    Ok(ids.take(MOST).map(|id| ModelEntry { id: id.to_owned(), ..ModelEntry::default() }).collect())
}

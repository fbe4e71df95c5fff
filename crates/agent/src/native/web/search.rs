//! A search engine that somebody configured: SearXNG, Brave or Tavily, each asked in its own way and answered for in one.
//!
//! Its address is the person's own choice, so it may well be on this machine; the key goes there and nowhere else.

use std::fmt;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Response, Url};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::body;
use super::page::{Shape, told};
use crate::native::model::Endpoint;

const PATIENCE: Duration = Duration::from_secs(20);
/// Of what an engine says went wrong.
const SHOWN: usize = 300;
/// Of what it says of one page.
const SNIPPET: usize = 1_500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    SearXng,
    Brave,
    Tavily,
}

impl Engine {
    pub const ALL: [Engine; 3] = [Engine::SearXng, Engine::Brave, Engine::Tavily];

    pub fn name(self) -> &'static str {
        match self {
            Engine::SearXng => "searxng",
            Engine::Brave => "brave",
            Engine::Tavily => "tavily",
        }
    }

    /// Where it is, if it is always there.
    pub fn usual_url(self) -> Option<&'static str> {
        match self {
            Engine::SearXng => None,
            Engine::Brave => Some("https://api.search.brave.com/res/v1"),
            Engine::Tavily => Some("https://api.tavily.com"),
        }
    }

    /// Whether it answers nobody without one.
    pub fn needs_key(self) -> bool {
        match self {
            Engine::SearXng => false,
            Engine::Brave | Engine::Tavily => true,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One engine, ready to be asked.
#[derive(Debug)]
pub struct Search {
    pub engine: Engine,
    pub endpoint: Endpoint,
}

/// One page that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::native) struct Hit {
    pub(in crate::native) title: String,
    pub(in crate::native) url: String,
    pub(in crate::native) snippet: String,
}

impl Search {
    /// `count` of them at most. Errors hold nothing that is secret.
    pub(in crate::native) async fn find(&self, query: &str, count: usize) -> Result<Vec<Hit>, String> {
        let found = timeout(PATIENCE, self.ask(query, count)).await;
        let found = found.unwrap_or_else(|_| Err(format!("it did not answer within {} seconds", PATIENCE.as_secs())));
        found.map_err(|why| self.endpoint.scrubbed(&format!("{} did not find anything: {why}", self.engine)))
    }

    async fn ask(&self, query: &str, count: usize) -> Result<Vec<Hit>, String> {
        let (method, url, head, body) = self.request(query, count)?;
        let client = self.endpoint.client(&url)?;
        let mut head = self.endpoint.head(&head)?;
        let mut request = client.request(method, url);
        if let Some(body) = body {
            head.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            request = request.body(body.to_string());
        }
        let response = request.headers(head).send().await;
        let response =
            response.map_err(|error| format!("it cannot be reached: {}", innermost(&error.without_url())))?;
        let status = response.status().as_u16();
        let text = text(response).await?;
        if status != 200 {
            let said = &text[..text.floor_char_boundary(SHOWN)];
            return Err(format!("it answered {status}{}: {said}", self.advice(status)));
        }
        let answer: Value = serde_json::from_str(&text).map_err(|_| "its answer is not JSON".to_owned())?;
        let list = match self.engine {
            Engine::SearXng | Engine::Tavily => &answer["results"],
            Engine::Brave => &answer["web"]["results"],
        };
        Ok(list.as_array().into_iter().flatten().filter_map(hit).take(count).collect())
    }

    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    fn request(
        &self,
        query: &str,
        count: usize,
    ) -> Result<(Method, Url, Vec<(&'static str, String)>, Option<Value>), String> {
        let key = self.endpoint.key.as_ref().map(|key| key.expose().to_owned());
        let accept = ("accept", "application/json".to_owned());
        Ok(match self.engine {
            Engine::SearXng => {
                let mut url = self.endpoint.url("search")?;
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
                let bearer = key.map(|key| ("authorization", format!("Bearer {key}")));
                (Method::GET, url, [accept].into_iter().chain(bearer).collect(), None)
            }
            Engine::Brave => {
                let mut url = self.endpoint.url("web/search")?;
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &count.to_string());
                let token = key.map(|key| ("x-subscription-token", key));
                (Method::GET, url, [accept].into_iter().chain(token).collect(), None)
            }
            Engine::Tavily => {
                let body = json!({ "query": query, "max_results": count });
                let bearer = key.map(|key| ("authorization", format!("Bearer {key}")));
                let head = [accept].into_iter().chain(bearer).collect();
                (Method::POST, self.endpoint.url("search")?, head, Some(body))
            }
        })
    }

    fn advice(&self, status: u16) -> &'static str {
        match (self.engine, status) {
            (Engine::SearXng, 403) => " (its settings have to list `json` under `search.formats`)",
            (_, 401 | 403) => " (see whether `search_key` in tolka.toml is right)",
            (_, 429) => " (it wants no more questions for now)",
            _ => "",
        }
    }
}

async fn text(response: Response) -> Result<String, String> {
    let body = body::read(response, None).await?;
    Ok(String::from_utf8_lossy(&body.bytes).into_owned())
}

/// Some tell titles and snippets as pieces of a page.
fn hit(found: &Value) -> Option<Hit> {
    let url = found["url"].as_str().filter(|url| !url.is_empty())?;
    let base = Url::parse(url).ok()?;
    let plain = |name: &str| {
        let html = found[name].as_str()?;
        let words = told(html, &base, Shape::Text, SNIPPET).0.split_whitespace().collect::<Vec<_>>().join(" ");
        (!words.is_empty()).then(|| words[..words.floor_char_boundary(SNIPPET)].to_owned())
    };
    Some(Hit {
        title: plain("title").unwrap_or_else(|| url.to_owned()),
        url: url.to_owned(),
        snippet: plain("content").or_else(|| plain("description")).unwrap_or_default(),
    })
}

fn innermost(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

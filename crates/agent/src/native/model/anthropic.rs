//! Anthropic's messages, streamed, at any base URL that speaks them.
//!
//! Thoughts go back as they came, with their signatures byte for byte: `kept` is the rest of the block's own JSON
//! (`{"signature": …}`, or `{"data": …}` of one that is not shown). Prompts are marked so that what was sent before is
//! read from the provider's cache.

mod answer;
mod request;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::answer::Answer;
use super::stream::{self, Letter};
use super::{Endpoint, Model, Pieces, Request};
use crate::ModelAbout;

/// The version of the wire that is spoken here.
const VERSION: &str = "2023-06-01";

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnthropicOptions {
    /// Tokens that the model may think before it answers; the least is 1,024. `None`: it does not think first.
    pub thinking: Option<u64>,
    pub temperature: Option<f64>,
    /// For providers that refuse the marks.
    pub without_cache: bool,
    /// Goes into the request as it is; wins over what we would say.
    pub extra: Map<String, Value>,
}

#[derive(Debug)]
pub struct Anthropic {
    endpoint: Arc<Endpoint>,
    about: ModelAbout,
    options: AnthropicOptions,
}

impl Anthropic {
    pub fn new(endpoint: impl Into<Arc<Endpoint>>, about: ModelAbout, options: AnthropicOptions) -> Self {
        Anthropic { endpoint: endpoint.into(), about, options }
    }
}

impl Model for Anthropic {
    fn about(&self) -> &ModelAbout {
        &self.about
    }

    fn ask(&self, request: Request) -> Pieces {
        let (about, options) = (self.about.clone(), self.options.clone());
        let mut head = vec![("anthropic-version", VERSION.to_owned())];
        head.extend(self.endpoint.key.as_ref().map(|key| ("x-api-key", key.expose().to_owned())));
        // Its base URL is given with the version and without.
        let base = self.endpoint.base_url.trim().trim_end_matches('/');
        let path = if base.ends_with("/v1") { "messages" } else { "v1/messages" };
        let body = move |request: &Request| request::body(request, &about, &options);
        stream::ask(&self.endpoint, &self.about.model, Letter { path, head, request, body }, Answer::default())
    }
}

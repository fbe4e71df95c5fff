//! From what was found to models that can be asked.

use std::sync::Arc;

use anyhow::Result;
use tolka_agent::native::model::{AnswerLimit, Anthropic, AnthropicOptions, Endpoint, Model, OpenAi, OpenAiOptions};
use tolka_agent::{ModelAbout, Price};
use tolka_facts::event::Model as Named;

use super::{Catalogue, Provider};
use crate::config::{ModelEntry, Wire};

impl Catalogue {
    /// All that can be used, the usual one first.
    pub(crate) fn make(&self) -> Result<Vec<Arc<dyn Model>>> {
        let mut models: Vec<Arc<dyn Model>> = Vec::new();
        for provider in &self.usable {
            let endpoint = Arc::new(provider.endpoint());
            for entry in &provider.models {
                let model = provider.model(&endpoint, entry)?;
                let about = &model.about().model;
                let is_usual =
                    self.usual.as_ref().is_some_and(|usual| usual.provider == about.provider && usual.id == about.id);
                models.insert(if is_usual { 0 } else { models.len() }, model);
            }
        }
        Ok(models)
    }
}

impl Provider {
    fn endpoint(&self) -> Endpoint {
        let mut endpoint = Endpoint::new(self.base_url.as_str());
        endpoint.key = self.key.clone();
        endpoint.key_name.clone_from(&self.key_name);
        let headers = self.entry.headers.0.iter();
        endpoint.headers = headers.map(|header| (header.name.clone(), header.value.clone())).collect();
        if let Some(time) = self.entry.connect_timeout {
            endpoint.connect = time.0;
        }
        if let Some(time) = self.entry.answer_timeout {
            endpoint.first = time.0;
        }
        if let Some(time) = self.entry.idle_timeout {
            endpoint.idle = time.0;
        }
        endpoint
    }

    fn about(&self, entry: &ModelEntry) -> ModelAbout {
        let price = entry.price.map(|price| Price {
            input: price.input,
            output: price.output,
            cache_read: price.cache_read,
            cache_write: price.cache_write,
        });
        let model = Named { provider: self.name.clone(), id: entry.id.clone() };
        ModelAbout {
            name: entry.name.clone().unwrap_or_else(|| entry.id.clone()),
            context: entry.context,
            output: entry.output,
            price,
            sees_images: entry.images.unwrap_or_default(),
            ..ModelAbout::named(model)
        }
    }

    fn model(&self, endpoint: &Arc<Endpoint>, entry: &ModelEntry) -> Result<Arc<dyn Model>> {
        let (endpoint, about) = (endpoint.clone(), self.about(entry));
        match self.wire {
            Wire::OpenAi => {
                let limit = match (entry.output, self.name.as_str()) {
                    (None, _) => AnswerLimit::Unsaid,
                    (Some(_), "openai") => AnswerLimit::MaxCompletionTokens,
                    (Some(_), _) => AnswerLimit::MaxTokens,
                };
                let options = OpenAiOptions { limit, effort: entry.effort.clone(), ..OpenAiOptions::default() };
                Ok(Arc::new(OpenAi::new(endpoint, about, options)))
            }
            Wire::Anthropic => {
                let options = AnthropicOptions { thinking: entry.thinking, ..AnthropicOptions::default() };
                Ok(Arc::new(Anthropic::new(endpoint, about, options)))
            }
            #[cfg(feature = "genai")]
            Wire::GenAi => Ok(Arc::new(tolka_agent::native::model::GenAi::new(&self.name, endpoint, about))),
            #[cfg(not(feature = "genai"))]
            Wire::GenAi => anyhow::bail!("{}: this tolka was built without the feature `genai`", self.name),
        }
    }
}

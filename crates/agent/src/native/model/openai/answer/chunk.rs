//! The chunks of a streamed chat completion. Nothing in them is sure to be there.

use serde::Deserialize;
use serde_json::Value;
use tolka_facts::event::Usage;

#[derive(Debug, Deserialize)]
pub(super) struct Chunk {
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<Counts>,
    pub(super) error: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    pub(super) index: Option<u64>,
    pub(super) delta: Option<Delta>,
    /// In place of `delta` where a server does not stream.
    pub(super) message: Option<Delta>,
    pub(super) finish_reason: Option<String>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    pub(super) content: Option<Content>,
    pub(super) refusal: Option<String>,
    /// DeepSeek, Kimi, vLLM of old.
    pub(super) reasoning_content: Option<String>,
    /// OpenRouter, Ollama, vLLM.
    pub(super) reasoning: Option<Value>,
    /// OpenRouter.
    pub(super) reasoning_details: Option<Vec<Value>>,
    pub(super) tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

/// Mistral's.
#[derive(Debug, Deserialize)]
pub(super) struct ContentPart {
    pub(super) text: Option<String>,
    thinking: Option<Vec<ContentPart>>,
}

impl ContentPart {
    pub(super) fn thoughts(&self) -> Option<String> {
        let parts = self.thinking.as_ref()?;
        Some(parts.iter().filter_map(|part| part.text.as_deref()).collect())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) function: Option<FunctionDelta>,
    /// Gemini's; its signatures of thoughts are in it.
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta {
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptCounts>,
    completion_tokens_details: Option<CompletionCounts>,
    /// DeepSeek's.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct PromptCounts {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct CompletionCounts {
    reasoning_tokens: Option<u64>,
}

impl Counts {
    /// Here what is cached is part of the prompt and reasoning part of the answer; a [`Usage`] counts each token once.
    pub(super) fn usage(&self) -> Usage {
        let of_prompt = self.prompt_tokens_details.as_ref();
        let cache_read = of_prompt.and_then(|of| of.cached_tokens).or(self.prompt_cache_hit_tokens).unwrap_or(0);
        let cache_write = of_prompt.and_then(|of| of.cache_write_tokens).unwrap_or(0);
        let reasoning = self.completion_tokens_details.as_ref().and_then(|of| of.reasoning_tokens).unwrap_or(0);
        let (prompt, completion) = (self.prompt_tokens.unwrap_or(0), self.completion_tokens.unwrap_or(0));
        // xAI leaves reasoning out of the completion; the total tells.
        let is_apart = reasoning > 0 && self.total_tokens == Some(prompt + completion + reasoning);
        Usage {
            input: prompt.saturating_sub(cache_read + cache_write),
            output: if is_apart { completion } else { completion.saturating_sub(reasoning) },
            reasoning,
            cache_read,
            cache_write,
        }
    }
}

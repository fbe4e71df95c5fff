//! Summaries on request. One is a turn like any other: it waits for its place in the queue, can be dropped, cancelled and
//! taken back, and a crash leaves it in the queue or ends it as interrupted.

use tolka_agent::COMPACT;
use tolka_facts::event::Model;
use tolka_facts::{Block, SessionId};

use crate::{Accepted, Desk, PromptRequest, SessionError};

/// Longer wishes are no wishes.
const WISHES: usize = 8 * 1024;

#[derive(Debug, Clone, Default)]
pub struct CompactRequest {
    /// What to heed in the summary, in a person's words.
    pub instructions: String,
    /// As with prompts.
    pub key: Option<String>,
    pub model: Option<Model>,
}

impl Desk {
    /// The summary is made when the session is free. What was said before stays; the model is sent the summary instead.
    pub async fn compact(&self, session: &SessionId, request: CompactRequest) -> Result<Accepted, SessionError> {
        let CompactRequest { instructions, key, model } = request;
        let name = self.tip(session).await?.head.agent;
        let agent = self.agents().iter().find(|agent| agent.name() == name);
        if agent.is_some_and(|agent| !agent.compacts()) {
            return Err(SessionError::CannotCompact(name));
        }
        if instructions.len() > WISHES {
            return Err(SessionError::LongInstructions { given: instructions.len(), most: WISHES });
        }
        let content = vec![Block::text(format!("{COMPACT} {}", instructions.trim()).trim_end())];
        self.prompt(session, PromptRequest { content, key, model, ..PromptRequest::default() }).await
    }
}

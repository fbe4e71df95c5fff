//! The snapshot before a turn. It runs beside the actor, which goes on answering; until it is done the
//! prompt is in the queue like any other, so that a crash in between leaves it there.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tolka_facts::event::{Noticed, PromptQueued, Severity, TurnStarted};
use tolka_facts::{Block, Draft, Head, TurnId};
use tolka_workspace::{CheckpointError, Checkpoints, Save, Saved};

/// How much of a prompt stands in its commit.
const WORDS: usize = 50;

/// How the desk saves workspaces.
#[derive(Debug, Clone)]
pub struct DeskOptions {
    /// `None`: turns start without a snapshot.
    pub checkpoints: Option<Arc<Checkpoints>>,
    /// How long a prompt waits for its snapshot.
    pub checkpoint_budget: Duration,
}

impl Default for DeskOptions {
    fn default() -> Self {
        DeskOptions { checkpoints: None, checkpoint_budget: Duration::from_secs(10) }
    }
}

pub(crate) type Outcome = Result<Saved, CheckpointError>;

/// A snapshot on its way. Dropping it stops it.
pub(crate) struct Saving {
    pub(crate) turn: TurnId,
    outcome: Pin<Box<dyn Future<Output = Outcome> + Send + Sync>>,
}

impl Saving {
    /// `None` where no snapshots are wanted.
    pub(crate) fn begin(options: &DeskOptions, head: &Head, prompt: &PromptQueued) -> Option<Self> {
        let checkpoints = options.checkpoints.clone()?;
        let (workspace, session) = (PathBuf::from(&head.workspace), head.id.clone());
        let (budget, words) = (options.checkpoint_budget, words(prompt));
        let outcome =
            Box::pin(async move { checkpoints.save(&workspace, &session, Save::within(budget, &words)).await });
        Some(Saving { turn: prompt.turn.clone(), outcome })
    }
}

/// Pends while nothing is being saved, so that it can stand in a select.
pub(crate) async fn saved(saving: &mut Option<Saving>) -> Outcome {
    match saving {
        Some(saving) => saving.outcome.as_mut().await,
        None => std::future::pending().await,
    }
}

/// What begins a turn. Without its snapshot it goes on, and people see that it does.
pub(crate) fn started(turn: &TurnId, outcome: Option<&Outcome>) -> Vec<Draft> {
    let (checkpoint, error) = match outcome {
        Some(Ok(saved)) => (Some(saved.commit.clone()), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let notice = error.map(|error| {
        Draft::tolka(Noticed {
            severity: Severity::Warning,
            title: "No checkpoint was saved".to_owned(),
            description: Some(format!("What this turn changes cannot be taken back: {error}.")),
        })
    });
    std::iter::once(Draft::tolka(TurnStarted { turn: turn.clone(), checkpoint })).chain(notice).collect()
}

fn words(prompt: &PromptQueued) -> String {
    let text = prompt.content.iter().find_map(|block| match block {
        Block::Text { text, .. } => Some(text.head()),
        _ => None,
    });
    format!("Before: {}", text.unwrap_or("a prompt without words").chars().take(WORDS).collect::<String>())
}

//! The snapshot before a turn. It runs beside the actor, which goes on answering; until it is done the
//! prompt is in the queue like any other, so that a crash in between leaves it there.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tolka_facts::event::{Noticed, PromptQueued, Severity, TurnStarted};
use tolka_facts::{Block, Draft, Head, SessionId, TurnId};
use tolka_workspace::checkpoint::LeftOut;
use tolka_workspace::names::shown;
use tolka_workspace::{CheckpointError, Checkpoints, Save, Saved};

use crate::family::parent_of;
use crate::grounds::{Folder, Grounds, Stay};

/// How much of a prompt stands in its commit.
const WORDS: usize = 50;
/// Files that a notice lists.
const LISTED: usize = 20;

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

/// Snapshots of one session's workspace.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) checkpoints: Arc<Checkpoints>,
    pub(crate) budget: Duration,
    pub(crate) session: SessionId,
    /// Whom it works for, if it is a subagent's.
    pub(crate) parent: Option<SessionId>,
    pub(crate) folder: Folder,
}

impl Store {
    /// `None` where no snapshots are wanted.
    pub(crate) async fn of(options: &DeskOptions, head: &Head) -> Option<Self> {
        let checkpoints = options.checkpoints.clone()?;
        let folder = Folder::find(&head.workspace).await;
        let (session, parent) = (head.id.clone(), parent_of(head).cloned());
        Some(Store { checkpoints, budget: options.checkpoint_budget, session, parent, folder })
    }

    /// The workspace as it is. `same_as`: a snapshot that will do if nothing has changed since.
    pub(crate) async fn save(&self, words: &str, same_as: Option<&str>) -> Outcome {
        let save = Save { same_as, ..Save::within(self.budget, words) };
        self.checkpoints.save(&self.folder.named, &self.session, save).await
    }
}

pub(crate) type Outcome = Result<Saved, CheckpointError>;

/// What a turn begins with.
pub(crate) struct Begun {
    pub(crate) outcome: Outcome,
    pub(crate) work: Work,
}

/// A turn's work in its folder, from the snapshot before it on.
pub(crate) struct Work {
    pub(crate) store: Store,
    pub(crate) stay: Stay,
    /// `None`: it failed.
    pub(crate) before: Option<String>,
}

/// A snapshot on its way. Dropping it stops it.
pub(crate) struct Saving {
    pub(crate) turn: TurnId,
    begun: Pin<Box<dyn Future<Output = Begun> + Send>>,
}

impl Saving {
    /// `None` where no snapshots are wanted.
    pub(crate) async fn begin(
        options: &DeskOptions,
        grounds: Arc<Grounds>,
        head: &Head,
        prompt: &PromptQueued,
    ) -> Option<Self> {
        let (store, words) = (Store::of(options, head).await?, words(prompt));
        let begun = Box::pin(async move {
            // From before the snapshot on: what others do meanwhile may be in it or not.
            let stay = grounds.enter(&store.session, store.parent.as_ref(), store.folder.canonical.clone());
            let outcome = store.save(&words, None).await;
            let before = outcome.as_ref().ok().map(|saved| saved.commit.clone());
            Begun { outcome, work: Work { store, stay, before } }
        });
        Some(Saving { turn: prompt.turn.clone(), begun })
    }
}

/// Pends while nothing is being saved, so that it can stand in a select.
pub(crate) async fn saved(saving: &mut Option<Saving>) -> Begun {
    match saving {
        Some(saving) => saving.begun.as_mut().await,
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
        warning("No checkpoint was saved", format!("What this turn changes cannot be taken back: {error}."))
    });
    std::iter::once(Draft::tolka(TurnStarted { turn: turn.clone(), checkpoint })).chain(notice).collect()
}

pub(crate) fn warning(title: &str, description: String) -> Draft {
    let (severity, title) = (Severity::Warning, title.to_owned());
    Draft::tolka(Noticed { severity, title, description: Some(description) })
}

/// What people should know of files that are in no snapshot.
pub(crate) fn left_out(files: &[LeftOut]) -> Draft {
    let mut words = "They are too large or cannot be read, and a rewind leaves them as they are:".to_owned();
    for (index, file) in files.iter().take(LISTED).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(words, "{comma} {} ({} bytes)", shown(&file.path), file.size);
    }
    match files.len().saturating_sub(LISTED) {
        0 => words.push('.'),
        more => {
            let _ = write!(words, ", and {more} more.");
        }
    }
    warning("Some files are in no checkpoint", words)
}

fn words(prompt: &PromptQueued) -> String {
    format!("Before: {}", first_words(prompt))
}

pub(crate) fn first_words(prompt: &PromptQueued) -> String {
    let text = prompt.content.iter().find_map(|block| match block {
        Block::Text { text, .. } => Some(text.head()),
        _ => None,
    });
    text.unwrap_or("a prompt without words").chars().take(WORDS).collect()
}

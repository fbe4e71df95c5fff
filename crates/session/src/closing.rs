//! The snapshot after a turn. It runs beside the actor like the one before, and the turn is open until it is told: what the
//! turn changed, by its commands too, stands in the journal before its end does.

use std::collections::HashSet;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tolka_agent::Ended;
use tolka_facts::event::{Changes, CheckpointSaved, FileChanged, FileOperation, FileStat, Moment};
use tolka_facts::{BlobRef, Draft, Hash, TurnId};
use tolka_workspace::checkpoint::{FileChange, LeftOut};
use tolka_workspace::{CheckpointError, Saved, diff, limits, names};

use crate::saving::{Outcome, Work, warning};
use crate::told::Told;

/// Files that a fact lists.
pub(crate) const LISTED: usize = 500;
/// Files of a turn that are told because nobody had; a turn that changes more tells how many.
const TOLD: usize = 200;
/// Of their contents, which are one append.
const TOLD_BYTES: usize = 8 << 20;
/// How long comparing may take. The snapshot counts without.
const COMPARING: Duration = Duration::from_secs(5);

/// A turn that has ended its work.
pub(crate) struct Closing {
    pub(crate) ended: Ended,
    turn: TurnId,
    until: Instant,
    /// Nobody waits for long then.
    is_cancelled: bool,
    is_lost: bool,
    /// Of every file that it changed.
    tells: bool,
    source: Arc<Source>,
    stage: Stage,
}

/// What the turn is compared with, and what it told itself.
struct Source {
    work: Work,
    before: String,
    base: String,
    told: HashSet<PathBuf>,
}

type Beside<T> = Pin<Box<dyn Future<Output = T> + Send>>;

enum Stage {
    Saving(Beside<Outcome>),
    Comparing(Saved, Beside<Result<Compared, CheckpointError>>),
}

#[derive(Default)]
struct Compared {
    changes: Option<Changes>,
    total: Option<Changes>,
    /// Changes that nobody had told.
    news: Told,
}

/// What is told before the turn's end.
#[derive(Default)]
pub(crate) struct Closed {
    pub(crate) told: Told,
    pub(crate) left_out: Vec<LeftOut>,
}

/// How a turn's work came to its end.
pub(crate) enum Course {
    Ended,
    /// The snapshot must be done by then.
    Cancelled(Instant),
    /// Nobody knows when it stopped, nor whose the changes since are.
    Lost,
}

impl Closing {
    /// How it ended comes back if there was no snapshot before the turn.
    pub(crate) fn begin(
        turn: &TurnId,
        work: Work,
        base: Option<String>,
        told: &HashSet<String>,
        course: &Course,
        tells: bool,
        ended: Ended,
    ) -> Result<Self, Box<Ended>> {
        let Some(before) = work.before.clone() else { return Err(Box::new(ended)) };
        let told = told.iter().filter_map(|path| work.store.folder.told_inside(path)).collect();
        let base = base.unwrap_or_else(|| before.clone());
        let source = Arc::new(Source { work, before, base, told });
        let until = match course {
            Course::Cancelled(until) => *until,
            Course::Ended | Course::Lost => Instant::now() + source.work.store.budget,
        };
        let stage = Stage::Saving(Box::pin(save(source.clone())));
        let (is_cancelled, is_lost) = (matches!(course, Course::Cancelled(_)), matches!(course, Course::Lost));
        // A command that was cut off may have told nothing yet.
        let tells = tells && matches!(course, Course::Ended);
        Ok(Closing { ended, turn: turn.clone(), until, is_cancelled, is_lost, tells, source, stage })
    }

    /// Somebody wants the turn to be over by then.
    pub(crate) fn hurry(&mut self, until: Instant) {
        self.is_cancelled = true;
        self.until = self.until.min(until);
    }

    /// Nothing is lost if this is dropped and called again.
    pub(crate) async fn done(&mut self) -> Closed {
        loop {
            match &mut self.stage {
                Stage::Saving(saving) => {
                    let outcome = tokio::select! {
                        biased;
                        outcome = saving => outcome,
                        () = sleep_until(self.until) => {
                            Err(CheckpointError::Slow { budget: self.source.work.store.budget })
                        }
                    };
                    let saved = match outcome {
                        Ok(saved) => saved,
                        Err(error) => return self.failed(&error),
                    };
                    if !self.is_cancelled {
                        self.until = Instant::now() + COMPARING;
                    }
                    let comparing = compare(self.source.clone(), saved.commit.clone(), self.is_lost, self.tells);
                    self.stage = Stage::Comparing(saved, Box::pin(comparing));
                }
                Stage::Comparing(saved, comparing) => {
                    let compared = tokio::select! {
                        biased;
                        compared = comparing => compared,
                        () = sleep_until(self.until) => Err(CheckpointError::Slow { budget: COMPARING }),
                    };
                    let saved = saved.clone();
                    return self.saved(saved, compared);
                }
            }
        }
    }

    fn failed(&self, error: &CheckpointError) -> Closed {
        let session = &self.source.work.store.session;
        tracing::warn!(%session, %error, "a turn ends without a checkpoint");
        let why =
            if self.is_cancelled { "it was cancelled, and there was no time".to_owned() } else { error.to_string() };
        let words = format!("Taking this turn back may keep files that it changed: {why}.");
        let mut closed = Closed::default();
        closed.told.push(warning("No checkpoint was saved after the turn", words));
        closed
    }

    fn saved(&self, saved: Saved, compared: Result<Compared, CheckpointError>) -> Closed {
        let work = &self.source.work;
        let compared = compared.unwrap_or_else(|error| {
            tracing::warn!(session = %work.store.session, %error, "what a turn changed could not be listed");
            Compared::default()
        });
        let (mut told, changes) = (compared.news, compared.changes);
        // Of very many, not all are told.
        let tells = self.tells && changes.as_ref().is_some_and(|changes| changes.count <= LISTED as u64);
        told.push(Draft::tolka(CheckpointSaved {
            moment: Some(Moment::AfterTurn),
            turn: Some(self.turn.clone()),
            changes,
            total: compared.total,
            beside: work.stay.beside(),
            late: self.is_lost,
            tells,
            ..CheckpointSaved::of(saved.commit, saved.files)
        }));
        Closed { told, left_out: saved.left_out }
    }
}

/// Pends while no turn comes to its end, so that it can stand in a select.
pub(crate) async fn closed(closing: &mut Option<Closing>) -> Closed {
    match closing {
        Some(closing) => closing.done().await,
        None => std::future::pending().await,
    }
}

async fn save(source: Arc<Source>) -> Outcome {
    source.work.store.save("After the turn", Some(&source.before)).await
}

async fn compare(source: Arc<Source>, after: String, is_lost: bool, tells: bool) -> Result<Compared, CheckpointError> {
    let Source { work, before, base, told } = source.as_ref();
    let (checkpoints, workspace) = (&work.store.checkpoints, &work.store.folder.named);
    let all = checkpoints.changes(workspace, base, &after).await?;
    let total = Some(listed(&all, |_| false));
    if is_lost {
        return Ok(Compared { total, ..Compared::default() });
    }
    let own = if base == before { all } else { checkpoints.changes(workspace, before, &after).await? };
    let is_ours = work.stay.beside().is_empty() && !tells;
    let untold = own.iter().filter(|change| is_ours && !told.contains(&change.path));
    let untold: Vec<&FileChange> = untold.take(TOLD).collect();
    let news = news(work, before, &after, &untold).await?;
    let now_told: HashSet<&PathBuf> = told.iter().chain(untold.iter().map(|change| &change.path)).collect();
    let changes = Some(listed(&own, |change| now_told.contains(&change.path) || is_of_mode(change)));
    Ok(Compared { changes, total, news })
}

/// Only whether it can be run has changed. Agents tell of contents, so nobody tells this.
fn is_of_mode(change: &FileChange) -> bool {
    let FileChange { operation, added, removed, is_binary, .. } = change;
    *operation == FileOperation::Update && (*added, *removed) == (0, 0) && !is_binary
}

/// Of very many the first, and how many there are.
pub(crate) fn listed(changes: &[FileChange], is_told: impl Fn(&FileChange) -> bool) -> Changes {
    let stat = |change: &FileChange| FileStat {
        path: names::told(&change.path),
        operation: change.operation,
        added: change.added,
        removed: change.removed,
        told: is_told(change),
    };
    Changes {
        files: changes.iter().take(LISTED).map(stat).collect(),
        count: changes.len() as u64,
        added: changes.iter().map(|change| change.added).sum(),
        removed: changes.iter().map(|change| change.removed).sum(),
    }
}

/// Changes that nobody told, as a tool would have told them.
async fn news(work: &Work, before: &str, after: &str, untold: &[&FileChange]) -> Result<Told, CheckpointError> {
    let (checkpoints, folder) = (&work.store.checkpoints, &work.store.folder);
    let paths: Vec<PathBuf> = untold.iter().map(|change| change.path.clone()).collect();
    if paths.is_empty() {
        return Ok(Told::default());
    }
    let old = checkpoints.contents(&folder.named, before, &paths).await?;
    let new = checkpoints.contents(&folder.named, after, &paths).await?;
    let changes: Vec<FileChange> = untold.iter().map(|change| (*change).clone()).collect();
    let folder = folder.clone();
    let telling = tokio::task::spawn_blocking(move || {
        let (mut told, mut left) = (Told::default(), TOLD_BYTES);
        for ((change, path), (old, new)) in changes.iter().zip(&paths).zip(old.into_iter().zip(new)) {
            let mut fact = FileChanged {
                path: folder.telling(path),
                operation: change.operation,
                before: None,
                after: None,
                added: change.added,
                removed: change.removed,
                call: None,
                diff: None,
            };
            let size = [&old, &new].into_iter().flatten().map(Vec::len).sum::<usize>();
            if size as u64 > limits::KEPT || size > left {
                told.push(Draft::tolka(fact));
                continue;
            }
            left -= size;
            fact.diff = difference(&names::told(path), old.as_deref(), new.as_deref()).map(Into::into);
            (fact.before, fact.after) = (old.as_deref().map(blob), new.as_deref().map(blob));
            told.push_contents(Draft::tolka(fact), [old, new].into_iter().flatten().collect());
        }
        told
    });
    telling.await.map_err(|_| CheckpointError::Stopped)
}

fn blob(content: &[u8]) -> BlobRef {
    BlobRef { hash: Hash::of(content), size: content.len() as u64 }
}

/// `None` where there is nothing to read.
fn difference(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Option<String> {
    fn text(side: Option<&[u8]>) -> Option<Option<&str>> {
        let Some(bytes) = side else { return Some(None) };
        std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).map(Some)
    }
    let (old, new) = (text(old)?, text(new)?);
    Some(diff::unified(path, old, new).text).filter(|text| !text.is_empty())
}

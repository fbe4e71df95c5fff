//! The points of a session that files can be compared with and brought back to: every fact that names a snapshot.

use std::path::PathBuf;

use tolka_facts::event::{Changes, KeptWhy, Moment, Overwrite};
use tolka_facts::{Event, MessageId, SessionId, Time, Tip, TurnId};
use tolka_journal::MarkKind;
use tolka_workspace::checkpoint::FileDiff;

use crate::look::Look;
use crate::rewind::{History, Kind, Study, checkpoint_error, nothing_saved, pruned};
use crate::saving::first_words;
use crate::{Desk, SessionError};

/// For people who read the commit.
const COMPARING: &str = "For a comparison";

/// A snapshot, and what it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The fact that names it.
    pub seq: u64,
    pub time: Time,
    pub checkpoint: String,
    pub kind: PointKind,
    /// What changed up to it since the one before, where that is known.
    pub changes: Option<Changes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PointKind {
    BeforeTurn {
        turn: TurnId,
        message: MessageId,
        words: String,
    },
    AfterTurn {
        turn: TurnId,
    },
    BeforeRewind,
    AfterRewind,
    Approved {
        words: Option<String>,
    },
    /// What a fork began with.
    Forked,
    Asked,
}

/// Between which two points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Between {
    /// From the session's base to the workspace as it is: what would be approved, or reset.
    SinceApproval,
    /// From the session's first snapshot that is there to the workspace as it is.
    Session,
    /// Of the turn of this prompt or answer.
    Message(MessageId),
    /// Two checkpoints of the session; without the second, the workspace as it is.
    Checkpoints(String, Option<String>),
}

impl Desk {
    /// The latest first: up to `limit` of those before `before`.
    pub async fn points(&self, session: &SessionId, before: u64, limit: usize) -> Result<Vec<Point>, SessionError> {
        let tip = self.tip(session).await?;
        let history = History::of(self.journal().clone(), &tip.head);
        let (mut points, mut before) = (Vec::new(), before);
        while points.len() < limit {
            let seqs = self.journal().marks(session, MarkKind::Point, before, limit - points.len()).await?;
            let Some(last) = seqs.last() else { break };
            before = *last;
            for seq in seqs {
                points.extend(history.point(seq).await?);
            }
        }
        Ok(points)
    }

    pub async fn differences(&self, session: &SessionId, between: Between) -> Result<Vec<FileDiff>, SessionError> {
        let tip = self.tip(session).await?;
        let study = self.study(&tip).await;
        let store = study.store()?;
        let (from, to, paths) = match between {
            Between::SinceApproval => {
                let base = tip.base.as_ref().ok_or_else(nothing_saved)?.checkpoint.clone();
                study.own_changes(base, tip.turn.is_some()).await?
            }
            Between::Session => {
                let held = study.held().await?;
                let mut commits = study.history.moments(0).await?.into_iter().filter_map(|moment| moment.commit);
                let first = commits.find(|commit| held.contains(commit));
                study.own_changes(first.ok_or_else(nothing_saved)?, tip.turn.is_some()).await?
            }
            Between::Message(message) => {
                let (from, to) = study.turn_ends(&tip, &message).await?;
                (from, to, None)
            }
            Between::Checkpoints(from, to) => {
                for commit in std::iter::once(&from).chain(&to) {
                    study.history.named(commit).await?;
                }
                let to = match to {
                    Some(to) => End::Named(to),
                    None => End::Now(study.look(COMPARING).await?),
                };
                (from, to, None)
            }
        };
        let to = to.commit();
        if from == to || paths.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Vec::new());
        }
        let held = study.held().await?;
        if ![from.as_str(), to].into_iter().all(|commit| held.contains(commit)) {
            return Err(pruned("compare with a later one"));
        }
        let diffs = store.checkpoints.diffs(&store.folder.named, &from, to, paths.as_deref()).await;
        diffs.map_err(checkpoint_error)
    }
}

/// Two commits, and the paths that count between them: all where none are named.
type Comparison = (String, End, Option<Vec<PathBuf>>);

enum End {
    Named(String),
    Now(Look),
}

impl End {
    fn commit(&self) -> &str {
        match self {
            End::Named(commit) => commit,
            End::Now(look) => &look.commit,
        }
    }
}

impl Study {
    /// What the session's turns changed since then, or may have.
    async fn own_changes(&self, from: String, is_in_turn: bool) -> Result<Comparison, SessionError> {
        let now = self.look(COMPARING).await?;
        let plan = self.plan_in(&from, &now.commit, Overwrite::Nothing, is_in_turn).await?;
        let conflicts = plan.kept.into_iter().filter(|kept| kept.why == KeptWhy::Conflict).map(|kept| kept.path);
        let paths = plan.steps.into_iter().map(|step| step.path).chain(conflicts).collect();
        Ok((from, End::Now(now), Some(paths)))
    }

    /// The snapshots before and after the turn of a message. One that runs is compared with what is there now.
    async fn turn_ends(&self, tip: &Tip, message: &MessageId) -> Result<(String, End), SessionError> {
        let start = self.history.turn_of(message).await?;
        let mut moments = self.history.moments(start).await?.into_iter();
        let before = moments.next().and_then(|moment| moment.commit);
        let none = |words: &str| SessionError::NoCheckpoint(words.to_owned());
        let before = before.ok_or_else(|| none("the snapshot before this turn failed"))?;
        if tip.turn.as_ref().is_some_and(|turn| turn.first_seq == start) {
            return Ok((before, End::Now(self.look(COMPARING).await?)));
        }
        let after = moments.next().filter(|moment| matches!(moment.kind, Kind::Ended { .. }));
        let after = after.and_then(|moment| moment.commit);
        Ok((before, End::Named(after.ok_or_else(|| none("the snapshot after this turn failed"))?)))
    }
}

impl History {
    async fn point(&self, seq: u64) -> Result<Option<Point>, SessionError> {
        let Some(fact) = self.fact(seq).await? else { return Ok(None) };
        let Some(checkpoint) = fact.event.checkpoints().here.map(str::to_owned) else { return Ok(None) };
        let (kind, changes) = match &fact.event {
            Event::TurnStarted(e) => (self.before_turn(&e.turn).await?, None),
            Event::CheckpointSaved(e) => {
                let kind = match (e.moment, &e.turn) {
                    (Some(Moment::AfterTurn), Some(turn)) => PointKind::AfterTurn { turn: turn.clone() },
                    (Some(Moment::BeforeRewind), _) => PointKind::BeforeRewind,
                    _ => PointKind::Asked,
                };
                (kind, e.changes.clone())
            }
            Event::Rewound(e) => (PointKind::AfterRewind, e.changes.clone()),
            Event::Unrewound(e) => (PointKind::AfterRewind, e.changes.clone()),
            Event::Approved(e) => (PointKind::Approved { words: e.message.clone() }, None),
            Event::SessionForked(_) => (PointKind::Forked, None),
            _ => return Ok(None),
        };
        let time = fact.time;
        Ok(Some(Point { seq, time, checkpoint, kind, changes }))
    }

    async fn before_turn(&self, turn: &TurnId) -> Result<PointKind, SessionError> {
        let prompt = self.prompt_of(turn).await?;
        let message = prompt.as_ref().map(|prompt| prompt.message.clone()).unwrap_or_default();
        let words = prompt.as_ref().map(first_words).unwrap_or_default();
        Ok(PointKind::BeforeTurn { turn: turn.clone(), message, words })
    }
}

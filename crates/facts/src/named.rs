//! Which snapshots of a workspace a fact names. One place says it: what can be gone back to, what is kept and what a fork
//! takes along all go by this.

use crate::Event;

/// The snapshots that one fact names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checkpoints<'a> {
    /// The files as they were when the fact was told: a point in the session.
    pub here: Option<&'a str>,
    /// The files before it, if it changed them.
    pub before: Option<&'a str>,
    /// What it went to.
    pub target: Option<&'a str>,
}

impl<'a> Checkpoints<'a> {
    pub fn all(self) -> impl Iterator<Item = &'a str> {
        [self.here, self.before, self.target].into_iter().flatten()
    }
}

impl Event {
    pub fn checkpoints(&self) -> Checkpoints<'_> {
        let (here, before, target) = match self {
            Event::TurnStarted(e) => (&e.checkpoint, &None, &None),
            Event::SessionForked(e) => (&e.checkpoint, &None, &None),
            Event::CheckpointSaved(e) => return Checkpoints { here: Some(&e.checkpoint), ..Checkpoints::default() },
            Event::Approved(e) => return Checkpoints { here: Some(&e.checkpoint), ..Checkpoints::default() },
            Event::RewindStarted(e) => (&None, &e.before, &e.checkpoint),
            Event::Rewound(e) => (&e.after, &e.before, &e.checkpoint),
            Event::Unrewound(e) => (&e.after, &e.before, &e.checkpoint),
            _ => return Checkpoints::default(),
        };
        Checkpoints { here: here.as_deref(), before: before.as_deref(), target: target.as_deref() }
    }
}

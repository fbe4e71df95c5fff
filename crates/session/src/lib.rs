//! The desk: every live session has one actor here, and only that actor appends to its journal.
//!
//! What must survive (the queue, the open turn, who asked what) is in the facts and nowhere else, so an
//! actor that dies is made again from the session's [`Tip`](tolka_facts::Tip): the turn that was open
//! ends as interrupted, what it left open is closed and marked as closed by us, and the queue goes on.

mod actor;
mod answer;
mod attendance;
mod clerk;
mod closing;
mod compact;
mod desk;
mod ending;
mod error;
mod family;
mod fork;
mod grounds;
mod ledger;
mod look;
mod past;
mod patience;
mod picture;
mod points;
mod processes;
mod prompt;
mod pruning;
mod rewind;
mod saving;
mod slash;
mod told;
mod turn;

pub use answer::Answer;
pub use attendance::{Attendance, Place};
pub use compact::CompactRequest;
pub use desk::{Desk, NewSession, Purge, UNNAMED};
pub use error::SessionError;
pub use fork::{ForkRequest, ForkWorkspace};
pub use points::{Between, Point, PointKind};
pub use prompt::{Accepted, PromptRequest};
pub use rewind::{Approval, Preview, RewindRequest, Rewinding, Target, Undo, What};
pub use saving::DeskOptions;

//! What can happen in a session, and nothing else: no clock, no disk, no network.
//!
//! Everything an agent does becomes a [`Fact`]: an envelope around an [`Event`]. Facts are appended to
//! a journal and never changed; every other state in the system is a fold over them. Two folds live
//! here: [`Tip`], the bounded state that encoders and the session's actor need, and [`View`], the
//! whole session for a reader who wants a snapshot.
//!
//! ```
//! use tolka_facts::{Cause, Draft, Event, PartId, SessionId, Time, Tip, event::TextAppended};
//!
//! let text = Event::TextAppended(TextAppended { part: PartId::from("prt_1"), text: "Hello".into() });
//! let fact = Draft::new(Cause::Agent, text).stamp(SessionId::from("ses_1"), 1, Time::from_millis(0));
//! let mut tip = Tip::default();
//! tip.apply(&fact);
//! assert_eq!(tip.seq, 1);
//! ```

mod block;
mod body;
mod compaction;
mod ended;
mod ending;
pub mod event;
mod fact;
mod family;
mod id;
mod json;
mod named;
mod rope;
mod time;
mod tip;
mod tool;
#[cfg(test)]
mod types;
mod uri;
mod view;

pub use block::Block;
pub use body::{BlobRef, Blobs, Body, Hash, INLINE_LIMIT, NoBlobs};
pub use compaction::{compaction_message, compaction_name};
pub use ended::EndedCalls;
pub use event::Event;
pub use fact::{Cause, Draft, Fact, FactError, VERSION};
pub use family::Subtask;
pub use id::{ArtifactId, CallId, Ids, MessageId, PartId, RequestId, SessionId, TurnId, derived_id, event_id};
pub use json::Json;
pub use named::Checkpoints;
pub use rope::{Rope, Since};
pub use time::Time;
pub use tip::{Ask, Base, Head, OpenStep, OpenText, OpenTurn, Queued, Rewind, Tip, Voice};
pub use tool::{Location, Tool, ToolContent, ToolKind, ToolStatus};
pub use uri::uri_path;
pub use view::{Message, Part, Role, Said, View};

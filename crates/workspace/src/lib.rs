//! The hands: what Tolka itself does in a folder that belongs to a person.
//!
//! [`Checkpoints`] saves a folder as it is, so that what an agent does to it can be taken back.
//! [`Folder`] reads beneath a folder and never out of it, and [`artifact_from_file`] describes what an
//! agent made there.
//!
//! Only [`files`] writes into the workspace, for an agent, and nothing of the person's own git repository is read,
//! obeyed or changed: neither its index nor its configuration, hooks and filters. Commands may.

pub mod address;
pub mod artifact;
pub mod changes;
pub mod checkpoint;
pub mod command;
pub mod diff;
pub mod edit;
pub mod files;
pub mod folder;
pub mod front;
pub mod limits;
pub mod names;
pub mod obeyed;
pub mod patch;
pub mod search;
pub mod slash;

pub use artifact::{ArtifactError, artifact_from_file};
pub use checkpoint::{Caps, CheckpointError, Checkpoints, Save, Saved};
pub use folder::{Folder, FolderError};

//! The agent of our own: a model that is asked step after step, and hands of ours that do what it calls for.
//!
//! A turn is a loop: the [model](model::Model) is sent the conversation and says text, thoughts and calls; the
//! [tools](tools::Tools) run the calls; their results go back; until it calls for nothing more. Everything on
//! the way is told as facts, and the conversation that is sent is made from those facts, so that a restart
//! loses nothing.

mod attachments;
mod compaction;
mod conversation;
pub mod demo;
mod failure;
mod instructions;
mod kind;
mod mentions;
mod mind;
pub mod model;
pub mod permission;
pub mod processes;
mod prompted;
pub mod settings;
mod spent;
mod subagents;
mod title;
#[doc(hidden)]
pub mod tools;
mod turn;
mod ways;
pub mod web;

use std::path::Path;
use std::sync::Arc;

use tolka_facts::SessionId;
use tolka_facts::event::Model;
use tolka_workspace::slash::Shelf;

use crate::{Agent, BUILD, Mind, ModeAbout, ModelAbout, PLAN, Place};
use mind::NativeMind;
use settings::Settings;
pub use ways::Reaching;

/// The native agent, by the name that it goes by: one that works with the models of `tolka.toml`, or the demo.
#[derive(Debug, Clone)]
pub struct Native {
    name: String,
    settings: Arc<Settings>,
}

impl Native {
    pub fn new(name: impl Into<String>, settings: Arc<Settings>) -> Self {
        Native { name: name.into(), settings }
    }
}

impl Agent for Native {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> Model {
        let none = || Model { provider: "none".to_owned(), id: "none".to_owned() };
        self.settings.models.first().map_or_else(none, |model| model.about().model.clone())
    }

    fn models(&self) -> Vec<ModelAbout> {
        self.settings.models.iter().map(|model| model.about().clone()).collect()
    }

    fn modes(&self) -> Vec<ModeAbout> {
        let mode =
            |name: &str, description: &str| ModeAbout { name: name.to_owned(), description: description.to_owned() };
        vec![
            mode(BUILD, "Does the work: changes files and runs commands, as far as the permissions go."),
            mode(PLAN, "Only reads and searches, and ends with a plan."),
        ]
    }

    fn subagents(&self, workspace: &Path) -> Vec<ModeAbout> {
        if self.settings.subagents.depth == 0 {
            return Vec::new();
        }
        let kinds = subagents::Subagents::of(workspace).all.into_iter();
        kinds.map(|kind| ModeAbout { name: kind.name, description: kind.description }).collect()
    }

    fn shelf(&self) -> Option<&Shelf> {
        self.settings.shelf.as_ref()
    }

    /// Tools from what they wrote, commands by looking before and after.
    fn tells_changes(&self) -> bool {
        true
    }

    fn compacts(&self) -> bool {
        true
    }

    fn is_running(&self, session: &SessionId, process: &str) -> bool {
        self.settings.processes.find(session, process).is_some_and(|process| process.ended().is_none())
    }

    fn forget(&self, session: &SessionId) {
        self.settings.processes.forget(session);
    }

    fn open(&self, place: Place) -> Box<dyn Mind> {
        Box::new(NativeMind::new(self.settings.clone(), place))
    }
}

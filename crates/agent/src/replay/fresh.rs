use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use tolka_facts::event::{PermissionAsked, QuestionAsked};
use tolka_facts::{ArtifactId, CallId, Event, Ids, MessageId, PartId, Time};

/// Gives what is recorded new ids: the same one for the same thing, and another in every playing.
#[derive(Debug)]
pub(super) struct Fresh {
    ids: Arc<Ids>,
    /// Calls keep the names that their agent gave them. When a recording starts over in its session,
    /// this sets them apart from those of the time before.
    suffix: Option<String>,
    messages: HashMap<MessageId, MessageId>,
    parts: HashMap<PartId, PartId>,
    artifacts: HashMap<ArtifactId, ArtifactId>,
}

impl Fresh {
    /// `round`: how many times the session has heard the whole recording.
    pub(super) fn new(ids: Arc<Ids>, round: u64) -> Self {
        let suffix = (round > 0).then(|| format!("~{}", round + 1));
        Fresh { ids, suffix, messages: HashMap::new(), parts: HashMap::new(), artifacts: HashMap::new() }
    }

    pub(super) fn call(&self, call: &mut CallId) {
        if let Some(suffix) = &self.suffix {
            *call = CallId::from(format!("{call}{suffix}"));
        }
    }

    /// For drafts that the interpreter made: all their other ids are new already.
    pub(super) fn calls_of(&self, event: &mut Event) {
        if let Some(call) = call_of(event) {
            self.call(call);
        }
    }

    pub(super) fn permission(&self, ask: &mut PermissionAsked, now: Time) {
        ask.request = self.ids.permission(now);
        ask.call.iter_mut().for_each(|call| self.call(call));
    }

    pub(super) fn question(&self, ask: &mut QuestionAsked, now: Time) {
        ask.request = self.ids.question(now);
        ask.call.iter_mut().for_each(|call| self.call(call));
    }

    pub(super) fn all_of(&mut self, event: &mut Event, now: Time) {
        self.calls_of(event);
        let Fresh { ids, messages, parts, artifacts, suffix } = self;
        let mut message = |id: &mut MessageId| renew(id, messages, || ids.message(now));
        let mut part = |id: &mut PartId| renew(id, parts, || ids.part(now));
        match event {
            Event::StepStarted(e) => message(&mut e.message),
            Event::StepEnded(e) => message(&mut e.message),
            Event::TextAppended(e) => part(&mut e.part),
            Event::ThoughtAppended(e) => part(&mut e.part),
            Event::ArtifactSaved(e) => {
                renew(&mut e.id, artifacts, || ids.artifact(now));
            }
            Event::CompactionStarted(e) => e.id.push_str(suffix.as_deref().unwrap_or_default()),
            Event::CompactionEnded(e) => {
                e.id.push_str(suffix.as_deref().unwrap_or_default());
                e.keeps.iter_mut().for_each(message);
            }
            _ => {}
        }
    }
}

fn renew<Id: Clone + Eq + Hash>(id: &mut Id, known: &mut HashMap<Id, Id>, mint: impl FnOnce() -> Id) {
    if let Some(fresh) = known.get(id) {
        id.clone_from(fresh);
    } else {
        let fresh = mint();
        known.insert(std::mem::replace(id, fresh.clone()), fresh);
    }
}

/// The call that an event is about. Asks are not told but asked, and stand elsewhere.
pub(super) fn call_of(event: &mut Event) -> Option<&mut CallId> {
    match event {
        Event::ToolChanged(e) => Some(&mut e.call),
        Event::InputAppended(e) => Some(&mut e.call),
        Event::OutputAppended(e) => Some(&mut e.call),
        Event::FileChanged(e) => e.call.as_mut(),
        _ => None,
    }
}

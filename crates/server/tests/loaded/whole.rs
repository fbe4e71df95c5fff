//! A session as folds over all of its facts have it.

use serde_json::{Value, json};
use tolka_dialect::agentsmithy::{History, result};
use tolka_dialect::onyx::{Profile, Rows, timestamp};
use tolka_facts::event::ArtifactSaved;
use tolka_facts::{CallId, Event, Fact, NoBlobs, Time, Tip};

pub(crate) struct Whole {
    rows: Rows,
    pub(crate) history: History,
    ended: Vec<(CallId, String)>,
    saved: Vec<(ArtifactSaved, Time, Time)>,
    tip: Tip,
}

impl Whole {
    pub(crate) fn of(facts: &[Fact]) -> Self {
        let (rows, history) = (Rows::new(Profile::Current), History::new(facts[0].session.clone()));
        let mut whole = Whole { rows, history, ended: Vec::new(), saved: Vec::new(), tip: Tip::default() };
        facts.iter().for_each(|fact| whole.apply(fact));
        whole
    }

    fn apply(&mut self, fact: &Fact) {
        self.tip.apply(fact);
        self.rows.apply(fact, &self.tip, &NoBlobs);
        self.history.apply(fact, &self.tip, &NoBlobs);
        match &fact.event {
            Event::ToolChanged(changed) => {
                let tool = self.tip.tool(&changed.call).filter(|tool| !tool.is_open());
                if let Some(tool) = tool.filter(|tool| result(tool, &self.tip.head.workspace, &NoBlobs).is_some()) {
                    // An agent that names two calls alike has one result under that name.
                    self.ended.retain(|(call, _)| *call != tool.call);
                    self.ended.push((tool.call.clone(), timestamp(tool.ended.unwrap_or(tool.first_time))));
                }
            }
            Event::ArtifactSaved(saved) => match self.saved.iter_mut().find(|(known, ..)| known.id == saved.id) {
                Some((known, _, updated)) => (*known, *updated) = (saved.clone(), fact.time),
                None => self.saved.push((saved.clone(), fact.time, fact.time)),
            },
            _ => {}
        }
    }

    pub(crate) fn messages(&self) -> Value {
        json!({ "messages": self.rows.rows().collect::<Vec<_>>() })
    }

    pub(crate) fn results(&self) -> Vec<Value> {
        self.ended.iter().map(|(call, time)| json!([call, time])).collect()
    }

    pub(crate) fn artifacts(&self) -> Value {
        let shown = self.saved.iter().map(|(saved, created, updated)| {
            json!({
                "id": saved.id,
                "session_id": self.tip.head.id,
                "type": "file",
                "name": saved.name,
                "path": saved.path,
                "preview_url": null,
                "created_at": timestamp(*created),
                "updated_at": timestamp(*updated),
            })
        });
        shown.collect()
    }
}

/// Each path as these facts saved it last, in the order of the first saves; a view without any leaves the list out.
pub(crate) fn artifacts_at(facts: &[Fact]) -> Value {
    let mut saved: Vec<&ArtifactSaved> = Vec::new();
    for fact in facts {
        let Event::ArtifactSaved(artifact) = &fact.event else { continue };
        match saved.iter_mut().find(|known| known.path == artifact.path) {
            Some(known) => *known = artifact,
            None => saved.push(artifact),
        }
    }
    if saved.is_empty() { Value::Null } else { json!(saved) }
}

//! `task`: a piece of the work is given to a subagent, a session of its own that works in the same folder. What it says last
//! is what the call gives back. While it works, whoever watches this session sees the files that it changes and what it
//! asks, and can answer it here.

mod follow;

use std::sync::Arc;

use serde_json::json;
use tolka_facts::event::{Model as ModelName, ToolChanged};
use tolka_facts::{Draft, SessionId};

use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::field::{DESCRIPTION, Fields};
use super::read::fields as map;
use crate::native::spent::Bills;
use crate::native::subagents::{Allowed, Subagents};
use crate::{Birth, Family, FamilyError, GENERAL, PLAN};
use follow::{Follower, Report};

const PROMPT: &[&str] = &["prompt", "task", "instructions"];
const KIND: &[&str] = &["subagent_type", "subagentType", "agent_type", "agent", "type"];
const RESUMED: &[&str] = &["task_id", "taskId", "session_id"];

/// Of a prompt, for a title where the model gave none.
const TITLE: usize = 50;

/// What a session's tools know of its subagents, and of it as one.
#[derive(Debug, Clone)]
pub(in crate::native) struct Home {
    /// `None`: it can have none.
    pub(in crate::native) family: Option<Arc<dyn Family>>,
    pub(in crate::native) kinds: Arc<Subagents>,
    /// The tools that it may use itself.
    pub(in crate::native) allowed: Allowed,
    /// The model that the turn is for.
    pub(in crate::native) model: ModelName,
    /// All that there are, by their names.
    pub(in crate::native) models: Vec<ModelName>,
    /// It is a subagent itself: a model wrote its prompts.
    pub(in crate::native) is_child: bool,
    /// Subagents that may work at once; the others wait.
    pub(in crate::native) at_once: usize,
    pub(in crate::native) bills: Bills,
}

impl Home {
    /// What the model is told of the kinds.
    pub(super) fn listed(&self) -> String {
        self.kinds.all.iter().map(|kind| format!("\n- {}: {}", kind.name, kind.description)).collect()
    }

    fn model(&self, wanted: Option<&str>) -> ModelName {
        let is_it = |known: &&ModelName| {
            wanted.is_some_and(|wanted| wanted == known.id || wanted == format!("{}/{}", known.provider, known.id))
        };
        self.models.iter().find(is_it).unwrap_or(&self.model).clone()
    }
}

impl From<FamilyError> for Stop {
    fn from(error: FamilyError) -> Self {
        Stop::failed(error)
    }
}

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let home = act.tools.home.as_ref();
    let Some((home, family)) = home.and_then(|home| Some((home, home.family.clone()?))) else {
        return Err(Stop::failed("no subagents can be called here; do it yourself"));
    };
    let prompt = fields.need_words(PROMPT)?;
    let (named, resumed) = (fields.words(KIND), fields.words(RESUMED).map(SessionId::from));
    // One that is taken up again stays what it is.
    let own = match &resumed {
        Some(child) => Some(family.find(child.clone()).await?),
        None => None,
    };
    if let (Some(named), Some(own)) = (&named, &own)
        && named != own
    {
        return Err(Stop::Failed(format!("that subagent is of the kind `{own}`, not `{named}`")));
    }
    let wanted = own.or(named).unwrap_or_else(|| GENERAL.to_owned());
    let Some(kind) = home.kinds.find(&wanted) else {
        let names = home.kinds.names();
        return Err(Stop::Failed(format!("there is no kind of subagent `{wanted}`; there are: {names}")));
    };
    if act.scene.mode == PLAN && !kind.only_looks() {
        return Err(Stop::Failed(format!(
            "this is plan mode, in which nothing is changed, and `{}` can change files; use one that only looks",
            kind.name
        )));
    }
    let title = fields.words(DESCRIPTION).unwrap_or_else(|| prompt.chars().take(TITLE).collect());
    act.leave(Want::look("task", &kind.name), &[]).await?;
    act.running_for_good(&title, &[]).await?;
    let birth = Birth {
        call: act.call.id.clone(),
        // As OpenCode names them: its clients find the kind in it.
        title: format!("{title} (@{} subagent)", kind.name),
        kind: kind.name.clone(),
        model: home.model(kind.model.as_deref()),
    };
    let told_model = json!({ "providerID": birth.model.provider, "modelID": birth.model.id });
    let (teller, cancel, call) = (act.scene.teller.clone(), act.scene.cancel.clone(), act.call.id.clone());
    let bills = home.bills.clone();
    let processes = act.tools.settings.processes.clone();
    let work = async move {
        let child = match resumed {
            Some(child) => child,
            None => family.bear(birth).await?,
        };
        let named = ToolChanged { subagent: Some(child.clone()), ..ToolChanged::of(call.clone()) };
        teller.tell(Draft::agent(named)).await?;
        // Nothing is begun that the call does not name, whatever becomes of us.
        teller.settled().await?;
        if cancel.is_fired() {
            return Err(Stop::Cancelled(None));
        }
        let working = family.give(child.clone(), prompt).await?;
        let followed = Follower::new(teller, cancel, call, bills).follow(working).await;
        // Nobody who watches the parent would see them.
        let left = processes.end_of(&child, "task").await;
        Ok((child, followed?, left))
    };
    let (child, report, left) = act.effect(work).await?;
    let Report { answer, note } = report;
    let mut metadata = map(json!({ "sessionId": child, "model": told_model, "truncated": false }));
    metadata.extend(note.map(|note| ("note".to_owned(), note.into())));
    let left = match left {
        0 => String::new(),
        count => {
            format!("\n\n[{count} of its processes ran in the background; what a subagent leaves running ends with it]")
        }
    };
    let output = format!("{answer}{left}\n\n<task_metadata>\nsession_id: {child}\n</task_metadata>");
    Ok(Done { title, output, metadata, shown: Some(answer), ..Done::default() })
}

//! What happened in each turn that ended, apart from ids, times, and the order of things that no client can see.

use std::collections::BTreeSet;

use tolka_dialect::{Carriage, Dialect};
use tolka_facts::event::{ModeSet, PlanEntry, PlanStatus, SessionChanged, Stop};
use tolka_facts::{Blobs, Block, CallId, Event, Fact, Tip, ToolStatus};

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gist {
    turns: Vec<Turn>,
    open: Turn,
    /// Of the whole session: not every wire says where a turn began that says nothing else.
    plans: Vec<Vec<PlanEntry>>,
    modes: Vec<String>,
    artifacts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Turn {
    /// Without line ends: some wires join the blocks of a prompt with them.
    prompt: Option<String>,
    /// What was said to it while it ran, in the same way.
    steered: Vec<String>,
    /// Which attempts came after a wait.
    retries: Vec<u64>,
    text: String,
    thought: String,
    calls: BTreeSet<CallId>,
    /// How many calls there were; ids are not on every wire.
    count: Option<usize>,
    went_well: Option<usize>,
    asked: Option<usize>,
    answered: Option<usize>,
    ended_well: Option<bool>,
    stop: Option<Stop>,
}

impl Gist {
    pub(crate) fn of(facts: &[Fact], blobs: &dyn Blobs) -> Self {
        let (mut gist, mut tip) = (Gist::default(), Tip::default());
        for fact in facts {
            tip.apply(fact);
            match &fact.event {
                Event::PlanSet(e) => gist.plans.push(e.entries.iter().map(without_cancelled).collect()),
                // Some wires tell the mode as something of the session, and again only when it changes.
                Event::ModeSet(ModeSet { mode }) | Event::SessionChanged(SessionChanged { mode: Some(mode), .. })
                    if gist.modes.last() != Some(mode) =>
                {
                    gist.modes.push(mode.clone());
                }
                Event::ArtifactSaved(e) => gist.artifacts.push(e.path.clone()),
                _ => {}
            }
            if tip.turn.is_some() || tip.ended_turn.is_some() {
                gist.hear(fact, &tip, blobs);
            }
        }
        gist
    }

    fn hear(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs) {
        let turn = &mut self.open;
        let count = |slot: &mut Option<usize>| *slot = Some(slot.unwrap_or_default() + 1);
        match &fact.event {
            Event::TurnStarted(_) => {
                *turn = Turn { prompt: Some(taken(tip, blobs)), ..Turn::default() };
            }
            // One without words is nothing to see on a wire that tells prompts by what they say.
            Event::PromptSteered(_) => turn.steered.extend(Some(taken(tip, blobs)).filter(|words| !words.is_empty())),
            Event::RetryScheduled(e) => turn.retries.push(e.attempt),
            Event::TextAppended(e) => turn.text.push_str(&e.text),
            Event::ThoughtAppended(e) => turn.thought.push_str(&e.text),
            Event::ToolChanged(e) => {
                // A call that has ended is told no more, whatever comes of it.
                if let Some(tool) = tip.tool(&e.call)
                    && turn.calls.insert(e.call.clone()) | true
                    && !tool.is_open()
                    && tool.status == ToolStatus::Completed
                {
                    count(&mut turn.went_well);
                }
            }
            Event::PermissionAsked(_) => count(&mut turn.asked),
            Event::PermissionAnswered(_) if tip.answered.is_some() => count(&mut turn.answered),
            Event::TurnEnded(e) => {
                turn.count = Some(turn.calls.len());
                turn.calls.clear();
                turn.stop = Some(e.stop);
                turn.ended_well = Some(!matches!(e.stop, Stop::Failed | Stop::Interrupted));
                self.turns.push(std::mem::take(&mut self.open));
            }
            _ => {}
        }
    }

    /// As far as dialects reach.
    pub(crate) fn within(&self, reach: Reach) -> Vec<String> {
        let shown = |turn: &Turn| {
            let mut turn = turn.clone();
            reach.cut(&mut turn);
            // Without a prompt and without anything done, an error is one between turns: it says no more than that.
            let bare = Turn { count: turn.count, ended_well: Some(false), stop: turn.stop, ..Turn::default() };
            (reach.prompts || turn != bare || turn.count > Some(0)).then(|| format!("{turn:?}"))
        };
        let beside = [
            reach.plans.then(|| format!("plans {:?}", self.plans)),
            reach.modes.then(|| format!("modes {:?}", self.modes)),
            reach.artifacts.then(|| format!("artifacts {:?}", self.artifacts)),
        ];
        self.turns.iter().filter_map(shown).chain(beside.into_iter().flatten()).collect()
    }
}

/// What the prompt says that left the queue now.
fn taken(tip: &Tip, blobs: &dyn Blobs) -> String {
    let blocks = tip.taken.iter().flat_map(|queued| &queued.prompt.content);
    let text = |block: &Block| match block {
        Block::Text { text, .. } => Some(text.text(blobs).replace('\n', "")),
        _ => None,
    };
    blocks.filter_map(text).collect()
}

/// Most wires have no word for an entry that was dropped.
fn without_cancelled(entry: &PlanEntry) -> PlanEntry {
    let status = if entry.status == PlanStatus::Cancelled { PlanStatus::Completed } else { entry.status };
    PlanEntry { status, ..entry.clone() }
}

/// What a dialect carries, by its own table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    prompts: bool,
    steering: bool,
    retries: bool,
    text: bool,
    thoughts: bool,
    calls: bool,
    /// Whether it says how a call ended.
    ends: bool,
    /// Whether it says why a turn ended, beyond whether it failed.
    stops: bool,
    plans: bool,
    modes: bool,
    asks: bool,
    answers: bool,
    artifacts: bool,
}

impl Reach {
    pub(crate) fn of(dialect: Dialect) -> Self {
        let carries = |event: &str| {
            let (_, carriage) = dialect.carriage().iter().find(|(name, _)| *name == event).unwrap();
            !matches!(carriage, Carriage::Never(_))
        };
        Reach {
            prompts: carries("prompt_queued") || carries("turn_started"),
            steering: carries("prompt_steered"),
            retries: carries("retry_scheduled"),
            text: carries("text_appended"),
            thoughts: carries("thought_appended"),
            calls: carries("tool_changed"),
            ends: dialect != Dialect::AgentSmithy,
            stops: matches!(dialect, Dialect::Acp | Dialect::Onyx(_) | Dialect::OnyxSteps | Dialect::Tolka),
            plans: carries("plan_set"),
            modes: carries("mode_set"),
            asks: carries("permission_asked"),
            answers: carries("permission_answered"),
            artifacts: carries("artifact_saved"),
        }
    }

    pub(crate) fn and(self, other: Reach) -> Self {
        Reach {
            prompts: self.prompts && other.prompts,
            steering: self.steering && other.steering,
            retries: self.retries && other.retries,
            text: self.text && other.text,
            thoughts: self.thoughts && other.thoughts,
            calls: self.calls && other.calls,
            ends: self.ends && other.ends,
            stops: self.stops && other.stops,
            plans: self.plans && other.plans,
            modes: self.modes && other.modes,
            asks: self.asks && other.asks,
            answers: self.answers && other.answers,
            artifacts: self.artifacts && other.artifacts,
        }
    }

    fn cut(self, turn: &mut Turn) {
        turn.prompt.take_if(|_| !self.prompts);
        if !self.steering {
            turn.steered.clear();
        }
        if !self.retries {
            turn.retries.clear();
        }
        if !self.text {
            turn.text.clear();
        }
        if !self.thoughts {
            turn.thought.clear();
        }
        turn.count.take_if(|_| !self.calls);
        turn.went_well.take_if(|_| !self.calls || !self.ends);
        turn.stop.take_if(|_| !self.stops);
        turn.asked.take_if(|_| !self.asks);
        turn.answered.take_if(|_| !self.answers);
    }
}

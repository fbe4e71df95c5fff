//! The actor's hold on the journal: drafts go in, facts come out, and the tip is always the state after
//! the last fact that is durable.

use std::sync::Arc;

use tolka_facts::{Draft, Event, Fact, Hash, INLINE_LIMIT, SessionId, Time, Tip};
use tolka_journal::{Append, Journal, JournalError, Kept, Mark, Scope, TIP};

/// A stream is taken up from a kept state; folding 512 facts takes a millisecond or so.
const KEEP_EVERY: u64 = 512;
const PAGE: usize = 512;

pub(crate) struct Ledger {
    journal: Arc<dyn Journal>,
    session: SessionId,
    pub(crate) tip: Tip,
    kept: u64,
    kept_idle: u64,
    /// Where a state was last found too large to keep; weighing it again at every append would cost more than it saves.
    weighed: u64,
    /// Bytes journalled since a state was kept: a state that is larger than that waits, so that states
    /// never take more room than facts.
    since_kept: usize,
}

impl Ledger {
    pub(crate) fn new(journal: Arc<dyn Journal>, session: SessionId) -> Self {
        Ledger { journal, session, tip: Tip::default(), kept: 0, kept_idle: 0, weighed: 0, since_kept: 0 }
    }

    /// The session as its facts left it. A session without facts has a tip at 0.
    pub(crate) async fn load(journal: Arc<dyn Journal>, session: SessionId) -> Result<Self, JournalError> {
        let mut ledger = Ledger::new(journal, session);
        if let Some(kept) = ledger.journal.kept(&ledger.session, TIP, u64::MAX, false).await? {
            // A state of another version is no loss: the facts are still there.
            ledger.tip = serde_json::from_slice(&kept.state).unwrap_or_default();
            ledger.kept = ledger.tip.seq;
            ledger.kept_idle = if kept.idle { ledger.tip.seq } else { 0 };
        }
        let scope = Scope::Session(ledger.session.clone());
        loop {
            let page = ledger.journal.read(&scope, ledger.tip.seq, PAGE).await?;
            if page.is_empty() {
                return Ok(ledger);
            }
            page.iter().for_each(|entry| ledger.tip.apply(&entry.fact));
        }
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Makes the drafts durable, all or none. On an error nothing has changed, and the drafts come back.
    pub(crate) async fn append(&mut self, drafts: Vec<Draft>) -> Result<(), (Vec<Draft>, JournalError)> {
        if drafts.is_empty() {
            return Ok(());
        }
        // No fact is earlier than the one before it, whatever the machine's clock does.
        let time = Time::now().max(self.tip.time);
        let mut batch = Append::default();
        let mut tip = self.tip.clone();
        let mut bytes = 0;
        for draft in drafts.iter().cloned().flat_map(split_long_text) {
            let mut draft = draft;
            draft.spill(&mut |content| batch.blobs.push((Hash::of(content), content.to_vec())));
            let fact = draft.stamp(self.session.clone(), tip.seq + 1, time);
            tip.apply(&fact);
            mark(&fact, &tip, &mut batch.marks);
            bytes += estimated_size(&fact);
            batch.facts.push(Arc::new(fact));
        }
        // Lists need it only when it changed, and most facts are words.
        batch.head = (tip.head != self.tip.head).then(|| tip.head.clone());
        batch.tip = self.state_to_keep(&tip, self.since_kept + bytes);
        let kept = batch.tip.as_ref().map(|kept| kept.idle);
        self.journal.append(batch).await.map_err(|error| (drafts, error))?;
        self.tip = tip;
        self.since_kept += bytes;
        if let Some(idle) = kept {
            self.kept = self.tip.seq;
            self.since_kept = 0;
            if idle {
                self.kept_idle = self.tip.seq;
            }
        }
        Ok(())
    }

    fn state_to_keep(&mut self, tip: &Tip, since_kept: usize) -> Option<Kept> {
        let idle = tip.is_idle();
        let due = tip.seq - self.kept >= KEEP_EVERY || (idle && tip.seq - self.kept_idle >= KEEP_EVERY);
        if !due || tip.seq - self.weighed < KEEP_EVERY {
            return None;
        }
        self.weighed = tip.seq;
        let state = serde_json::to_vec(tip).ok()?;
        (state.len() <= since_kept).then_some(Kept { seq: tip.seq, idle, state })
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("session", &self.session).field("seq", &self.tip.seq).finish_non_exhaustive()
    }
}

/// Names that clients look things up by.
fn mark(fact: &Fact, tip: &Tip, marks: &mut Vec<(String, u64)>) {
    let mut set = |mark: Mark<'_>| marks.push((mark.to_string(), fact.seq));
    match &fact.event {
        Event::PromptQueued(e) => {
            set(Mark::Prompt(&e.turn));
            set(Mark::Message(&e.message));
            e.key.iter().for_each(|key| set(Mark::Key(key)));
        }
        Event::TurnStarted(e) => set(Mark::TurnStart(&e.turn)),
        Event::TurnEnded(e) => set(Mark::TurnEnd(&e.turn)),
        // An update that comes late changes nothing, and a tip does not know its call.
        Event::ToolChanged(e) if tip.tool(&e.call).is_some_and(|tool| !tool.is_open()) => set(Mark::CallEnd(&e.call)),
        Event::ArtifactSaved(e) => {
            set(Mark::Artifact(&e.path));
            set(Mark::Save(fact.seq));
        }
        Event::PermissionAsked(e) => set(Mark::Ask(&e.request)),
        Event::QuestionAsked(e) => set(Mark::Ask(&e.request)),
        Event::PermissionAnswered(e) => set(Mark::Answer(&e.request)),
        Event::QuestionAnswered(e) => set(Mark::Answer(&e.request)),
        Event::MessageHidden(e) => set(Mark::Hidden(&e.message)),
        Event::Rewound(_) => set(Mark::Rewound(fact.seq)),
        Event::SessionChosen(_) => set(Mark::Chosen),
        _ => {}
    }
}

/// Text needs no blob: it is cut into facts that are short enough, and what the agent sent stays with the first.
fn split_long_text(mut draft: Draft) -> Vec<Draft> {
    let Some(text) = text_of(&mut draft.event).filter(|text| text.len() > INLINE_LIMIT) else { return vec![draft] };
    let whole = std::mem::take(text);
    let (mut rest, mut drafts) = (whole.as_str(), Vec::new());
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(rest.floor_char_boundary(INLINE_LIMIT));
        let mut event = draft.event.clone();
        text_of(&mut event).into_iter().for_each(|text| piece.clone_into(text));
        drafts.push(Draft { cause: draft.cause, event, raw: draft.raw.take() });
        rest = tail;
    }
    drafts
}

fn text_of(event: &mut Event) -> Option<&mut String> {
    match event {
        Event::TextAppended(e) => Some(&mut e.text),
        Event::ThoughtAppended(e) => Some(&mut e.text),
        Event::OutputAppended(e) => Some(&mut e.text),
        Event::InputAppended(e) => Some(&mut e.text),
        _ => None,
    }
}

/// Good enough to weigh a state against; the journal knows the true size.
fn estimated_size(fact: &Fact) -> usize {
    let text = match &fact.event {
        Event::TextAppended(e) => e.text.len(),
        Event::ThoughtAppended(e) => e.text.len(),
        Event::OutputAppended(e) => e.text.len(),
        _ => 512,
    };
    160 + text + fact.raw.as_ref().map_or(0, |raw| raw.get().len())
}

#[cfg(test)]
mod tests {
    use tolka_facts::event::{
        ArtifactKind, ArtifactSaved, PromptQueued, Stop, TextAppended, ToolChanged, TurnEnded, TurnStarted,
    };
    use tolka_facts::{CallId, ToolStatus};
    use tolka_journal::{Sqlite, SqliteOptions, tip_at};

    use super::*;

    fn started(turn: &str) -> [Draft; 2] {
        let queued = PromptQueued {
            turn: turn.into(),
            message: "msg".into(),
            content: Vec::new(),
            key: None,
            agent: None,
            model: None,
            context: None,
        };
        [Draft::agent(queued), Draft::agent(TurnStarted { turn: turn.into(), checkpoint: None })]
    }

    fn changed(title: &str, status: ToolStatus) -> Draft {
        Draft::agent(ToolChanged {
            call: "call".into(),
            name: None,
            kind: None,
            title: Some(title.to_owned()),
            status: Some(status),
            input: None,
            output: None,
            content: None,
            locations: None,
            error: None,
            meta: None,
        })
    }

    fn ended(turn: &str) -> Draft {
        Draft::agent(TurnEnded { turn: turn.into(), stop: Stop::EndTurn, usage: None, cost: None, meta: None })
    }

    fn saved(path: &str) -> Draft {
        Draft::agent(ArtifactSaved {
            id: "art".into(),
            kind: ArtifactKind::File,
            name: path.to_owned(),
            path: path.to_owned(),
            mime: "a/b".to_owned(),
            size: 1,
            preview: None,
        })
    }

    #[tokio::test]
    async fn a_call_is_found_where_it_last_ended_and_an_artifact_by_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let journal: Arc<dyn Journal> = Sqlite::open(&SqliteOptions::new(dir.path())).unwrap();
        let (session, call) = (SessionId::from("ses_1"), CallId::from("call"));
        let mut ledger = Ledger::new(journal.clone(), session.clone());
        let mark = async |mark: Mark<'_>| journal.mark(&session, &mark.to_string()).await.unwrap();

        ledger.append(started("trn_1").into()).await.unwrap();
        ledger.append(vec![changed("one", ToolStatus::Running)]).await.unwrap();
        assert_eq!(mark(Mark::CallEnd(&call)).await, None, "it still runs");
        ledger.append(vec![changed("one", ToolStatus::Completed), changed("late", ToolStatus::Failed)]).await.unwrap();
        assert_eq!(mark(Mark::CallEnd(&call)).await, Some(4), "what is late ends nothing");
        ledger.append(vec![saved("out/"), ended("trn_1")]).await.unwrap();

        // Long enough for a tip to be kept inside the turn.
        ledger.append(started("trn_2").into()).await.unwrap();
        ledger.append(vec![changed("two", ToolStatus::Running)]).await.unwrap();
        for _ in 0..3 {
            let text = Draft::agent(TextAppended { part: "prt".into(), text: "words ".repeat(8) });
            ledger.append(vec![text; 400]).await.unwrap();
        }
        ledger.append(vec![changed("two", ToolStatus::Failed), saved("out/"), ended("trn_2")]).await.unwrap();
        let end = 10 + 3 * 400 + 1;
        assert_eq!(mark(Mark::CallEnd(&call)).await, Some(end));
        assert_eq!((mark(Mark::Artifact("out/")).await, mark(Mark::Artifact("out")).await), (Some(6), None));
        let kept = journal.kept(&session, TIP, end, false).await.unwrap();
        assert!(kept.is_some_and(|kept| !kept.idle && end - kept.seq < 2 * KEEP_EVERY));
        let facts = journal.read(&Scope::Session(session.clone()), 0, 4096).await.unwrap();
        for seq in [1, 4, 5, end - 1, end, end + 2] {
            let mut folded = Tip::default();
            facts.iter().take_while(|entry| entry.place <= seq).for_each(|entry| folded.apply(&entry.fact));
            assert_eq!(tip_at(journal.as_ref(), &session, seq).await.unwrap(), folded, "after fact {seq}");
        }
        let tip = tip_at(journal.as_ref(), &session, end).await.unwrap();
        assert_eq!(tip.tool(&call).map(|tool| (tool.title.as_str(), tool.status)), Some(("two", ToolStatus::Failed)));
    }
}

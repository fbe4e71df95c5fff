//! An append, made ready by the one who asks for it, so that the writer's thread does nothing but write.

use std::sync::Arc;

use tolka_facts::event::ParentKind;
use tolka_facts::{Event, Fact, Hash, Head, SessionId};

use crate::{Append, JournalError, Kept};

/// What a body takes as a rule, in bytes: a few words with their envelope.
const USUAL_BODY: usize = 256;

#[derive(Debug)]
pub(super) struct Batch {
    pub(super) session: SessionId,
    /// Never empty, of one session, gapless, from 1 or above.
    facts: Vec<Arc<Fact>>,
    /// All bodies, one after the other: one allocation for a batch.
    bodies: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    /// The blobs that the facts refer to, whoever brought them: a fork refers to its parent's.
    pub(super) refs: Vec<String>,
    pub(super) blobs: Vec<(Hash, Vec<u8>)>,
    pub(super) marks: Vec<(String, u64)>,
    pub(super) head: Option<HeadRow>,
    pub(super) tip: Option<Kept>,
}

/// A session's head, and of it what lists are sorted and filtered by.
#[derive(Debug)]
pub(super) struct HeadRow {
    pub(super) workspace: String,
    pub(super) updated: u64,
    pub(super) deleted: bool,
    /// A restart has something to take up: an open turn, or prompts that wait.
    pub(super) open: bool,
    pub(super) archived: bool,
    /// The session that it comes from; empty if from none.
    pub(super) parent: String,
    pub(super) subagent: bool,
    pub(super) json: Vec<u8>,
}

impl HeadRow {
    pub(super) fn new(head: &Head) -> Self {
        HeadRow {
            workspace: head.workspace.clone(),
            updated: head.updated.micros(),
            deleted: head.deleted,
            open: head.busy || head.queued > 0 || head.processes > 0,
            archived: head.archived,
            parent: head.parent.as_ref().map(|parent| parent.session.to_string()).unwrap_or_default(),
            subagent: head.parent.as_ref().is_some_and(|parent| parent.kind == ParentKind::Subagent),
            // A head has string keys only, and writing to a Vec cannot fail.
            json: serde_json::to_vec(head).unwrap_or_default(),
        }
    }
}

impl Batch {
    /// `None`: there is nothing to append.
    pub(super) fn prepare(append: Append) -> Result<Option<Self>, JournalError> {
        let Append { facts, blobs, marks, head, tip } = append;
        let Some(first) = facts.first().map(Arc::clone) else {
            let nothing = blobs.is_empty() && marks.is_empty() && head.is_none() && tip.is_none();
            return if nothing { Ok(None) } else { Err(malformed("an append without facts belongs to no session")) };
        };
        if first.seq == 0 {
            return Err(malformed("facts are counted from 1"));
        }
        let (mut bodies, mut ends) = (Vec::with_capacity(facts.len() * USUAL_BODY), Vec::with_capacity(facts.len()));
        let mut refs = Vec::new();
        for (seq, fact) in (first.seq..).zip(&facts) {
            if fact.session != first.session {
                return Err(malformed("an append with facts of two sessions"));
            }
            if fact.seq != seq {
                let session = first.session.clone();
                return Err(JournalError::Conflict { session, expected: fact.seq.saturating_sub(1), actual: seq - 1 });
            }
            let start = bodies.len();
            fact.write_json(&mut bodies);
            ends.push(bodies.len());
            if !is_words(fact) {
                let body = std::str::from_utf8(&bodies[start..]).unwrap_or_default();
                refs.extend(Fact::blobs_in(body).map(str::to_owned));
            }
        }
        refs.extend(blobs.iter().map(|(hash, _)| hash.as_str().to_owned()));
        refs.sort_unstable();
        refs.dedup();
        let head = head.as_ref().map(HeadRow::new);
        Ok(Some(Batch { session: first.session.clone(), facts, bodies, ends, refs, blobs, marks, head, tip }))
    }

    pub(super) fn facts(&self) -> &[Arc<Fact>] {
        &self.facts
    }

    pub(super) fn first(&self) -> &Fact {
        &self.facts[0]
    }

    pub(super) fn is_delete(&self) -> bool {
        self.facts.iter().any(|fact| matches!(fact.event, Event::SessionDeleted(_)))
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.first().seq + self.facts.len() as u64 - 1
    }

    pub(super) fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bodies[start..*end])
    }

    /// What it adds to the memory of a group, and to its transaction.
    pub(super) fn bytes(&self) -> usize {
        self.bodies.len() + self.blobs.iter().map(|(_, content)| content.len()).sum::<usize>()
    }
}

/// Most facts are: a text that grew, which stands in the fact itself. Nothing in one refers to a blob, so nobody need look.
fn is_words(fact: &Fact) -> bool {
    use Event::{InputAppended, OutputAppended, TextAppended, ThoughtAppended};
    let grows = matches!(fact.event, TextAppended(_) | ThoughtAppended(_) | InputAppended(_) | OutputAppended(_));
    grows && fact.raw.is_none()
}

fn malformed(detail: &str) -> JournalError {
    JournalError::Malformed { detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tolka_facts::event::{Foreign, ToolChanged};
    use tolka_facts::{Draft, Json, Time};

    #[test]
    fn finds_every_blob_that_a_fact_refers_to() {
        let long = |text: &str| text.repeat(40_000);
        let tool = ToolChanged {
            input: Some(Json::of(&long("a"))),
            error: Some(long("b").into()),
            ..ToolChanged::of("call".into())
        };
        let foreign = Foreign { origin: "test".into(), what: "it".into() };
        let mut drafts = [Draft::agent(tool), Draft::agent(foreign).with_raw(Json::of(&long("c")))];
        let mut spilled = Vec::new();
        drafts.iter_mut().for_each(|draft| draft.spill(&mut |content| spilled.push(Hash::of(content))));
        let session = SessionId::from("ses_1");
        let facts: Vec<_> = (1..)
            .zip(drafts)
            .map(|(seq, draft)| Arc::new(draft.stamp(session.clone(), seq, Time::from_millis(seq))))
            .collect();
        let batch = Batch::prepare(Append { facts, ..Append::default() }).unwrap().unwrap();
        let mut spilled: Vec<_> = spilled.iter().map(|hash| hash.as_str().to_owned()).collect();
        spilled.sort();
        assert_eq!(batch.refs, spilled);
        assert_eq!(spilled.len(), 3);
        assert_eq!(batch.bodies().map(Fact::from_json).filter_map(Result::ok).count(), 2);
    }
}

//! Subagents: sessions that another session's mind has made for a piece of its work. Each is a session like any other, with
//! an actor and a journal of its own; what makes it a child is its parent in its first fact, and that its work ends when its
//! parent's does.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tolka_agent::{Birth, Child, Family, FamilyError, Raising};
use tolka_facts::event::{Parent, ParentKind, PromptDropped, SessionCreated};
use tolka_facts::{Block, Draft, Event, Fact, Head, RequestId, SessionId, TurnId};
use tolka_journal::{Entry, Journal, JournalError, Kin, Scope, SessionQuery};

use crate::actor::Actor;
use crate::attendance::Led;
use crate::past::JournalBlobs;
use crate::rewind::History;
use crate::{Desk, PromptRequest, SessionError};

/// Nobody's subagents have subagents so deep; a chain of parents that goes on is damaged.
const DEEPEST: u32 = 16;
const PAGE: usize = 256;
/// The key of a prompt that a parent gave begins so, and no client's does.
pub(crate) const TASK: &str = "tolka:task:";

/// The session that it works for, if it is a subagent's.
pub(crate) fn parent_of(head: &Head) -> Option<&SessionId> {
    head.parent.as_ref().filter(|parent| parent.kind == ParentKind::Subagent).map(|parent| &parent.session)
}

/// One session's subagents.
#[derive(Debug)]
pub(crate) struct Children {
    desk: Desk,
    parent: SessionId,
}

fn failed(error: impl Into<SessionError>) -> FamilyError {
    FamilyError(format!("a subagent cannot work now: {}", error.into()))
}

impl Family for Children {
    fn bear(&self, birth: Birth) -> Raising<'_, SessionId> {
        Box::pin(async move {
            let parent = self.desk.tip(&self.parent).await.map_err(failed)?.head;
            let created = SessionCreated {
                workspace: parent.workspace,
                agent: parent.agent,
                title: birth.title,
                mode: Some(birth.kind),
                model: Some(birth.model),
                parent: Some(Parent {
                    session: self.parent.clone(),
                    kind: ParentKind::Subagent,
                    at: None,
                    call: Some(birth.call),
                }),
            };
            let tip = self.desk.begin(Draft::agent(created)).await.map_err(failed)?;
            Ok(tip.head.id)
        })
    }

    fn find(&self, child: SessionId) -> Raising<'_, String> {
        Box::pin(async move {
            let tip = self.desk.tip(&child).await.ok().filter(|tip| parent_of(&tip.head) == Some(&self.parent));
            let Some(tip) = tip else {
                return Err(FamilyError(format!("{child} is no subagent of this session; leave `task_id` out")));
            };
            if tip.head.busy || !tip.queue.is_empty() {
                return Err(FamilyError(format!(
                    "the subagent {child} is still at work; wait for it, or call another"
                )));
            }
            // One without a kind was made by a client, for a person.
            let none = || FamilyError(format!("{child} was not made by `task`; leave `task_id` out"));
            tip.head.mode.ok_or_else(none)
        })
    }

    fn give(&self, child: SessionId, task: String) -> Raising<'_, Box<dyn Child>> {
        Box::pin(async move {
            let led = self.desk.room().lead(child.clone(), self.parent.clone());
            // From before the task is sent: should we be dropped before it is known to be taken, the child must not do it.
            let mut hold = Hold { desk: self.desk.clone(), child: child.clone(), is_over: false };
            // Of its own for each: calls of two turns may have one name.
            let key = Some(format!("{TASK}{}", self.desk.new_session_id()));
            let content = vec![Block::text(task)];
            let request = PromptRequest { content, key, is_models: true, ..PromptRequest::default() };
            let accepted = self.desk.prompt(&child, request).await;
            hold.is_over = accepted.is_err();
            let accepted = accepted.map_err(failed)?;
            let scope = Scope::Session(child);
            let journal = self.desk.journal().clone();
            Ok(Box::new(Work {
                head: journal.watch(&scope),
                hold,
                turn: accepted.turn,
                scope,
                at: accepted.seq,
                journal,
                read: VecDeque::new(),
                has_begun: false,
                _led: led,
            }) as Box<dyn Child>)
        })
    }
}

/// A child's turn, as its parent follows it.
struct Work {
    hold: Hold,
    journal: Arc<dyn Journal>,
    scope: Scope,
    turn: TurnId,
    /// The last fact that was read.
    at: u64,
    head: watch::Receiver<u64>,
    read: VecDeque<Entry>,
    has_begun: bool,
    /// Whoever is there for the parent could answer for the child.
    _led: Led,
}

/// What holds a child to its parent: whatever becomes of the one that follows it, the child does not work on alone.
struct Hold {
    desk: Desk,
    child: SessionId,
    /// The child's turn has ended, or will never begin.
    is_over: bool,
}

impl Hold {
    async fn cancel(desk: &Desk, child: &SessionId) -> Result<(), SessionError> {
        let cancelled = match desk.cancel(child, true).await {
            // A disk that is full may not let the queue be dropped; what runs can be ended all the same.
            Err(SessionError::Journal(_)) => desk.cancel(child, false).await,
            cancelled => cancelled,
        };
        match cancelled {
            // Whatever else ends it is told as well.
            Ok(_) | Err(SessionError::ShuttingDown | SessionError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Without a runtime there is no child either.
        if self.is_over || Handle::try_current().is_err() {
            return;
        }
        let (desk, child) = (self.desk.clone(), self.child.clone());
        // Shutting down ends all that works.
        let _ = self.desk.spawn_task(async move {
            if let Err(error) = Hold::cancel(&desk, &child).await {
                tracing::warn!(%child, %error, "a subagent works on although nobody follows it");
            }
        });
    }
}

impl Child for Work {
    fn next(&mut self) -> Raising<'_, Option<Arc<Fact>>> {
        Box::pin(async move {
            loop {
                while let Some(entry) = self.read.front() {
                    let fact = match self.concerns(&entry.fact) {
                        true => Some(self.whole(&entry.fact).await),
                        false => None,
                    };
                    self.has_begun |= matches!(&entry.fact.event, Event::TurnStarted(e) if e.turn == self.turn);
                    self.hold.is_over |= self.ends(&entry.fact.event);
                    self.read.pop_front();
                    if fact.is_some() {
                        return Ok(fact);
                    }
                }
                let page = match self.journal.recent(&self.scope, self.at, PAGE) {
                    Some(page) => page,
                    None => self.journal.read(&self.scope, self.at, PAGE).await.map_err(failed)?,
                };
                self.at = page.last().map_or(self.at, |entry| entry.place);
                self.read.extend(page);
                if self.read.is_empty() && self.head.wait_for(|head| *head > self.at).await.is_err() {
                    return Ok(None);
                }
            }
        })
    }

    fn cancel(&self) -> Raising<'_, ()> {
        Box::pin(async { Hold::cancel(&self.hold.desk, &self.hold.child).await.map_err(failed) })
    }
}

impl Work {
    fn ends(&self, event: &Event) -> bool {
        match event {
            Event::SessionDeleted(_) => true,
            Event::PromptDropped(e) => e.turn == self.turn,
            Event::TurnEnded(e) => e.turn == self.turn,
            _ => false,
        }
    }

    fn concerns(&self, fact: &Fact) -> bool {
        match &fact.event {
            Event::SessionDeleted(_) => true,
            Event::PromptDropped(e) => e.turn == self.turn,
            Event::TurnStarted(e) => e.turn == self.turn,
            _ => self.has_begun,
        }
    }

    /// With what its metadata holds: told once more, a reference would be one to a reference.
    async fn whole(&self, fact: &Arc<Fact>) -> Arc<Fact> {
        let Event::PermissionAsked(ask) = &fact.event else { return fact.clone() };
        let Some(metadata) = ask.metadata.clone().filter(|metadata| metadata.blob().is_some()) else {
            return fact.clone();
        };
        let journal = self.journal.clone();
        let read = tokio::task::spawn_blocking(move || metadata.whole(&JournalBlobs(journal)).into_owned());
        let mut ask = ask.clone();
        // It fails only if the runtime is going down.
        ask.metadata = read.await.ok();
        Arc::new(Fact { event: ask.into(), ..(**fact).clone() })
    }
}

impl History {
    /// Those of the given sessions that this one works for, or that work for it.
    pub(crate) async fn family<'a>(
        &self,
        heads: impl Iterator<Item = &'a Head>,
    ) -> Result<HashSet<SessionId>, JournalError> {
        let mut family = HashSet::new();
        let mut above = self.journal.session(&self.session).await?;
        while let Some(parent) = above.as_ref().and_then(|row| parent_of(&row.head)).cloned() {
            if !family.insert(parent.clone()) {
                break;
            }
            above = self.journal.session(&parent).await?;
        }
        let parents: HashMap<&SessionId, &SessionId> =
            heads.filter_map(|head| Some((&head.id, parent_of(head)?))).collect();
        for child in parents.keys() {
            let line = std::iter::successors(parents.get(*child), |session| parents.get(**session));
            if line.take(DEEPEST as usize).any(|session| **session == self.session) {
                family.insert((*child).clone());
            }
        }
        Ok(family)
    }
}

impl Actor {
    /// A task that a parent gave and that had not begun when the server was killed: nobody waits for it any more.
    pub(crate) async fn drop_orphans(&mut self) {
        let is_task = |key: &Option<String>| key.as_ref().is_some_and(|key| key.starts_with(TASK));
        let waiting = self.clerk.tip().queue.iter().map(|queued| &queued.prompt).filter(|prompt| is_task(&prompt.key));
        let drop = |turn: TurnId| Draft::tolka(PromptDropped { turn });
        let drafts: Vec<Draft> = waiting.map(|prompt| drop(prompt.turn.clone())).collect();
        if !drafts.is_empty() {
            self.clerk.append_or_keep(drafts).await;
        }
    }

    /// How the mind of this session has subagents, and how deep it stands itself.
    pub(crate) async fn family(&mut self) -> (Option<Arc<dyn Family>>, u32) {
        let depth = self.desk.depth(&self.clerk.tip().head).await;
        (Some(Arc::new(Children { desk: self.desk.clone(), parent: self.session.clone() })), depth)
    }
}

impl Desk {
    async fn depth(&self, head: &Head) -> u32 {
        let (mut depth, mut parent) = (0, parent_of(head).cloned());
        while let Some(session) = parent.take().filter(|_| depth < DEEPEST) {
            depth += 1;
            // Of a parent that is gone nothing more is known; its child is one all the same.
            let row = self.journal().session(&session).await.ok().flatten();
            parent = row.and_then(|row| parent_of(&row.head).cloned());
        }
        depth
    }

    /// Its subagents, theirs not included.
    pub(crate) async fn children(&self, session: &SessionId, deleted: bool) -> Result<Vec<SessionId>, JournalError> {
        let query = SessionQuery { kin: Kin::ChildrenOf(session.clone()), deleted, ..SessionQuery::default() };
        let rows = self.journal().sessions(query).await?.into_iter();
        Ok(rows.filter(|row| parent_of(&row.head) == Some(session)).map(|row| row.head.id).collect())
    }

    /// Its subagents and theirs, the nearest first.
    pub(crate) async fn descendants(&self, session: &SessionId, deleted: bool) -> Result<Vec<SessionId>, JournalError> {
        let mut all = self.children(session, deleted).await?;
        let mut at = 0;
        while let Some(child) = all.get(at).cloned() {
            at += 1;
            let more = self.children(&child, deleted).await?;
            all.extend(more.into_iter().filter(|id| id != session && !all.contains(id)).collect::<Vec<_>>());
        }
        Ok(all)
    }

    /// The session that can answer a request: where a subagent's is told in its parent too, the subagent's.
    pub(crate) async fn asker(&self, session: &SessionId, request: &RequestId) -> Result<SessionId, SessionError> {
        let mut asker = session.clone();
        for _ in 0..DEEPEST {
            let tip = self.tip(&asker).await?;
            let ask = tip.asks().find(|ask| ask.request() == request);
            let Some(child) = ask.and_then(|ask| tip.asked_in(ask)).cloned() else { break };
            // An agent may say what it likes of its calls; an answer leaves its session for those that work for it only.
            let row = self.journal().session(&child).await?;
            if row.is_none_or(|row| parent_of(&row.head) != Some(&asker)) {
                break;
            }
            asker = child;
        }
        Ok(asker)
    }
}

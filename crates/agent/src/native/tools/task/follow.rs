//! A subagent at work, heard from the call that it works for: what concerns whoever watches the parent is told there too.

use std::collections::HashMap;

use tolka_facts::event::{
    Failed, FileChanged, OutputAppended, PermissionAsked, QuestionAsked, Stop as Stopped, ToolChanged, TurnEnded,
};
use tolka_facts::{CallId, Draft, Event, Fact, NoBlobs, PartId, RequestId, Tool, ToolStatus};

use super::super::act::Stop;
use super::super::outcome;
use crate::native::spent::{Bills, Spent, Used};
use crate::waits::Wait;
use crate::{Cancel, Child, Gone, Teller};

/// Of the last answer; a model is sent less of it.
const LONGEST: usize = 256 * 1024;
/// Calls that are open at once in a sane turn.
const CALLS: usize = 256;

/// What a subagent's turn came to.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) answer: String,
    /// What the answer alone does not say.
    pub(super) note: Option<String>,
}

pub(super) struct Follower {
    teller: Teller,
    cancel: Cancel,
    call: CallId,
    /// What it asks and nobody has answered.
    asked: HashMap<RequestId, Wait>,
    calls: HashMap<CallId, Tool>,
    answer: Answer,
    failure: Option<Failed>,
    /// A person said no to it, and nothing more.
    is_rejected: bool,
    bill: Bill,
}

/// What the child's turn takes, for the parent to count: whoever pays for the parent pays for it.
struct Bill {
    bills: Bills,
    used: Spent,
}

impl Bill {
    fn hear(&mut self, event: &Event) {
        match event {
            Event::StepEnded(e) => self.used.add(Used { usage: e.usage, cost: e.cost }),
            Event::CompactionEnded(e) => self.used.add(Used { usage: e.usage, cost: e.cost }),
            // Its own end knows better, with what was done for it by others.
            Event::TurnEnded(e) if e.usage.is_some() => {
                self.used = Spent::default();
                self.used.add(Used { usage: e.usage, cost: e.cost });
            }
            _ => {}
        }
    }
}

/// However it ended, what it took was taken.
impl Drop for Bill {
    fn drop(&mut self) {
        let used = Used { usage: self.used.usage, cost: self.used.cost };
        if used != Used::default() {
            self.bills.add(used);
        }
    }
}

/// What it said last: the words of the last step that had any.
#[derive(Debug, Default)]
struct Answer {
    text: String,
    part: Option<PartId>,
    is_over: bool,
}

impl Answer {
    fn add(&mut self, part: &PartId, text: &str) {
        if std::mem::take(&mut self.is_over) {
            self.text.clear();
            self.part = None;
        }
        if self.part.as_ref().is_some_and(|known| known != part) {
            self.text.push_str("\n\n");
        }
        self.part = Some(part.clone());
        let room = LONGEST.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }
}

impl Follower {
    pub(super) fn new(teller: Teller, cancel: Cancel, call: CallId, bills: Bills) -> Self {
        Follower {
            teller,
            cancel,
            call,
            asked: HashMap::new(),
            calls: HashMap::new(),
            answer: Answer::default(),
            failure: None,
            is_rejected: false,
            bill: Bill { bills, used: Spent::default() },
        }
    }

    /// To the end of the child's turn. When the parent's is stopped the child is, and is still heard out: what it changed is
    /// the parent's.
    pub(super) async fn follow(mut self, mut child: Box<dyn Child>) -> Result<Report, Stop> {
        let cancel = self.cancel.clone();
        let mut is_cancelled = false;
        loop {
            let fact = tokio::select! {
                biased;
                () = cancel.fired(), if !is_cancelled => {
                    is_cancelled = true;
                    if let Err(error) = child.cancel().await {
                        tracing::warn!(%error, "a subagent works on although its parent was stopped");
                    }
                    continue;
                }
                fact = child.next() => fact?,
            };
            let Some(fact) = fact else { return Err(Stop::failed("the subagent's session is gone")) };
            self.bill.hear(&fact.event);
            match &fact.event {
                Event::TurnEnded(ended) => return self.end(ended),
                Event::PromptDropped(_) => return Err(Stop::failed("the subagent's task was dropped before it began")),
                Event::SessionDeleted(_) => return Err(Stop::failed("the subagent's session was deleted")),
                _ => self.hear(&fact).await?,
            }
        }
    }

    async fn hear(&mut self, fact: &Fact) -> Result<(), Gone> {
        let call = Some(self.call.clone());
        match &fact.event {
            Event::FileChanged(e) => self.tell(FileChanged { call, ..e.clone() }).await,
            Event::PermissionAsked(e) => {
                self.asked.insert(e.request.clone(), self.teller.waits().begin());
                self.tell(PermissionAsked { call, ..e.clone() }).await
            }
            Event::QuestionAsked(e) => {
                self.asked.insert(e.request.clone(), self.teller.waits().begin());
                self.tell(QuestionAsked { call, ..e.clone() }).await
            }
            Event::PermissionAnswered(e) => self.answered(fact, &e.request).await,
            Event::QuestionAnswered(e) => self.answered(fact, &e.request).await,
            Event::StepStarted(_) => {
                self.answer.is_over = true;
                Ok(())
            }
            Event::TextAppended(e) => {
                self.answer.add(&e.part, &e.text);
                Ok(())
            }
            Event::ToolChanged(e) => self.called(e, fact).await,
            Event::Failed(e) => {
                self.failure = Some(e.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn tell(&self, event: impl Into<Event>) -> Result<(), Gone> {
        self.teller.tell(Draft::agent(event)).await
    }

    /// As it was answered there, by whomever.
    async fn answered(&mut self, fact: &Fact, request: &RequestId) -> Result<(), Gone> {
        match self.asked.remove(request) {
            Some(_) => self.teller.tell(Draft::new(fact.cause, fact.event.clone())).await,
            None => Ok(()),
        }
    }

    /// Each of its calls that ends is a line of the call's live output.
    async fn called(&mut self, change: &ToolChanged, fact: &Fact) -> Result<(), Gone> {
        if self.calls.len() >= CALLS && !self.calls.contains_key(&change.call) {
            return Ok(());
        }
        let tool = self.calls.entry(change.call.clone()).or_default();
        tool.merge(change, fact.time);
        if tool.is_open() {
            return Ok(());
        }
        self.is_rejected |= outcome::ends_turn(tool, &NoBlobs);
        let sign = if tool.status == ToolStatus::Completed { "✓" } else { "✗" };
        let (name, title) = (tool.name.as_deref().unwrap_or("tool"), tool.title.lines().next().unwrap_or_default());
        let text = match title.is_empty() || title == name {
            true => format!("{sign} {name}\n"),
            false => format!("{sign} {name} {title}\n"),
        };
        self.calls.remove(&change.call);
        self.tell(OutputAppended { call: self.call.clone(), text }).await
    }

    fn end(self, ended: &TurnEnded) -> Result<Report, Stop> {
        let answer = self.answer.text.trim().to_owned();
        let said = if answer.is_empty() { String::new() } else { format!(" Until then it had said: {answer}") };
        let note = match ended.stop {
            _ if self.cancel.is_fired() => return Err(Stop::Cancelled(None)),
            Stopped::EndTurn if self.is_rejected => {
                Some("[the user said no to something that the subagent wanted to do, and it stopped there]")
            }
            Stopped::EndTurn => None,
            Stopped::MaxTokens => Some("[the subagent's answer is cut off: it was too long]"),
            Stopped::MaxTurnRequests => {
                Some("[the subagent stopped before it was done: it took too many steps or too long]")
            }
            Stopped::Refusal => Some("[the subagent refused]"),
            Stopped::Cancelled => {
                return Err(Stop::Failed(format!("The user cancelled the subagent before it was done.{said}")));
            }
            Stopped::Failed => {
                let why = self.failure.map_or_else(|| "it gave no reason".to_owned(), |failure| failure.message);
                return Err(Stop::Failed(format!("The subagent failed: {why}{said}")));
            }
            Stopped::Interrupted => {
                return Err(Stop::Failed(format!("The server stopped before the subagent was done.{said}")));
            }
        };
        let note = note.or(answer.is_empty().then_some("[the subagent ended without a word]"));
        Ok(Report { answer, note: note.map(str::to_owned) })
    }
}

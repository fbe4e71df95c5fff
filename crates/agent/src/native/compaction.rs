//! Compaction: when a conversation comes near to what the model takes, or a person wants it, the model is asked for a
//! summary of what came first, and from then on is sent that in its place.
//!
//! Only facts change: what was summarised stays in the journal, and is sent again when the turn of the summary is taken
//! back. A summary that fails leaves everything as it was.

mod plan;
mod size;
mod summary;
mod transcript;
mod words;

use std::sync::Arc;

use tolka_facts::event::{CompactionEnded, CompactionStarted, Failed, Stop};
use tolka_facts::{Blobs, Draft, MessageId, Time, TurnId, View};

use super::conversation::{Conversation, Eyes, Recollection, Segment};
use super::failure;
use super::model::{Message, ModelError};
use super::settings::Compaction;
use super::spent::Used;
use super::turn::{Stopped, Turn, Why};
use crate::{Gone, PastError};
use plan::{Plan, Room};
use summary::{Summarised, Unsummarised};

pub(super) use words::{told, wanted};

/// Of what the model takes, its answer has so much at most.
const ANSWER: u64 = 32_000;

/// Why a summary is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cause {
    /// The model is nearly full.
    Full,
    /// The provider said that it does not fit.
    Overflow,
    /// A person wants it in the middle of a turn, with what they said should be heeded.
    Steered(String),
    /// A person wants it and nothing else.
    Alone(String),
}

impl Cause {
    fn is_automatic(&self) -> bool {
        matches!(self, Cause::Full | Cause::Overflow)
    }

    fn wishes(&self) -> &str {
        match self {
            Cause::Full | Cause::Overflow => "",
            Cause::Steered(wishes) | Cause::Alone(wishes) => wishes,
        }
    }
}

/// What came of it.
pub(super) enum Compacted {
    Done,
    /// There is nothing to summarise, or too little.
    Nothing,
    /// Everything is as it was.
    Failed(Box<Failed>),
    /// The turn cannot go on.
    Stopped(Stopped),
}

impl Turn<'_, '_> {
    /// Makes a summary before the next step, if that would come near to what the model takes. The turn goes on whether
    /// there is one or not: how much fits is the provider's to say.
    pub(super) async fn compact_if_full(&mut self) -> Result<Result<(), Stopped>, Gone> {
        let is_full = self.room().is_some_and(|room| self.tokens_to_send() >= room.most);
        if !is_full || self.has_failed_to_compact {
            return Ok(Ok(()));
        }
        match self.compact(Cause::Full).await? {
            Compacted::Done | Compacted::Nothing => {}
            // It would fail before the next step as well.
            Compacted::Failed(_) => self.has_failed_to_compact = true,
            Compacted::Stopped(stopped) => return Ok(Err(stopped)),
        }
        Ok(Ok(()))
    }

    /// Whether a summary is made where nobody asked for one.
    pub(super) fn compacts(&self) -> bool {
        self.mind.settings.compaction != Compaction::OnRequest
    }

    /// The provider says that the conversation does not fit; there is an end if no summary can be made of it.
    pub(super) async fn compact_overflow(&mut self, error: &ModelError) -> Result<Result<(), Stopped>, Gone> {
        let overflow = failure::of_model(error, &self.model.about().model, 1);
        let failed = |failure: Failed| Ok(Err(Stopped::Failed(Box::new(failure))));
        match self.compact(Cause::Overflow).await? {
            Compacted::Done => Ok(Ok(())),
            Compacted::Nothing => failed(overflow),
            Compacted::Failed(why) => {
                let why = format!("No summary could be made: {}", why.message);
                failed(failure::still_too_long(overflow, &why))
            }
            Compacted::Stopped(stopped) => Ok(Err(stopped)),
        }
    }

    /// Does a turn that is for nothing else.
    pub(super) async fn compact_alone(mut self, wishes: String) -> Result<Stopped, Gone> {
        Ok(match self.compact(Cause::Alone(wishes)).await? {
            Compacted::Done | Compacted::Nothing => Stopped::Done(Stop::EndTurn),
            Compacted::Failed(failure) => Stopped::Failed(failure),
            Compacted::Stopped(stopped) => stopped,
        })
    }

    pub(super) async fn compact(&mut self, cause: Cause) -> Result<Compacted, Gone> {
        let eyes = Eyes::of(&*self.model);
        let segments = self.look_back(move |view, blobs, running| Segment::all(view, blobs, running, eyes));
        let segments = match segments.await? {
            Ok(segments) => segments,
            Err(Unread::Past(error)) => return Ok(Compacted::Failed(Box::new(failure::no_past(&error)))),
            Err(Unread::Halted(why)) => return Ok(Compacted::Stopped(Stopped::Halted(why))),
        };
        let room = self.room_for(&cause);
        let plan = Plan::of(segments, room, &cause);
        let automatic = cause.is_automatic();
        if plan.is_none() && automatic {
            return Ok(Compacted::Nothing);
        }
        // Where nothing is kept, the turn goes on with a message that is not there yet.
        let next = !matches!(cause, Cause::Alone(_));
        let next = next.then(|| self.teller.ids().message(Time::now()));
        let id = format!("cmp_{}", self.teller.ids().message(Time::now()).as_str().trim_start_matches("msg_"));
        self.teller.tell(Draft::agent(CompactionStarted { id: id.clone(), automatic })).await?;
        let (old, keeps) = plan.map(|plan| (plan.old, plan.keeps)).unwrap_or_default();
        let Summarised { made, used } = summary::of(&transcript::of(&old), cause.wishes(), room, self).await?;
        self.spent.add(used);
        let Used { usage, cost } = used;
        let ended = |summary: Option<String>, error: Option<String>, keeps: Option<MessageId>| {
            Draft::agent(CompactionEnded { id, summary: summary.map(Into::into), error, keeps, usage, cost })
        };
        match made {
            Ok(summary) => {
                self.teller.tell(ended(Some(summary), None, keeps.or_else(|| next.clone()))).await?;
                self.next_step = next;
                self.go_on_from_summary(eyes).await
            }
            Err(unmade) => {
                self.teller.tell(ended(None, Some(unmade.words()), None)).await?;
                Ok(self.unmade(&unmade))
            }
        }
    }

    /// From here on the conversation is what the journal makes it. If that cannot be read, nobody knows what to send.
    async fn go_on_from_summary(&mut self, eyes: Eyes) -> Result<Compacted, Gone> {
        let so_far = self.look_back(move |view, blobs, running| Conversation::so_far(view, blobs, running, eyes));
        match so_far.await? {
            Ok(conversation) => self.conversation = conversation,
            Err(Unread::Past(error)) => {
                return Ok(Compacted::Stopped(Stopped::Failed(Box::new(failure::no_past(&error)))));
            }
            Err(Unread::Halted(why)) => return Ok(Compacted::Stopped(Stopped::Halted(why))),
        }
        self.used = None;
        if let Some(size) = self.model.about().context {
            let used = self.tokens_to_send();
            let told = self.spent.told(used, size);
            self.teller.tell(Draft::agent(told)).await?;
        }
        Ok(Compacted::Done)
    }

    fn unmade(&self, unmade: &Unsummarised) -> Compacted {
        match unmade {
            Unsummarised::Halted(why) => Compacted::Stopped(Stopped::Halted(*why)),
            Unsummarised::Nothing => Compacted::Nothing,
            Unsummarised::Model(error, tries) => {
                Compacted::Failed(Box::new(failure::of_model(error, &self.model.about().model, *tries)))
            }
            Unsummarised::Silent | Unsummarised::Refused | Unsummarised::TooLong => {
                Compacted::Failed(Box::new(failure::unsummarised(&unmade.words())))
            }
        }
    }

    /// How much may be sent before there has to be a summary. `None`: nobody knows, or nobody wants one.
    fn room(&self) -> Option<Room> {
        match self.mind.settings.compaction {
            Compaction::OnRequest => None,
            Compaction::At(share) => self.most().map(|most| {
                let context = self.model.about().context.unwrap_or_default();
                Room { most: most.min((context as f64 * share) as u64) }
            }),
        }
    }

    /// What fits beside an answer.
    fn most(&self) -> Option<u64> {
        let about = self.model.about();
        let context = about.context?;
        Some(context - about.output.unwrap_or(context / 8).min(context / 4).min(ANSWER))
    }

    fn room_for(&self, cause: &Cause) -> Room {
        let sent = self.guessed();
        let most = match cause {
            Cause::Full => self.room().map_or(sent, |room| room.most),
            // What was guessed before was wrong: less fits than was sent.
            Cause::Overflow => self.most().unwrap_or(sent).min(sent * 6 / 10),
            Cause::Steered(_) | Cause::Alone(_) => self.most().unwrap_or(sent),
        };
        Room { most }
    }

    /// About what the next request holds: as much as the last one, of which the provider told it, and what came since.
    fn tokens_to_send(&self) -> u64 {
        let messages = self.conversation.messages();
        let is_new = |message: &&Arc<Message>| !matches!(***message, Message::Model(_));
        match self.used {
            Some((used, sent)) => {
                used + messages.iter().skip(sent).filter(is_new).map(|m| size::tokens(m)).sum::<u64>()
            }
            None => self.guessed(),
        }
    }

    fn guessed(&self) -> u64 {
        let fixed = size::of_text(self.system.len()) + size::of_tools(&self.specs);
        fixed + self.conversation.messages().iter().map(|message| size::tokens(message)).sum::<u64>()
    }

    /// What is made of all that was told so far, from the journal alone.
    async fn look_back<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(&View, &dyn Blobs, &TurnId) -> T + Send + 'static,
    ) -> Result<Result<T, Unread>, Gone> {
        match self.halt.or(self.teller.settled()).await {
            Ok(settled) => settled?,
            Err(why) => return Ok(Err(Unread::Halted(why))),
        }
        let (known, recollection) = self.mind.known.take().unwrap_or_else(|| (View::default(), Recollection::new()));
        let past = self.mind.past();
        let remembered = match self.halt.or(past.go_on(known)).await {
            Ok(Ok(remembered)) => remembered,
            Ok(Err(error)) => return Ok(Err(Unread::Past(error))),
            Err(why) => return Ok(Err(Unread::Halted(why))),
        };
        let running = self.running.clone();
        // Blobs are read here.
        let made = tokio::task::spawn_blocking(move || {
            let made = make(&remembered.view, &*remembered.blobs, &running);
            (made, (remembered.view, recollection))
        });
        match self.halt.or(made).await {
            Ok(Ok((made, known))) => {
                self.mind.known = Some(known);
                Ok(Ok(made))
            }
            // It fails only if the runtime is going down, and this task with it.
            Ok(Err(_)) => Ok(Err(Unread::Halted(Why::Cancelled))),
            Err(why) => Ok(Err(Unread::Halted(why))),
        }
    }
}

/// Why the journal could not be asked.
enum Unread {
    Past(PastError),
    Halted(Why),
}

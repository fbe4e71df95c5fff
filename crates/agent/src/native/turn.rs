//! A turn that runs: the model is asked, its calls are done, and it is asked again, until it calls for nothing.

mod halt;
pub(super) mod retry;
mod running;
mod step;

use std::collections::HashSet;
use std::sync::Arc;

use tolka_facts::event::{Failed, Finish, Model as ModelName, Noticed, RetryScheduled, Severity, Stop};
use tolka_facts::{Block, Draft, Json, MessageId, NoBlobs, TurnId};

use super::compaction::{self, Cause, Compacted};
use super::conversation::Conversation;
use super::mind::NativeMind;
use super::model::{Model, ModelError, ModelErrorKind, Request, ToolSpec};
use super::spent::{Spent, Used};
use super::tools::Scene;
use super::{attachments, failure, prompted};
use crate::{Gone, Prompt, Teller};
use running::{Repeats, run_written};
use step::{Answer, Heard, Step};

pub(super) use halt::{Halt, Why};
pub(super) use running::run;
pub(super) use step::INVALID;

/// Why a turn is over.
pub(super) enum Stopped {
    Done(Stop),
    Failed(Box<Failed>),
    Halted(Why),
}

/// A turn that runs.
pub(super) struct Turn<'a, 'h> {
    pub(super) mind: &'a mut NativeMind,
    pub(super) teller: &'a Teller,
    /// Its own id.
    pub(super) running: TurnId,
    pub(super) model: Arc<dyn Model>,
    pub(super) conversation: Conversation,
    pub(super) system: Arc<str>,
    pub(super) specs: Arc<[ToolSpec]>,
    /// The names of `specs`.
    pub(super) offered: Arc<HashSet<String>>,
    pub(super) scene: Scene<'a>,
    pub(super) halt: &'a mut Halt<'h>,
    pub(super) spent: &'a mut Spent,
    /// Tokens that the last step took in and gave, and how many messages it was sent. `None`: nobody has told.
    pub(super) used: Option<(u64, usize)>,
    /// What the next step's message is called, where that had to be known before.
    pub(super) next_step: Option<MessageId>,
    pub(super) has_failed_to_compact: bool,
}

/// What is asked of the model once more, or why it is not.
enum Asked {
    Answered(Answer, Finish, Refused),
    Stopped(Stopped),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    Yes,
    No,
}

/// What the model has said in this turn. Some end without a word when their calls have done all there was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Earlier {
    Nothing,
    Answers,
}

/// Answers without a word in one step; it does not help to ask on.
const EMPTY: u32 = 3;

impl Turn<'_, '_> {
    pub(super) async fn run(mut self, prompt: &Prompt) -> Result<Stopped, Gone> {
        if let Err(why) = self.hear_person(&prompt.content, prompt.context.as_ref()).await? {
            return Ok(Stopped::Halted(why));
        }
        let mut repeats = Repeats::default();
        let mut earlier = Earlier::Nothing;
        for _ in 0..self.mind.settings.steps {
            self.offer();
            let (answer, finish, refused) = match self.ask(earlier).await? {
                Asked::Answered(answer, finish, refused) => (answer, finish, refused),
                Asked::Stopped(stopped) => return Ok(stopped),
            };
            earlier = Earlier::Answers;
            self.conversation.answer(answer.outputs);
            let ran = match answer.calls.is_empty() {
                true => Ok(Vec::new()),
                false => run_written(&self.mind.tools, &answer.calls, &self.scene, self.halt).await?,
            };
            self.teller.tell(Draft::agent(answer.ended)).await?;
            let cost = self.spent.cost;
            let has_paid = self.mind.tools.bills().is_some_and(|bills| self.spent.pay(bills));
            self.mind.tell_name(self.teller, self.spent).await?;
            if has_paid || self.spent.cost != cost {
                self.tell_usage().await?;
            }
            if refused == Refused::Yes && answer.calls.is_empty() {
                return Ok(Stopped::Done(Stop::Refusal));
            }
            if !answer.calls.is_empty() {
                let outcomes = match ran {
                    Ok(outcomes) => outcomes,
                    Err(why) => return Ok(Stopped::Halted(why)),
                };
                let is_over = outcomes.iter().any(|(_, outcome)| outcome.ends_turn);
                let repeated = repeats.watch(&answer.calls, &outcomes);
                self.conversation.results(outcomes);
                if let Some(name) = repeated {
                    let why =
                        format!("`{name}` was called with the same input three times in a row and failed each time.");
                    notice(self.teller, "The agent is going round in circles", why).await?;
                    return Ok(Stopped::Done(Stop::MaxTurnRequests));
                }
                if is_over {
                    return Ok(Stopped::Done(Stop::EndTurn));
                }
            }
            let is_steered = match self.steered().await? {
                Ok(is_steered) => is_steered,
                Err(stopped) => return Ok(stopped),
            };
            if answer.calls.is_empty() && !is_steered {
                let stop = if finish == Finish::Length { Stop::MaxTokens } else { Stop::EndTurn };
                return Ok(Stopped::Done(stop));
            }
        }
        let why = format!("A turn may ask the model {} times. Send a prompt to go on.", self.mind.settings.steps);
        notice(self.teller, "The turn took too many steps", why).await?;
        Ok(Stopped::Done(Stop::MaxTurnRequests))
    }

    /// Offers what there is by now: an MCP server may have come up, gone, or learned something new.
    fn offer(&mut self) {
        let specs = self.mind.tools.specs(&self.scene.mode);
        if *specs != *self.specs {
            self.offered = Arc::new(specs.iter().map(|spec| spec.name.clone()).collect());
            self.specs = specs.into();
        }
    }

    async fn hear_person(&mut self, content: &[Block], context: Option<&Json>) -> Result<Result<(), Why>, Gone> {
        self.conversation.user(prompted::inputs(content, context, &NoBlobs));
        let hands = (&self.mind.tools, &self.scene);
        let place = (&*self.mind.workspace, &self.model.about().model);
        attachments::attach(content, place, &mut self.conversation, hands, self.halt).await
    }

    /// Takes in what people have sent to this turn. Whether the model has to answer it.
    async fn steered(&mut self) -> Result<Result<bool, Stopped>, Gone> {
        let steered = self.teller.steering().await?;
        let (mut is_any, mut wanted) = (false, None);
        for prompt in steered {
            if let Some(wishes) = compaction::wanted(&prompt.content, &NoBlobs) {
                wanted = Some(wishes);
                continue;
            }
            is_any = true;
            if let Err(why) = self.hear_person(&prompt.content, prompt.context.as_ref()).await? {
                return Ok(Err(Stopped::Halted(why)));
            }
        }
        // A summary is made in the middle of the turn too, of all that was said by then.
        if let Some(wishes) = wanted
            && let Compacted::Stopped(stopped) = self.compact(Cause::Steered(wishes)).await?
        {
            return Ok(Err(stopped));
        }
        Ok(Ok(is_any))
    }

    /// Asks until there is a whole answer, or it is in vain.
    async fn ask(&mut self, earlier: Earlier) -> Result<Asked, Gone> {
        let name = self.model.about().model.clone();
        let tries = self.mind.settings.tries.max(1);
        let mut failed = 0;
        let (mut open, mut empty, mut has_overflown) = (None, 0, false);
        loop {
            let mut step = match open.take() {
                Some(step) => step,
                None => {
                    // Calls may have ended because of the cancel, and before the turn heard of it: no step begins after it.
                    if let Err(why) = self.halt.or(std::future::ready(())).await {
                        return Ok(Asked::Stopped(Stopped::Halted(why)));
                    }
                    if let Err(stopped) = self.compact_if_full().await? {
                        return Ok(Asked::Stopped(stopped));
                    }
                    Step::begin(self.teller, self.next_step.take(), name.clone(), self.offered.clone()).await?
                }
            };
            let (mut is_empty, sent) = (false, self.conversation.len());
            let pieces = self.model.ask(Request {
                system: self.system.clone(),
                messages: self.conversation.messages(),
                tools: self.specs.clone(),
            });
            let error = match step.listen(pieces, &mut self.conversation, self.halt).await? {
                Heard::Ended { finish, is_refusal, usage } => {
                    let used = Used::by(self.model.about(), usage);
                    self.spent.add(used);
                    self.used = usage.map(|usage| (usage.total(), sent));
                    let is_good = matches!(finish, Finish::Stop | Finish::Unknown) && !is_refusal;
                    if !is_good || !step.is_empty() {
                        let answer = step.end(finish, used);
                        self.tell_usage().await?;
                        let refused = if is_refusal { Refused::Yes } else { Refused::No };
                        return Ok(Asked::Answered(answer, finish, refused));
                    }
                    (empty, is_empty) = (empty + 1, true);
                    nothing_said(&name)
                }
                Heard::Halted(why) => {
                    step.give_up(Finish::Cancelled, "The turn ended before the model had written this call.").await?;
                    return Ok(Asked::Stopped(Stopped::Halted(why)));
                }
                Heard::Failed(error) => error,
            };
            if error.kind == ModelErrorKind::Overflow && !has_overflown && self.compacts() {
                has_overflown = true;
                step.give_up(Finish::Error, "The conversation did not fit.").await?;
                match self.compact_overflow(&error).await? {
                    Ok(()) => continue,
                    Err(stopped) => return Ok(Asked::Stopped(stopped)),
                }
            }
            failed += 1;
            let delay = retry::delay(&error, failed, tries).filter(|_| empty < EMPTY);
            if step.is_silent() && delay.is_some() {
                open = Some(step);
            } else {
                step.give_up(Finish::Error, "The model's answer was cut off.").await?;
            }
            let Some(delay) = delay else {
                if is_empty && earlier == Earlier::Answers {
                    let why =
                        format!("{}/{} was asked {failed} times. Send a prompt to go on.", name.provider, name.id);
                    notice(self.teller, "The model ended without a word", why).await?;
                    return Ok(Asked::Stopped(Stopped::Done(Stop::EndTurn)));
                }
                let failure = failure::of_model(&error, &name, failed);
                let failure = match has_overflown && error.kind == ModelErrorKind::Overflow {
                    true => failure::still_too_long(failure, "It was summarised, and still does not fit."),
                    false => failure,
                };
                return Ok(Asked::Stopped(Stopped::Failed(Box::new(failure))));
            };
            let retry = RetryScheduled {
                attempt: u64::from(failed),
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                message: error.message,
                code: error.status.map(i64::from),
            };
            self.teller.tell(Draft::agent(retry)).await?;
            if let Err(why) = self.halt.or(tokio::time::sleep(delay)).await {
                if let Some(step) = open.take() {
                    step.give_up(Finish::Cancelled, "The turn ended.").await?;
                }
                return Ok(Asked::Stopped(Stopped::Halted(why)));
            }
        }
    }

    /// Tells how full the model is and what the session has cost.
    async fn tell_usage(&mut self) -> Result<(), Gone> {
        let (Some((used, _)), Some(size)) = (self.used, self.model.about().context) else { return Ok(()) };
        let told = self.spent.told(used, size);
        self.teller.tell(Draft::agent(told)).await
    }
}

fn nothing_said(model: &ModelName) -> ModelError {
    let message = format!("the model {}/{} said nothing", model.provider, model.id);
    ModelError { kind: ModelErrorKind::Cut, message, status: None, retry_after: None }
}

pub(super) async fn notice(teller: &Teller, title: &str, description: String) -> Result<(), Gone> {
    let (severity, title, description) = (Severity::Warning, title.to_owned(), Some(description));
    teller.tell(Draft::agent(Noticed { severity, title, description })).await
}

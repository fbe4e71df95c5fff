use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tolka_facts::event::{PermissionAsked, QuestionAsked};
use tolka_facts::{Block, Draft, Ids, Json, MessageId};

use crate::waits::Waits;

/// How far a mind may run ahead of the disk. One group commit takes 256 facts; a longer line would only
/// make a cancelled turn say more after the cancel.
const LINE: usize = 256;

/// The session has ended its interest in this turn; stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session no longer listens to this turn")]
pub struct Gone;

/// What a mind says to its session.
#[derive(Debug)]
pub enum Said {
    Told(Draft),
    /// With contents that the event names by their hashes; they are durable before it is.
    ToldWith(Draft, Vec<Vec<u8>>),
    /// `None` if nobody chose.
    Permission(Draft, Patience, oneshot::Sender<Option<Chosen>>),
    /// The answers, or `None` if they were refused.
    Question(Draft, Patience, oneshot::Sender<Option<Vec<Vec<String>>>>),
    /// Answered with the prompts that are meant for the turn that runs; they wait no more.
    Steering(oneshot::Sender<Vec<Steered>>),
    /// Answered when everything told before it is durable.
    Settle(oneshot::Sender<()>),
}

/// What a person chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The option's id.
    pub option: String,
    /// Why, in the person's words.
    pub reason: Option<String>,
}

/// How long a request waits for a person, and what is then decided in nobody's name. Nothing hangs for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// While no client is there that could answer.
    pub alone: Duration,
    /// While one is.
    pub attended: Duration,
    /// The option that counts as chosen then; `None`: nobody chose, which is a refusal.
    pub otherwise: Option<String>,
}

impl Default for Patience {
    /// Long enough for a person who went for a walk; and a client that was cut off comes back within a minute or so.
    fn default() -> Self {
        let (alone, attended) = (Duration::from_secs(5 * 60), Duration::from_secs(60 * 60));
        Patience { alone, attended, otherwise: None }
    }
}

/// A prompt that was sent to a turn which was running.
#[derive(Debug, Clone, PartialEq)]
pub struct Steered {
    pub message: MessageId,
    pub content: Vec<Block>,
    pub context: Option<Json>,
}

/// A mind's only way out.
#[derive(Debug, Clone)]
pub struct Teller {
    line: mpsc::Sender<Said>,
    cancel: Cancel,
    ids: Arc<Ids>,
    waits: Waits,
}

/// A teller, the session's end of it, and the switch that cancels the turn.
pub fn teller(ids: Arc<Ids>) -> (Teller, mpsc::Receiver<Said>, CancelSwitch) {
    let (line, said) = mpsc::channel(LINE);
    let (switch, cancel) = watch::channel(false);
    (Teller { line, cancel: Cancel(cancel), ids, waits: Waits::default() }, said, CancelSwitch(switch))
}

impl Teller {
    pub async fn tell(&self, draft: Draft) -> Result<(), Gone> {
        self.line.send(Said::Told(draft)).await.map_err(|_| Gone)
    }

    /// Tells an event together with contents that it names by their hashes.
    pub async fn tell_with(&self, draft: Draft, contents: Vec<Vec<u8>>) -> Result<(), Gone> {
        self.line.send(Said::ToldWith(draft, contents)).await.map_err(|_| Gone)
    }

    /// Asks a person. `Ok(None)`: nobody chose; treat it as a refusal.
    pub async fn ask_permission(
        &self,
        ask: PermissionAsked,
        raw: Option<Json>,
        patience: Patience,
    ) -> Result<Option<Chosen>, Gone> {
        let (answer, answered) = oneshot::channel();
        let draft = Draft { raw, ..Draft::agent(ask) };
        let _waiting = self.waits.begin();
        self.line.send(Said::Permission(draft, patience, answer)).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    pub async fn ask_question(&self, ask: QuestionAsked, patience: Patience) -> Result<Option<Vec<Vec<String>>>, Gone> {
        let (answer, answered) = oneshot::channel();
        let _waiting = self.waits.begin();
        self.line.send(Said::Question(Draft::agent(ask), patience, answer)).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// The prompts that people sent to this turn since the last look. Each is part of the turn from then on.
    pub async fn steering(&self) -> Result<Vec<Steered>, Gone> {
        let (answer, answered) = oneshot::channel();
        self.line.send(Said::Steering(answer)).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Waits until everything told so far would survive a crash. Call it before an effect.
    pub async fn settled(&self) -> Result<(), Gone> {
        let (done, settled) = oneshot::channel();
        self.line.send(Said::Settle(done)).await.map_err(|_| Gone)?;
        settled.await.map_err(|_| Gone)
    }

    /// Returns when the turn has worked so long; the time in which it waits for a person is not counted.
    pub(crate) async fn worked(&self, time: Duration) {
        self.waits.worked(time).await;
    }

    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    pub fn ids(&self) -> &Arc<Ids> {
        &self.ids
    }
}

/// Fires when the turn is cancelled, and stays fired.
#[derive(Debug, Clone)]
pub struct Cancel(watch::Receiver<bool>);

impl Cancel {
    pub fn is_fired(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn fired(&self) {
        // A switch that was dropped means a session that is gone, which is as good a reason to stop.
        let _ = self.0.clone().wait_for(|fired| *fired).await;
    }
}

#[derive(Debug)]
pub struct CancelSwitch(watch::Sender<bool>);

impl CancelSwitch {
    pub fn fire(&self) {
        self.0.send_replace(true);
    }
}

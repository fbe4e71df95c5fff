use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tolka_facts::event::{PermissionAsked, QuestionAsked};
use tolka_facts::{Block, Draft, Ids, Json, MessageId};

use crate::waits::Waits;

/// How far a mind may run ahead of the disk. One group commit takes 256 facts; a longer line would only
/// make a cancelled turn say more after the cancel.
const LINE: usize = 256;
/// Contents of files that a mind may have told and that are not durable yet, in KiB: a command may change a thousand
/// large files, and they need not all be in memory at once. Two of the largest that are kept fit in, with room to spare.
const CONTENTS: u32 = 32 * 1024;

/// The session has ended its interest in this turn; stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session no longer listens to this turn")]
pub struct Gone;

/// What a mind says to its session.
#[derive(Debug)]
pub enum Said {
    Told(Draft),
    /// With contents that the event names by their hashes; they are durable before it is.
    ToldWith(Draft, Contents),
    /// `None` if nobody chose.
    Permission(Draft, Patience, oneshot::Sender<Option<Chosen>>),
    /// The answers, or `None` if they were refused.
    Question(Draft, Patience, oneshot::Sender<Option<Vec<Vec<String>>>>),
    /// Answered with the prompts that are meant for the turn that runs; they wait no more.
    Steering(oneshot::Sender<Vec<Steered>>),
    /// Answered when everything told before it is durable.
    Settle(oneshot::Sender<()>),
}

/// Contents of files, and the room that they take until they are durable.
#[derive(Debug)]
pub struct Contents {
    pub whole: Vec<Vec<u8>>,
    pub room: Room,
}

/// Given back when it is dropped: there is room for other contents then.
#[derive(Debug)]
pub struct Room(#[expect(dead_code, reason = "it is held, not looked at")] OwnedSemaphorePermit);

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
    room: Arc<Semaphore>,
    cancel: Cancel,
    ids: Arc<Ids>,
    waits: Waits,
    effects: Effects,
}

/// A teller, the session's end of it, and the switch that cancels the turn.
pub fn teller(ids: Arc<Ids>) -> (Teller, mpsc::Receiver<Said>, CancelSwitch) {
    let (line, said) = mpsc::channel(LINE);
    let (switch, cancel) = cancel();
    let room = Arc::new(Semaphore::new(CONTENTS as usize));
    (Teller { line, room, cancel, ids, waits: Waits::default(), effects: Effects::default() }, said, switch)
}

/// A switch, and what it fires.
pub fn cancel() -> (CancelSwitch, Cancel) {
    let (switch, cancel) = watch::channel(false);
    (CancelSwitch(switch), Cancel(cancel))
}

impl Teller {
    pub async fn tell(&self, draft: Draft) -> Result<(), Gone> {
        self.line.send(Said::Told(draft)).await.map_err(|_| Gone)
    }

    /// Tells an event together with contents that it names by their hashes. Waits while too many are on their way.
    pub async fn tell_with(&self, draft: Draft, whole: Vec<Vec<u8>>) -> Result<(), Gone> {
        let bytes: usize = whole.iter().map(Vec::len).sum();
        // What is larger than all the room goes alone.
        let size = u32::try_from(bytes.div_ceil(1024)).unwrap_or(CONTENTS).min(CONTENTS);
        let room = Room(self.room.clone().acquire_many_owned(size).await.map_err(|_| Gone)?);
        self.line.send(Said::ToldWith(draft, Contents { whole, room })).await.map_err(|_| Gone)
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

    pub(crate) fn waits(&self) -> &Waits {
        &self.waits
    }

    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    pub fn ids(&self) -> &Arc<Ids> {
        &self.ids
    }

    /// What the turn is doing to the world.
    pub fn effects(&self) -> &Effects {
        &self.effects
    }
}

/// What a turn is doing to the world that a dropped mind does not stop: a file that is being written, a command that is
/// being ended. A turn is not over before all of it is.
#[derive(Debug, Clone)]
pub struct Effects(watch::Sender<usize>);

impl Default for Effects {
    fn default() -> Self {
        Effects(watch::Sender::new(0))
    }
}

impl Effects {
    /// Something begins; it lasts until what this gives is dropped.
    pub fn begin(&self) -> Effect {
        self.0.send_modify(|count| *count += 1);
        Effect(self.0.clone())
    }

    /// Waits until nothing is under way.
    pub async fn over(&self) {
        // It fails only without a sender, and this is one.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// One effect that is under way.
#[derive(Debug)]
pub struct Effect(watch::Sender<usize>);

impl Drop for Effect {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
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

#[cfg(test)]
mod tests {
    use tolka_facts::event::ModeSet;

    use super::*;

    /// On one thread: a task runs until it has to wait.
    #[tokio::test]
    async fn contents_wait_until_there_is_room() {
        let (teller, mut said, _switch) = teller(Arc::new(Ids::seeded(7)));
        let large = 12 << 20;
        let telling = tokio::spawn(async move {
            for size in [large, large, large, 0, 5 * large] {
                let draft = Draft::agent(ModeSet { mode: "build".to_owned() });
                teller.tell_with(draft, vec![vec![0; size]]).await.unwrap();
            }
        });
        let mut hear = async || {
            tokio::task::yield_now().await;
            let waiting = said.len();
            (waiting, said.recv().await)
        };
        let (waiting, first) = hear().await;
        assert_eq!(waiting, 2, "a third does not fit beside two");
        drop(first);
        let (waiting, second) = hear().await;
        assert_eq!(waiting, 3, "the third, and one that takes no room");
        drop(second);
        drop((hear().await, hear().await));
        assert_eq!(hear().await.0, 1, "what is larger than all the room goes alone");
        telling.await.unwrap();
    }
}

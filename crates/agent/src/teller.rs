use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tolka_facts::event::{PermissionAsked, QuestionAsked};
use tolka_facts::{Draft, Ids};

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
    /// The chosen option's id, or `None` if nobody chose.
    Permission(Draft, oneshot::Sender<Option<String>>),
    /// The answers, or `None` if they were refused.
    Question(Draft, oneshot::Sender<Option<Vec<Vec<String>>>>),
    /// Answered when everything told before it is durable.
    Settle(oneshot::Sender<()>),
}

/// A mind's only way out.
#[derive(Debug, Clone)]
pub struct Teller {
    line: mpsc::Sender<Said>,
    cancel: Cancel,
    ids: Arc<Ids>,
}

/// A teller, the session's end of it, and the switch that cancels the turn.
pub fn teller(ids: Arc<Ids>) -> (Teller, mpsc::Receiver<Said>, CancelSwitch) {
    let (line, said) = mpsc::channel(LINE);
    let (switch, cancel) = watch::channel(false);
    (Teller { line, cancel: Cancel(cancel), ids }, said, CancelSwitch(switch))
}

impl Teller {
    pub async fn tell(&self, draft: Draft) -> Result<(), Gone> {
        self.line.send(Said::Told(draft)).await.map_err(|_| Gone)
    }

    /// Asks a person. `Ok(None)`: nobody chose; treat it as a refusal.
    pub async fn ask_permission(
        &self,
        ask: PermissionAsked,
        raw: Option<tolka_facts::Json>,
    ) -> Result<Option<String>, Gone> {
        let (answer, answered) = oneshot::channel();
        let draft = Draft { raw, ..Draft::agent(ask) };
        self.line.send(Said::Permission(draft, answer)).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    pub async fn ask_question(&self, ask: QuestionAsked) -> Result<Option<Vec<Vec<String>>>, Gone> {
        let (answer, answered) = oneshot::channel();
        self.line.send(Said::Question(Draft::agent(ask), answer)).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Waits until everything told so far would survive a crash. Call it before an effect.
    pub async fn settled(&self) -> Result<(), Gone> {
        let (done, settled) = oneshot::channel();
        self.line.send(Said::Settle(done)).await.map_err(|_| Gone)?;
        settled.await.map_err(|_| Gone)
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

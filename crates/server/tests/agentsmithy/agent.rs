use std::sync::Arc;

use tokio::sync::watch;
use tolka_agent::{Agent, Ended, Gone, Mind, Place, Prompt, Running, Teller};
use tolka_facts::event::{Failed, FailureKind, Model, Stop, TextAppended};
use tolka_facts::{Block, Draft, NoBlobs, Time};

/// Does as its prompt says: `hold` until the gate opens, `fail` after a word, tell its `context`, or else say it back.
#[derive(Debug)]
pub(crate) struct Obedient {
    gate: watch::Receiver<bool>,
}

impl Obedient {
    /// With the gate that lets those who hold go on.
    pub(crate) fn gated() -> (Arc<dyn Agent>, watch::Sender<bool>) {
        let (open, gate) = watch::channel(false);
        (Arc::new(Obedient { gate }), open)
    }

    pub(crate) fn ungated() -> Arc<dyn Agent> {
        Obedient::gated().0
    }
}

impl Agent for Obedient {
    fn name(&self) -> &str {
        "obedient"
    }

    fn model(&self) -> Model {
        Model { provider: "obedient".to_owned(), id: "model".to_owned() }
    }

    fn open(&self, _: Place) -> Box<dyn Mind> {
        Box::new(Doing { gate: self.gate.clone() })
    }
}

struct Doing {
    gate: watch::Receiver<bool>,
}

impl Mind for Doing {
    fn turn<'a>(&'a mut self, prompt: Prompt, teller: &'a Teller) -> Running<'a> {
        Box::pin(async move { self.act(&prompt, teller).await.unwrap_or(Ended::stopped(Stop::Cancelled)) })
    }
}

impl Doing {
    async fn act(&mut self, prompt: &Prompt, teller: &Teller) -> Result<Ended, Gone> {
        let Some(Block::Text { text, .. }) = prompt.content.first() else { return Ok(Ended::stopped(Stop::Refusal)) };
        let wanted = text.text(&NoBlobs).into_owned();
        match wanted.as_str() {
            "fail" => {
                say(teller, "oh").await?;
                return Ok(Ended::failed(Failed {
                    kind: FailureKind::Provider,
                    message: "The model is not in the mood".to_owned(),
                    code: Some(503),
                    retryable: true,
                    details: None,
                }));
            }
            "context" => {
                let context = prompt.context.as_ref().map_or("none", |context| context.get());
                say(teller, context).await?;
            }
            hold if hold.starts_with("hold") => {
                say(teller, &format!("{hold}: held")).await?;
                tokio::select! {
                    open = self.gate.wait_for(|open| *open) => drop(open),
                    () = teller.cancel().fired() => return Ok(Ended::stopped(Stop::Cancelled)),
                }
                say(teller, &format!("{hold}: let go")).await?;
            }
            said => say(teller, said).await?,
        }
        Ok(Ended::stopped(Stop::EndTurn))
    }
}

async fn say(teller: &Teller, text: &str) -> Result<(), Gone> {
    let part = teller.ids().part(Time::now());
    teller.tell(Draft::agent(TextAppended { part, text: text.to_owned() })).await
}

use tolka_agent::{Agent, Ended, Mind, Patience, Place, Prompt, Running, Teller};
use tolka_facts::event::{
    Failed, FailureKind, Finish, Model, OptionKind, PermissionAsked, PermissionOption, PlanEntry, PlanSet, PlanStatus,
    Priority, Question, QuestionAsked, QuestionOption, StepEnded, StepStarted, Stop, TextAppended,
};
use tolka_facts::{Block, Draft, NoBlobs, Time};

/// Does as its prompt says: `wait` until it is cancelled, `fail` at once or `stumble` after a word, `may I`,
/// `which`, `plan`, or else say it back.
#[derive(Debug)]
pub(crate) struct Obedient(pub(crate) &'static str);

impl Agent for Obedient {
    fn name(&self) -> &str {
        self.0
    }

    fn model(&self) -> Model {
        Model { provider: "obedient".to_owned(), id: format!("{}-model", self.0) }
    }

    fn open(&self, _: Place) -> Box<dyn Mind> {
        Box::new(Doing)
    }
}

struct Doing;

impl Mind for Doing {
    fn turn<'a>(&'a mut self, prompt: Prompt, teller: &'a Teller) -> Running<'a> {
        Box::pin(async move { act(&prompt, teller).await.unwrap_or(Ended::stopped(Stop::Cancelled)) })
    }
}

async fn act(prompt: &Prompt, teller: &Teller) -> Result<Ended, tolka_agent::Gone> {
    let Some(Block::Text { text, .. }) = prompt.content.first() else { return Ok(Ended::stopped(Stop::Refusal)) };
    let wanted = text.text(&NoBlobs).into_owned();
    if wanted == "fail" {
        return Ok(failed());
    }
    let (ids, now) = (teller.ids(), Time::now());
    let message = ids.message(now);
    teller.tell(Draft::agent(StepStarted { message: message.clone(), model: None })).await?;
    let said = match wanted.as_str() {
        "wait" => {
            say(teller, "waiting").await?;
            teller.cancel().fired().await;
            return Ok(Ended::stopped(Stop::Cancelled));
        }
        "stumble" => {
            say(teller, "oh").await?;
            return Ok(failed());
        }
        "plan" => {
            let entry = PlanEntry { content: "Look".into(), status: PlanStatus::InProgress, priority: Priority::High };
            teller.tell(Draft::agent(PlanSet { entries: vec![entry] })).await?;
            "planned".to_owned()
        }
        "may I" => {
            let option = |id: &str, kind| PermissionOption { id: id.to_owned(), name: id.to_owned(), kind };
            let ask = PermissionAsked {
                request: ids.permission(now),
                call: None,
                permission: "bash".to_owned(),
                title: "Run it".to_owned(),
                patterns: vec!["ls *".to_owned()],
                metadata: None,
                options: vec![option("yes", OptionKind::AllowOnce), option("no", OptionKind::RejectOnce)],
            };
            format!("{:?}", teller.ask_permission(ask, None, Patience::default()).await?.map(|chosen| chosen.option))
        }
        "which" => {
            let option = |label: &str| QuestionOption { label: label.to_owned(), description: String::new() };
            let question = Question {
                question: "Which colour?".to_owned(),
                header: "Colour".to_owned(),
                options: vec![option("Red"), option("Blue")],
                multiple: false,
            };
            let ask = QuestionAsked { request: ids.question(now), call: None, questions: vec![question] };
            format!("{:?}", teller.ask_question(ask, Patience::default()).await?)
        }
        _ => wanted,
    };
    say(teller, &said).await?;
    teller.tell(Draft::agent(StepEnded { message, finish: Finish::Stop, usage: None, cost: None, kept: None })).await?;
    Ok(Ended::stopped(Stop::EndTurn))
}

async fn say(teller: &Teller, text: &str) -> Result<(), tolka_agent::Gone> {
    let part = teller.ids().part(Time::now());
    teller.tell(Draft::agent(TextAppended { part, text: text.to_owned() })).await
}

fn failed() -> Ended {
    Ended::failed(Failed {
        kind: FailureKind::Provider,
        message: "The model is not in the mood".to_owned(),
        code: Some(503),
        retryable: true,
        details: None,
    })
}

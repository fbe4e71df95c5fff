//! Models and ways of working to choose from, steering from our own routes, and who counts as being there.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tolka_agent::{Agent, Ended, Gone, Mind, ModeAbout, ModelAbout, Patience, Place, Price, Prompt, Running, Teller};
use tolka_facts::event::{
    Finish, Model, OptionKind, PermissionAsked, PermissionOption, RetryScheduled, StepEnded, StepStarted, Stop,
    TextAppended,
};
use tolka_facts::{Block, Draft, Time};

use crate::host::Host;
use crate::prompts::text;

/// How long a request waits when nobody is there: whoever polls may be away for less.
const ALONE: Duration = Duration::from_secs(3);

/// Says how it was asked to work; `steer me` waits to be let on between two steps, `may I` asks with little patience for
/// an empty house, `retry` tries twice.
#[derive(Debug, Default)]
struct Choosy {
    go: Arc<Notify>,
}

fn model(id: &str) -> Model {
    Model { provider: "shop".to_owned(), id: id.to_owned() }
}

impl Agent for Choosy {
    fn name(&self) -> &str {
        "choosy"
    }

    fn model(&self) -> Model {
        model("small")
    }

    fn models(&self) -> Vec<ModelAbout> {
        let price = Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
        let large = ModelAbout {
            name: "The Large".to_owned(),
            context: Some(200_000),
            output: Some(64_000),
            price: Some(price),
            sees_images: true,
            ..ModelAbout::named(model("large"))
        };
        vec![ModelAbout::named(model("small")), large]
    }

    fn modes(&self) -> Vec<ModeAbout> {
        let mode = |name: &str| ModeAbout { name: name.to_owned(), description: format!("To {name}.") };
        vec![mode("build"), mode("plan")]
    }

    fn open(&self, _: Place) -> Box<dyn Mind> {
        Box::new(Choosing(self.go.clone()))
    }
}

struct Choosing(Arc<Notify>);

impl Mind for Choosing {
    fn turn<'a>(&'a mut self, prompt: Prompt, teller: &'a Teller) -> Running<'a> {
        Box::pin(async move { self.act(prompt, teller).await.unwrap_or(Ended::stopped(Stop::Cancelled)) })
    }
}

impl Choosing {
    async fn act(&self, prompt: Prompt, teller: &Teller) -> Result<Ended, Gone> {
        let Some(Block::Text { text, .. }) = prompt.content.first() else { return Ok(Ended::stopped(Stop::Refusal)) };
        match text.head() {
            "steer me" => {
                step(teller, "one", Some(&self.0)).await?;
                for steered in teller.steering().await? {
                    step(teller, &format!("heard {:?}", steered.content), None).await?;
                }
            }
            "may I" => {
                let option = |id: &str, kind| PermissionOption { id: id.to_owned(), name: id.to_owned(), kind };
                let ask = PermissionAsked {
                    request: teller.ids().permission(Time::now()),
                    call: None,
                    permission: "bash".to_owned(),
                    title: "Run it".to_owned(),
                    patterns: Vec::new(),
                    metadata: None,
                    options: vec![option("yes", OptionKind::AllowOnce), option("no", OptionKind::RejectOnce)],
                };
                let (alone, attended) = (ALONE, Duration::from_secs(3600));
                let patience = Patience { alone, attended, otherwise: Some("no".to_owned()) };
                let chosen = teller.ask_permission(ask, None, patience).await?;
                step(teller, &format!("{chosen:?}"), None).await?;
            }
            "retry" => {
                let retry = RetryScheduled { attempt: 1, delay_ms: 0, message: "overloaded".into(), code: Some(529) };
                teller.tell(Draft::agent(retry)).await?;
                step(teller, "at last", None).await?;
            }
            _ => step(teller, &format!("{:?} {:?}", prompt.mode, prompt.model.map(|model| model.id)), None).await?,
        }
        Ok(Ended::stopped(Stop::EndTurn))
    }
}

/// One step that says something, and waits before it ends if it has something to wait for.
async fn step(teller: &Teller, words: &str, go: Option<&Notify>) -> Result<(), Gone> {
    let message = teller.ids().message(Time::now());
    teller.tell(Draft::agent(StepStarted { message: message.clone(), model: None })).await?;
    let part = teller.ids().part(Time::now());
    teller.tell(Draft::agent(TextAppended { part, text: words.to_owned() })).await?;
    if let Some(go) = go {
        go.notified().await;
    }
    let (finish, usage, cost, kept) = (Finish::Stop, None, None, None);
    teller.tell(Draft::agent(StepEnded { message, finish, usage, cost, kept })).await
}

fn said(message: &Value) -> &str {
    message["parts"][1]["text"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_model_and_mode_is_listed_with_what_is_known_of_it() {
    let host = Host::with(Arc::new(Choosy::default())).await;
    let (_, listed) = host.get("/config/providers").await;
    let shop = &listed["providers"][0];
    assert_eq!((&shop["id"], &listed["default"]), (&json!("shop"), &json!({ "shop": "small" })));
    let large = &shop["models"]["large"];
    assert_eq!(large["name"], "The Large");
    assert_eq!(large["limit"], json!({ "context": 200_000, "output": 64_000 }));
    assert_eq!(large["cost"], json!({ "input": 3.0, "output": 15.0, "cache": { "read": 0.3, "write": 3.75 } }));
    assert_eq!(
        (&large["capabilities"]["input"]["image"], &large["capabilities"]["attachment"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(shop["models"]["small"]["limit"], json!({ "context": 0, "output": 0 }), "not known");
    let (_, agents) = host.get("/agent").await;
    let names: Vec<&Value> = agents.as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["build", "plan"]);
    let (_, config) = host.get("/api/config").await;
    assert_eq!(config["metadata"]["model_catalog"], json!({ "shop": { "chat": ["small", "large"] } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_chooses_its_model_and_its_mode() {
    let host = Host::with(Arc::new(Choosy::default())).await;
    let message = format!("/session/{}/message", host.new_session().await);
    let prompt = |agent: &str, model: &str| {
        let parts = json!([{ "type": "text", "text": "how" }]);
        json!({ "agent": agent, "model": { "providerID": "shop", "modelID": model }, "parts": parts })
    };
    let (_, answer) = host.post(&message, prompt("plan", "large")).await;
    assert_eq!(said(&answer), "Some(\"plan\") Some(\"large\")");
    assert_eq!((&answer["info"]["mode"], &answer["info"]["modelID"]), (&json!("plan"), &json!("large")));
    let (_, answer) = host.post(&message, text("how")).await;
    assert_eq!(said(&answer), "None Some(\"small\")", "the next one is the session's again");

    let (_, all) = host.get(&message).await;
    for (wrong, words) in [
        (prompt("plan", "huge"), "Model not found: shop/huge."),
        (prompt("dream", "large"), "Agent not found: \"dream\". Available agents: build, plan"),
    ] {
        let (status, error) = host.post(&message, wrong).await;
        assert_eq!((status, &error["name"]), (StatusCode::BAD_REQUEST, &json!("BadRequest")));
        assert!(error["data"]["message"].as_str().unwrap().starts_with(words), "{error}");
    }
    assert_eq!(host.get(&message).await.1, all, "nothing was asked");

    let planned = json!({ "agent": "plan", "model": { "providerID": "shop", "id": "large" } });
    let (_, made) = host.post("/session", planned).await;
    let message = format!("/session/{}/message", made["id"].as_str().unwrap());
    assert_eq!(said(&host.post(&message, text("how")).await.1), "Some(\"plan\") Some(\"large\")");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_can_be_for_the_turn_that_runs() {
    let go = Arc::new(Notify::new());
    let host = Arc::new(Host::with(Arc::new(Choosy { go: go.clone() })).await);
    let id = host.new_session().await;
    let mut feed = host.listen("/event", &[]).await;
    let asking = {
        let (host, path) = (host.clone(), format!("/session/{id}/message"));
        tokio::spawn(async move { host.post(&path, text("steer me")).await })
    };
    feed.until_said("\"one\"").await;
    let (_, queue) = host.get(&format!("/v1/sessions/{id}/queue")).await;
    let running = queue["running"]["turn"].as_str().unwrap();
    let steering = json!({ "text": "be brief", "steer": true });
    let (status, accepted) = host.post(&format!("/v1/sessions/{id}/prompt"), steering).await;
    assert_eq!((status, &accepted["steers"]), (StatusCode::ACCEPTED, &json!(running)));
    let (status, _) = host.post(&format!("/v1/sessions/{id}/prompt"), json!({ "text": "x", "steer": "yes" })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);

    // A stream of the prompt is one of the turn that took it.
    let turn = accepted["turn"].as_str().unwrap();
    let mut stream = host.listen(&format!("/v1/sessions/{id}/events?turn={turn}"), &[]).await;
    go.notify_one();
    let told = stream.until_over().await;
    let types: Vec<&str> = told.iter().map(|told| told["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["prompt_steered", "step_started", "text_appended", "step_ended", "turn_ended"]);

    let (_, answer) = asking.await.unwrap();
    assert!(said(&answer).contains("be brief"), "whoever waits for the turn gets its last word: {answer}");
    let (_, all) = host.get(&format!("/session/{id}/message")).await;
    let roles: Vec<&Value> = all.as_array().unwrap().iter().map(|message| &message["info"]["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert_eq!(all[3]["info"]["parentID"], all[2]["info"]["id"]);
    assert_eq!(all[2]["parts"][0]["text"], "be brief");
    let (_, view) = host.get(&format!("/v1/sessions/{id}/view")).await;
    let turns: Vec<bool> = view["messages"].as_array().unwrap().iter().map(|m| m["turn"] == running).collect();
    assert_eq!(turns, [true; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_a_status_until_the_agent_goes_on() {
    let host = Host::with(Arc::new(Choosy::default())).await;
    let id = host.new_session().await;
    let mut feed = host.listen("/event", &[]).await;
    host.post(&format!("/session/{id}/message"), text("retry")).await;
    let told = feed.until("session.idle").await;
    let statuses = told.iter().filter(|told| told.data["type"] == "session.status");
    let statuses: Vec<&Value> = statuses.map(|told| &told.data["properties"]["status"]).collect();
    let kinds: Vec<&str> = statuses.iter().map(|status| status["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["busy", "retry", "busy", "idle"]);
    assert_eq!((&statuses[1]["attempt"], &statuses[1]["message"]), (&json!(1), &json!("overloaded")));
    assert!(statuses[1]["next"].as_u64().unwrap() > 1_700_000_000_000);
}

/// Who answered, and what the mind heard.
async fn decided(host: &Host, id: &str) -> (Value, String) {
    let (_, page) = host.get(&format!("/v1/sessions/{id}/events?format=json&limit=1000")).await;
    let events = page["events"].as_array().unwrap().iter();
    let answered = events.map(|event| &event["data"]).find(|fact| fact["type"] == "permission_answered").unwrap();
    let (_, all) = host.get(&format!("/session/{id}/message")).await;
    (answered["data"].clone(), said(&all[1]).to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nobody_there_a_permission_decides_itself_and_with_somebody_it_waits() {
    let host = Host::with(Arc::new(Choosy::default())).await;
    let id = host.new_session().await;
    host.post(&format!("/session/{id}/message"), text("may I")).await;
    let (answered, heard) = decided(&host, &id).await;
    assert_eq!((&answered["by"], &answered["option"]), (&json!("tolka"), &json!("no")));
    assert!(heard.contains("Nobody was there to answer"), "{heard}");

    let id = host.new_session().await;
    let mut feed = host.listen("/event", &[]).await;
    host.post(&format!("/session/{id}/prompt_async"), text("may I")).await;
    let asked = feed.until("permission.updated").await;
    let request = asked.last().unwrap().data["properties"]["id"].as_str().unwrap().to_owned();
    // Longer than an empty house would have waited: the feed is somebody.
    assert!(feed.is_silent_for(ALONE + Duration::from_secs(1)).await);
    let reply = json!({ "reply": "reject", "message": "not on a Sunday" });
    host.post(&format!("/permission/{request}/reply"), reply).await;
    feed.until("session.idle").await;
    let (answered, heard) = decided(&host, &id).await;
    assert_eq!((&answered["by"], &answered["reason"]), (&json!("local"), &json!("not on a Sunday")));
    assert!(heard.contains("not on a Sunday"), "the mind hears why: {heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_polls_and_waits_is_there_too() {
    let host = Host::with(Arc::new(Choosy::default())).await;
    let id = host.new_session().await;
    host.post(&format!("/session/{id}/prompt_async"), text("may I")).await;
    let mut after = "0".to_owned();
    let mut asked = Value::Null;
    while asked.is_null() {
        let (_, page) = host.get(&format!("/v1/sessions/{id}/events?after={after}&wait=20")).await;
        after = page["position"].as_str().unwrap().to_owned();
        let events = page["events"].as_array().unwrap().iter();
        asked = events.map(|event| &event["data"]).find(|fact| fact["type"] == "permission_asked").cloned().into();
    }
    // Longer than an empty house would have waited.
    let wait = ALONE.as_secs() + 1;
    let (_, page) = host.get(&format!("/v1/sessions/{id}/events?after={after}&wait={wait}")).await;
    assert_eq!(page["events"], json!([]), "nobody has decided");
    // With no wait there is nobody.
    let (answered, _) = loop {
        let (_, page) = host.get(&format!("/v1/sessions/{id}/events?after={after}&format=json")).await;
        if page["events"].to_string().contains("turn_ended") {
            break decided(&host, &id).await;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(answered["by"], "tolka");
}

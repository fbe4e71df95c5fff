//! A house whose agent works on files, and what is seen of them.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::house::{House, Reply};
use crate::worker::Worker;

pub(crate) struct Shop {
    house: House,
    /// Lets turns that hold go on.
    pub(crate) gate: watch::Sender<bool>,
}

impl Deref for Shop {
    type Target = House;

    fn deref(&self) -> &House {
        &self.house
    }
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let (agent, gate) = Worker::gated();
        Shop { house: House::saving(agent).await, gate }
    }

    pub(crate) async fn new_session(&self) -> String {
        self.post("/session", json!({})).await.json()["id"].as_str().unwrap().to_owned()
    }

    /// One turn from its prompt to its end; the ids of the prompt and of the answer.
    pub(crate) async fn work(&self, session: &str, lines: &[&str]) -> (String, String) {
        let parts = json!([{ "type": "text", "text": lines.join("\n") }]);
        let answer = self.post(&format!("/session/{session}/message"), json!({ "parts": parts })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let info = &answer.json()["info"];
        (info["parentID"].as_str().unwrap().to_owned(), info["id"].as_str().unwrap().to_owned())
    }

    /// The first prompt of a session whose turn holds, once it has done what it shall.
    pub(crate) async fn hold(&self, session: &str, lines: &[&str]) {
        let text = [lines, &["hold"]].concat().join("\n");
        let parts = json!([{ "type": "text", "text": text }]);
        assert_eq!(self.post(&format!("/session/{session}/prompt_async"), json!({ "parts": parts })).await.status, 204);
        let mut events = self.open("GET", &format!("/v1/sessions/{session}/events?dialect=tolka"), &[], None).await;
        events.until("Holding.").await;
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    /// As a person would.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// The texts of some files; `None` for one that is not there.
    pub(crate) fn texts<const N: usize>(&self, names: [&str; N]) -> [Option<String>; N] {
        names.map(|name| self.text(name))
    }

    /// All facts of a session.
    pub(crate) async fn facts(&self, session: &str) -> Vec<Value> {
        let path = format!("/v1/sessions/{session}/events?dialect=tolka&format=json&limit=1000");
        let page = self.get(&path).await.json();
        assert_eq!(page["more"], false);
        page["events"].as_array().unwrap().iter().map(|event| event["data"].clone()).collect()
    }

    pub(crate) async fn facts_of(&self, session: &str, kind: &str) -> Vec<Value> {
        let facts = self.facts(session).await;
        facts.into_iter().filter(|fact| fact["type"] == kind).map(|fact| fact["data"].clone()).collect()
    }

    /// The same when there are so many, which others tell beside what was asked for.
    pub(crate) async fn facts_until(&self, session: &str, kind: &str, many: usize) -> Vec<Value> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let facts = self.facts_of(session, kind).await;
            assert!(facts.len() <= many && Instant::now() < deadline, "{facts:?}");
            if facts.len() == many {
                return facts;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The ids of the messages that an OpenCode client lists.
    pub(crate) async fn messages(&self, session: &str) -> Vec<String> {
        let listed = self.get(&format!("/session/{session}/message")).await.json();
        let id = |message: &Value| message["info"]["id"].as_str().unwrap().to_owned();
        listed.as_array().unwrap().iter().map(id).collect()
    }

    pub(crate) async fn revert(&self, session: &str, message: &str) -> Value {
        let reverted = self.post(&format!("/session/{session}/revert"), json!({ "messageID": message })).await;
        ok(&reverted)
    }

    pub(crate) async fn unrevert(&self, session: &str) -> Value {
        ok(&self.post(&format!("/session/{session}/unrevert"), json!({})).await)
    }

    /// A route of a dialog.
    pub(crate) async fn ask(&self, dialog: &str, route: &str) -> Value {
        ok(&self.get(&format!("/api/dialogs/{dialog}/{route}")).await)
    }

    pub(crate) async fn tell(&self, dialog: &str, route: &str, body: Value) -> Value {
        ok(&self.post(&format!("/api/dialogs/{dialog}/{route}"), body).await)
    }

    pub(crate) async fn restore(&self, dialog: &str, checkpoint: &Value) -> Value {
        self.tell(dialog, "restore", json!({ "checkpoint_id": checkpoint })).await
    }

    /// The checkpoints before each prompt, in their order.
    pub(crate) async fn before_prompts(&self, dialog: &str) -> Vec<Value> {
        let started = self.facts_of(dialog, "turn_started").await;
        started.into_iter().map(|started| started["checkpoint"].clone()).collect()
    }
}

pub(crate) fn ok(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// What was kept and why, by its path.
pub(crate) fn kept(done: &Value) -> Vec<(&str, &str)> {
    let kept = done["kept"].as_array().unwrap().iter();
    kept.map(|kept| (kept["path"].as_str().unwrap(), kept["why"].as_str().unwrap())).collect()
}

pub(crate) fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

//! The other side of a connection: which of our requests wait for which answer, and what is said to its own requests.
//!
//! It keeps nothing of what a server sends but what somebody waits for: answers that nobody asked for, news that we know
//! already and words that nobody reads are dropped where they are read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::Url;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::error::{McpError, cut};

/// An answer as it came; who asked reads of it what they need.
pub(crate) type Answer = Result<Box<RawValue>, McpError>;

/// For words of a server in an error.
const WORDS: usize = 2_000;
/// Of what it says while it works on something.
const PROGRESS: usize = 500;

#[derive(Debug)]
pub(crate) struct Peer {
    /// As `roots/list` tells it.
    root: Value,
    next: AtomicU64,
    /// A plain lock: it is never held while anything is waited for.
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// A list of it has changed. One mark for all of them: the lists are small, and a storm of news is one piece of news.
    stale: AtomicBool,
    pub(crate) news: Notify,
}

#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Answer>,
    progress: Option<mpsc::Sender<String>>,
}

/// What is to be done about a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It was an answer that somebody waited for.
    Answer,
    /// It was taken in, or is nobody's business.
    Nothing,
    /// It was a request, and this is the answer.
    Reply(Vec<u8>),
    /// It was no message that makes sense.
    Nonsense,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Progress<'a> {
    #[serde(rename = "progressToken")]
    token: u64,
    #[serde(default)]
    progress: Option<f64>,
    #[serde(default)]
    total: Option<f64>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
}

/// A request that waits for its answer. Dropping it is the end of that.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    peer: &'a Peer,
    pub(crate) id: u64,
    answer: oneshot::Receiver<Answer>,
}

impl Peer {
    pub(crate) fn new(workspace: &Path) -> Self {
        let name = workspace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Folders that are worked in are whole paths, and those have one.
        let uri = Url::from_file_path(workspace).map(String::from).unwrap_or_default();
        let root = json!({ "roots": [{ "uri": uri, "name": name }] });
        Peer {
            root,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            stale: AtomicBool::new(false),
            news: Notify::new(),
        }
    }

    /// The number of a request that is about to be sent.
    pub(crate) fn ticket(&self, progress: Option<mpsc::Sender<String>>) -> Ticket<'_> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(id, Waiting { answer: sender, progress });
        Ticket { peer: self, id, answer }
    }

    /// Whether a list has changed since this was last asked.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale.swap(false, Ordering::AcqRel)
    }

    /// There will be no more answers.
    pub(crate) fn give_up(&self, error: &McpError) {
        for (_, waiting) in self.waiting().drain() {
            let _ = waiting.answer.send(Err(error.clone()));
        }
    }

    pub(crate) fn hear(&self, bytes: &[u8]) -> Heard {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(bytes) else { return Heard::Nonsense };
        match (message.method, message.id) {
            (Some(method), None) => self.notified(&method, message.params),
            (Some(method), Some(id)) => Heard::Reply(self.reply(&method, id)),
            (None, Some(id)) => match (id.get().parse::<u64>(), message.result, message.error) {
                (Ok(id), Some(result), None) => self.answered(id, Ok(result.to_owned())),
                (Ok(id), _, Some(error)) => self.answered(id, Err(refused(error))),
                _ => Heard::Nonsense,
            },
            (None, None) => Heard::Nonsense,
        }
    }

    fn answered(&self, id: u64, answer: Answer) -> Heard {
        // One that came too late, came twice, or was never asked for.
        let Some(waiting) = self.waiting().remove(&id) else { return Heard::Nonsense };
        let _ = waiting.answer.send(answer);
        Heard::Answer
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) -> Heard {
        match method {
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => {
                self.stale.store(true, Ordering::Release);
                self.news.notify_one();
            }
            "notifications/progress" => {
                let told = params.and_then(|params| serde_json::from_str::<Progress<'_>>(params.get()).ok());
                let Some(told) = told else { return Heard::Nonsense };
                if let Some(line) = self.waiting().get(&told.token).and_then(|waiting| waiting.progress.as_ref()) {
                    // Who does not keep up needs not every word.
                    let _ = line.try_send(words(&told));
                }
            }
            _ => {}
        }
        Heard::Nothing
    }

    /// Servers may ask as well. What we said we cannot do is refused.
    fn reply(&self, method: &str, id: &RawValue) -> Vec<u8> {
        let (field, said) = match method {
            "ping" => ("result", json!({})),
            "roots/list" => ("result", self.root.clone()),
            "elicitation/create" => ("result", json!({ "action": "decline" })),
            _ => {
                let message = match method {
                    "sampling/createMessage" => "this client lends no model".to_owned(),
                    _ => format!("this client has no method {}", cut(method, 80)),
                };
                ("error", json!({ "code": -32601, "message": message }))
            }
        };
        // Whatever stands there as an id is sent back as it is, so long as it is short enough to be one.
        let id = if id.get().len() <= 256 { id.get() } else { "null" };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"{field}":{said}}}"#).into_bytes()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        // No panic can leave a map half written.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket<'_> {
    /// May be dropped and asked again.
    pub(crate) async fn answer(&mut self) -> Answer {
        let lost = || McpError::Gone("the connection ended".to_owned());
        (&mut self.answer).await.unwrap_or_else(|_| Err(lost()))
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.peer.waiting().remove(&self.id);
    }
}

fn refused(error: &RawValue) -> McpError {
    match serde_json::from_str::<Problem>(error.get()) {
        Ok(problem) => McpError::Refused { code: problem.code, message: cut(problem.message.trim(), WORDS) },
        Err(_) => McpError::Unreadable("an error that says nothing".to_owned()),
    }
}

fn words(told: &Progress<'_>) -> String {
    let message = told.message.as_deref().map(|message| cut(message.trim(), PROGRESS)).unwrap_or_default();
    let share = match (told.progress, told.total) {
        (Some(done), Some(total)) => format!("{done} of {total}"),
        (Some(done), None) => format!("{done}"),
        (None, _) => String::new(),
    };
    match (message.is_empty(), share.is_empty()) {
        (true, _) => share,
        (false, true) => message,
        (false, false) => format!("{share}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> Peer {
        Peer::new(Path::new("/w/a b"))
    }

    #[tokio::test]
    async fn an_answer_goes_to_who_asked_and_to_nobody_else() {
        let peer = peer();
        let (mut one, mut two) = (peer.ticket(None), peer.ticket(None));
        assert_eq!(peer.hear(br#"{"jsonrpc":"2.0","id":2,"result":{"a":1}}"#), Heard::Answer);
        assert_eq!(peer.hear(br#"{"jsonrpc":"2.0","id":2,"result":{"a":2}}"#), Heard::Nonsense);
        assert_eq!(peer.hear(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#), Heard::Nonsense);
        assert_eq!(peer.hear(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#), Heard::Answer);
        assert_eq!(two.answer().await.unwrap().get(), r#"{"a":1}"#);
        assert_eq!(one.answer().await.unwrap_err(), McpError::Refused { code: -1, message: "no".into() });
    }

    #[tokio::test]
    async fn a_ticket_that_is_dropped_is_forgotten() {
        let peer = peer();
        drop(peer.ticket(None));
        assert!(peer.waiting().is_empty());
        let mut ticket = peer.ticket(None);
        peer.give_up(&McpError::Gone("it died".into()));
        assert_eq!(ticket.answer().await.unwrap_err(), McpError::Gone("it died".into()));
    }

    #[test]
    fn what_is_no_message_is_nonsense() {
        let peer = peer();
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        for text in
            ["", "hello", "[]", "{}", "[{}]", r#"{"id":1}"#, r#"{"id":"1","result":1}"#, r#"{"id":1,"id":1}"#, &deep]
        {
            assert_eq!(peer.hear(text.as_bytes()), Heard::Nonsense, "{}", cut(text, 40));
        }
    }

    #[test]
    fn its_requests_are_answered() {
        let peer = peer();
        let ask = |method: &str| {
            let heard = peer.hear(format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}"}}"#).as_bytes());
            let Heard::Reply(reply) = heard else { panic!("{heard:?}") };
            serde_json::from_slice::<Value>(&reply).unwrap()
        };
        assert_eq!(ask("ping"), json!({ "jsonrpc": "2.0", "id": "x", "result": {} }));
        assert_eq!(ask("roots/list")["result"]["roots"][0]["uri"], "file:///w/a%20b");
        assert_eq!(ask("elicitation/create")["result"]["action"], "decline");
        assert_eq!(ask("sampling/createMessage")["error"]["code"], -32601);
    }

    #[test]
    fn a_storm_of_news_is_one_piece_of_news() {
        let peer = peer();
        for _ in 0..10_000 {
            peer.hear(br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        }
        assert!(peer.is_stale());
        assert!(!peer.is_stale());
    }

    #[test]
    fn progress_is_told_to_who_waits_and_never_piles_up() {
        let peer = peer();
        let (line, mut told) = mpsc::channel(2);
        let ticket = peer.ticket(Some(line));
        for n in 0..100 {
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":{n},"total":100,"message":"m"}}}}"#,
                ticket.id
            );
            peer.hear(text.as_bytes());
        }
        assert_eq!(told.try_recv().unwrap(), "0 of 100: m");
        assert_eq!(told.try_recv().unwrap(), "1 of 100: m");
        assert!(told.try_recv().is_err());
    }
}

//! One server, whatever becomes of it: connected when it is first needed, started anew when it dies, given up when that
//! does not help, and in each of these states with words for it.

mod keeping;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::config::Config;
use crate::connection::Connection;
use crate::content::{Contents, Returned, Said};
use crate::error::McpError;
use crate::lists::Lists;
use crate::stdio::Tail;
use crate::ways::Ways;

/// How a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Nobody has needed it yet, or nobody has for long.
    Idle,
    /// Somebody said that it shall not be used.
    Disabled,
    Connecting,
    Ready,
    /// It was tried as often as makes sense.
    Failed,
    /// It wants to know who asks.
    NeedsAuth,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Disabled => "disabled",
            State::Connecting => "connecting",
            State::Ready => "ready",
            State::Failed => "failed",
            State::NeedsAuth => "needs_auth",
        }
    }
}

/// A server as it is now.
#[derive(Debug, Clone)]
pub struct Status {
    pub state: State,
    /// What went wrong last, with the last words of a program. Still there while it is tried again.
    pub error: Option<String>,
    /// How often it was started anew since it was first needed.
    pub restarts: u32,
    /// What it calls itself, and its version.
    pub about: Option<(String, String)>,
    pub lists: Arc<Lists>,
    connection: Option<Arc<Connection>>,
}

impl Status {
    fn new(state: State) -> Self {
        Status { state, error: None, restarts: 0, about: None, lists: Arc::default(), connection: None }
    }

    /// Of one that nobody has needed yet.
    pub(crate) fn unused(config: &Config) -> Self {
        Status::new(if config.enabled { State::Idle } else { State::Disabled })
    }
}

/// What was said about it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// To be connected when it is needed.
    WhenNeeded,
    Now,
    Never,
}

/// A server. Its connection ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    orders: watch::Sender<Order>,
    keeping: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    workspace: PathBuf,
    ways: Arc<dyn Ways>,
    status: watch::Sender<Status>,
    /// Somebody needs it.
    needed: Notify,
    /// When it was last of use.
    used: Mutex<Instant>,
    /// Somebody has waited for it in vain: nobody does again, until it is there.
    is_late: AtomicBool,
    tail: Arc<Tail>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

impl Server {
    /// Within a tokio runtime. Nothing is started before somebody needs it.
    pub fn new(config: Config, workspace: PathBuf, ways: Arc<dyn Ways>) -> Self {
        let order = if config.enabled { Order::WhenNeeded } else { Order::Never };
        let first = Status::unused(&config);
        let (orders, heard) = watch::channel(order);
        let shared = Arc::new(Shared {
            config,
            workspace,
            ways,
            status: watch::Sender::new(first),
            needed: Notify::new(),
            used: Mutex::new(Instant::now()),
            is_late: AtomicBool::new(false),
            tail: Arc::default(),
        });
        let keeping = tokio::spawn(keeping::keep(shared.clone(), heard));
        Server { shared, orders, keeping }
    }

    pub fn name(&self) -> &str {
        &self.shared.config.name
    }

    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub fn status(&self) -> Status {
        self.shared.status.borrow().clone()
    }

    /// Lets it be connected, if it is not and may be.
    pub fn need(&self) {
        self.shared.touch();
        self.shared.needed.notify_one();
    }

    /// Connects it now: also one that was disconnected or given up.
    pub fn connect(&self) {
        self.shared.is_late.store(false, Ordering::Relaxed);
        // The same order once more is news, too.
        self.orders.send_replace(Order::Now);
    }

    pub fn disconnect(&self) {
        self.orders.send_replace(Order::Never);
    }

    /// Waits until it is ready or is known not to be, so long at most, and only once in vain.
    pub async fn settled(&self, patience: Duration) {
        if self.shared.is_late.load(Ordering::Relaxed) {
            return;
        }
        let mut status = self.shared.status.subscribe();
        let is_settled = |status: &Status| match status.state {
            State::Idle | State::Connecting => status.error.is_some(),
            State::Disabled | State::Ready | State::Failed | State::NeedsAuth => true,
        };
        if timeout(patience, status.wait_for(is_settled)).await.is_err() {
            self.shared.is_late.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until the state is one of these; `None` if it does not come to that in time.
    pub async fn until(&self, states: &[State], patience: Duration) -> Option<Status> {
        let mut status = self.shared.status.subscribe();
        let waited = timeout(patience, status.wait_for(|status| states.contains(&status.state))).await;
        waited.ok()?.ok().map(|status| status.clone())
    }

    /// Calls a tool. What it tells of its progress goes to `heard`. To drop this is to cancel the call.
    pub async fn call(&self, tool: &str, input: Value, heard: mpsc::Sender<String>) -> Result<Returned, McpError> {
        let params = json!({ "name": tool, "arguments": input });
        let answer = self.ask("tools/call", params, Some(heard)).await?;
        Returned::read(&answer).map_err(|error| self.shared.told(error))
    }

    pub async fn read(&self, uri: &str) -> Result<Vec<Contents>, McpError> {
        let answer = self.ask("resources/read", json!({ "uri": uri }), None).await?;
        Contents::read(&answer).map_err(|error| self.shared.told(error))
    }

    /// The messages of a prompt.
    pub async fn prompt(&self, name: &str, arguments: Value) -> Result<Vec<Said>, McpError> {
        let answer = self.ask("prompts/get", json!({ "name": name, "arguments": arguments }), None).await?;
        Said::read(&answer).map_err(|error| self.shared.told(error))
    }

    async fn ask(&self, method: &str, params: Value, heard: Option<mpsc::Sender<String>>) -> crate::peer::Answer {
        let connection = self.connection().await?;
        let answer = connection.request(method, params, self.shared.config.timeout, heard).await;
        self.shared.touch();
        answer.map_err(|error| self.shared.told(error))
    }

    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        self.need();
        let mut status = self.shared.status.subscribe();
        let is_decided = |status: &Status| !matches!(status.state, State::Idle | State::Connecting);
        let limit = self.shared.config.timeout;
        let waited = timeout(limit, status.wait_for(is_decided)).await;
        let status = match waited {
            Ok(Ok(status)) => status.clone(),
            Ok(Err(_)) | Err(_) => return Err(McpError::TimedOut(limit)),
        };
        let why = |state: State| match (state, status.error.clone()) {
            (State::Disabled, _) => "it was disconnected".to_owned(),
            (state, None) => format!("it is {}", state.name()),
            (_, Some(error)) => error,
        };
        status.connection.clone().ok_or_else(|| McpError::Gone(why(status.state)))
    }
}

impl Shared {
    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error without anything in it that is secret; of a program that died, with its last words.
    fn told(&self, error: McpError) -> McpError {
        let scrubbed = |text: String| self.config.scrubbed(&text);
        match error {
            McpError::Gone(why) => McpError::Gone(scrubbed(self.with_last_words(&why))),
            McpError::Refused { code, message } => McpError::Refused { code, message: scrubbed(message) },
            McpError::Unreadable(why) => McpError::Unreadable(scrubbed(why)),
            McpError::NeedsAuth(why) => McpError::NeedsAuth(scrubbed(why)),
            McpError::TimedOut(time) => McpError::TimedOut(time),
        }
    }

    fn with_last_words(&self, why: &str) -> String {
        let last = self.tail.text();
        if last.is_empty() || why.contains(&last) {
            return why.to_owned();
        }
        let lines: Vec<&str> = last.lines().rev().take(8).collect();
        let last = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
        format!("{why}; its last words: {last}")
    }
}

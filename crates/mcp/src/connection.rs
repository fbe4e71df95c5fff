//! A connection that stands: what was agreed on at its beginning, and requests over it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::config::{Config, Reach};
use crate::error::{McpError, cut};
use crate::http::Http;
use crate::peer::{Answer, Peer};
use crate::stdio::{self, Tail};
use crate::ways::{Program, Ways};

/// What we speak; a server that speaks another says so, and for what we do they are alike.
const VERSION: &str = "2025-11-25";
/// Messages on their way to a server. One that takes none of them is asked nothing more.
const ON_THE_WAY: usize = 64;
/// A call that keeps telling how far it is may take so many times the usual time.
const PATIENCE: u32 = 10;
/// In a row in vain: it has nothing to say without being asked, or says so in a way that we do not know.
const OVERHEARD: u32 = 5;

pub(crate) struct Connection {
    peer: Arc<Peer>,
    out: mpsc::Sender<Vec<u8>>,
    http: Option<Arc<Http>>,
    ended: watch::Receiver<Option<McpError>>,
    /// Of a server at an address, of which a request finds out that it has gone.
    end: Option<watch::Sender<Option<McpError>>>,
    /// Whoever drops the connection ends them.
    tasks: JoinSet<()>,
    pub(crate) about: About,
}

/// What a server said of itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) has_tools: bool,
    pub(crate) has_resources: bool,
    pub(crate) has_prompts: bool,
}

#[derive(Deserialize)]
struct Welcome {
    #[serde(rename = "protocolVersion")]
    version: String,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(rename = "serverInfo", default)]
    server: Named,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Capabilities {
    tools: Option<serde::de::IgnoredAny>,
    resources: Option<serde::de::IgnoredAny>,
    prompts: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: String,
    version: String,
}

impl Connection {
    /// Starts or reaches the server and greets it. Waits as long as that takes: who calls this has a time-out.
    pub(crate) async fn open(
        config: &Config,
        workspace: &Path,
        ways: &dyn Ways,
        tail: Arc<Tail>,
    ) -> Result<Self, McpError> {
        let peer = Arc::new(Peer::new(workspace));
        let (out, from_us) = mpsc::channel(ON_THE_WAY);
        let (end, ended) = watch::channel(None);
        let mut tasks = JoinSet::new();
        let (http, end) = match &config.reach {
            Reach::Program { command, env } => {
                let program = ways.start(&Program { command, env, workspace });
                let program = program.map_err(|error| McpError::Gone(format!("it cannot be started: {error}")))?;
                stdio::talk(program, peer.clone(), tail, (out.clone(), from_us), end, &mut tasks);
                (None, None)
            }
            Reach::Http { url, headers } => {
                let url = Url::parse(url).map_err(|error| McpError::Gone(format!("its address: {error}")))?;
                let client = ways.client(&url).map_err(McpError::Gone)?;
                let http = Arc::new(Http::new(client, url, headers)?);
                tasks.spawn(deliver(http.clone(), peer.clone(), (out.clone(), from_us)));
                (Some(http), Some(end))
            }
        };
        let mut connection = Connection { peer, out, http, ended, end, tasks, about: About::default() };
        connection.greet(ways.times().overhear).await?;
        Ok(connection)
    }

    async fn greet(&mut self, pause: Duration) -> Result<(), McpError> {
        let params = json!({
            "protocolVersion": VERSION,
            "capabilities": { "roots": { "listChanged": false } },
            "clientInfo": { "name": "tolka", "version": env!("CARGO_PKG_VERSION") },
        });
        // Who opens the connection has a time-out for all of it.
        let answer = self.ask("initialize", params, None).await?;
        let welcome: Welcome = read(&answer)?;
        let has = welcome.capabilities;
        self.about = About {
            name: cut(&welcome.server.name, 200),
            version: cut(&welcome.server.version, 100),
            has_tools: has.tools.is_some(),
            has_resources: has.resources.is_some(),
            has_prompts: has.prompts.is_some(),
        };
        if let Some(http) = &self.http {
            http.agree(&welcome.version);
        }
        self.notify("notifications/initialized", &json!({}))?;
        if let Some(http) = self.http.clone() {
            self.tasks.spawn(overhear(http, self.peer.clone(), self.out.clone(), pause));
        }
        Ok(())
    }

    /// Asks, and waits so long for the answer; longer if it tells meanwhile how far it is, and somebody listens to that.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
        heard: Option<mpsc::Sender<String>>,
    ) -> Answer {
        let Some(heard) = heard else {
            let asked = timeout(limit, self.ask(method, params, None)).await;
            return asked.unwrap_or(Err(McpError::TimedOut(limit)));
        };
        let (line, mut progress) = mpsc::channel(16);
        let mut asked = std::pin::pin!(self.ask(method, params, Some(line)));
        let (begun, last) = (Instant::now(), limit * PATIENCE);
        let mut due = begun + limit;
        loop {
            tokio::select! {
                biased;
                answer = &mut asked => {
                    // What was told before it may have come in the same breath.
                    while let Ok(words) = progress.try_recv() {
                        let _ = heard.try_send(words);
                    }
                    return answer;
                }
                Some(words) = progress.recv() => {
                    due = (Instant::now() + limit).min(begun + last);
                    let _ = heard.try_send(words);
                }
                () = sleep_until(due) => return Err(McpError::TimedOut(due - begun)),
            }
        }
    }

    /// When it is dropped before the answer is there, the server is told that nobody waits any more.
    async fn ask(&self, method: &str, mut params: Value, progress: Option<mpsc::Sender<String>>) -> Answer {
        let mut ticket = self.peer.ticket(progress.clone());
        if progress.is_some() {
            params["_meta"] = json!({ "progressToken": ticket.id });
        }
        let message = json!({ "jsonrpc": "2.0", "id": ticket.id, "method": method, "params": params });
        let mut open = Open { connection: self, id: ticket.id, is_open: method != "initialize" };
        let answer = match &self.http {
            None => {
                self.send(&message)?;
                ticket.answer().await
            }
            Some(http) => {
                let posted = http.post(message.to_string().into_bytes(), &self.peer, &self.out);
                tokio::select! {
                    biased;
                    answer = ticket.answer() => answer,
                    posted = posted => match posted {
                        // The answer was the last that came.
                        Ok(()) => timeout(Duration::ZERO, ticket.answer())
                            .await
                            .unwrap_or_else(|_| Err(McpError::Unreadable("nothing".to_owned()))),
                        Err(error) => Err(self.is_lost(error)),
                    },
                }
            }
        };
        open.is_open = false;
        answer
    }

    /// Notes that a server at an address is not there any more, if that is what an error says.
    fn is_lost(&self, error: McpError) -> McpError {
        if let (Some(end), McpError::Gone(_)) = (&self.end, &error) {
            end.send_replace(Some(error.clone()));
        }
        error
    }

    fn notify(&self, method: &str, params: &Value) -> Result<(), McpError> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    fn send(&self, message: &Value) -> Result<(), McpError> {
        self.out.try_send(message.to_string().into_bytes()).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => McpError::Gone("it does not read what it is sent".to_owned()),
            mpsc::error::TrySendError::Closed(_) => McpError::Gone("it takes no more messages".to_owned()),
        })
    }

    /// Waits until a list has changed.
    pub(crate) async fn news(&self) {
        loop {
            self.peer.news.notified().await;
            if self.peer.is_stale() {
                return;
            }
        }
    }

    /// Waits until it is over. A server at an address is over when it says so to a request.
    pub(crate) async fn ended(&self) -> McpError {
        let mut ended = self.ended.clone();
        let why = ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| McpError::Gone("the connection ended".to_owned()))
    }

    /// Ends it in good manners. Its tasks, and a program with them, end when the last who uses it has let it go.
    pub(crate) async fn close(&self) {
        self.peer.give_up(&McpError::Gone("it was disconnected".to_owned()));
        if let Some(http) = &self.http {
            http.leave().await;
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("about", &self.about).finish_non_exhaustive()
    }
}

/// A request that is under way.
struct Open<'a> {
    connection: &'a Connection,
    id: u64,
    is_open: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let params = json!({ "requestId": self.id, "reason": "nobody waits for it any more" });
            let _ = self.connection.notify("notifications/cancelled", &params);
        }
    }
}

/// Posts what wants no answer, one after the other.
async fn deliver(
    http: Arc<Http>,
    peer: Arc<Peer>,
    (out, mut from_us): (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>),
) {
    while let Some(message) = from_us.recv().await {
        http.post_soon(message, &peer, &out).await;
    }
}

/// What a server says without being asked is heard as long as it keeps the line open; some close it now and then.
async fn overhear(http: Arc<Http>, peer: Arc<Peer>, out: mpsc::Sender<Vec<u8>>, pause: Duration) {
    let mut in_vain = 0;
    while in_vain < OVERHEARD {
        in_vain = match http.overhear(&peer, &out).await {
            Ok(1..) => 0,
            Ok(0) | Err(_) => in_vain + 1,
        };
        tokio::time::sleep(pause * (1 << in_vain)).await;
    }
}

/// What is needed of an answer; the rest is skipped without being kept.
pub(crate) fn read<'a, T: Deserialize<'a>>(answer: &'a RawValue) -> Result<T, McpError> {
    serde_json::from_str(answer.get()).map_err(|error| McpError::Unreadable(error.to_string()))
}

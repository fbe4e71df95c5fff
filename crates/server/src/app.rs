//! What every route can reach, and how a server comes up and goes down.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tolka_agent::native::permission::{Grants, Rule};
use tolka_agent::native::processes::Processes;
use tolka_facts::event::{Model, VersionChanged};
use tolka_facts::{Event, SessionId, Time, Tip};
use tolka_journal::{Journal, Kin, Mark, Scope, SessionQuery, SessionRow};
use tolka_mcp::Hub;
use tolka_session::{Desk, SessionError};
use tolka_workspace::slash::Slash;

use crate::fault::{Family, Fault};
use crate::metrics::Metrics;
use crate::stream::Tongues;
use crate::token::Keyring;
use crate::{agentsmithy, listen, onyx, opencode, page, v1};

/// Clients come back within this time after a restart.
const RECONNECT_MICROS: u64 = 15_000_000;
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Clone)]
pub struct Config {
    pub host: IpAddr,
    /// 0 picks a free one.
    pub port: u16,
    /// Where agents work when a client names no folder; others must be inside it.
    pub workspace: PathBuf,
    /// Everything the server keeps.
    pub data: PathBuf,
    /// A token given on the command line; it may do everything.
    pub token: Option<String>,
    pub allow_hosts: Vec<String>,
    pub allow_origins: Vec<String>,
    /// Streams that may be open at once.
    pub max_readers: usize,
    /// How long a stream gathers what follows a first fact into one write. Zero: every fact is told at once.
    pub gather: Duration,
    pub hands: Hands,
}

/// What the built-in agent may do on this machine, for those who ask.
#[derive(Debug, Clone, Default)]
pub struct Hands {
    /// In their order; the last one that matches counts.
    pub rules: Vec<Rule>,
    /// What people have allowed always; they can take it back here.
    pub grants: Option<Arc<Grants>>,
    /// Servers of tools that it may use.
    pub mcp: Option<Arc<Hub>>,
    /// What commands run in.
    pub sandbox: Option<Sandbox>,
    /// Commands that go on beside turns.
    pub processes: Option<Arc<Processes>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// `bubblewrap`, `landlock` or `none`.
    pub level: String,
    /// `on`, `off` or `list`.
    pub network: String,
    /// The list.
    pub hosts: Vec<String>,
    /// What commands can do all the same, in words.
    pub cannot_stop: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "{host} can be reached from other machines, and no token is set; add one with `tolka token add`, pass --token, \
         or listen on 127.0.0.1"
    )]
    OpenToAll { host: IpAddr },
    #[error("cannot listen on {address}: {error}; another server may run there, try --port 0")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error(transparent)]
    Tokens(#[from] crate::token::TokenError),
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Shared by all requests; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) desk: Desk,
    pub(crate) tongues: Tongues,
    pub(crate) keyring: Keyring,
    pub(crate) metrics: Metrics,
    /// Turns true when the server goes down; streams end on it.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) started: Time,
    /// Where it listens; `config.port` may have left the choice open.
    pub(crate) port: u16,
    /// The journal's head before this run wrote anything.
    pub(crate) began_at: u64,
    /// Whether the journal has its first fact, or will not get it. Requests wait for it, so that nobody is told that a
    /// server which has never run was updated.
    begun: watch::Sender<bool>,
    /// Held from the look for a current dialog to the choice of a new one: first messages that come at once would each
    /// find none otherwise, and each make its own.
    pub(crate) choosing: Mutex<()>,
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        self.desk.journal()
    }

    pub(crate) async fn begun(&self) {
        if !*self.begun.borrow() {
            let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
        }
    }

    /// Where a feed starts for a client that names no cursor: at now. Right after a start that is the moment before
    /// it, so that a client which reconnects without a cursor still learns how the last run's turns ended.
    pub(crate) fn feed_start(&self) -> u64 {
        let head = *self.journal().watch(&Scope::All).borrow();
        let is_fresh = Time::now().micros().saturating_sub(self.started.micros()) < RECONNECT_MICROS;
        if is_fresh && self.began_at > 0 { self.began_at } else { head }
    }

    /// A session as lists show it, without waking its actor. The server's own journal is nobody's session, and a deleted
    /// one is gone.
    pub(crate) async fn find(&self, id: &SessionId) -> Result<Option<SessionRow>, Fault> {
        let row = if id.is_server() { None } else { self.journal().session(id).await? };
        Ok(row.filter(|row| !row.head.deleted))
    }

    /// Deletes a session, and ends the servers of tools that it brought along.
    pub(crate) async fn delete(&self, id: &SessionId) -> Result<(), SessionError> {
        self.desk.delete(id).await?;
        if let Some(hub) = &self.config.hands.mcp {
            hub.forget(id.as_str());
        }
        Ok(())
    }

    /// Sessions as lists show them, the latest changed first: so many after those that are skipped. Subagents' are told
    /// inside their parents'.
    pub(crate) async fn listed(&self, skipped: usize, limit: usize) -> Result<Vec<SessionRow>, Fault> {
        let query = SessionQuery {
            limit: skipped.saturating_add(limit).max(1),
            kin: Kin::NoSubagents,
            unarchived: true,
            ..SessionQuery::default()
        };
        let mut rows = self.journal().sessions(query).await?;
        rows.truncate(skipped.saturating_add(limit));
        rows.drain(..skipped.min(rows.len()));
        Ok(rows)
    }

    pub(crate) async fn mark(&self, session: &SessionId, mark: Mark<'_>) -> Result<Option<u64>, Fault> {
        Ok(self.journal().mark(session, &mark.to_string()).await?)
    }

    /// A session as it stood after a fact, at the cost of a few hundred facts.
    pub(crate) async fn tip_at(&self, session: &SessionId, seq: u64) -> Result<Tip, Fault> {
        Ok(tolka_journal::tip_at(self.journal().as_ref(), session, seq).await?)
    }

    /// The model of an agent, or of the first one, that a client means. Onyx's clients name those of an Onyx server, which
    /// mean nothing here; the agent then works with its own.
    pub(crate) fn find_model(&self, agent: Option<&str>, model: &Model) -> Option<Model> {
        let agents = self.desk.agents();
        agents.iter().find(|known| agent.is_none_or(|name| known.name() == name))?.find_model(model)
    }

    /// The folder that a client asks for, if agents may work there: the configured one, one inside it, or one of a fork.
    pub(crate) async fn workspace(&self, wanted: Option<&str>) -> Result<String, Fault> {
        let root = &self.config.workspace;
        let Some(wanted) = wanted else { return Ok(root.display().to_string()) };
        // Resolved first, so that neither `..` nor a link leads out.
        let folder = match tokio::fs::canonicalize(wanted).await {
            Ok(folder) => tokio::fs::metadata(&folder).await.is_ok_and(|it| it.is_dir()).then_some(folder),
            Err(_) => None,
        };
        match folder {
            Some(folder) if folder.starts_with(root) || self.desk.is_of_fork(&folder).await => {
                Ok(folder.display().to_string())
            }
            Some(_) => {
                Err(Fault::Forbidden(format!("{wanted} is outside of the server's workspace, {}.", root.display())))
            }
            None => Err(Fault::BadRequest(format!("{wanted} is not a folder."))),
        }
    }

    /// What can be called by a name in a folder: of the agent by that name, or of the usual one.
    pub(crate) async fn slashes(&self, agent: Option<&str>, folder: String) -> Result<Vec<Slash>, Fault> {
        let agents = self.desk.agents();
        let agent = agents.iter().find(|known| agent.is_none_or(|name| known.name() == name));
        let Some(agent) = agent.cloned() else { return Ok(Vec::new()) };
        let read = tokio::task::spawn_blocking(move || agent.commands(Path::new(&folder)));
        read.await.map_err(|_| Fault::Internal)
    }
}

/// A server that listens; it answers from the moment [`Server::bind`] returns and `run` is polled.
pub struct Server {
    app: App,
    listener: TcpListener,
    address: SocketAddr,
    stop: watch::Sender<bool>,
}

impl Server {
    pub async fn bind(config: Config, desk: Desk) -> Result<Self, StartError> {
        let exposed = !config.host.is_loopback();
        let keyring = Keyring::open(&config.data, config.token.as_deref(), exposed)?;
        if exposed && keyring.is_empty() {
            return Err(StartError::OpenToAll { host: config.host });
        }
        let wanted = SocketAddr::new(config.host, config.port);
        let failed = |error| StartError::Listen { address: wanted, error };
        let listener = listen::bind(wanted).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let head = *desk.journal().watch(&Scope::All).borrow();
        let (stop, stopping) = watch::channel(false);
        let app = App(Arc::new(Shared {
            tongues: Tongues::new(desk.journal().clone(), config.gather),
            config,
            desk,
            keyring,
            metrics: Metrics::default(),
            stopping,
            started: Time::now(),
            port: address.port(),
            began_at: head,
            begun: watch::Sender::new(head > 0),
            choosing: Mutex::default(),
        }));
        Ok(Server { app, listener, address, stop })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether requests need a token.
    pub fn is_locked(&self) -> bool {
        self.app.keyring.is_locked()
    }

    /// Serves until `shutdown` resolves; then turn streams end, feeds are cut, and turns end as interrupted.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Server { app, listener, stop, .. } = self;
        let router = router(app.clone());
        let recovering = app.clone();
        let beginning = Beginning(app.begun.clone());
        let recovery = tokio::spawn(async move {
            let _beginning = beginning;
            match recovering.desk.recover().await {
                Ok(0) => {}
                Ok(n) => tracing::info!(sessions = n, "took up what the last run left open"),
                Err(error) => tracing::error!(%error, "some sessions could not be taken up"),
            }
            if let Err(error) = note_version(&recovering.desk).await {
                tracing::error!(%error, "the version could not be noted");
            }
        });
        listen::serve(listener, router, app.clone(), shutdown, stop).await;
        recovery.abort();
    }
}

/// Lets requests in when it is over, also if that is by a panic: they would wait for ever.
struct Beginning(watch::Sender<bool>);

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Notes in the server's own journal when another version has taken over: clients show that they may have to reload.
async fn note_version(desk: &Desk) -> Result<(), SessionError> {
    let (scope, mut last, mut at) = (Scope::Session(SessionId::server()), None, 0);
    loop {
        let page = desk.journal().read(&scope, at, 256).await?;
        let Some(entry) = page.last() else { break };
        at = entry.place;
        for entry in &page {
            if let Event::VersionChanged(changed) = &entry.fact.event {
                last = Some(changed.version.clone());
            }
        }
    }
    if last.as_deref() == Some(VERSION) {
        return Ok(());
    }
    desk.note(VersionChanged { version: VERSION.to_owned() }).await
}

fn router(app: App) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/metrics", get(v1::metrics))
        .merge(page::routes())
        .merge(onyx::routes())
        .merge(agentsmithy::routes())
        .merge(opencode::routes())
        .route("/v1/", get(v1::about))
        .nest("/v1", v1::routes())
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn no_route(uri: axum::http::Uri) -> Response {
    Fault::NotFound(format!("nothing is at {}", uri.path())).into_response(Family::of(uri.path()))
}

async fn wrong_method(method: axum::http::Method, uri: axum::http::Uri) -> Response {
    Fault::WrongMethod(format!("{} does not take {method}", uri.path())).into_response(Family::of(uri.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_beginning_that_panics_lets_requests_in() {
        let begun = watch::Sender::new(false);
        let beginning = Beginning(begun.clone());
        let recovery = tokio::spawn(async move {
            let _beginning = beginning;
            panic!("as a recovery could");
        });
        assert!(recovery.await.unwrap_err().is_panic());
        assert!(*begun.borrow());
    }
}

//! A server to talk to: the one that has the data folder, or one of our own for as long as we need it.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tolka_agent::native::processes::Processes;
use tolka_facts::Ids;
use tolka_journal::{Sqlite, SqliteOptions};
use tolka_server::{Config, Hands, Server};
use tolka_session::Desk;

use crate::agents::Crew;
use crate::client::Client;
use crate::pruning::prune;
use crate::saving::Saving;

/// A server of this process, with all that it holds.
pub(crate) struct Hosted {
    pub(crate) server: Server,
    /// What there is to say about its agents at the start.
    pub(crate) says: Vec<String>,
    journal: Arc<Sqlite>,
    pruning: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Hands on what becomes of processes.
    telling: Pin<Box<dyn Future<Output = ()> + Send>>,
    processes: Arc<Processes>,
}

impl Hosted {
    /// The `crew` is made while the journal is opened.
    pub(crate) async fn open(
        config: Config,
        saving: Saving,
        crew: impl Future<Output = Result<Crew>>,
        max_bytes: Option<u64>,
    ) -> Result<Self> {
        let options = SqliteOptions { dir: config.data.clone(), owner: String::new(), max_bytes };
        let opening = tokio::task::spawn_blocking(move || Sqlite::open(&options));
        let crew = crew.await;
        let journal = opening.await??;
        let Crew { agents, hands, says, processes, mut news } = crew?;
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| anyhow::anyhow!("the system gives no random numbers: {error}"))?;
        let ids = Arc::new(Ids::seeded(u64::from_le_bytes(seed)));
        let desk = Desk::with_options(journal.clone(), agents, ids, saving.options());
        let pruning = Box::pin(prune(desk.clone(), saving.policy));
        let teller = desk.clone();
        let telling = Box::pin(async move {
            while let Some((session, draft)) = news.recv().await {
                if let Err(error) = teller.tell(&session, draft).await {
                    tracing::warn!(%session, %error, "what became of a process was not told");
                }
            }
        });
        let server = Server::bind(Config { hands, ..config }, desk).await?;
        journal.announce(&format!("http://{}", server.address()))?;
        Ok(Hosted { server, says, journal, pruning, telling, processes })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    pub(crate) async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        tokio::select! {
            () = self.server.run(shutdown) => {}
            () = self.pruning => {}
            () = self.telling => {}
        }
        // They are told as ended; here they are.
        self.processes.end_all("stop").await;
        tokio::task::spawn_blocking(move || self.journal.close()).await.context("the journal was not closed well")
    }
}

/// A server that a command talks to. One that the command started ends with [`Attached::leave`].
pub(crate) struct Attached {
    pub(crate) client: Client,
    own: Option<(oneshot::Sender<()>, JoinHandle<Result<()>>)>,
}

impl Attached {
    /// The server that runs on this data folder, if there is one.
    pub(crate) fn to(data: &Path, token: Option<String>) -> Result<Option<Self>> {
        let Some(owner) = Sqlite::owner_of(data)? else { return Ok(None) };
        let client = Client::new(&owner.text, token)
            .with_context(|| format!("process {} has {} open but serves nothing", owner.pid, data.display()))?;
        Ok(Some(Attached { client, own: None }))
    }

    /// A server of our own, for as long as we need it.
    pub(crate) async fn own(
        data: &Path,
        workspace: &Path,
        saving: Saving,
        crew: impl Future<Output = Result<Crew>>,
    ) -> Result<Self> {
        let token = secret()?;
        let config = Config { token: Some(token.clone()), port: 0, ..config(data.to_owned(), workspace.to_owned()) };
        let hosted = Hosted::open(config, saving, crew, None).await?;
        let client = Client::new(&hosted.url(), Some(token))?;
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(hosted.run(async {
            let _ = stopped.await;
        }));
        Ok(Attached { client, own: Some((stop, serving)) })
    }

    pub(crate) async fn leave(self) -> Result<()> {
        if let Some((stop, serving)) = self.own {
            let _ = stop.send(());
            serving.await??;
        }
        Ok(())
    }
}

/// A server that only this process should use needs a token that only this process has.
fn secret() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("the system gives no random numbers: {error}"))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(crate) fn config(data: PathBuf, workspace: PathBuf) -> Config {
    Config {
        host: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 4096,
        workspace,
        data,
        token: None,
        allow_hosts: Vec::new(),
        allow_origins: Vec::new(),
        max_readers: 10_000,
        hands: Hands::default(),
        gather: Duration::ZERO,
    }
}

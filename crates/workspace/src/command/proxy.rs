//! The way of commands to the hosts on a list: HTTP's own, tunnels and plain requests.
//!
//! It looks names up itself, judges the addresses that it got, and connects to one of these: a name that has another
//! address a moment later gains nothing. Each command has a pass, so that what it was refused can be told with it, and so
//! that nobody else on the machine uses this way. What is asked for beyond a host and a port is neither kept nor logged.

mod relay;
mod request;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::network::Host;
use super::order::Way;
use super::scratch::Scratch;
use crate::address::authority;
use crate::address::is_public;
use relay::{head, relay};
use request::Request;

/// At the same time, of all commands.
const MOST: usize = 512;

/// Of these, for the commands of one workspace: those of another find room.
const MOST_OF_ONE: usize = 96;

/// That have not said yet what they want and who they are. When one more comes, the oldest of them goes: who has something
/// to say says it at once.
const MOST_SILENT: usize = 64;

/// For a client to say what it wants, for a name to be looked up, and for a host to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Different hosts that are remembered as refused, of one command.
const REMEMBERED: usize = 20;

/// The port in a network of its own: it is free there.
const INNER: u16 = 3128;

type Looked = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;
type LookUp = Arc<dyn Fn(String, u16) -> Looked + Send + Sync>;

/// Who comes to it: commands that have a network of their own, or those that share the machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Socket,
    Port,
}

enum Door {
    Socket(StdUnixListener),
    Port(std::net::TcpListener),
}

pub(super) struct Proxy {
    hall: Arc<Hall>,
    port: u16,
    socket: Option<(PathBuf, Scratch)>,
    /// Opened within a runtime, by the first command.
    door: Mutex<Option<Door>>,
    task: Mutex<Option<AbortHandle>>,
}

/// What all connections share.
struct Hall {
    hosts: Vec<Host>,
    look_up: LookUp,
    room: Arc<Semaphore>,
    passes: Mutex<HashMap<String, Arc<Admitted>>>,
}

/// Who has a pass.
struct Admitted {
    workspace: PathBuf,
    /// For connections, with all others of the workspace.
    room: Arc<Semaphore>,
    /// Hosts that were asked for in vain.
    refused: Mutex<BTreeSet<String>>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("hosts", &self.hall.hosts).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Proxy {
    pub(super) fn open(hosts: Vec<Host>, reach: Reach) -> io::Result<Self> {
        Proxy::looking_up(hosts, reach, Arc::new(|name, port| Box::pin(system(name, port))))
    }

    fn looking_up(hosts: Vec<Host>, reach: Reach, look_up: LookUp) -> io::Result<Self> {
        let (door, port, socket) = match reach {
            Reach::Socket => {
                let folder = Scratch::new()?;
                let path = folder.path().join("proxy");
                let listener = StdUnixListener::bind(&path)?;
                listener.set_nonblocking(true)?;
                (Door::Socket(listener), INNER, Some((path, folder)))
            }
            Reach::Port => {
                let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                listener.set_nonblocking(true)?;
                let port = listener.local_addr()?.port();
                (Door::Port(listener), port, None)
            }
        };
        let hall = Hall { hosts, look_up, room: Arc::new(Semaphore::new(MOST)), passes: Mutex::default() };
        Ok(Proxy { hall: Arc::new(hall), port, socket, door: Mutex::new(Some(door)), task: Mutex::default() })
    }

    /// The way of one command, for as long as the pass is held. Within a tokio runtime.
    pub(super) fn admit(&self, workspace: &Path) -> io::Result<(Way, Pass)> {
        if let Some(door) = self.door.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let task = tokio::spawn(self.hall.clone().serve(match door {
                Door::Socket(listener) => Listening::Socket(UnixListener::from_std(listener)?),
                Door::Port(listener) => Listening::Port(TcpListener::from_std(listener)?),
            }));
            *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let word: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut passes = self.hall.passes();
        let room = passes.values().find(|other| other.workspace == workspace).map(|other| other.room.clone());
        let room = room.unwrap_or_else(|| Arc::new(Semaphore::new(MOST_OF_ONE)));
        let admitted = Arc::new(Admitted { workspace: workspace.to_owned(), room, refused: Mutex::default() });
        passes.insert(word.clone(), admitted.clone());
        drop(passes);
        let way = Way::Proxy { port: self.port, socket: self.socket.as_ref().map(|(path, _)| path.clone()) };
        let is_local = self.hall.hosts.iter().any(Host::is_local);
        Ok((way, Pass { hall: self.hall.clone(), word, port: self.port, is_local, admitted }))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

/// What lets one command through, until it is dropped.
pub(super) struct Pass {
    hall: Arc<Hall>,
    word: String,
    port: u16,
    is_local: bool,
    admitted: Arc<Admitted>,
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pass")
    }
}

impl Pass {
    /// What programs look at to find the way.
    pub(super) fn surroundings(&self) -> Vec<(&'static str, String)> {
        let place = format!("http://tolka:{}@127.0.0.1:{}", self.word, self.port);
        let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        // What a command serves itself is not reached through the server.
        let none = if self.is_local { "" } else { "localhost,127.0.0.1,::1" };
        let mut all: Vec<_> = names.into_iter().map(|name| (name, place.clone())).collect();
        all.extend([("NO_PROXY", none.to_owned()), ("no_proxy", none.to_owned())]);
        // Node looks only if it is told to.
        all.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
        all
    }

    /// Hosts that it asked for and did not get, each with its port.
    pub(super) fn refused(&self) -> Vec<String> {
        self.admitted.refused.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.hall.passes().remove(&self.word);
    }
}

enum Listening {
    Socket(UnixListener),
    Port(TcpListener),
}

/// Why a client gets no connection.
#[derive(Debug, PartialEq, Eq)]
enum No {
    Unreadable,
    Unknown,
    NotListed(String),
    Private(String),
    Unreachable(String),
    Full,
}

impl No {
    fn answer(&self) -> String {
        let (status, words) = match self {
            No::Unreadable => {
                ("400 Bad Request", "Tolka: this is no request that the proxy of commands understands.".to_owned())
            }
            No::Unknown => (
                "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"tolka\"",
                "Tolka: this way to the network is for the commands of an agent; use the proxy of the environment."
                    .to_owned(),
            ),
            No::NotListed(host) => (
                "403 Forbidden",
                format!(
                    "Tolka: commands may reach only the hosts on a list, and {host} is not on it. A person can add it: \
                     `network` in the [sandbox] part of tolka.toml."
                ),
            ),
            No::Private(host) => (
                "403 Forbidden",
                format!(
                    "Tolka: {host} is an address of this machine or of its own network. Commands reach such a place only \
                     where the list names its address and port: `network` in the [sandbox] part of tolka.toml."
                ),
            ),
            No::Full => (
                "503 Service Unavailable\r\nRetry-After: 1",
                format!(
                    "Tolka: the commands of a workspace may have {MOST_OF_ONE} connections at once, and have them."
                ),
            ),
            No::Unreachable(host) => ("502 Bad Gateway", format!("Tolka: {host} does not answer, or has no address.")),
        };
        let length = words.len() + 1;
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: \
             close\r\n\r\n{words}\n"
        )
    }
}

impl Hall {
    fn passes(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Admitted>>> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self: Arc<Self>, listening: Listening) {
        // With this task they all end.
        let mut tasks = JoinSet::new();
        let mut silent: VecDeque<(AbortHandle, Weak<()>)> = VecDeque::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let Ok(room) = self.room.clone().acquire_owned().await else { return };
            silent.retain(|(_, is_silent)| is_silent.strong_count() > 0);
            let (hall, silence) = (self.clone(), Arc::new(()));
            let is_silent = Arc::downgrade(&silence);
            let accepted = match &listening {
                Listening::Socket(listener) => listener.accept().await.map(|(client, _)| {
                    tasks.spawn(async move {
                        hall.attend(client, silence).await;
                        drop(room);
                    })
                }),
                Listening::Port(listener) => listener.accept().await.map(|(client, _)| {
                    tasks.spawn(async move {
                        hall.attend(client, silence).await;
                        drop(room);
                    })
                }),
            };
            match accepted {
                Ok(task) => silent.push_back((task, is_silent)),
                Err(error) => {
                    // Too many files are open, most likely; some will close.
                    tracing::warn!(%error, "the proxy of commands cannot take a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            silent.retain(|(_, is_silent)| is_silent.strong_count() > 0);
            if silent.len() > MOST_SILENT
                && let Some((oldest, _)) = silent.pop_front()
            {
                oldest.abort();
            }
        }
    }

    /// `silence` is held until it is known who the client is.
    async fn attend(&self, mut client: impl AsyncRead + AsyncWrite + Unpin, silence: Arc<()>) {
        let asked = timeout(PATIENCE, head(&mut client)).await;
        let Ok(Some((head, rest))) = asked else {
            let _ = client.write_all(No::Unreadable.answer().as_bytes()).await;
            return;
        };
        let (request, mut host, _room) = match self.judge(&head, silence).await {
            Ok(found) => found,
            Err(no) => {
                let _ = client.write_all(no.answer().as_bytes()).await;
                let _ = client.shutdown().await;
                return;
            }
        };
        let begun = match &request.head {
            Some(head) => host.write_all(head.as_bytes()).await,
            None => client.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n").await,
        };
        if begun.is_ok() && host.write_all(&rest).await.is_ok() {
            relay(client, host).await;
        }
    }

    async fn judge(&self, head: &str, silence: Arc<()>) -> Result<(Request, TcpStream, OwnedSemaphorePermit), No> {
        let request = Request::read(head).ok_or(No::Unreadable)?;
        let pass = request.pass.as_ref().and_then(|word| self.passes().get(word).cloned()).ok_or(No::Unknown)?;
        let room = pass.room.clone().try_acquire_owned().map_err(|_| No::Full)?;
        drop(silence);
        let reached = self.reach(&request.host, request.port).await;
        if let Err(No::NotListed(host) | No::Private(host)) = &reached {
            let mut refused = pass.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.len() < REMEMBERED {
                refused.insert(host.clone());
            }
        }
        Ok((request, reached?, room))
    }

    async fn reach(&self, name: &str, port: u16) -> Result<TcpStream, No> {
        let shown = authority(name, Some(port));
        if !self.hosts.iter().any(|host| host.fits(name, port)) {
            return Err(No::NotListed(shown));
        }
        let unreachable = || No::Unreachable(shown.clone());
        let looked = timeout(PATIENCE, (self.look_up)(name.to_owned(), port)).await;
        let found = looked.map_err(|_| unreachable())?.map_err(|_| unreachable())?;
        let is_named = |address: SocketAddr| self.hosts.iter().any(|host| host.admits(name, address));
        let is_good = |address: &SocketAddr| is_public(address.ip()) || is_named(*address);
        let good: Vec<SocketAddr> = found.iter().copied().filter(is_good).collect();
        if good.is_empty() && !found.is_empty() {
            return Err(No::Private(shown));
        }
        let connecting = TcpStream::connect(good.as_slice());
        timeout(PATIENCE, connecting).await.map_err(|_| unreachable())?.map_err(|_| unreachable())
    }
}

async fn system(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name.as_str(), port)).await?.collect())
}

#[cfg(test)]
mod tests;

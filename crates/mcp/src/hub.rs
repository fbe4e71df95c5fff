//! All servers: those of the configuration once for each folder that is worked in, and those that a session brought along.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;

use crate::config::{Config, ConfigError};
use crate::lists::{Prompt, Resource, Tool};
use crate::server::{Server, State};
use crate::ways::Ways;

/// Folders whose servers are kept, and sessions with their own. Beyond that the one that was not used for longest goes.
const ROOMS: usize = 16;
const SESSIONS: usize = 64;
/// In one folder, and in one session.
const SERVERS: usize = 32;

#[derive(Debug)]
pub struct Hub {
    configured: Vec<Config>,
    ways: Arc<dyn Ways>,
    /// The latest used last. A plain lock, held for a look only.
    rooms: Mutex<Vec<Room>>,
}

#[derive(Debug)]
struct Room {
    whose: Whose,
    servers: Vec<Arc<Server>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    Folder(PathBuf),
    Session(String),
}

/// The servers that one session has.
#[derive(Debug, Clone, Default)]
pub struct Kit(Vec<Arc<Server>>);

/// A tool by the name that a model calls it by.
#[derive(Debug, Clone)]
pub struct Offered {
    pub name: String,
    pub server: Arc<Server>,
    pub tool: Tool,
}

impl Hub {
    pub fn new(configured: Vec<Config>, ways: Arc<dyn Ways>) -> Self {
        Hub { configured, ways, rooms: Mutex::default() }
    }

    /// The servers of a folder. Within a tokio runtime.
    pub fn of_folder(&self, workspace: &Path) -> Kit {
        Kit(self.room(Whose::Folder(workspace.to_owned()), |_| {
            let server =
                |config: &Config| Arc::new(Server::new(config.clone(), workspace.to_owned(), self.ways.clone()));
            self.configured.iter().map(server).collect()
        }))
    }

    /// Those that a session brought along.
    pub fn own_of(&self, session: &str) -> Kit {
        let mut rooms = self.rooms();
        let room = rooms.iter_mut().find(|room| room.whose == Whose::Session(session.to_owned()));
        Kit(room.map(|room| room.servers.clone()).unwrap_or_default())
    }

    /// All that a session can use: its own, and those of its folder that it has not replaced by one of the same name.
    pub fn of_session(&self, session: &str, workspace: &Path) -> Kit {
        let mut servers = self.of_folder(workspace).0;
        let own = self.own_of(session).0;
        servers.retain(|server| own.iter().all(|own| own.name() != server.name()));
        servers.extend(own);
        Kit(servers)
    }

    /// Adds a server for one session, until this process ends: what it is given may be secret and is written nowhere.
    pub fn add_to_session(&self, session: &str, workspace: &Path, config: Config) -> Result<Arc<Server>, ConfigError> {
        self.add(&Whose::Session(session.to_owned()), workspace, config)
    }

    /// The same for all sessions of a folder.
    pub fn add_to_folder(&self, workspace: &Path, config: Config) -> Result<Arc<Server>, ConfigError> {
        self.of_folder(workspace);
        self.add(&Whose::Folder(workspace.to_owned()), workspace, config)
    }

    /// Lets go of what a session brought along.
    pub fn forget(&self, session: &str) {
        self.rooms().retain(|room| room.whose != Whose::Session(session.to_owned()));
    }

    fn add(&self, whose: &Whose, workspace: &Path, config: Config) -> Result<Arc<Server>, ConfigError> {
        config.check()?;
        self.room(whose.clone(), |_| Vec::new());
        let server = Arc::new(Server::new(config, workspace.to_owned(), self.ways.clone()));
        let mut rooms = self.rooms();
        let Some(room) = rooms.iter_mut().find(|room| room.whose == *whose) else { return Ok(server) };
        room.servers.retain(|known| known.name() != server.name());
        if room.servers.len() >= SERVERS {
            return Err(ConfigError::TooMany(SERVERS));
        }
        room.servers.push(server.clone());
        Ok(server)
    }

    /// The servers of a room, which is made if it is not there.
    fn room(&self, whose: Whose, make: impl FnOnce(&Whose) -> Vec<Arc<Server>>) -> Vec<Arc<Server>> {
        let mut rooms = self.rooms();
        if let Some(at) = rooms.iter().position(|room| room.whose == whose) {
            let room = rooms.remove(at);
            let servers = room.servers.clone();
            rooms.push(room);
            return servers;
        }
        let servers = make(&whose);
        let is_alike = |room: &Room| matches!(room.whose, Whose::Folder(_)) == matches!(whose, Whose::Folder(_));
        let most = if matches!(whose, Whose::Folder(_)) { ROOMS } else { SESSIONS };
        if rooms.iter().filter(|room| is_alike(room)).count() >= most
            && let Some(oldest) = rooms.iter().position(is_alike)
        {
            rooms.remove(oldest);
        }
        rooms.push(Room { whose, servers: servers.clone() });
        servers
    }

    fn rooms(&self) -> MutexGuard<'_, Vec<Room>> {
        // A panic under it leaves a list that is whole.
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kit {
    pub fn servers(&self) -> &[Arc<Server>] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Server>> {
        self.0.iter().find(|server| server.name() == name)
    }

    /// Lets all of them be connected, and waits until it is known of each whether it is there; so long at most.
    pub async fn settled(&self, patience: Duration) {
        join_all(self.0.iter().map(|server| {
            server.need();
            server.settled(patience)
        }))
        .await;
    }

    /// The tools of those that are there, each under the name that `name` gives it for its server and its own name.
    pub fn offered(&self, mut name: impl FnMut(&str, &str) -> String) -> Vec<Offered> {
        let mut offered = Vec::<Offered>::new();
        for server in &self.0 {
            let status = server.status();
            if status.state != State::Ready {
                continue;
            }
            for tool in &status.lists.tools {
                offered.push(Offered {
                    name: name(server.name(), &tool.name),
                    server: server.clone(),
                    tool: tool.clone(),
                });
            }
        }
        offered
    }

    pub fn prompts(&self) -> Vec<(Arc<Server>, Prompt)> {
        let of = |server: &Arc<Server>| {
            let prompts = server.status().lists.prompts.clone();
            prompts.into_iter().map(|prompt| (server.clone(), prompt)).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }

    pub fn resources(&self) -> Vec<(Arc<Server>, Resource)> {
        let of = |server: &Arc<Server>| {
            let resources = server.status().lists.resources.clone();
            resources.into_iter().map(|resource| (server.clone(), resource)).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }
}

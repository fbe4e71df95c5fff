//! All servers: those of the configuration once for each folder that is worked in, and those that a session brought along.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;

use crate::config::{Config, ConfigError};
use crate::lists::{Prompt, Resource, Tool};
use crate::server::{Server, State, Status};
use crate::ways::Ways;

/// Folders whose servers are kept. Beyond that those of the folder that was not worked in for longest are ended; they are
/// started anew when they are needed.
const FOLDERS: usize = 16;
/// Folders and sessions to which somebody added servers. What was added is written nowhere, so none of it is let go.
const ADDED_TO: usize = 64;
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
    /// Not all of them are of the configuration.
    is_added_to: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    Folder(PathBuf),
    Session(String),
}

/// The servers that one session has.
#[derive(Debug, Clone, Default)]
pub struct Kit(Vec<Arc<Server>>);

/// A server as those see it who only look.
#[derive(Debug, Clone)]
pub struct Seen {
    pub config: Config,
    pub status: Status,
}

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

    /// The servers of a folder, for somebody who uses them. Within a tokio runtime.
    pub fn of_folder(&self, workspace: &Path) -> Kit {
        let mut rooms = self.rooms();
        let at = self.used(&mut rooms, &Whose::Folder(workspace.to_owned()), workspace);
        Kit(rooms[at].servers.clone())
    }

    /// All that a session can use: its own, and those of its folder that it has not replaced by one of the same name.
    pub fn of_session(&self, session: &str, workspace: &Path) -> Kit {
        let mut servers = self.of_folder(workspace).0;
        let rooms = self.rooms();
        let own = rooms.iter().find(|room| room.whose == Whose::Session(session.to_owned()));
        let own = own.map(|room| room.servers.as_slice()).unwrap_or_default();
        servers.retain(|server| own.iter().all(|own| own.name() != server.name()));
        servers.extend(own.iter().cloned());
        Kit(servers)
    }

    /// How the servers of a folder are doing. To look is no use of them: it starts nothing and ends nothing.
    pub fn seen_in_folder(&self, workspace: &Path) -> Vec<Seen> {
        let rooms = self.rooms();
        match rooms.iter().find(|room| room.whose == Whose::Folder(workspace.to_owned())) {
            Some(room) => room.servers.iter().map(|server| Seen::of(server)).collect(),
            None => self.configured.iter().map(Seen::unused).collect(),
        }
    }

    /// The same of all that a session can use.
    pub fn seen_in_session(&self, session: &str, workspace: &Path) -> Vec<Seen> {
        let mut seen = self.seen_in_folder(workspace);
        let rooms = self.rooms();
        let own = rooms.iter().find(|room| room.whose == Whose::Session(session.to_owned()));
        let own: Vec<Seen> = own.into_iter().flat_map(|room| &room.servers).map(|server| Seen::of(server)).collect();
        seen.retain(|seen| own.iter().all(|own| own.config.name != seen.config.name));
        seen.extend(own);
        seen
    }

    /// Adds a server for one session, until this process ends: what it is given may be secret and is written nowhere.
    pub fn add_to_session(&self, session: &str, workspace: &Path, config: Config) -> Result<Arc<Server>, ConfigError> {
        self.add(&Whose::Session(session.to_owned()), workspace, config)
    }

    /// The same for all sessions of a folder.
    pub fn add_to_folder(&self, workspace: &Path, config: Config) -> Result<Arc<Server>, ConfigError> {
        self.add(&Whose::Folder(workspace.to_owned()), workspace, config)
    }

    /// Lets go of what a session brought along.
    pub fn forget(&self, session: &str) {
        self.rooms().retain(|room| room.whose != Whose::Session(session.to_owned()));
    }

    fn add(&self, whose: &Whose, workspace: &Path, config: Config) -> Result<Arc<Server>, ConfigError> {
        config.check()?;
        let mut rooms = self.rooms();
        if rooms.iter().filter(|room| room.is_added_to && room.whose != *whose).count() >= ADDED_TO {
            return Err(ConfigError::TooManyPlaces(ADDED_TO));
        }
        let at = self.used(&mut rooms, whose, workspace);
        let room = &mut rooms[at];
        let known = room.servers.iter().position(|known| known.name() == config.name);
        if known.is_none() && room.servers.len() >= SERVERS {
            return Err(ConfigError::TooMany(SERVERS));
        }
        let server = Arc::new(Server::new(config, workspace.to_owned(), self.ways.clone()));
        if let Some(known) = known {
            room.servers.remove(known);
        }
        room.servers.push(server.clone());
        room.is_added_to = true;
        Ok(server)
    }

    /// Where a room is, which is made if it is not there. It is the latest used.
    fn used(&self, rooms: &mut Vec<Room>, whose: &Whose, workspace: &Path) -> usize {
        let room = match rooms.iter().position(|room| room.whose == *whose) {
            Some(at) => rooms.remove(at),
            None => {
                let server =
                    |config: &Config| Arc::new(Server::new(config.clone(), workspace.to_owned(), self.ways.clone()));
                let servers = match whose {
                    Whose::Folder(_) => self.configured.iter().map(server).collect(),
                    Whose::Session(_) => Vec::new(),
                };
                // Sessions have rooms for what was added to them alone.
                Room { whose: whose.clone(), servers, is_added_to: matches!(whose, Whose::Session(_)) }
            }
        };
        rooms.push(room);
        if rooms.iter().filter(|room| !room.is_added_to).count() > FOLDERS
            && let Some(oldest) = rooms.iter().position(|room| !room.is_added_to)
        {
            rooms.remove(oldest);
        }
        rooms.len() - 1
    }

    fn rooms(&self) -> MutexGuard<'_, Vec<Room>> {
        // A panic under it leaves a list that is whole.
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn of(server: &Server) -> Self {
        Seen { config: server.config().clone(), status: server.status() }
    }

    fn unused(config: &Config) -> Self {
        Seen { config: config.clone(), status: Status::unused(config) }
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

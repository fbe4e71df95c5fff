//! How strongly commands are confined, and what they can do all the same.
//!
//! What a level cannot stop is a value, so that what people are told, what is tried in tests and what is built are one.

use super::network::Network;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Bubblewrap,
    Landlock,
    None,
}

impl Level {
    /// The strongest first.
    pub const ALL: [Level; 3] = [Level::Bubblewrap, Level::Landlock, Level::None];

    pub fn name(self) -> &'static str {
        match self {
            Level::Bubblewrap => "bubblewrap",
            Level::Landlock => "landlock",
            Level::None => "none",
        }
    }

    /// Whether it is this one or a stronger one.
    pub fn is_at_least(self, other: Level) -> bool {
        let place = |level: Level| Level::ALL.iter().position(|one| *one == level);
        place(self) <= place(other)
    }
}

/// What a command can do in spite of its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    Anything,
    Network,
    OwnPort,
    Datagrams,
    Connections,
    SamePort,
    Beyond,
    OpenFiles,
    Names,
    NewObeyed,
    Obeyed,
    FarObeyed,
    Repositories,
    HiddenInside,
    Sockets,
    LooseSockets,
    Processes,
    OldKernels,
    Bursts,
    Machine,
}

impl Gap {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Gap::Anything => "anything that you yourself can do on this machine",
            Gap::Network => "using the network, with the services of this machine",
            Gap::OwnPort => {
                "reaching this server's own port on this machine, and answering its own permission request there, unless \
                 the server has a token that no file and no command line shows (TOLKA_TOKEN)"
            }
            Gap::Datagrams => "sending and receiving what is no TCP (UDP, and with it questions to name servers)",
            Gap::Connections => "connecting to any host, since this kernel cannot stop that (Linux before 6.7)",
            Gap::SamePort => {
                "connecting to any host at the port of this server's proxy, which is all that the kernel looks at"
            }
            Gap::Beyond => "reaching others through a host on the list, if that host passes on what it is sent",
            Gap::OpenFiles => "reading files that are no known secrets",
            Gap::Names => "seeing the names of files that are hidden",
            Gap::NewObeyed => {
                "making what git obeys where it is missing (.git/hooks, .git/config.worktree), and changing it in other \
                 repositories of the workspace and in files that git's configuration names (core.hooksPath, include.path); \
                 after the command that is put back, and you are asked whether it may stand; a repository that is new stays, \
                 and a notice says so"
            }
            Gap::Obeyed => {
                "changing the configuration and the hooks of the workspace's git, and of other repositories there; after the command that is put back, and you \
                 are asked whether it may stand; what a process in the background or an MCP server changes between commands \
                 stays unless you say otherwise: you are asked at the next command; and nobody looks if the server is killed \
                 meanwhile"
            }
            Gap::FarObeyed => {
                "changing what git obeys in repositories that lie more than four folders deep in the workspace, beyond its \
                 first 4,000 folders or in node_modules; and changing programs of the workspace that hooks or git's \
                 configuration call in their turn"
            }
            Gap::Repositories => {
                "putting other repositories into the workspace, with configurations that git obeys there"
            }
            Gap::HiddenInside => "reading what is hidden inside the workspace itself",
            Gap::Sockets => "talking to other programs over their sockets",
            Gap::LooseSockets => {
                "talking to other programs over sockets that are files elsewhere than in /run, /tmp and the usual places of \
                 container engines in your home, and on Linux before 6.12 over those that are no files"
            }
            Gap::Processes => "seeing which other processes run, and how they were started",
            Gap::OldKernels => "emptying files outside, on Linux before 6.2; ending other processes, before 6.12",
            Gap::Bursts => {
                "having more processes and memory than it may for a tenth of a second, since no control group can be made \
                 here"
            }
            Gap::Machine => "using up the processor, and the disk down to what is kept free",
        }
    }
}

/// What the machine has to do with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ground {
    pub(super) stops_connections: bool,
    pub(super) has_groups: bool,
}

/// Of a level, in the order in which people should read it.
pub(super) fn gaps(level: Level, network: &Network, ground: Ground) -> Vec<Gap> {
    let is_on = *network == Network::On;
    let is_list = matches!(network, Network::Only(_));
    let mut gaps = Vec::new();
    let mut add = |is_so: bool, gap: Gap| gaps.extend(is_so.then_some(gap));
    match level {
        Level::None => {
            add(true, Gap::Anything);
            add(true, Gap::OwnPort);
        }
        Level::Bubblewrap => {
            add(is_on, Gap::Network);
            add(is_on, Gap::OwnPort);
            add(is_list, Gap::Beyond);
            add(true, Gap::OpenFiles);
            add(true, Gap::Names);
            add(true, Gap::LooseSockets);
            add(true, Gap::NewObeyed);
            add(true, Gap::FarObeyed);
            add(true, Gap::Repositories);
        }
        Level::Landlock => {
            let is_open = is_on || !ground.stops_connections;
            add(is_on, Gap::Network);
            add(!is_on && is_open, Gap::Connections);
            add(is_open, Gap::OwnPort);
            add(!is_on, Gap::Datagrams);
            add(is_list && !is_open, Gap::SamePort);
            add(is_list, Gap::Beyond);
            add(true, Gap::OpenFiles);
            add(true, Gap::Names);
            add(true, Gap::Obeyed);
            add(true, Gap::FarObeyed);
            add(true, Gap::Repositories);
            add(true, Gap::HiddenInside);
            add(true, Gap::Sockets);
            add(true, Gap::Processes);
            add(true, Gap::OldKernels);
        }
    }
    add(!ground.has_groups, Gap::Bursts);
    add(true, Gap::Machine);
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_at_least_itself_and_what_is_weaker() {
        assert!(Level::Bubblewrap.is_at_least(Level::Landlock) && Level::Landlock.is_at_least(Level::Landlock));
        assert!(!Level::None.is_at_least(Level::Landlock) && !Level::Landlock.is_at_least(Level::Bubblewrap));
    }
}

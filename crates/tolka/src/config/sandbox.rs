//! `[sandbox]`: what commands may do on this machine.

use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use tolka_workspace::command::{Host, Level, Limits, Network};

use super::values::Size;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SandboxEntry {
    /// `None`: the strongest that is there, even if that is none.
    pub(crate) level: Option<Level>,
    /// The weakest that will do.
    pub(crate) require: Option<Level>,
    pub(crate) network: Network,
    limits: LimitsEntry,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LimitsEntry {
    processes: Option<u32>,
    memory: Option<Size>,
    file_size: Option<Size>,
    disk_left: Option<Size>,
}

impl SandboxEntry {
    /// What the command line wants besides.
    pub(crate) fn require_at_least(&mut self, wanted: Option<Require>) -> anyhow::Result<()> {
        let Some(least) = wanted.and_then(|wanted| wanted.0) else { return Ok(()) };
        if let Some(level) = self.level.filter(|level| !level.is_at_least(least)) {
            anyhow::bail!("--require-sandbox wants {}, and tolka.toml says level = \"{}\"", least.name(), level.name());
        }
        if self.require.is_none_or(|known| least.is_at_least(known)) {
            self.require = Some(least);
        }
        Ok(())
    }

    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        let LimitsEntry { processes, memory, file_size, disk_left } = &self.limits;
        let or = |given: &Option<Size>, usual: u64| given.map_or(usual, |size| size.0);
        Limits {
            processes: processes.unwrap_or(usual.processes),
            memory: or(memory, usual.memory),
            file_size: or(file_size, usual.file_size),
            disk_left: or(disk_left, usual.disk_left),
        }
    }
}

/// As it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Table {
    level: LevelEntry,
    require: Require,
    network: NetworkEntry,
    #[serde(deserialize_with = "super::file::at_least_one")]
    processes: Option<u32>,
    memory: Option<Size>,
    file_size: Option<Size>,
    disk_left: Option<Size>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LevelEntry {
    #[default]
    Auto,
    Bubblewrap,
    Landlock,
    None,
}

/// One word says what most people want to say.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Short {
    Auto,
    Require,
    None,
}

impl<'de> Deserialize<'de> for SandboxEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = SandboxEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with level, require, network and limits, or \"auto\", \"require\" or \"none\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SandboxEntry, E> {
                let usual = SandboxEntry::default();
                Ok(match Short::deserialize(StrDeserializer::new(text))? {
                    Short::Auto => usual,
                    Short::Require => SandboxEntry { require: Some(Level::Landlock), ..usual },
                    Short::None => SandboxEntry { level: Some(Level::None), ..usual },
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SandboxEntry, A::Error> {
                let Table { level, require, network, processes, memory, file_size, disk_left } =
                    Table::deserialize(MapAccessDeserializer::new(map))?;
                let level = match level {
                    LevelEntry::Auto => None,
                    LevelEntry::Bubblewrap => Some(Level::Bubblewrap),
                    LevelEntry::Landlock => Some(Level::Landlock),
                    LevelEntry::None => Some(Level::None),
                };
                if let (Some(level), Some(least)) = (level, require.0)
                    && !level.is_at_least(least)
                {
                    return Err(A::Error::custom(format_args!(
                        "level = \"{}\" is less than what `require` wants; change one of them",
                        level.name()
                    )));
                }
                let limits = LimitsEntry { processes, memory, file_size, disk_left };
                Ok(SandboxEntry { level, require: require.0, network: network.0, limits })
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// `true`, or the name of the weakest that will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Require(pub(crate) Option<Level>);

impl std::str::FromStr for Require {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "any" | "landlock" => Ok(Require(Some(Level::Landlock))),
            "bubblewrap" => Ok(Require(Some(Level::Bubblewrap))),
            _ => Err("a sandbox that can be required is \"bubblewrap\" or \"landlock\"".to_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for Require {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Require;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, \"bubblewrap\" or \"landlock\"")
            }

            fn visit_bool<E: Error>(self, is_required: bool) -> Result<Require, E> {
                Ok(Require(is_required.then_some(Level::Landlock)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Require, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// `"on"`, `"off"` or a list of hosts.
#[derive(Default)]
struct NetworkEntry(Network);

impl<'de> Deserialize<'de> for NetworkEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = NetworkEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"on\", \"off\" or a list of hosts")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<NetworkEntry, E> {
                match text {
                    "on" => Ok(NetworkEntry(Network::On)),
                    "off" => Ok(NetworkEntry(Network::Off)),
                    _ => Err(E::custom("the network is \"on\", \"off\" or a list of hosts, as in [\"*.example.org\"]")),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NetworkEntry, A::Error> {
                let mut hosts: Vec<Host> = Vec::new();
                while let Some(text) = list.next_element::<String>()? {
                    hosts.push(text.parse().map_err(A::Error::custom)?);
                }
                Ok(NetworkEntry(if hosts.is_empty() { Network::Off } else { Network::Only(hosts) }))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

//! What commands may reach: all, nothing, or the hosts on a list.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::address::{authority, normal, split};

const LOCALHOST: &str = "localhost";

/// The network of commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Network {
    #[default]
    On,
    Off,
    /// Only these, through a proxy of ours.
    Only(Vec<Host>),
}

impl Network {
    pub fn name(&self) -> &'static str {
        match self {
            Network::On => "on",
            Network::Off => "off",
            Network::Only(_) => "list",
        }
    }
}

/// A host that may be reached: `example.org`, `*.example.org` for all names beneath it, each with a port or without.
/// Without one it is the web's two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// In small letters, without a dot at its end.
    name: String,
    is_wildcard: bool,
    port: Option<u16>,
}

impl Host {
    /// Whether it is this one that is wanted.
    pub(super) fn fits(&self, name: &str, port: u16) -> bool {
        let is_name = match self.is_wildcard {
            false => name == self.name,
            true => name.strip_suffix(&self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        };
        let is_port = self.port.map_or(matches!(port, 80 | 443), |own| own == port);
        is_name && is_port
    }

    /// Whether a connection may be made to an address that is not everybody's, and that a listed name turned out to have. That it has it is the word of a
    /// name server: what is near must be on the list itself.
    pub(super) fn admits(&self, name: &str, address: SocketAddr) -> bool {
        let is_named = self.name == LOCALHOST && name == LOCALHOST && address.ip().is_loopback();
        let is_it = is_named || self.address() == Some(address.ip().to_canonical());
        is_it && self.port == Some(address.port())
    }

    fn address(&self) -> Option<IpAddr> {
        self.name.parse().ok().map(|address: IpAddr| address.to_canonical())
    }

    /// Whether it is on this machine.
    pub(super) fn is_local(&self) -> bool {
        self.name == LOCALHOST || self.address().is_some_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.is_wildcard { "*." } else { "" };
        write!(f, "{star}{}", authority(&self.name, self.port))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no host that can be listed; write \"example.org\", \"*.example.org\" or \"example.org:8443\"")]
pub struct NoHost;

impl FromStr for Host {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<Self, NoHost> {
        let (name, is_wildcard) = match text.trim().strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text.trim(), false),
        };
        let (name, port) = split(name).ok_or(NoHost)?;
        let name = normal(name).ok_or(NoHost)?;
        // All that ends in `.com` is as good as everything.
        let is_good = !is_wildcard || name.contains('.') && name.parse::<IpAddr>().is_err();
        if is_good { Ok(Host { name, is_wildcard, port }) } else { Err(NoHost) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(host: &str, name: &str, port: u16) -> bool {
        host.parse::<Host>().unwrap().fits(&normal(name).unwrap(), port)
    }

    #[test]
    fn a_host_is_what_is_written_and_no_more() {
        assert!(fits("Example.org", "example.ORG.", 443));
        assert!(fits("example.org", "example.org", 80));
        assert!(!fits("example.org", "example.org", 22));
        assert!(fits("example.org:22", "example.org", 22));
        assert!(!fits("example.org:22", "example.org", 443));
        assert!(fits("*.example.org:22", "a.b.example.org", 22));
        for other in ["example.org", "notexample.org", "example.org.evil.net", "org"] {
            assert!(!fits("*.example.org", other, 443), "{other}");
        }
        assert!(fits("[::1]:80", "::1", 80));
        assert!(fits("127.0.0.1:80", "127.0.0.1", 80));
    }

    #[test]
    fn what_is_near_is_admitted_by_its_own_address_and_port() {
        let admits = |host: &str, name: &str, address: &str| {
            host.parse::<Host>().unwrap().admits(name, address.parse().unwrap())
        };
        assert!(admits("10.0.0.7:5432", "db.example.org", "10.0.0.7:5432"));
        assert!(admits("10.0.0.7:5432", "db.example.org", "[::ffff:10.0.0.7]:5432"));
        assert!(admits("[::1]:80", "::1", "[::1]:80"));
        assert!(admits("localhost:80", "localhost", "127.0.0.1:80") && admits("localhost:80", "localhost", "[::1]:80"));
        for (host, name, address) in [
            ("db.example.org:5432", "db.example.org", "10.0.0.7:5432"),
            ("10.0.0.7", "db.example.org", "10.0.0.7:80"),
            ("10.0.0.7:5432", "db.example.org", "10.0.0.7:5433"),
            ("localhost:80", "evil.example.org", "127.0.0.1:80"),
            ("localhost:80", "localhost", "10.0.0.7:80"),
        ] {
            assert!(!admits(host, name, address), "{host} {name} {address}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            "*",
            "*.com",
            "https://example.org",
            "example.org/x",
            "a b",
            "example.org:0",
            "a..b",
            "me@x.org",
            "example.org:http",
            "*.1.2.3.4",
            "[::1",
            "ex*.org",
            "example.org:99999",
        ] {
            assert_eq!(text.parse::<Host>(), Err(NoHost), "{text}");
        }
        assert_eq!("[::1]:80".parse::<Host>().unwrap().to_string(), "[::1]:80");
        assert_eq!("*.Example.org".parse::<Host>().unwrap().to_string(), "*.example.org");
    }
}

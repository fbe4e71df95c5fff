//! Which addresses are the public internet's, and which are this machine's or the network's around it.
//!
//! A model that fetches pages, or a command that goes through a proxy of ours, must not reach what trusts whoever is near:
//! servers on loopback, the router, the metadata service of a cloud. [`is_public`] is the one rule for all of them, and
//! [`Allowed`] is what a person has named all the same. Who asks has to connect to the very address that was judged.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::str::FromStr;

/// Where Azure's machines find their host: a public address that never leaves the machine's own network.
const WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// The port of what is thrown away.
const DISCARD: u16 = 9;

/// Networks that are not the public internet's: the first address and how many bits of it count.
const NOT_PUBLIC_4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    (WIRE_SERVER, 32),
];

/// Of what is given out at all (`2000::/3`), what is for protocols and documents.
const NOT_PUBLIC_6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16),
];

/// Whether an address is one that anybody else on the internet could have. Whatever is not known to be is not: loopback,
/// private and link-local networks, multicast, what is reserved, and whatever address this machine has itself; and an IPv6
/// address that stands for an IPv4 one is judged as that.
pub fn is_public(address: IpAddr) -> bool {
    is_everybodys(address) && !is_own(address.to_canonical())
}

/// Whether this machine has it. It talks to itself from the address that it talks to; nothing is sent to find that out.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Where nobody can ask, it may be.
    let Ok(socket) = UdpSocket::bind((any, 0)) else { return true };
    let from = socket.connect((address, DISCARD)).and_then(|()| socket.local_addr());
    from.is_ok_and(|from| from.ip() == address)
}

fn is_everybodys(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(embedded) => is_public_4(embedded),
            None => is_public_6(address),
        },
    }
}

fn is_public_4(address: Ipv4Addr) -> bool {
    let is_in = |(network, bits): &(Ipv4Addr, u32)| (address.to_bits() ^ network.to_bits()) >> (32 - bits) == 0;
    !NOT_PUBLIC_4.iter().any(is_in)
}

fn is_public_6(address: Ipv6Addr) -> bool {
    let is_in = |(network, bits): &(Ipv6Addr, u32)| (address.to_bits() ^ network.to_bits()) >> (128 - bits) == 0;
    let is_given_out = address.segments()[0] >> 13 == 1;
    is_given_out && !NOT_PUBLIC_6.iter().any(is_in)
}

/// The IPv4 address that an IPv6 one leads to: mapped, by NAT64 or by 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(of(g, h)),
        (0x2002, ..) => Some(of(b, c)),
        _ => None,
    }
}

/// Places that a person has named: they may be reached though they are not public.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed(pub Vec<Place>);

impl Allowed {
    /// Whether a connection to `address`, which is one of `host`'s, may be made.
    pub fn admits(&self, host: &str, address: IpAddr, port: u16) -> bool {
        is_public(address) || self.0.iter().any(|place| place.is_at(host, address, port))
    }
}

/// `intranet.example`, `intranet.example:8080`, `10.0.0.7`, `127.0.0.1:8080`, `[::1]:8080`: one port, or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Name(String),
    Address(IpAddr),
}

impl Place {
    fn is_at(&self, host: &str, address: IpAddr, port: u16) -> bool {
        let is_host = match &self.host {
            Host::Name(name) => normal(host).as_ref() == Some(name),
            Host::Address(allowed) => allowed.to_canonical() == address.to_canonical(),
        };
        is_host && self.port.is_none_or(|allowed| allowed == port)
    }
}

/// What is no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no host; write a name or an address, with a port or without: \"intranet.example\", \"127.0.0.1:8080\""
)]
pub struct NoPlace;

impl FromStr for Place {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let (host, port) = split(text.trim()).ok_or(NoPlace)?;
        let name = normal(host).ok_or(NoPlace)?;
        let host = name.parse().map_or_else(|_| Host::Name(name), Host::Address);
        Ok(Place { host, port })
    }
}

/// Into a name and a port. An IPv6 address with a port is in brackets.
pub(crate) fn split(text: &str) -> Option<(&str, Option<u16>)> {
    if text.parse::<Ipv6Addr>().is_ok() {
        return Some((text, None));
    }
    let port = |port: &str| port.parse::<u16>().ok().filter(|port| *port > 0);
    if let Some(rest) = text.strip_prefix('[') {
        let (name, rest) = rest.split_once(']')?;
        name.parse::<Ipv6Addr>().ok()?;
        return match rest.strip_prefix(':') {
            Some(given) => Some((name, Some(port(given)?))),
            None => rest.is_empty().then_some((name, None)),
        };
    }
    match text.split_once(':') {
        Some((name, given)) => Some((name, Some(port(given)?))),
        None => Some((text, None)),
    }
}

/// One spelling for a name. `None`: it is none.
pub(crate) fn normal(name: &str) -> Option<String> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_letter)
    };
    (name.len() <= 253 && name.split('.').all(is_label)).then_some(name)
}

/// A name and a port in one.
pub(crate) fn authority(name: &str, port: Option<u16>) -> String {
    let name = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    port.map_or_else(|| name.clone(), |port| format!("{name}:{port}"))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.host {
            Host::Name(name) => name.clone(),
            Host::Address(address) => address.to_string(),
        };
        f.write_str(&authority(&name, self.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> bool {
        is_everybodys(text.parse().unwrap())
    }

    #[test]
    fn this_machine_knows_its_own_addresses() {
        let own = |text: &str| is_own(text.parse().unwrap());
        assert!(own("127.0.0.1") && own("::1") != std::net::UdpSocket::bind("[::1]:0").is_err());
        assert!(!own("192.0.2.1") && !own("1.1.1.1"));
    }

    /// A machine that is on the internet itself, as many are: in a network of its own, with an address that looks like any.
    #[test]
    #[cfg(target_os = "linux")]
    fn an_address_of_this_machine_is_not_public_whatever_it_looks_like() {
        let name = "address::tests::inside_a_network_with_an_own_address";
        let line = "ip link set lo up && ip address add 11.22.33.44/32 dev lo && ip address add 2606:4700::77/128 dev lo nodad && \
                    exec \"$0\" --exact --ignored --nocapture \"$1\"";
        let me = std::env::current_exe().unwrap();
        let mut unshare = std::process::Command::new("unshare");
        let ran = unshare.args(["-rn", "sh", "-c", line]).arg(me).arg(name).output();
        let said = ran.map(|ran| String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned());
        match said {
            Ok(said) if said.contains("running 1 test") => assert!(said.contains("1 passed"), "{said}"),
            other => println!("skipped: no network of its own can be made here: {other:?}"),
        }
    }

    #[test]
    #[ignore = "runs inside an_address_of_this_machine_is_not_public_whatever_it_looks_like"]
    fn inside_a_network_with_an_own_address() {
        for own in ["11.22.33.44", "::ffff:11.22.33.44", "2606:4700::77"] {
            assert!(judged(own) && !is_public(own.parse().unwrap()), "{own}");
        }
        for other in ["11.22.33.45", "2606:4700::78"] {
            assert!(is_public(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn what_is_near_is_not_public() {
        for near in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "3fff::1",
            "3ffe::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "5f00::1",
        ] {
            assert!(!judged(near), "{near}");
        }
    }

    #[test]
    fn what_is_far_is_public() {
        for far in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "168.63.129.17",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(judged(far), "{far}");
        }
    }

    #[test]
    fn a_place_that_was_named_may_be_reached_and_no_other() {
        let allowed = |places: &[&str]| Allowed(places.iter().map(|place| place.parse().unwrap()).collect());
        let [near, far]: [IpAddr; 2] = ["127.0.0.1".parse().unwrap(), "1.1.1.1".parse().unwrap()];
        let some = allowed(&["127.0.0.1:8080", "Intranet.Example.", "[::1]:9", "10.0.0.7"]);
        for (host, address, port, expected) in [
            ("127.0.0.1", near, 8080, true),
            ("localhost", near, 8080, true),
            ("::ffff:127.0.0.1", "::ffff:127.0.0.1".parse().unwrap(), 8080, true),
            ("127.0.0.1", near, 8081, false),
            ("127.0.0.2", "127.0.0.2".parse().unwrap(), 8080, false),
            ("intranet.example", near, 1, true),
            ("INTRANET.example.", near, 1, true),
            ("not.intranet.example", near, 1, false),
            ("intranet.example.evil.test", near, 1, false),
            ("::1", "::1".parse().unwrap(), 9, true),
            ("::1", "::1".parse().unwrap(), 10, false),
            ("anything", "10.0.0.7".parse().unwrap(), 443, true),
            ("anything", far, 443, true),
        ] {
            assert_eq!(some.admits(host, address, port), expected, "{host} {address} {port}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for bad in ["", ":80", "a b", "http://a", "a/b", "a:b", "a:70000", "::1:x", "[::1", "[a]:1", "*", "10.0.0.0/8"]
        {
            bad.parse::<Place>().unwrap_err();
        }
        for good in ["a", "a.b:80", "10.0.0.1", "10.0.0.1:80", "[::1]", "[::1]:80"] {
            assert_eq!(good.parse::<Place>().unwrap().to_string(), good);
        }
        assert_eq!("::1".parse::<Place>().unwrap().to_string(), "[::1]");
    }
}

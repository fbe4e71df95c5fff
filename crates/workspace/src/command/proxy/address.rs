//! Which addresses are everybody's. All others lead into this machine or its own network, where nobody expects a stranger:
//! what a cloud tells its machines, a router's page, a database without a password.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_4(address),
        IpAddr::V6(address) => is_public_6(address),
    }
}

fn is_public_4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = a == 0
        || a >= 224
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        // Of providers, among themselves.
        || a == 100 && (64..128).contains(&b)
        || (a, b, c) == (192, 0, 0)
        || a == 198 && matches!(b, 18 | 19);
    !is_special
}

fn is_public_6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    if let Some(inner) = embedded(address) {
        return is_public_4(inner);
    }
    // What is handed out to everybody begins with 2 or 3.
    parts[0] & 0xe000 == 0x2000 && !(parts[0] == 0x2001 && (parts[1] < 0x200 || parts[1] == 0xdb8))
}

/// The IPv4 address that it stands for.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = address.segments();
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match parts {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] => Some(of(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_everybody_can_reach_is_public() {
        for address in ["8.8.8.8", "1.1.1.1", "140.82.121.4", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "127.1.2.3",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "fec0::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}

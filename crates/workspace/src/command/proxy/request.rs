//! What a client of the proxy asks for: the head of a request, read strictly and written anew.

use crate::address::{authority, normal, split};

/// A longer head is nobody's.
pub(super) const LONGEST: usize = 32 << 10;

/// Headers that are between the client and the proxy.
const OURS: &[&str] = &["connection", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "upgrade"];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: String,
    pub(super) port: u16,
    /// What the client says who it is.
    pub(super) pass: Option<String>,
    /// What to send to the host first. `None`: a tunnel, and the client begins.
    pub(super) head: Option<String>,
}

impl Request {
    /// `head` ends with the empty line. `None`: it is none that can be understood in one way only.
    pub(super) fn read(head: &str) -> Option<Self> {
        let mut lines = head.strip_suffix("\r\n\r\n")?.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let is_plain = matches!(version, "HTTP/1.1" | "HTTP/1.0") && target.bytes().all(|byte| byte.is_ascii_graphic());
        if words.next().is_some() || !is_plain || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':')?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
            if !is_name || value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
                return None;
            }
            headers.push((name, value.trim()));
        }
        let find = |wanted: &str| headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let pass = find("proxy-authorization").and_then(|(_, value)| password(value));
        if method == "CONNECT" {
            let (host, port) = split(target)?;
            return Some(Request { host: normal(host)?, port: port?, pass, head: None });
        }
        let rest = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://")).map(|_| &target[7..])?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, port) = split(&rest[..end])?;
        let (host, path) = (normal(host)?, rest[end..].split('#').next()?);
        let slash = if path.starts_with('/') { "" } else { "/" };
        let own = authority(&host, port.filter(|port| *port != 80));
        let mut told = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n");
        for (name, value) in headers.iter().filter(|(name, _)| !OURS.contains(&name.to_ascii_lowercase().as_str())) {
            told.push_str(&format!("{name}: {value}\r\n"));
        }
        told.push_str("\r\n");
        Some(Request { host, port: port.unwrap_or(80), pass, head: Some(told) })
    }
}

/// Of `Basic <name:password>`.
fn password(value: &str) -> Option<String> {
    let (kind, coded) = value.split_once(' ')?;
    let plain = kind.eq_ignore_ascii_case("basic").then(|| decoded(coded.trim()))??;
    Some(plain.split_once(':')?.1.to_owned())
}

/// Base64, of which nothing else here has need.
fn decoded(coded: &str) -> Option<String> {
    let (mut bits, mut count, mut plain) = (0_u32, 0, Vec::new());
    for byte in coded.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            plain.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_and_a_plain_request_are_read() {
        let tunnel = Request::read(
            "CONNECT Example.org:443 HTTP/1.1\r\nHost: other\r\nProxy-Authorization: Basic dG9sa2E6c2VzYW1l\r\n\r\n",
        );
        let pass = Some("sesame".to_owned());
        assert_eq!(tunnel, Some(Request { host: "example.org".to_owned(), port: 443, pass, head: None }));
        let plain =
            "GET http://example.org:8080?q=1#x HTTP/1.1\r\nHost: inner\r\nproxy-connection: x\r\nAccept: */*\r\n\r\n";
        let plain = Request::read(plain).unwrap();
        assert_eq!((plain.host.as_str(), plain.port, plain.pass), ("example.org", 8080, None));
        let head = "GET /?q=1 HTTP/1.1\r\nHost: example.org:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n";
        assert_eq!(plain.head.as_deref(), Some(head));
    }

    #[test]
    fn what_could_be_understood_in_two_ways_is_refused() {
        for head in [
            "",
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://example.org/ HTTP/1.1\r\n\r\n",
            "GET http://user:pw@example.org/ HTTP/1.1\r\n\r\n",
            "GET http://evil.org\\@example.org/ HTTP/1.1\r\n\r\n",
            "GET  http://example.org/ HTTP/1.1\r\n\r\n",
            "GET http://example.org/ HTTP/2\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\n folded: x\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nno colon\r\n\r\n",
            "GET http://example.org/\nX HTTP/1.1\r\n\r\n",
            "CONNECT example.org HTTP/1.1\r\n\r\n",
            "CONNECT http://example.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT example.org:443/x HTTP/1.1\r\n\r\n",
            "CONNECT ex%61mple.org:443 HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(Request::read(head), None, "{head}");
        }
    }
}

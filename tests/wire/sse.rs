//! Server-sent events as bytes: what a reader must keep of a stream, and where it goes on after a break.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;

use crate::http::{Connection, request};

/// A stream that is open.
pub(crate) struct Stream {
    pub(crate) connection: Connection,
    pub(crate) headers: Vec<(String, String)>,
    pending: Vec<u8>,
    /// How far `pending` was searched for the end of an event.
    searched: usize,
    /// Ended with the chunk that ends a body, not by a break.
    pub(crate) ended_well: bool,
}

impl Stream {
    pub(crate) fn open(address: SocketAddr, path: &str, after: Option<&str>) -> io::Result<Self> {
        Stream::on(Connection::open(address)?, address, "GET", path, after, &[])
    }

    pub(crate) fn on(
        connection: Connection,
        address: SocketAddr,
        method: &str,
        path: &str,
        after: Option<&str>,
        body: &[u8],
    ) -> io::Result<Self> {
        let headers: Vec<_> = after.map(|id| ("Last-Event-ID", id)).into_iter().collect();
        Stream::with(connection, address, (method, path), &headers, body)
    }

    pub(crate) fn with(
        mut connection: Connection,
        address: SocketAddr,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Self> {
        let headers = [&[("Accept", "text/event-stream")], headers].concat();
        connection.send(&request(address, method, path, &headers, body))?;
        let (status, headers) = connection.head()?;
        assert_eq!(status, 200, "{path}: {headers:?}");
        Ok(Stream { connection, headers, pending: Vec::new(), searched: 0, ended_well: false })
    }

    /// The next whole event with its blank line, or `None` at the end, be it good or a break.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let found = self.pending[self.searched..].windows(2).position(|pair| pair == b"\n\n");
            if let Some(at) = found {
                let rest = self.pending.split_off(self.searched + at + 2);
                self.searched = 0;
                return Some(std::mem::replace(&mut self.pending, rest));
            }
            self.searched = self.pending.len().saturating_sub(1);
            match self.connection.chunk(&mut self.pending) {
                Ok(true) => {}
                Ok(false) => {
                    self.ended_well = true;
                    return None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("a stream fell silent"),
                Err(_) => return None,
            }
        }
    }

    /// The next event that is no word about the connection.
    pub(crate) fn next_told(&mut self) -> Option<Vec<u8>> {
        loop {
            let event = self.next()?;
            if id(&event).is_some() && field(&event, "data").is_some() {
                return Some(event);
            }
        }
    }

    /// The next event that is no comment, on a wire without `id:` lines.
    pub(crate) fn next_with_data(&mut self) -> Option<Vec<u8>> {
        loop {
            let event = self.next()?;
            if field(&event, "data").is_some() {
                return Some(event);
            }
        }
    }

    /// Reads on to the first payload that `is_it`.
    pub(crate) fn find(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next_told().unwrap_or_else(|| panic!("the stream ended before {what}"));
            let payload = data(&event);
            if is_it(&payload) {
                return payload;
            }
        }
    }

    /// Reads on to a fact of this type, in a stream of facts.
    pub(crate) fn fact(&mut self, kind: &str) -> Value {
        self.find(kind, |fact| fact["type"] == kind)
    }
}

fn field<'a>(event: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(event).unwrap();
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Events about the connection have none (heartbeats, comments) or no data (a greeting that says where it starts).
pub(crate) fn id(event: &[u8]) -> Option<&str> {
    field(event, "id")
}

pub(crate) fn data(event: &[u8]) -> Value {
    serde_json::from_str(field(event, "data").unwrap()).unwrap()
}

/// What a reader keeps over all breaks.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) bytes: Vec<u8>,
    pub(crate) last: Option<String>,
    pub(crate) events: usize,
}

impl Kept {
    pub(crate) fn take(&mut self, event: &[u8]) {
        self.last = id(event).map(str::to_owned);
        self.bytes.extend_from_slice(event);
        self.events += 1;
    }

    /// Where two streams part, for a person to read.
    pub(crate) fn assert_same(&self, other: &Kept, what: &str) {
        if self.bytes == other.bytes {
            return;
        }
        let events =
            |kept: &Kept| String::from_utf8_lossy(&kept.bytes).split("\n\n").map(str::to_owned).collect::<Vec<_>>();
        let (mine, others) = (events(self), events(other));
        let at = (0..).find(|at| mine.get(*at) != others.get(*at)).unwrap();
        let shown =
            |events: &[String]| events.get(at).map_or("(nothing)".to_owned(), |e| e.chars().take(600).collect());
        panic!(
            "{what}: event {at} of {} and {}\nstitched {}\nfresh    {}",
            mine.len(),
            others.len(),
            shown(&mine),
            shown(&others)
        );
    }
}

//! HTTP by hand: a client that can also do what no proper client does.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::server::DEADLINE;

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{} is no JSON: {}", self.status, String::from_utf8_lossy(&self.body)))
    }

    /// The body, if the status is the one that was expected.
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

/// A request as bytes; `Host` and `Content-Length` are there unless they are given.
pub(crate) fn request(address: SocketAddr, method: &str, path: &str, headers: Headers<'_>, body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let has = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if !has("host") {
        head += &format!("Host: {address}\r\n");
    }
    if !body.is_empty() && !has("content-length") && !has("transfer-encoding") {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    [head.as_bytes(), b"\r\n", body].concat()
}

pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(DEADLINE))?;
        socket.set_write_timeout(Some(DEADLINE))?;
        socket.set_nodelay(true)?;
        Ok(Connection { reader: BufReader::with_capacity(64 * 1024, socket) })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// A server may answer and close before it has read all; what it said is still there to read.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket().write_all(bytes)
    }

    pub(crate) fn response(&mut self, to: &str) -> io::Result<Response> {
        let (status, headers) = self.head()?;
        let mut body = Vec::new();
        let is_empty = to == "HEAD" || matches!(status, 100..=199 | 204 | 304);
        match header(&headers, "content-length").map(|length| length.parse::<u64>().unwrap()) {
            _ if is_empty => {}
            Some(length) => {
                (&mut self.reader).take(length).read_to_end(&mut body)?;
            }
            None if header(&headers, "transfer-encoding") == Some("chunked") => while self.chunk(&mut body)? {},
            None => {
                self.reader.read_to_end(&mut body)?;
            }
        }
        Ok(Response { status, headers, body })
    }

    pub(crate) fn head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok((status, headers)) };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Appends the next chunk; `false` for the one that ends a body well.
    pub(crate) fn chunk(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let size = self.line()?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(|_| io::Error::other("no chunk"))?;
        let read = (&mut self.reader).take(size).read_to_end(out)?;
        let end = self.line()?;
        if read as u64 == size && end.is_empty() { Ok(size > 0) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// One request on a connection of its own.
pub(crate) fn try_call(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: Headers<'_>,
    body: &[u8],
) -> io::Result<Response> {
    let mut connection = Connection::open(address)?;
    let sent = connection.send(&request(address, method, path, headers, body));
    // An answer that came before all was sent counts more than the failure to send.
    connection.response(method).or_else(|error| sent.and(Err(error)))
}

pub(crate) fn call(address: SocketAddr, method: &str, path: &str, headers: Headers<'_>, body: &[u8]) -> Response {
    try_call(address, method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Response {
    call(address, "GET", path, &[], &[])
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &Value) -> Response {
    call(address, "POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
}

pub(crate) fn new_session(address: SocketAddr) -> String {
    post(address, "/v1/sessions", &serde_json::json!({})).expect(201)["id"].as_str().unwrap().to_owned()
}

/// A prompt that is taken; gives its turn.
pub(crate) fn prompt(address: SocketAddr, session: &str) -> String {
    let body = serde_json::json!({ "text": "Go on." });
    post(address, &format!("/v1/sessions/{session}/prompt"), &body).expect(202)["turn"].as_str().unwrap().to_owned()
}

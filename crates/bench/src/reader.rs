//! The readers' program: the same for our server, for its references and for its peers.
//!
//! It checks every event of every stream and still costs little, because readers share the processor with what is
//! measured: one buffer per thread, no allocation per event, and nothing of an event is parsed but its number.

use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use memchr::memmem;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::body::Body;
use crate::gapless::Gapless;

const READ: usize = 64 * 1024;
/// Longer silence is a fault of what is measured: the bench must end.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// Where the number of an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// In the position, `id: <seq>.<n>`: on our own wire a fact is one event.
    Positions,
    /// In the text itself, after this: our scripts number their tokens, `<number>@<micros> `.
    Tokens(&'static [u8]),
    /// Nowhere: only bytes count.
    None,
}

#[derive(Debug)]
pub(crate) struct Reader {
    socket: TcpStream,
    body: Body,
    numbers: Numbers,
    /// Body that has not been looked at: part of a frame, mostly.
    pending: Vec<u8>,
    /// What ends a frame; made once, because a search is shorter than its preparation.
    gap: memmem::Finder<'static>,
    last_frame: Vec<u8>,
    pub(crate) seen: Gapless,
    /// Events of lower numbers are of an earlier turn, and not counted.
    pub(crate) since: u64,
    pub(crate) bytes: u64,
    pub(crate) reads: u64,
    /// When each event was read, in microseconds of the wall clock: for delays.
    pub(crate) arrivals: Option<Vec<(u64, u64)>>,
    /// All bytes as they came: for the reference that writes the same.
    pub(crate) captured: Option<Vec<u8>>,
    /// A sum over all frames with data, for streams that must be the same.
    pub(crate) sum: Option<u64>,
    /// The position of the last frame in the sum.
    position: Vec<u8>,
}

impl Reader {
    /// Asks for a stream, and has read nothing of it yet.
    pub(crate) async fn ask(address: &str, path: &str, numbers: Numbers) -> Result<Self> {
        let socket = TcpStream::connect(address).await?;
        Self::ask_on(socket, address, path, numbers).await
    }

    pub(crate) async fn ask_on(mut socket: TcpStream, address: &str, path: &str, numbers: Numbers) -> Result<Self> {
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
        socket.write_all(head.as_bytes()).await?;
        Ok(Reader {
            socket,
            body: Body::default(),
            numbers,
            pending: Vec::new(),
            gap: memmem::Finder::new(b"\n\n"),
            last_frame: Vec::new(),
            seen: Gapless::default(),
            since: 0,
            bytes: 0,
            reads: 0,
            arrivals: None,
            captured: None,
            sum: None,
            position: Vec::new(),
        })
    }

    /// Asks again for the same stream, from the last whole frame on, as a client does that was cut off.
    pub(crate) async fn come_back(&mut self, address: &str, path: &str) -> Result<()> {
        let position = String::from_utf8_lossy(&self.position);
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\nlast-event-id: {position}\r\n\r\n"
        );
        self.socket = TcpStream::connect(address).await?;
        self.socket.write_all(head.as_bytes()).await?;
        self.body = Body::default();
        self.pending.clear();
        Ok(())
    }

    /// Pieces that the server wrote: the chunks of its answer, or what was read at once where there are none.
    pub(crate) fn pieces(&self) -> u64 {
        if self.body.pieces > 0 { self.body.pieces } else { self.reads }
    }

    /// Reads once. False when the stream is over.
    pub(crate) async fn read(&mut self) -> Result<bool> {
        loop {
            timeout(PATIENCE, self.socket.readable()).await.context("the stream fell silent")??;
            let read = BUFFER.with_borrow_mut(|buffer| match self.socket.try_read(buffer) {
                Ok(read) => self.take(&buffer[..read]).map(Some),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error.into()),
            });
            if let Some(open) = read? {
                return Ok(open);
            }
        }
    }

    /// Reads until the last frame that came has `mark` in it.
    pub(crate) async fn until(&mut self, mark: &[u8]) -> Result<()> {
        let finder = memmem::Finder::new(mark);
        loop {
            anyhow::ensure!(self.read().await?, "the stream ended early");
            if finder.find(&self.last_frame).is_some() {
                return Ok(());
            }
        }
    }

    /// Reads until the event of this number has come.
    pub(crate) async fn until_number(&mut self, last: u64) -> Result<()> {
        while self.seen.last().is_none_or(|seen| seen < last) {
            anyhow::ensure!(self.read().await?, "the stream ended early");
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        if bytes.is_empty() {
            return Ok(false);
        }
        self.reads += 1;
        self.bytes += bytes.len() as u64;
        if let Some(captured) = &mut self.captured {
            captured.extend_from_slice(bytes);
        }
        let at = self.arrivals.is_some().then(now);
        let mut pending = std::mem::take(&mut self.pending);
        self.body.feed(bytes, &mut pending)?;
        let (mut start, mut last) = (0, 0..0);
        while let Some(end) = self.gap.find(&pending[start..]) {
            last = start..start + end + 2;
            start = last.end;
            self.frame(&pending[last.clone()], at);
        }
        self.last_frame.clear();
        self.last_frame.extend_from_slice(&pending[last]);
        pending.drain(..start);
        self.pending = pending;
        Ok(!self.body.is_over())
    }

    fn frame(&mut self, frame: &[u8], at: Option<u64>) {
        let number = match self.numbers {
            Numbers::Positions => position(frame),
            Numbers::Tokens(before) => token(frame, before).map(|(number, _)| number),
            Numbers::None => None,
        };
        if let Some(sum) = &mut self.sum
            && let Some(position) = position_of_data(frame)
        {
            self.position.clear();
            self.position.extend_from_slice(position);
            *sum = summed(*sum, frame);
        }
        let Some(number) = number.filter(|number| *number >= self.since) else { return };
        self.seen.saw(number);
        if let (Some(arrivals), Some(at)) = (&mut self.arrivals, at) {
            arrivals.push((number, at));
        }
    }
}

fn summed(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Microseconds of the wall clock, which facts and scripts are stamped with.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// The fact's number in `id: <seq>.<n>`; a position without data is a greeting.
fn position(frame: &[u8]) -> Option<u64> {
    let digits = frame.strip_prefix(b"id: ")?;
    let (number, len) = leading_number(digits)?;
    (digits.get(len) == Some(&b'.')).then_some(number)
}

/// The whole position of a frame that has data; greetings and beats have none.
fn position_of_data(frame: &[u8]) -> Option<&[u8]> {
    let mut position = None;
    for line in frame.split(|byte| *byte == b'\n') {
        if let Some(id) = line.strip_prefix(b"id: ") {
            position = Some(id);
        } else if line.starts_with(b"data:") {
            return position;
        }
    }
    None
}

/// The number and the time stamp of a scripted token.
pub(crate) fn token(frame: &[u8], before: &[u8]) -> Option<(u64, u64)> {
    let rest = &frame[memmem::find(frame, before)? + before.len()..];
    let (number, len) = leading_number(rest)?;
    let (stamp, _) = leading_number(rest.get(len..)?.strip_prefix(b"@")?)?;
    Some((number, stamp))
}

fn leading_number(bytes: &[u8]) -> Option<(u64, usize)> {
    let len = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = bytes[..len].iter().fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    (len > 0 && len < 19).then_some((number, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_the_facts_number() {
        assert_eq!(position(b"id: 41.0\ndata: {}\n\n"), Some(41));
        assert_eq!(position(b"id: 41\n\n"), None);
        assert_eq!(position(b"retry: 250\nid: 3.0\n\n"), None);
    }

    #[test]
    fn only_frames_with_data_have_a_position_to_come_back_to() {
        let frame: &[u8] = b"id: 41.2\nevent: word\ndata: {}\n\n";
        assert_eq!(position_of_data(frame), Some(&b"41.2"[..]));
        assert_eq!(position_of_data(b"retry: 250\nid: 3.0\n\n"), None);
        assert_eq!(position_of_data(b": beat\n\n"), None);
    }

    /// A server that breaks off in the middle of a frame, and goes on where it is asked to.
    #[tokio::test]
    async fn a_reader_that_was_cut_off_comes_back_to_its_last_whole_frame() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let served = tokio::spawn(async move {
            let mut asked = Vec::new();
            for told in ["id: 1.0\ndata: a\n\nid: 2.0\nda", "retry: 250\nid: 1.0\n\nid: 2.0\ndata: b\n\n"] {
                let (mut socket, _) = listener.accept().await.expect("a reader");
                let mut request = [0; 512];
                let read = tokio::io::AsyncReadExt::read(&mut socket, &mut request).await.expect("a request");
                asked.push(String::from_utf8_lossy(&request[..read]).into_owned());
                socket.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{told}").as_bytes()).await.expect("writes");
            }
            asked
        });
        let mut reader = Reader::ask(&address, "/", Numbers::None).await.expect("it connects");
        reader.sum = Some(0);
        assert!(reader.until(b"data: b").await.is_err());
        reader.come_back(&address, "/").await.expect("it connects");
        reader.until(b"data: b").await.expect("it comes");
        assert!(served.await.expect("it ends")[1].contains("last-event-id: 1.0\r\n"));
        let whole: &[u8] = b"id: 1.0\ndata: a\n\nid: 2.0\ndata: b\n\n";
        assert_eq!(reader.sum, Some(summed(0, whole)));
    }

    #[test]
    fn a_token_has_a_number_and_a_stamp() {
        assert_eq!(token(br#"data: {"delta":"17@1794713070729344 "}"#, br#""delta":""#), Some((17, 1794713070729344)));
        assert_eq!(token(br#"data: {"delta":"words"}"#, br#""delta":""#), None);
    }

    /// The whole program against a server that leaves out an event and repeats another.
    #[tokio::test]
    async fn a_reader_finds_what_a_server_loses_and_doubles() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let numbers = [1, 2, 3, 5, 5, 6, 9];
        let served = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a reader");
            socket.write_all(b"HTTP/1.1 200 OK\r\n\r\nretry: 250\nid: 0\n\n: hello\n\n").await.expect("writes");
            for number in numbers {
                socket.write_all(format!("id: {number}.0\ndata: {{}}\n\n").as_bytes()).await.expect("writes");
            }
        });
        let mut reader = Reader::ask(&address, "/", Numbers::Positions).await.expect("it connects");
        reader.until_number(9).await.expect("it comes");
        served.await.expect("it ends");
        assert_eq!((reader.seen.events, reader.seen.lost, reader.seen.doubled), (7, 3, 1));
    }
}

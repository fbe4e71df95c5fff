//! The body of an HTTP answer, taken out of its chunks.

use anyhow::{Context, Result};

/// How much of an answer has been understood.
#[derive(Debug, Default)]
pub(crate) struct Body {
    state: State,
    /// A head or a chunk's first line that has not come whole.
    line: Vec<u8>,
    /// Chunks begun: what the server put into one piece.
    pub(crate) pieces: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    Size,
    Chunk(usize),
    AfterChunk(usize),
    /// Not chunked: all that comes is body.
    Plain,
    Over,
}

impl Body {
    /// Appends to `out` what of `bytes` is body.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        while !bytes.is_empty() {
            match self.state {
                State::Head => {
                    let Some(rest) = self.take_line(bytes, b"\r\n\r\n") else { return Ok(()) };
                    bytes = rest;
                    self.state = self.read_head()?;
                    self.line.clear();
                }
                State::Size => {
                    let Some(rest) = self.take_line(bytes, b"\r\n") else { return Ok(()) };
                    bytes = rest;
                    let size = std::str::from_utf8(&self.line).ok().and_then(|line| {
                        let digits = line.trim_end().split(';').next()?;
                        usize::from_str_radix(digits, 16).ok()
                    });
                    let size = size.context("a chunk without a size")?;
                    self.line.clear();
                    self.pieces += 1;
                    self.state = if size == 0 { State::Over } else { State::Chunk(size) };
                }
                State::Chunk(left) => {
                    let (now, rest) = bytes.split_at(left.min(bytes.len()));
                    out.extend_from_slice(now);
                    bytes = rest;
                    self.state = if now.len() == left { State::AfterChunk(2) } else { State::Chunk(left - now.len()) };
                }
                State::AfterChunk(left) => {
                    bytes = &bytes[left.min(bytes.len()).min(1)..];
                    self.state = if left == 1 { State::Size } else { State::AfterChunk(left - 1) };
                }
                State::Plain => {
                    out.extend_from_slice(bytes);
                    return Ok(());
                }
                State::Over => return Ok(()),
            }
        }
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Moves bytes up to and with `end` to the line; gives what is left, or nothing while the end has not come.
    fn take_line<'a>(&mut self, bytes: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
        for (at, byte) in bytes.iter().enumerate() {
            self.line.push(*byte);
            if self.line.ends_with(end) {
                return Some(&bytes[at + 1..]);
            }
        }
        None
    }

    fn read_head(&self) -> Result<State> {
        let head = String::from_utf8_lossy(&self.line).to_ascii_lowercase();
        let first = head.lines().next().unwrap_or_default();
        anyhow::ensure!(first.split(' ').nth(1).is_some_and(|status| status.starts_with('2')), "answered: {first}");
        Ok(if head.contains("transfer-encoding: chunked") { State::Size } else { State::Plain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_same_however_its_bytes_are_cut() {
        let answer =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\n\r\n";
        for size in 1..answer.len() {
            let (mut body, mut out) = (Body::default(), Vec::new());
            answer.chunks(size).for_each(|bytes| body.feed(bytes, &mut out).expect("it is well formed"));
            assert_eq!(out, b"hello, world", "in pieces of {size}");
            assert!(body.is_over());
        }
    }

    #[test]
    fn a_refusal_is_an_error() {
        assert!(Body::default().feed(b"HTTP/1.1 404 Not Found\r\n\r\n", &mut Vec::new()).is_err());
    }
}

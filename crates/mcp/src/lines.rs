//! Lines of a stream that may never end one. What is longer than any message is thrown away as it comes.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest message: a picture of a few megabytes fits, a flood does not.
pub(crate) const LONGEST: usize = 12 << 20;
/// A line that is thrown away ends some time, or there will be no other.
const ENDLESS: u64 = 256 << 20;
/// Kept between two lines.
const USUAL: usize = 64 << 10;

pub(crate) struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Whole(&'a [u8]),
    /// So many bytes, of which none is kept.
    TooLong(u64),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(read: R) -> Self {
        Lines { read: BufReader::with_capacity(32 << 10, read), line: Vec::new() }
    }

    /// `None`: there are no more. What stands behind the last line break is no line.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        self.line.shrink_to(USUAL);
        let mut thrown: u64 = 0;
        loop {
            let piece = self.read.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let (text, used) = (&piece[..end.unwrap_or(piece.len())], end.map_or(piece.len(), |end| end + 1));
            if thrown > 0 || self.line.len() + text.len() > LONGEST {
                thrown += (self.line.len() + text.len()) as u64;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(text);
            }
            self.read.consume(used);
            if thrown > ENDLESS {
                return Err(io::Error::other(format!("it sent {} MiB without a line break", ENDLESS >> 20)));
            }
            match (end, thrown) {
                (None, _) => {}
                (Some(_), 0) => return Ok(Some(Line::Whole(self.line.strip_suffix(b"\r").unwrap_or(&self.line)))),
                (Some(_), thrown) => return Ok(Some(Line::TooLong(thrown))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_thrown_away_and_the_next_is_read() {
        let mut bytes = b"one\r\n".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', LONGEST + 1));
        bytes.extend_from_slice(b"\n\ntwo\nno end");
        let mut lines = Lines::new(&bytes[..]);
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(b"one")));
        assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong(LONGEST as u64 + 1)));
        assert!(lines.line.capacity() <= USUAL);
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(b"")));
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(b"two")));
        assert_eq!(lines.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_the_end() {
        let mut lines = Lines::new(tokio::io::repeat(b'x'));
        assert!(lines.next().await.unwrap_err().to_string().contains("without a line break"));
    }
}

//! Events of a stream, bounded: only their data, which is all that this protocol puts into them.

use crate::lines::LONGEST;

#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The line that has not ended.
    line: Vec<u8>,
    /// The data of the event that has not ended.
    data: Vec<u8>,
    /// The last byte was a carriage return: a line feed after it ends no other line.
    after_return: bool,
}

/// An event is longer than any message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Events {
    /// Takes in a piece, and gives the events that it ends.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut events = Vec::new();
        for &byte in piece {
            let is_second = std::mem::replace(&mut self.after_return, byte == b'\r') && byte == b'\n';
            match byte {
                b'\n' if is_second => {}
                b'\r' | b'\n' => events.extend(self.line_ended()),
                _ if self.line.len() + self.data.len() >= LONGEST => return Err(TooLong),
                _ => self.line.push(byte),
            }
        }
        Ok(events)
    }

    fn line_ended(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then_some(data);
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let stream = b": hi\r\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nevent: message\ndata:two\n\ndata: never ended";
        let expected = vec![b"{\"a\":\n1}".to_vec(), b"two".to_vec()];
        for size in 1..stream.len() {
            let mut events = Events::default();
            let read: Vec<_> = stream.chunks(size).flat_map(|piece| events.feed(piece).unwrap()).collect();
            assert_eq!(read, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        assert!((0..100).any(|_| events.feed(&piece).is_err()));
    }
}

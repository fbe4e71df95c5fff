//! Server-sent events as the standard says, from bytes cut anywhere: comments skipped, data lines joined. A line that is
//! a JSON object is an event of its own, as protocols over pipes write it; no field of the standard begins so.

mod lines;

use crate::DecodeError;
pub(crate) use lines::{LIMIT, Line, LineReader};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    pub event: Option<String>,
    pub id: Option<String>,
    pub data: String,
    /// Where its first line stood, from 1.
    pub line: u64,
}

/// Reads the events of a stream.
#[derive(Debug)]
pub struct SseReader {
    limit: usize,
    lines: LineReader,
    open: OpenEvent,
}

impl Default for SseReader {
    fn default() -> Self {
        SseReader::new(LIMIT)
    }
}

impl SseReader {
    /// One that reads no line and no event of more than so many bytes.
    pub fn new(limit: usize) -> Self {
        SseReader { limit, lines: LineReader::new(limit), open: OpenEvent::default() }
    }

    /// What cannot be read is told, the first of it, and passed over; what follows is read.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), DecodeError> {
        let mut read = Ok(());
        while let Some(line) = self.lines.next(&mut bytes) {
            read = read.and(self.take(&line, out));
        }
        read
    }

    /// An event without its blank line is not complete and is dropped, as the standard says; `Err` tells of it. A
    /// line that is an event of its own is complete without its line end.
    pub fn finish(&mut self, out: &mut Vec<SseEvent>) -> Result<(), DecodeError> {
        match self.lines.rest() {
            Some(line) if self.open.is_packet(&line) => self.take(&line, out),
            None if self.open.begun().is_none() => Ok(()),
            _ => {
                let problem = "the stream ends inside an event".to_owned();
                Err(DecodeError { line: self.lines.count + 1, problem })
            }
        }
    }

    fn take(&mut self, line: &Line, out: &mut Vec<SseEvent>) -> Result<(), DecodeError> {
        let error = |problem| DecodeError { line: line.number, problem };
        let text = match line.is_too_long {
            // It may be cut inside a character.
            true => "",
            false => std::str::from_utf8(&line.bytes).map_err(|_| error("not UTF-8".to_owned()))?,
        };
        let event = self.open.take(line, text, self.limit);
        out.extend(event.map_err(|TooLong| error(format!("longer than {} bytes", self.limit)))?);
        Ok(())
    }
}

/// The event that is being read.
#[derive(Debug, Default)]
pub(crate) struct OpenEvent {
    event: SseEvent,
    pub(crate) has_data: bool,
    /// It is too long, and that was told; it is passed over.
    pub(crate) is_lost: bool,
}

/// Told once of an event.
#[derive(Debug)]
pub(crate) struct TooLong;

impl OpenEvent {
    /// Takes its next line, which is `text`; gives the event if it ends with it.
    pub(crate) fn take(&mut self, line: &Line, text: &str, limit: usize) -> Result<Option<SseEvent>, TooLong> {
        if self.is_packet(line) {
            let packet = SseEvent { data: text.to_owned(), line: line.number, ..SseEvent::default() };
            return if line.is_too_long { Err(TooLong) } else { Ok(Some(packet)) };
        }
        if line.is_too_long {
            return self.lose(line);
        }
        if text.is_empty() {
            let OpenEvent { event, has_data, .. } = std::mem::take(self);
            return Ok(has_data.then_some(event));
        }
        if self.event.line == 0 {
            self.event.line = line.number;
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" if self.is_lost => {}
            "data" if self.event.data.len() + value.len() > limit => return self.lose(line),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => self.event.event = Some(value.to_owned()),
            "id" => self.event.id = Some(value.to_owned()),
            _ => {}
        }
        Ok(None)
    }

    /// Whether the line is an event of its own.
    pub(crate) fn is_packet(&self, line: &Line) -> bool {
        line.bytes.starts_with(b"{") && !self.has_data && !self.is_lost
    }

    /// Its first line, if something was said that waits for its end.
    pub(crate) fn begun(&self) -> Option<u64> {
        (self.has_data || self.event.event.is_some()).then_some(self.event.line)
    }

    fn lose(&mut self, line: &Line) -> Result<Option<SseEvent>, TooLong> {
        let event = SseEvent { line: line.number, ..SseEvent::default() };
        let lost = std::mem::replace(self, OpenEvent { event, has_data: false, is_lost: true });
        if lost.is_lost { Ok(None) } else { Err(TooLong) }
    }
}

/// Reads every event. The first that cannot be read is told; those after it are read all the same.
pub(crate) fn read_all<E: ToString>(
    events: &[SseEvent],
    mut read: impl FnMut(&SseEvent) -> Result<(), E>,
) -> Result<(), DecodeError> {
    let mut first_problem = None;
    for event in events {
        if let Err(problem) = read(event) {
            first_problem.get_or_insert_with(|| DecodeError { line: event.line, problem: problem.to_string() });
        }
    }
    first_problem.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_same_events_however_the_bytes_are_cut() {
        let stream = b": hi\n\nevent: message\r\nid: 4.0\r\ndata: {\"a\":\rdata: 1}\r\n\r\nretry: 5\n\ndata:x\n\n";
        let mut whole = Vec::new();
        SseReader::default().feed(stream, &mut whole).unwrap();
        assert_eq!(whole.len(), 2);
        assert_eq!(whole[0].data, "{\"a\":\n1}");
        assert_eq!((whole[0].id.as_deref(), whole[0].line), (Some("4.0"), 3));
        for cut in 0..stream.len() {
            let (mut reader, mut parts) = (SseReader::default(), Vec::new());
            reader.feed(&stream[..cut], &mut parts).unwrap();
            reader.feed(&stream[cut..], &mut parts).unwrap();
            assert_eq!(parts, whole);
        }
    }

    #[test]
    fn what_cannot_be_read_does_not_hide_what_follows() {
        let mut reader = SseReader::new(16);
        let stream = b"\xef\xbb\xbf{\"a\":1}\n{\"far\":\"too long a line\"}\n\xff\n{\"b\":2}\n";
        let mut events = Vec::new();
        let told = reader.feed(stream, &mut events).unwrap_err();
        assert_eq!((told.line, told.problem.as_str()), (2, "longer than 16 bytes"));
        let events: Vec<_> = events.iter().map(|event| (event.line, event.data.as_str())).collect();
        assert_eq!(events, [(1, "{\"a\":1}"), (4, "{\"b\":2}")]);
    }

    #[test]
    fn an_event_that_is_too_long_is_dropped_as_a_whole() {
        let mut reader = SseReader::new(16);
        let mut events = Vec::new();
        let long = b"data: {\ndata: a line that is too long\ndata: }\n\ndata: 1\n\n";
        assert_eq!(reader.feed(long, &mut events).unwrap_err().line, 2);
        let joined = b"data: ten bytes.\ndata: ten bytes.\ndata: more\n\ndata: 2\n\n";
        assert_eq!(reader.feed(joined, &mut events).unwrap_err().line, 8);
        let events: Vec<_> = events.iter().map(|event| (event.line, event.data.as_str())).collect();
        assert_eq!(events, [(5, "1"), (11, "2")]);
    }
}

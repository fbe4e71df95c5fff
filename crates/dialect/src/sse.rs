use crate::DecodeError;

/// A line longer than this is no stream of ours or of anybody we know.
const LINE_LIMIT: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    pub event: Option<String>,
    pub id: Option<String>,
    pub data: String,
    /// Where its first line stood, from 1.
    pub line: u64,
}

/// Reads server-sent events as the standard says, from bytes cut anywhere: LF, CR or CRLF, comments
/// skipped, data lines joined. A line that is a JSON object is an event of its own, as protocols over pipes write it; no
/// field of the standard begins so.
#[derive(Debug)]
pub struct SseReader {
    limit: usize,
    pending: Vec<u8>,
    line: u64,
    after_cr: bool,
    /// The rest of this line is passed over: it was too long, and that was told.
    is_too_long: bool,
    event: SseEvent,
    has_data: bool,
}

impl Default for SseReader {
    fn default() -> Self {
        SseReader {
            limit: LINE_LIMIT,
            pending: Vec::new(),
            line: 0,
            after_cr: false,
            is_too_long: false,
            event: SseEvent::default(),
            has_data: false,
        }
    }
}

impl SseReader {
    /// What cannot be read is told, the first of it, and passed over; what follows is read.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), DecodeError> {
        let mut read = Ok(());
        for byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, *byte == b'\r');
            let ended = match byte {
                b'\n' if after_cr => Ok(()),
                b'\n' | b'\r' => self.end_line(out),
                _ if self.is_too_long => Ok(()),
                _ if self.pending.len() >= self.limit => {
                    self.is_too_long = true;
                    self.pending = Vec::new();
                    Err(DecodeError { line: self.line + 1, problem: format!("longer than {} bytes", self.limit) })
                }
                byte => {
                    self.pending.push(*byte);
                    Ok(())
                }
            };
            read = read.and(ended);
        }
        read
    }

    /// An event without its blank line is not complete and is dropped, as the standard says; `Err` tells of it. A
    /// line that is an event of its own is complete without its line end.
    pub fn finish(&mut self, out: &mut Vec<SseEvent>) -> Result<(), DecodeError> {
        if self.pending.starts_with(b"{") && !self.has_data {
            return self.end_line(out);
        }
        if self.pending.is_empty() && !self.has_data {
            return Ok(());
        }
        self.line += 1;
        Err(self.error("the stream ends inside an event".to_owned()))
    }

    fn error(&self, problem: String) -> DecodeError {
        DecodeError { line: self.line, problem }
    }

    fn end_line(&mut self, out: &mut Vec<SseEvent>) -> Result<(), DecodeError> {
        self.line += 1;
        if std::mem::take(&mut self.is_too_long) {
            return Ok(());
        }
        let line = std::mem::take(&mut self.pending);
        let line = std::str::from_utf8(&line).map_err(|_| self.error("not UTF-8".to_owned()))?;
        let line = if self.line == 1 { line.trim_start_matches('\u{feff}') } else { line };
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                out.push(event);
            }
            return Ok(());
        }
        if line.starts_with('{') && !self.has_data {
            out.push(SseEvent { data: line.to_owned(), line: self.line, ..SseEvent::default() });
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        if self.event.line == 0 && !field.is_empty() {
            self.event.line = self.line;
        }
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                if self.event.data.len() + value.len() > self.limit {
                    return Err(self.error(format!("an event longer than {} bytes", self.limit)));
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "event" => self.event.event = Some(value.to_owned()),
            "id" => self.event.id = Some(value.to_owned()),
            _ => {}
        }
        Ok(())
    }
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
        let mut reader = SseReader { limit: 16, ..SseReader::default() };
        let stream = b"\xef\xbb\xbf{\"a\":1}\n{\"far\":\"too long a line\"}\n\xff\n{\"b\":2}\n";
        let mut events = Vec::new();
        let told = reader.feed(stream, &mut events).unwrap_err();
        assert_eq!((told.line, told.problem.as_str()), (2, "longer than 16 bytes"));
        let events: Vec<_> = events.iter().map(|event| (event.line, event.data.as_str())).collect();
        assert_eq!(events, [(1, "{\"a\":1}"), (4, "{\"b\":2}")]);
    }
}

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
#[derive(Debug, Default)]
pub struct SseReader {
    pending: Vec<u8>,
    line: u64,
    after_cr: bool,
    event: SseEvent,
    has_data: bool,
}

impl SseReader {
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), DecodeError> {
        for byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, *byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => self.end_line(out)?,
                byte => {
                    if self.pending.len() >= LINE_LIMIT {
                        return Err(self.error(format!("longer than {LINE_LIMIT} bytes")));
                    }
                    self.pending.push(*byte);
                }
            }
        }
        Ok(())
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
        let line = std::mem::take(&mut self.pending);
        let line = std::str::from_utf8(&line).map_err(|_| self.error("not UTF-8".to_owned()))?;
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
                if self.event.data.len() + value.len() > LINE_LIMIT {
                    return Err(self.error(format!("an event longer than {LINE_LIMIT} bytes")));
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
}

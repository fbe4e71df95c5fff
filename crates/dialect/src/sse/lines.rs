/// A line, or all of an event's data, that is longer than this is of no stream of anybody we know.
pub(crate) const LIMIT: usize = 64 * 1024 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Cuts a stream into lines: LF, CR or CR LF end one.
#[derive(Debug)]
pub(crate) struct LineReader {
    limit: usize,
    pending: Vec<u8>,
    /// Lines that have ended.
    pub(crate) count: u64,
    after_cr: bool,
    /// The rest of this line is passed over: its beginning was given.
    is_too_long: bool,
}

#[derive(Debug)]
pub(crate) struct Line {
    /// From 1.
    pub(crate) number: u64,
    /// Without its end, and without a byte order mark.
    pub(crate) bytes: Vec<u8>,
    pub(crate) has_mark: bool,
    pub(crate) ends_in_cr: bool,
    /// These bytes are only its beginning, and no more of it comes.
    pub(crate) is_too_long: bool,
}

impl LineReader {
    pub(crate) fn new(limit: usize) -> Self {
        LineReader { limit, pending: Vec::new(), count: 0, after_cr: false, is_too_long: false }
    }

    /// The next line in `bytes`, which are taken up to its end; `None` when they are used up.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Option<Line> {
        loop {
            if self.after_cr && !bytes.is_empty() {
                self.after_cr = false;
                *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(bytes.len());
            let (piece, rest) = bytes.split_at(end);
            *bytes = rest;
            if !self.is_too_long {
                self.pending.extend_from_slice(piece);
                self.is_too_long = self.pending.len() > self.limit;
                if self.is_too_long {
                    return Some(Line { is_too_long: true, ..self.line() });
                }
            }
            let (end, rest) = rest.split_first()?;
            *bytes = rest;
            self.after_cr = *end == b'\r';
            let line = Line { ends_in_cr: self.after_cr, ..self.line() };
            self.count += 1;
            if !std::mem::take(&mut self.is_too_long) {
                return Some(line);
            }
        }
    }

    /// The stream is over: what stands behind its last line end.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        (!self.pending.is_empty()).then(|| self.line())
    }

    fn line(&mut self) -> Line {
        let (number, mut bytes) = (self.count + 1, std::mem::take(&mut self.pending));
        let has_mark = number == 1 && bytes.starts_with(BYTE_ORDER_MARK);
        if has_mark {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        Line { number, bytes, has_mark, ends_in_cr: false, is_too_long: false }
    }
}

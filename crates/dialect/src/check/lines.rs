//! How the lines of a stream must look. The standard lets a stream be written in many ways; clients read fewer.

use serde_json::Value;

use super::{Finding, Rule};

/// An event longer than this is of no stream of anybody we know.
const EVENT_LIMIT: usize = 64 * 1024 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a family's clients can read. A rule that is `None` forbids nothing.
#[derive(Debug)]
pub(crate) struct Manners {
    /// A line may be a whole packet, without `data:`: protocols over pipes are written so.
    pub(crate) bare: Option<&'static Rule>,
    /// Lines end in LF alone.
    pub(crate) crlf: Option<&'static Rule>,
    /// No `id:` lines.
    pub(crate) id: Option<&'static Rule>,
    /// No `event:` lines but these.
    pub(crate) event: Option<(&'static Rule, &'static [&'static str])>,
    /// `data:` stands in one line, with nothing but `event:` and `id:` before it in its event and a space behind the
    /// colon.
    pub(crate) data: Option<&'static Rule>,
    /// What an event holds is one JSON object.
    pub(crate) json: &'static Rule,
    /// The stream does not end inside an event.
    pub(crate) cut: &'static Rule,
}

impl Manners {
    pub(super) fn rules(&self) -> Vec<&'static Rule> {
        let event = self.event.map(|(rule, _)| rule);
        let rules = [self.bare, self.crlf, self.id, event, self.data, Some(self.json), Some(self.cut)];
        rules.into_iter().flatten().collect()
    }

    /// For lines that readers cannot make out at all.
    fn unreadable(&self) -> &'static Rule {
        self.data.unwrap_or(self.json)
    }
}

#[derive(Debug)]
pub(super) struct Event {
    pub(super) line: u64,
    pub(super) name: Option<String>,
    pub(super) body: Value,
}

#[derive(Debug)]
pub(super) struct Lines {
    manners: &'static Manners,
    limit: usize,
    pending: Vec<u8>,
    line: u64,
    after_cr: bool,
    /// Told once: it is the same on every line.
    told_crlf: bool,
    /// The rest of this line is passed over: it was too long, and that was told.
    is_too_long: bool,
    open: Open,
}

/// The event that is being read.
#[derive(Debug, Default)]
struct Open {
    first_line: u64,
    name: Option<String>,
    data: Option<String>,
    /// A comment or the like stands in it.
    has_stray: bool,
    /// A line that is no field stands in it, and that was told.
    has_unknown: bool,
    /// Its data was too long to be kept.
    is_lost: bool,
}

impl Lines {
    pub(super) fn new(manners: &'static Manners) -> Self {
        Lines {
            manners,
            limit: EVENT_LIMIT,
            pending: Vec::new(),
            line: 0,
            after_cr: false,
            told_crlf: false,
            is_too_long: false,
            open: Open::default(),
        }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        while let Some(at) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (piece, end) = (&bytes[..at], bytes[at]);
            bytes = &bytes[at + 1..];
            let was_cr = std::mem::replace(&mut self.after_cr, end == b'\r');
            if was_cr && piece.is_empty() && end == b'\n' {
                continue;
            }
            self.take(piece, found);
            self.end_line(end, events, found);
        }
        if !bytes.is_empty() {
            self.after_cr = false;
            self.take(bytes, found);
        }
    }

    pub(super) fn finish(&mut self, events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        if self.is_too_long {
            return;
        }
        if self.open.first_line == 0 && is_packet(&self.pending) {
            return self.last_packet(events, found);
        }
        let has_tail = self.pending.first().is_some_and(|first| *first != b':');
        if has_tail || self.open.data.is_some() || self.open.name.is_some() {
            let line = if has_tail { self.line + 1 } else { self.open.first_line };
            self.add(line, self.manners.cut, "the stream ends inside an event; its readers drop it", found);
        }
    }

    /// A packet that is a line of its own is complete without its line end, if it is complete.
    fn last_packet(&mut self, events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        let is_cut = serde_json::from_slice::<Value>(&self.pending).is_err_and(|error| error.is_eof());
        if is_cut {
            self.add(self.line + 1, self.manners.cut, "the stream ends inside a packet; its readers drop it", found);
        } else {
            self.end_line(b'\n', events, found);
        }
    }

    fn take(&mut self, piece: &[u8], found: &mut Vec<Finding>) {
        if self.is_too_long {
            return;
        }
        let held = self.pending.len() + self.open.data.as_ref().map_or(0, String::len);
        if held + piece.len() <= self.limit {
            self.pending.extend_from_slice(piece);
            return;
        }
        if !self.open.is_lost {
            let problem = format!("the event is longer than {} bytes and is not judged", self.limit);
            self.add(self.line + 1, self.manners.json, problem, found);
        }
        let start = if self.pending.is_empty() { piece } else { &self.pending };
        if self.open.first_line != 0 || !is_packet(start) {
            self.open = Open { first_line: self.line + 1, is_lost: true, ..Open::default() };
        }
        self.is_too_long = true;
        self.pending = Vec::new();
    }

    fn end_line(&mut self, end: u8, events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        self.line += 1;
        let bytes = std::mem::take(&mut self.pending);
        if let Some(rule) = self.manners.crlf.filter(|_| end == b'\r' && !self.told_crlf) {
            self.told_crlf = true;
            self.add(self.line, rule, "the line ends in CR or CR LF, and those after it may as well", found);
        }
        if std::mem::take(&mut self.is_too_long) {
            return;
        }
        let bytes = match bytes.strip_prefix(BYTE_ORDER_MARK).filter(|_| self.line == 1) {
            Some(rest) => {
                let problem = "a byte order mark stands before the first line, and hides it from readers";
                self.add(self.line, self.manners.unreadable(), problem, found);
                rest
            }
            None => &bytes,
        };
        let line = String::from_utf8_lossy(bytes);
        if matches!(line, std::borrow::Cow::Owned(_)) {
            self.add(self.line, self.manners.json, "the line is not UTF-8", found);
        }
        if line.is_empty() {
            return self.end_event(events, found);
        }
        if is_packet(bytes) && self.open.first_line == 0 {
            if let Some(rule) = self.manners.bare {
                self.add(self.line, rule, "a packet stands without `data: `, so that no reader sees it", found);
            }
            self.open = Open { first_line: self.line, data: Some(line.into_owned()), ..Open::default() };
            return self.end_event(events, found);
        }
        self.field(&line, found);
    }

    fn field(&mut self, line: &str, found: &mut Vec<Finding>) {
        if self.open.first_line == 0 {
            self.open.first_line = self.line;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let spaced = value.strip_prefix(' ');
        match field {
            "data" => self.data(value, found),
            "event" => {
                let name = spaced.unwrap_or(value);
                if let Some((rule, _)) = self.manners.event.filter(|(_, allowed)| !allowed.contains(&name)) {
                    self.add(self.line, rule, format!("`event: {name}`"), found);
                }
                self.open.name = Some(name.to_owned());
            }
            "id" => {
                if let Some(rule) = self.manners.id {
                    self.add(self.line, rule, "an `id:` line, as streams with positions have it", found);
                }
            }
            // A comment or `retry:`. In an event of its own it harms nobody.
            "" | "retry" => self.open.has_stray = true,
            _ => {
                self.open.has_stray = true;
                if !std::mem::replace(&mut self.open.has_unknown, true) {
                    let start: String = line.chars().take(40).collect();
                    let problem = format!("`{start}` is no line of a stream, and readers pass over it");
                    self.add(self.line, self.manners.unreadable(), problem, found);
                }
            }
        }
    }

    /// `value` is all that stands behind the colon.
    fn data(&mut self, value: &str, found: &mut Vec<Finding>) {
        if self.open.is_lost {
            return;
        }
        let spaced = value.strip_prefix(' ');
        let odd = match &self.open.data {
            Some(_) => Some("the event has several `data:` lines"),
            None if spaced.is_none() => Some("no space behind `data:`"),
            None if self.open.has_stray && !self.open.has_unknown => {
                Some("something stands before `data:` in the event")
            }
            None => None,
        };
        if let (Some(rule), Some(problem)) = (self.manners.data, odd) {
            self.add(self.line, rule, problem, found);
        }
        let value = spaced.unwrap_or(value);
        match &mut self.open.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.open.data = Some(value.to_owned()),
        }
    }

    fn end_event(&mut self, events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        let Open { first_line: line, name, data, .. } = std::mem::take(&mut self.open);
        let Some(data) = data else { return };
        match serde_json::from_str(&data) {
            Ok(body @ Value::Object(_)) => events.push(Event { line, name, body }),
            Ok(_) => self.add(line, self.manners.json, "the data is JSON, but not an object", found),
            Err(error) => self.add(line, self.manners.json, format!("the data is not JSON: {error}"), found),
        }
    }

    fn add(&self, line: u64, rule: &'static Rule, problem: impl Into<String>, found: &mut Vec<Finding>) {
        found.push(Finding::new(line, rule, problem));
    }
}

/// No field of the standard begins so.
fn is_packet(line: &[u8]) -> bool {
    line.first() == Some(&b'{')
}

#[cfg(test)]
mod tests;

//! How the lines of a stream must look. The standard lets a stream be written in many ways; clients read fewer.

use serde_json::Value;

use super::{Finding, Rule};
use crate::sse::{Line, LineReader, OpenEvent, TooLong};

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
    /// No empty line but the one that ends an event: a client that cuts the stream at two line ends finds the next event
    /// behind it, and not at its beginning.
    pub(crate) blank: Option<&'static Rule>,
    /// What an event holds is one JSON object.
    pub(crate) json: &'static Rule,
    /// The stream does not end inside an event.
    pub(crate) cut: &'static Rule,
}

impl Manners {
    pub(super) fn rules(&self) -> Vec<&'static Rule> {
        let event = self.event.map(|(rule, _)| rule);
        let rules = [self.bare, self.crlf, self.id, event, self.data, self.blank, Some(self.json), Some(self.cut)];
        let mut rules: Vec<_> = rules.into_iter().flatten().collect();
        rules.dedup();
        rules
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
    lines: LineReader,
    open: OpenEvent,
    /// What was seen in the event that is open.
    seen: Seen,
    /// The line before was empty, or there was none.
    is_after_empty: bool,
    /// Told once: it is the same on every line.
    told_crlf: bool,
}

#[derive(Debug, PartialEq)]
enum Seen {
    /// Nothing but fields.
    Fields,
    /// A comment or the like.
    Stray,
    /// A line that is no field, and that was told.
    Unknown,
}

impl Lines {
    pub(super) fn new(manners: &'static Manners, limit: usize) -> Self {
        let (lines, open) = (LineReader::new(limit), OpenEvent::default());
        Lines { manners, limit, lines, open, seen: Seen::Fields, is_after_empty: true, told_crlf: false }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        while let Some(line) = self.lines.next(&mut bytes) {
            self.take(&line, events, found);
        }
    }

    pub(super) fn finish(&mut self, events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        let cut = self.manners.cut;
        match self.lines.rest().filter(|line| !line.bytes.starts_with(b":")) {
            // A packet that is a line of its own is complete without its line end, if it is complete.
            Some(line) if self.open.is_packet(&line) => {
                if serde_json::from_slice::<Value>(&line.bytes).is_err_and(|error| error.is_eof()) {
                    let problem = "the stream ends inside a packet; its readers drop it";
                    return found.push(Finding::new(line.number, cut, problem));
                }
                self.take(&line, events, found);
            }
            tail => {
                let line = tail.map(|line| line.number).or(self.open.begun());
                let problem = "the stream ends inside an event; its readers drop it";
                found.extend(line.map(|line| Finding::new(line, cut, problem)));
            }
        }
    }

    fn take(&mut self, line: &Line, events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        let text = if line.is_too_long { "".into() } else { String::from_utf8_lossy(&line.bytes) };
        self.judge(line, &text, &mut |rule, problem| found.push(Finding::new(line.number, rule, problem)));
        let json = self.manners.json;
        let event = match self.open.take(line, &text, self.limit) {
            Ok(Some(event)) => event,
            Ok(None) => return,
            Err(TooLong) => {
                let problem = format!("the event is longer than {} bytes and is not judged", self.limit);
                return found.push(Finding::new(line.number, json, problem));
            }
        };
        match serde_json::from_str(&event.data) {
            Ok(body @ Value::Object(_)) => events.push(Event { line: event.line, name: event.event, body }),
            Ok(_) => found.push(Finding::new(event.line, json, "the data is JSON, but not an object")),
            Err(error) => found.push(Finding::new(event.line, json, format!("the data is not JSON: {error}"))),
        }
    }

    /// Holds a line against the manners before it is taken.
    fn judge(&mut self, line: &Line, text: &str, add: &mut dyn FnMut(&'static Rule, &str)) {
        let manners = self.manners;
        let is_empty = text.is_empty() && !line.is_too_long;
        let is_surplus = std::mem::replace(&mut self.is_after_empty, is_empty) && is_empty;
        if let Some(rule) = manners.crlf.filter(|_| line.ends_in_cr && !self.told_crlf) {
            self.told_crlf = true;
            add(rule, "the line ends in CR or CR LF, and those after it may as well");
        }
        if line.is_too_long {
            return;
        }
        if line.has_mark {
            add(manners.unreadable(), "a byte order mark stands before the first line, and hides it from readers");
        }
        if text.as_bytes() != line.bytes {
            add(manners.json, "the line is not UTF-8");
        }
        if text.is_empty() {
            if let Some(rule) = manners.blank.filter(|_| is_surplus) {
                add(rule, "an empty line too many: it stands before the next event and hides it");
            }
            self.seen = Seen::Fields;
        } else if !self.open.is_packet(line) {
            self.judge_field(text, add);
        } else if let Some(rule) = manners.bare {
            add(rule, "a packet stands without `data: `, so that no reader sees it");
        }
    }

    fn judge_field(&mut self, text: &str, add: &mut dyn FnMut(&'static Rule, &str)) {
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let spaced = value.strip_prefix(' ');
        match field {
            "data" if self.open.is_lost => {}
            "data" => {
                let odd = match self.seen {
                    _ if self.open.has_data => Some("the event has several `data:` lines"),
                    _ if spaced.is_none() => Some("no space behind `data:`"),
                    Seen::Stray => Some("something stands before `data:` in the event"),
                    Seen::Fields | Seen::Unknown => None,
                };
                if let (Some(rule), Some(odd)) = (self.manners.data, odd) {
                    add(rule, odd);
                }
            }
            "event" => {
                let name = spaced.unwrap_or(value);
                if let Some((rule, _)) = self.manners.event.filter(|(_, allowed)| !allowed.contains(&name)) {
                    add(rule, &format!("`event: {name}`"));
                }
            }
            "id" => {
                if let Some(rule) = self.manners.id {
                    add(rule, "an `id:` line, as streams with positions have it");
                }
            }
            // A comment or `retry:`. In an event of its own it harms nobody.
            "" | "retry" if self.seen == Seen::Fields => self.seen = Seen::Stray,
            "" | "retry" => {}
            _ => {
                if std::mem::replace(&mut self.seen, Seen::Unknown) != Seen::Unknown {
                    let start: String = text.chars().take(40).collect();
                    add(
                        self.manners.unreadable(),
                        &format!("`{start}` is no line of a stream, and readers pass over it"),
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

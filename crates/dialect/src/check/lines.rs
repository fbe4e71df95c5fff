//! How the lines of a stream must look. The standard lets a stream be written in many ways; clients read fewer.

use serde_json::Value;

use super::{Finding, Rule};

/// A line longer than this is no stream of anybody we know.
const LINE_LIMIT: usize = 64 * 1024 * 1024;

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
    /// `data:` stands in one line, first in its event and with a space behind the colon.
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
    pending: Vec<u8>,
    line: u64,
    /// Told once: it is the same on every line.
    told_crlf: bool,
    open: Open,
}

/// The event that is being read.
#[derive(Debug, Default)]
struct Open {
    first_line: u64,
    name: Option<String>,
    data: Option<String>,
    /// A line of it that clients may stumble over was seen.
    is_odd: bool,
}

impl Lines {
    pub(super) fn new(manners: &'static Manners) -> Self {
        Lines { manners, pending: Vec::new(), line: 0, told_crlf: false, open: Open::default() }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(&bytes[..at]);
            bytes = &bytes[at + 1..];
            self.end_line(events, found);
        }
        if self.pending.len() + bytes.len() <= LINE_LIMIT {
            self.pending.extend_from_slice(bytes);
        }
    }

    pub(super) fn finish(&mut self, events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        let has_tail = !self.pending.is_empty();
        if has_tail && self.is_bare(&self.pending) {
            return self.end_line(events, found);
        }
        if has_tail || self.open.data.is_some() {
            let line = if has_tail { self.line + 1 } else { self.open.first_line };
            self.add(line, self.manners.cut, "the stream ends inside an event; its readers drop it", found);
        }
    }

    fn is_bare(&self, line: &[u8]) -> bool {
        line.first() == Some(&b'{')
    }

    fn end_line(&mut self, events: &mut Vec<Event>, found: &mut Vec<Finding>) {
        self.line += 1;
        let mut bytes = std::mem::take(&mut self.pending);
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
            if let Some(rule) = self.manners.crlf.filter(|_| !self.told_crlf) {
                self.told_crlf = true;
                self.add(self.line, rule, "the line ends in CR LF, and those after it may as well", found);
            }
        }
        let line = String::from_utf8_lossy(&bytes);
        if matches!(line, std::borrow::Cow::Owned(_)) {
            self.add(self.line, self.manners.json, "the line is not UTF-8", found);
        }
        if line.is_empty() {
            return self.end_event(events, found);
        }
        if self.is_bare(&bytes) && self.open.first_line == 0 {
            if let Some(rule) = self.manners.bare {
                self.add(self.line, rule, "a packet stands without `data: `, so that no reader sees it", found);
            }
            self.open = Open { first_line: self.line, name: None, data: Some(line.into_owned()), is_odd: false };
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
            "data" => self.data(spaced.unwrap_or(value), spaced.is_some(), found),
            "event" => {
                let name = spaced.unwrap_or(value);
                if let Some((rule, _)) = self.manners.event.filter(|(_, allowed)| !allowed.contains(&name)) {
                    self.add(self.line, rule, format!("`event: {name}`"), found);
                }
                self.open.name = Some(name.to_owned());
            }
            "id" => {
                if let Some(rule) = self.manners.id {
                    self.add(self.line, rule, "an `id:` line", found);
                    self.open.is_odd = true;
                }
            }
            // A comment or `retry:`. In an event of its own it harms nobody.
            _ => {}
        }
    }

    fn data(&mut self, value: &str, is_spaced: bool, found: &mut Vec<Finding>) {
        let odd = match &self.open.data {
            Some(_) => Some("the event has several `data:` lines"),
            None if !is_spaced => Some("no space behind `data:`"),
            None if self.line != self.open.first_line && !self.open.is_odd && self.open.name.is_none() => {
                Some("something stands before `data:` in the event")
            }
            None => None,
        };
        if let (Some(rule), Some(problem)) = (self.manners.data, odd) {
            self.add(self.line, rule, problem, found);
        }
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
        found.push(Finding { line, rule, problem: problem.into() });
    }
}

//! The judge: reads any stream of a dialect, ours or another server's, and says line by line what breaks the rules of
//! its document.
//!
//! A [`Judge`] is two parts. The lines are read in one place, by the [`Manners`] that the family's clients need (line
//! ends, `id:` lines, one JSON object per event). What the packets must hold, and in which order, is the family's
//! [`Law`]; it stands beside its encoder, in the same folder.

mod lines;
mod shape;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::sse::LIMIT;
use lines::Lines;
pub(crate) use lines::Manners;
pub(crate) use shape::{Field, Kind, may, must, problems};

/// Names beyond this many are counted together: a stream of nonsense must not fill the memory.
const TALLIED_NAMES: usize = 1000;
const OTHER_NAMES: &str = "(other names)";

/// Characters of a problem, or of a packet's name: a stream may hold whole files where it should hold a word.
const SHOWN: usize = 200;

/// Something that a document demands.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// A short name that stays: scripts and tests go by it.
    pub name: &'static str,
    /// Where it stands: the document and its section.
    pub section: &'static str,
    /// What it demands, in a sentence.
    pub demand: &'static str,
}

/// A place where a stream breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// From 1; where the event's first line stands.
    pub line: u64,
    pub rule: &'static Rule,
    /// What is there instead.
    pub problem: String,
}

impl Finding {
    /// A problem that quotes too much is cut.
    pub fn new(line: u64, rule: &'static Rule, problem: impl Into<String>) -> Self {
        let mut problem = problem.into();
        if let Some(end) = cut(&problem) {
            problem.truncate(end);
            problem.push('…');
        }
        Finding { line, rule, problem }
    }
}

/// Where a text is cut that is longer than is shown.
fn cut(text: &str) -> Option<usize> {
    text.char_indices().nth(SHOWN).map(|(end, _)| end)
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} [{}, {}]", self.line, self.problem, self.rule.name, self.rule.section)
    }
}

/// What a family demands of its packets.
pub(crate) trait Law: Send + fmt::Debug {
    fn manners(&self) -> &'static Manners;

    /// The name under which a packet is counted, and known to people.
    fn name<'a>(&self, packet: &'a Value) -> &'a str {
        packet["type"].as_str().unwrap_or("(no type)")
    }

    fn judge(&mut self, packet: &Packet<'_>, out: &mut Findings<'_>);

    /// The stream is over; what is still open is judged.
    fn end(&mut self, out: &mut Findings<'_>);

    /// All that it can find; the rules of its manners need not be among them.
    fn rules(&self) -> Vec<&'static Rule>;
}

/// One event of a stream.
#[derive(Debug)]
pub(crate) struct Packet<'a> {
    /// The `event:` that stood before the data.
    pub(crate) event: Option<&'a str>,
    pub(crate) body: &'a Value,
}

/// Where a law puts what it finds; the line is that of the packet at hand, or of the stream's last.
pub(crate) struct Findings<'a> {
    line: u64,
    found: &'a mut Vec<Finding>,
}

impl Findings<'_> {
    pub(crate) fn add(&mut self, rule: &'static Rule, problem: impl Into<String>) {
        self.found.push(Finding::new(self.line, rule, problem));
    }

    /// Holds a value against a shape; each thing that does not fit breaks `rule`.
    pub(crate) fn shape(&mut self, rule: &'static Rule, value: &Value, fields: &[Field]) {
        for problem in problems(value, fields) {
            self.add(rule, problem);
        }
    }
}

/// Judges one stream.
#[derive(Debug)]
pub struct Judge {
    lines: Lines,
    law: Box<dyn Law>,
    tally: BTreeMap<String, u64>,
    last_line: u64,
}

impl Judge {
    pub(crate) fn new(law: Box<dyn Law>) -> Self {
        Judge { lines: Lines::new(law.manners(), LIMIT), law, tally: BTreeMap::new(), last_line: 0 }
    }

    /// Takes the next bytes of the stream, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8], found: &mut Vec<Finding>) {
        let (mut events, before) = (Vec::new(), found.len());
        self.lines.feed(bytes, &mut events, found);
        self.judge(&events, found);
        self.assert_listed(&found[before..]);
        found[before..].sort_by_key(|finding| finding.line);
    }

    /// The stream is over. A reader that leaves before it is does not call this: that something is still open then is
    /// no fault of the stream.
    pub fn finish(&mut self, found: &mut Vec<Finding>) {
        let (mut events, before) = (Vec::new(), found.len());
        self.lines.finish(&mut events, found);
        self.judge(&events, found);
        self.law.end(&mut Findings { line: self.last_line, found });
        self.assert_listed(&found[before..]);
        found.sort_by_key(|finding| finding.line);
    }

    /// Everything that it can find: how the lines must be first, then what the packets must hold.
    pub fn rules(&self) -> Vec<&'static Rule> {
        let mut rules = Vec::new();
        for rule in self.law.manners().rules().into_iter().chain(self.law.rules()) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules
    }

    /// Tests that plant faults find rules that the list has forgotten.
    fn assert_listed(&self, found: &[Finding]) {
        if cfg!(debug_assertions) && !found.is_empty() {
            let rules = self.rules();
            let unlisted = found.iter().find(|finding| !rules.contains(&finding.rule));
            debug_assert_eq!(unlisted, None, "the law does not list this rule");
        }
    }

    /// How many packets of each name there were.
    pub fn tally(&self) -> &BTreeMap<String, u64> {
        &self.tally
    }

    fn judge(&mut self, events: &[lines::Event], found: &mut Vec<Finding>) {
        for event in events {
            let packet = Packet { event: event.name.as_deref(), body: &event.body };
            let name = self.law.name(&event.body);
            let name = cut(name).map_or(name, |end| &name[..end]);
            let is_full = self.tally.len() >= TALLIED_NAMES && !self.tally.contains_key(name);
            let name = if is_full { OTHER_NAMES } else { name };
            match self.tally.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(self.tally.insert(name.to_owned(), 1)),
            }
            self.last_line = event.line;
            self.law.judge(&packet, &mut Findings { line: event.line, found });
        }
    }
}

//! What was found, for a person line by line as it comes, or for a program at the end.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;
use tolka_dialect::{Dialect, Finding, Rule};

use crate::print::{self, plain};

/// Whoever has read so many of one rule knows it.
const LISTED: u64 = 20;
/// Of one rule, for a program; a feed may break it for days.
const KEPT: u64 = 1000;

/// How the listening ended.
#[derive(Debug, PartialEq)]
pub(super) enum Ended {
    /// The stream did.
    Whole,
    /// We left; the stream may go on.
    Left,
    /// The connection broke.
    Broken(String),
    /// The answer was no stream.
    Unheard,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// For people, who get tired of one rule.
    Short,
    /// For people who do not.
    Full,
    /// For programs.
    Json,
}

pub(super) struct Report {
    source: String,
    pub(super) dialect: Option<Dialect>,
    is_guessed: bool,
    form: Form,
    is_coloured: bool,
    /// In the order in which they were first broken.
    broken: Vec<(&'static Rule, u64)>,
    /// Kept for the object at the end, else empty.
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(source: &str, form: Form) -> Self {
        Report {
            source: if source == "-" { "stdin".to_owned() } else { source.to_owned() },
            dialect: None,
            is_guessed: false,
            form,
            is_coloured: print::is_coloured(),
            broken: Vec::new(),
            findings: Vec::new(),
        }
    }

    pub(super) fn guessed(&mut self) {
        self.is_guessed = true;
    }

    pub(super) fn is_clean(&self) -> bool {
        self.broken.is_empty()
    }

    pub(super) fn tell(&mut self, found: &mut Vec<Finding>) -> Result<()> {
        for finding in found.drain(..) {
            let count = self.count(finding.rule);
            match self.form {
                Form::Json if count > KEPT => {}
                Form::Json => self.findings.push(finding),
                Form::Short if count > LISTED => {}
                Form::Short | Form::Full => self.line(&finding, count == 1)?,
            }
        }
        Ok(())
    }

    fn count(&mut self, rule: &'static Rule) -> u64 {
        if let Some((_, count)) = self.broken.iter_mut().find(|(known, _)| known.name == rule.name) {
            *count += 1;
            return *count;
        }
        self.broken.push((rule, 1));
        1
    }

    fn line(&self, finding: &Finding, is_first: bool) -> Result<()> {
        let place = if finding.line == 0 { "response".to_owned() } else { format!("line {}", finding.line) };
        let problem = plain(&finding.problem);
        print::line(format_args!("{place:<10}{}  {problem}", self.paint("31", finding.rule.name)))?;
        if is_first {
            let Rule { demand, section, .. } = finding.rule;
            print::line(self.paint("2", &format!("          {demand} [{section}]")))?;
        }
        Ok(())
    }

    pub(super) fn end(&mut self, events: &BTreeMap<String, u64>, ended: &Ended) -> Result<()> {
        if self.form == Form::Json {
            return Ok(print::line(self.object(events, ended))?);
        }
        for (rule, count) in self.broken.iter().filter(|(_, count)| *count > LISTED && self.form == Form::Short) {
            print::line(format_args!("… and {} more of {}; --all lists them", count - LISTED, rule.name))?;
        }
        if !self.broken.is_empty() {
            print::line("")?;
        }
        print::line(self.stream(events, ended))?;
        print::line(self.verdict())?;
        if let Some(hint) = self.hint() {
            print::line(hint)?;
        }
        Ok(())
    }

    /// A guess is of a family; its profiles demand different things.
    fn hint(&self) -> Option<String> {
        let guessed = self.dialect.filter(|_| self.is_guessed && !self.is_clean())?;
        let family = std::mem::discriminant(&guessed);
        let others =
            Dialect::ALL.into_iter().filter(|other| std::mem::discriminant(other) == family && *other != guessed);
        let others: Vec<&str> = others.map(Dialect::name).collect();
        (!others.is_empty())
            .then(|| format!("It may be another profile of the family; try --dialect {}.", others.join(" or ")))
    }

    /// What was judged.
    fn stream(&self, events: &BTreeMap<String, u64>, ended: &Ended) -> String {
        let dialect = match self.dialect {
            Some(dialect) if self.is_guessed => format!(" as {dialect} (guessed)"),
            Some(dialect) => format!(" as {dialect}"),
            None => String::new(),
        };
        let ended = match ended {
            Ended::Whole => String::new(),
            Ended::Left => " It was left before its end.".to_owned(),
            Ended::Broken(why) => format!(" Then the connection broke: {}.", plain(why)),
            Ended::Unheard => " The answer is no stream.".to_owned(),
        };
        let kinds = ranked(events.iter().map(|(name, count)| (name.as_str(), *count)));
        let kinds = if kinds.is_empty() { kinds } else { format!(" ({})", plain(&kinds)) };
        let events = plural(events.values().sum(), "event");
        format!("{}{dialect}: {events}{kinds}.{ended}", plain(&self.source))
    }

    fn verdict(&self) -> String {
        if self.broken.is_empty() {
            return self.paint("32", "Clean: nothing breaks the rules.");
        }
        let findings = plural(self.broken.iter().map(|(_, count)| count).sum(), "finding");
        let rules = plural(self.broken.len() as u64, "rule");
        let worst = ranked(self.broken.iter().map(|(rule, count)| (rule.name, *count)));
        self.paint("31", &format!("{findings} against {rules}: {worst}."))
    }

    fn object(&self, events: &BTreeMap<String, u64>, ended: &Ended) -> String {
        let findings = self.findings.iter().map(|Finding { line, rule, problem }| {
            json!({
                "line": line,
                "rule": rule.name,
                "section": rule.section,
                "demand": rule.demand,
                "problem": problem,
            })
        });
        let omitted = self.broken.iter().filter(|(_, count)| *count > KEPT);
        let omitted: BTreeMap<_, _> = omitted.map(|(rule, count)| (rule.name, count - KEPT)).collect();
        let ended = match ended {
            Ended::Whole => "whole",
            Ended::Left => "left",
            Ended::Broken(_) => "broken",
            Ended::Unheard => "unheard",
        };
        json!({
            "dialect": self.dialect.map(Dialect::name),
            "source": self.source,
            "events": events,
            "ended": ended,
            "findings": findings.collect::<Vec<_>>(),
            "omitted": omitted,
            "clean": self.is_clean(),
        })
        .to_string()
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// `3 chat, 1 done`: the most first.
fn ranked<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> String {
    let mut counts: Vec<_> = counts.collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

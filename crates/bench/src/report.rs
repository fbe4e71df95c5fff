//! Rows of a table: printed as they come, and written whole as JSON at the end.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

pub(crate) use crate::figure::Figure;
use crate::figure::readable;

#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What is being measured; a row belongs to it, and `--only` selects by it.
    name: String,
    rows: Vec<Row>,
    printed: usize,
    /// What charts are drawn from, beyond the rows: by chart, then by line, its points.
    lines: BTreeMap<String, BTreeMap<String, Vec<(f64, f64)>>>,
}

#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    what: String,
    unit: String,
    ours: Figure,
    reference: Option<(String, Figure)>,
    goals: Vec<Goal>,
    note: Option<String>,
}

/// What a row should give. A ratio is ours to the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    AtMost(f64),
    RatioAtLeast(f64),
    RatioAtMost(f64),
    /// That there is a figure at all.
    Measured,
}

impl Row {
    /// A row may have several goals: it is met when all are.
    pub(crate) fn goal(&mut self, goal: Goal) -> &mut Self {
        self.goals.push(goal);
        self
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) -> &mut Self {
        self.note = Some(note.into());
        self
    }

    fn ratio(&self) -> Option<f64> {
        self.reference.as_ref().filter(|(_, figure)| figure.median != 0.0).map(|(_, f)| self.ours.median / f.median)
    }

    fn is_met(&self) -> Option<bool> {
        let ratio = self.ratio().unwrap_or(f64::NAN);
        let met = |goal: &Goal| match *goal {
            Goal::AtMost(most) => self.ours.median <= most,
            Goal::RatioAtLeast(least) => ratio >= least,
            Goal::RatioAtMost(most) => ratio <= most,
            Goal::Measured => true,
        };
        (!self.goals.is_empty()).then(|| self.ours.runs > 0 && self.goals.iter().all(met))
    }

    fn goal_in_words(&self) -> String {
        let words = self.goals.iter().map(|goal| match *goal {
            Goal::AtMost(most) => format!("≤ {} {}", readable(most), self.unit).trim_end().to_owned(),
            Goal::RatioAtLeast(least) => format!("≥ {least:.2}×"),
            Goal::RatioAtMost(most) => format!("≤ {most:.2}×"),
            Goal::Measured => "measured".to_owned(),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn print(&self) {
        let ratio = self.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}×"));
        let beside = self.reference.as_ref().map(|(name, f)| format!("  {name} {}", readable(f.median)));
        let ours = if self.ours.runs > 0 { readable(self.ours.median) } else { "none".to_owned() };
        let goal = match self.is_met() {
            Some(true) => format!("  [{} met]", self.goal_in_words()),
            Some(false) => format!("  [{} MISSED]", self.goal_in_words()),
            None => String::new(),
        };
        println!(
            "{ratio:>8}  {:58} {ours:>8} {:9} ±{:3.0}%{}{goal}",
            self.what,
            self.unit,
            self.ours.spread * 50.0,
            beside.unwrap_or_default(),
        );
        if let Some(note) = &self.note {
            println!("          {note}");
        }
        let _ = std::io::stdout().flush();
    }

    fn json(&self) -> Value {
        let figure = |f: &Figure| json!({ "median": f.median, "spread": f.spread, "runs": f.runs });
        json!({
            "name": self.name,
            "what": self.what,
            "unit": self.unit,
            "ratio": self.ratio(),
            "ours": figure(&self.ours),
            "reference": self.reference.as_ref().map(|(name, f)| json!({ "what": name, "figure": figure(f) })),
            "goal": (!self.goals.is_empty()).then(|| self.goal_in_words()),
            "met": self.is_met(),
            "note": self.note,
        })
    }
}

impl Report {
    /// The rows that follow belong to this.
    pub(crate) fn begin(&mut self, name: &str) {
        self.print();
        name.clone_into(&mut self.name);
    }

    /// One row. It is printed when the next one comes, so that goals and a note can be added to it.
    pub(crate) fn row(&mut self, what: &str, unit: &str, ours: Figure, reference: Option<(&str, Figure)>) -> &mut Row {
        self.print();
        let at = self.rows.len();
        self.rows.push(Row {
            name: self.name.clone(),
            what: what.to_owned(),
            unit: unit.to_owned(),
            ours,
            reference: reference.map(|(name, figure)| (name.to_owned(), figure)),
            goals: Vec::new(),
            note: None,
        });
        &mut self.rows[at]
    }

    /// What should have a figure and has none: a goal that is missed, and no row less.
    pub(crate) fn failed(&mut self, what: &str, why: &str) {
        self.row(what, "", Figure::of(Vec::new()), None).goal(Goal::Measured).note(why);
    }

    #[cfg(test)]
    pub(crate) fn ratios(&self) -> Vec<Option<f64>> {
        self.rows.iter().map(Row::ratio).collect()
    }

    pub(crate) fn point(&mut self, chart: &str, line: &str, x: f64, y: f64) {
        self.lines.entry(chart.to_owned()).or_default().entry(line.to_owned()).or_default().push((x, y));
    }

    fn print(&mut self) {
        self.rows.iter().skip(self.printed).for_each(Row::print);
        self.printed = self.rows.len();
    }

    pub(crate) fn finish(mut self, file: &Path, seconds: f64) -> Result<()> {
        self.print();
        let missed: Vec<&str> =
            self.rows.iter().filter(|row| row.is_met() == Some(false)).map(|row| row.what.as_str()).collect();
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let result = json!({ "made": made(seconds), "rows": rows, "lines": self.lines });
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(file, serde_json::to_vec_pretty(&result)?)?;
        println!("\n{seconds:.0} s; written to {}", file.display());
        match missed.as_slice() {
            [] => println!("every goal is met"),
            missed => println!("missed: {}", missed.join("; ")),
        }
        Ok(())
    }
}

/// Where and when: without it a figure says little.
fn made(seconds: f64) -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let said = |program: &str, args: &[&str]| {
        let output = std::process::Command::new(program).args(args).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({
        "machine": model.map_or("unknown", |(_, name)| name),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "memory": read("/proc/meminfo").lines().next().and_then(|line| line.split_once(':')).map(|(_, size)| size.trim()),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").trim(),
        "commit": said("git", &["describe", "--always", "--dirty", "--abbrev=12"]),
        "date": said("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
        "seconds": seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(median: f64) -> Figure {
        Figure::of(vec![median])
    }

    #[test]
    fn a_row_is_met_when_all_its_goals_are() {
        let mut report = Report::default();
        let row = report.row("start", "ms", figure(20.0), Some(("bare", figure(5.0))));
        assert_eq!(row.is_met(), None);
        assert_eq!(row.goal(Goal::AtMost(30.0)).is_met(), Some(true));
        assert_eq!(row.goal(Goal::RatioAtMost(3.0)).is_met(), Some(false));
        assert_eq!(row.goal_in_words(), "≤ 30.0 ms, ≤ 3.00×");
        let row = report.row("rate", "per s", figure(70.0), Some(("raw", figure(100.0))));
        assert_eq!(row.goal(Goal::RatioAtLeast(0.7)).is_met(), Some(true));
    }

    #[test]
    fn what_was_not_measured_meets_no_goal() {
        let mut report = Report::default();
        report.failed("OpenCode in run 1", "no token came");
        assert_eq!(report.rows[0].is_met(), Some(false));
        let row = report.row("delay", "ms", Figure::of(Vec::new()), Some(("theirs", figure(5.0))));
        assert_eq!(row.goal(Goal::AtMost(1.0)).goal(Goal::RatioAtMost(0.1)).is_met(), Some(false));
    }

    #[test]
    fn a_ratio_without_a_reference_meets_nothing() {
        let mut report = Report::default();
        let row = report.row("rate", "per s", figure(70.0), None);
        assert_eq!(row.goal(Goal::RatioAtLeast(0.0)).is_met(), Some(false));
    }
}

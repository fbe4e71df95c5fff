use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

/// Rows of a table; printed as they come, and written whole as JSON at the end.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Value>,
}

/// The median of some runs, and how far they lie apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    spread: f64,
}

impl Figure {
    pub(crate) fn of(mut runs: Vec<f64>) -> Self {
        runs.sort_by(f64::total_cmp);
        let (first, last) = (runs.first().copied().unwrap_or(0.0), runs.last().copied().unwrap_or(0.0));
        let median = runs.get(runs.len() / 2).copied().unwrap_or(0.0);
        Figure { median, spread: if median == 0.0 { 0.0 } else { (last - first) / median } }
    }
}

impl Report {
    /// One row: the ratio to its reference first, where there is one.
    pub(crate) fn row(&mut self, what: &str, unit: &str, ours: Figure, reference: Option<(&str, Figure)>) {
        let ratio = reference.map(|(_, reference)| ours.median / reference.median);
        let shown = ratio.map_or_else(|| "      –".to_owned(), |ratio| format!("{:6.1}%", ratio * 100.0));
        let beside =
            reference.map(|(name, figure)| format!("  {name} {}", readable(figure.median))).unwrap_or_default();
        println!("{shown}  {what:54} {:>10} {unit:9} ±{:3.0}%{beside}", readable(ours.median), ours.spread * 50.0);
        let _ = std::io::stdout().flush();
        self.rows.push(json!({
            "what": what, "unit": unit, "ratio": ratio, "median": ours.median, "spread": ours.spread,
            "reference": reference.map(|(name, figure)| json!({ "what": name, "median": figure.median, "spread": figure.spread })),
        }));
    }

    pub(crate) fn finish(self) -> Result<()> {
        std::fs::create_dir_all("bench-results")?;
        std::fs::write("bench-results/latest.json", serde_json::to_vec_pretty(&json!({ "rows": self.rows }))?)?;
        println!("\nwritten to bench-results/latest.json");
        Ok(())
    }
}

fn readable(value: f64) -> String {
    match value {
        v if v >= 10_000_000.0 => format!("{:.1} M", v / 1e6),
        v if v >= 1_000_000.0 => format!("{:.2} M", v / 1e6),
        v if v >= 10_000.0 => format!("{:.0} k", v / 1e3),
        v if v >= 100.0 => format!("{v:.0}"),
        v => format!("{v:.2}"),
    }
}

//! The parts of the page that are written from what was measured.

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::figure::readable;

/// A part begins `<!-- table latest burst ready -->` and ends so.
const END: &str = "<!-- end -->";

/// The page with every marked part written anew.
pub(super) fn filled(page: &str, figures: &Map<String, Value>) -> Result<String> {
    let (mut out, mut rest) = (String::new(), page);
    while let Some(at) = rest.find("<!-- table ") {
        let (before, marked) = rest.split_at(at);
        let (mark, after) = marked.split_once(" -->").context("a mark without an end")?;
        let (_, after) = after.split_once(END).with_context(|| format!("`{mark} -->` has no `{END}`"))?;
        let mut words = mark.trim_start_matches("<!-- table ").split(' ');
        let result = words.next().and_then(|name| figures.get(name));
        let names: Vec<&str> = words.collect();
        let table = result.map_or_else(|| "Not measured yet.\n".to_owned(), |result| table(result, &names));
        out.push_str(before);
        out.push_str(&format!("{mark} -->\n{table}{END}"));
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

pub(super) fn rows_of<'a>(result: &'a Value, names: &[&str]) -> Vec<&'a Value> {
    let rows = result["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let chosen = |row: &&Value| names.is_empty() || row["name"].as_str().is_some_and(|name| names.contains(&name));
    rows.iter().filter(chosen).collect()
}

/// The rows of these names; of none, where it was measured.
fn table(result: &Value, names: &[&str]) -> String {
    if names.is_empty() {
        return made(&result["made"]);
    }
    if let Some(pivot) = pivot(result) {
        return pivot.table();
    }
    let mut out = String::from("| ratio | what | ours | beside | goal |\n|--:|---|--:|---|---|\n");
    for row in rows_of(result, names) {
        let figure = |figure: &Value| {
            let number = |name: &str| figure[name].as_f64().unwrap_or(0.0);
            format!(
                "{} {} ±{:.0} %",
                readable(number("median")),
                row["unit"].as_str().unwrap_or_default(),
                number("spread") * 50.0
            )
        };
        let ratio = row["ratio"].as_f64().map_or_else(String::new, |ratio| format!("{ratio:.2}×"));
        let beside =
            row["reference"]["what"].as_str().map(|what| format!("{what} {}", figure(&row["reference"]["figure"])));
        let goal = match (row["goal"].as_str(), row["met"].as_bool()) {
            (Some(goal), Some(true)) => format!("{goal}, met"),
            (Some(goal), _) => format!("{goal}, **missed**"),
            _ => String::new(),
        };
        let what = row["what"].as_str().unwrap_or_default();
        out.push_str(&format!(
            "| {ratio} | {what} | {} | {} | {goal} |\n",
            figure(&row["ours"]),
            beside.unwrap_or_default()
        ));
    }
    out
}

/// Nanoseconds or instructions per fact: a row for each dialect, a column for each kind of turn.
pub(super) struct Pivot {
    pub(super) streams: Vec<String>,
    pub(super) rows: Vec<(String, Vec<f64>)>,
    unit: &'static str,
}

/// What `tolka-bench encode` and `tolka-bench count` write has another shape: by kind of turn, then by dialect.
pub(super) fn pivot(result: &Value) -> Option<Pivot> {
    let mut pivot = Pivot { streams: Vec::new(), rows: Vec::new(), unit: "ns" };
    if let Some(counts) = result["instructions_per_fact"].as_object() {
        pivot.unit = "instructions";
        for (stream, counts) in counts {
            for (subject, count) in counts.as_object()? {
                pivot.add(stream, subject, count.as_f64()?);
            }
        }
    } else {
        for row in result["rows"].as_array()?.iter().filter(|row| row["dialect"].is_string()) {
            pivot.add(row["stream"].as_str()?, row["dialect"].as_str()?, row["cost"]["median_ns"].as_f64()?);
        }
    }
    (!pivot.rows.is_empty()).then_some(pivot)
}

impl Pivot {
    fn add(&mut self, stream: &str, dialect: &str, value: f64) {
        if self.streams.last().is_none_or(|last| last != stream) {
            self.streams.push(stream.to_owned());
        }
        match self.rows.iter_mut().find(|(known, _)| known == dialect) {
            Some((_, values)) => values.push(value),
            None => self.rows.push((dialect.to_owned(), vec![value])),
        }
    }

    fn table(&self) -> String {
        let mut out = format!("| {} per fact | {} |\n|---|", self.unit, self.streams.join(" | "));
        out.push_str(&"--:|".repeat(self.streams.len()));
        for (dialect, values) in &self.rows {
            let values: Vec<String> = values.iter().map(|value| readable(*value)).collect();
            out.push_str(&format!("\n| {dialect} | {} |", values.join(" | ")));
        }
        out.push('\n');
        out
    }
}

fn made(made: &Value) -> String {
    let word = |name: &str| made[name].as_str().unwrap_or("unknown");
    format!(
        "{} cores of {}, {}, Linux {}; commit {}, {}; load before the end {}.\n",
        made["cores"],
        word("machine"),
        word("memory"),
        word("kernel"),
        word("commit"),
        word("date"),
        word("load"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn figures() -> Map<String, Value> {
        let figure = |median: f64| json!({ "median": median, "spread": 0.1, "runs": 5 });
        let row = json!({
            "name": "start", "what": "start to first byte", "unit": "ms", "ratio": 4.0, "ours": figure(20.0),
            "reference": { "what": "bare hyper", "figure": figure(5.0) }, "goal": "≤ 3.00×", "met": false,
        });
        let latest =
            json!({ "rows": [row], "lines": { "growth": { "later ones": [[1000.0, 1.5], [1000000.0, 2.0]] } } });
        Map::from_iter([("latest".to_owned(), latest)])
    }

    #[test]
    fn marked_parts_are_written_anew_and_nothing_else() -> Result<()> {
        let page =
            "Words.\n<!-- table latest start -->\nold\n<!-- end -->\nMore.\n<!-- table peers all --><!-- end -->\n";
        let once = filled(page, &figures())?;
        assert_eq!(
            once,
            "Words.\n<!-- table latest start -->\n| ratio | what | ours | beside | goal |\n|--:|---|--:|---|---|\n\
             | 4.00× | start to first byte | 20.0 ms ±5 % | bare hyper 5.00 ms ±5 % | ≤ 3.00×, **missed** |\n<!-- end -->\n\
             More.\n<!-- table peers all -->\nNot measured yet.\n<!-- end -->\n"
        );
        assert_eq!(filled(&once, &figures())?, once);
        Ok(())
    }

    #[test]
    fn what_encoders_cost_is_a_row_for_each_dialect() {
        let row = |stream: &str, dialect: &str, ns: u64| serde_json::json!({ "stream": stream, "dialect": dialect, "cost": { "median_ns": ns } });
        let rows = [
            row("words", "tolka", 214),
            row("words", "acp", 320),
            row("tools", "tolka", 500),
            row("tools", "acp", 600),
        ];
        let table = table(&serde_json::json!({ "rows": rows }), &["all"]);
        assert_eq!(
            table,
            "| ns per fact | words | tools |\n|---|--:|--:|\n| tolka | 214 | 500 |\n| acp | 320 | 600 |\n"
        );
    }

    #[test]
    fn a_mark_without_an_end_is_said() {
        assert!(filled("<!-- table latest start -->\nall the rest", &figures()).is_err());
    }
}

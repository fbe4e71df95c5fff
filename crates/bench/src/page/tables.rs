//! The parts of the page that are written from what was measured.

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::figure::readable;

/// A part begins `<!-- table latest burst ready -->` and ends so. `<!-- table goals -->` has every goal there is.
const END: &str = "<!-- end -->";

/// The page with every marked part written anew.
pub(super) fn filled(page: &str, figures: &Map<String, Value>) -> Result<String> {
    let (mut out, mut rest) = (String::new(), page);
    while let Some(at) = rest.find("<!-- table ") {
        let (before, marked) = rest.split_at(at);
        let (mark, after) = marked.split_once(" -->").context("a mark without an end")?;
        let (_, after) = after.split_once(END).with_context(|| format!("`{mark} -->` has no `{END}`"))?;
        let mut words = mark.trim_start_matches("<!-- table ").split(' ');
        let name = words.next().unwrap_or_default();
        let names: Vec<&str> = words.collect();
        let table = match figures.get(name) {
            _ if name == "goals" => goals(figures),
            Some(result) => table(result, &names),
            None => "Not measured yet.\n".to_owned(),
        };
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
    let rows = rows_of(result, names);
    if rows.is_empty() {
        return "Not measured yet.\n".to_owned();
    }
    let apart = rows.iter().find(|row| row["apart"].is_object()).map(|row| made(&row["apart"]));
    for row in rows {
        let beside =
            row["reference"]["what"].as_str().map(|what| format!("{what} {}", figure(row, "/reference/figure")));
        let goal = row["goal"].as_str().map(|goal| format!("{goal}, {}", judged(&row["met"])));
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            ratio(row).unwrap_or_default(),
            what(row),
            figure(row, "/ours"),
            beside.unwrap_or_default(),
            goal.unwrap_or_default(),
        ));
    }
    if let Some(made) = apart {
        out.push_str(&format!("\nMeasured apart: {made}"));
    }
    out
}

/// Every goal, with the figure that it is judged by.
fn goals(figures: &Map<String, Value>) -> String {
    let mut out = String::from("| what | goal | figure | |\n|---|---|---|---|\n");
    let mut line = |what: &str, goal: &str, figure: &str, met: &Value| {
        out.push_str(&format!("| {what} | {goal} | {figure} | {} |\n", judged(met)));
    };
    for (name, command) in [("latest", "make bench"), ("peers", "make bench-peers"), ("encode", "make bench-encode")] {
        let Some(result) = figures.get(name) else {
            line(&format!("all of `{command}`"), "measured", "none", &Value::Bool(false));
            continue;
        };
        for row in rows_of(result, &[]) {
            let Some(goal) = row["goal"].as_str() else { continue };
            let beside = row["reference"]["what"].as_str().map(|what| {
                let ratio = ratio(row).map_or_else(|| "beside".to_owned(), |ratio| format!("{ratio} of"));
                format!("; {ratio} {what} {}", figure(row, "/reference/figure"))
            });
            // What a figure must be read with stands at its row below; why there is none stands nowhere else.
            let what =
                if row["ours"]["runs"] == 0 { what(row) } else { row["what"].as_str().unwrap_or_default().into() };
            line(&what, goal, &format!("{}{}", figure(row, "/ours"), beside.unwrap_or_default()), &row["met"]);
        }
        if let Some(pivot) = pivot(result)
            && let Some(most) = pivot.goal
            && let Some((dialect, value)) = pivot.slowest()
        {
            let figure = format!("{} ns, {dialect}", readable(value));
            let what = "to tell a fact, median, the slowest dialect and kind of turn";
            line(what, &format!("≤ {} ns", readable(most)), &figure, &Value::Bool(value <= most));
        }
    }
    out
}

fn judged(met: &Value) -> &'static str {
    if met == true { "met" } else { "**missed**" }
}

fn ratio(row: &Value) -> Option<String> {
    Some(format!("{:.2}×", row["ratio"].as_f64()?))
}

/// What a row is of, with what must be known to read it.
fn what(row: &Value) -> String {
    let what = row["what"].as_str().unwrap_or_default();
    let note = row["note"].as_str().map(|note| format!("<br>*{}*", note.replace('|', "/").replace('\n', " ")));
    format!("{what}{}", note.unwrap_or_default())
}

fn figure(row: &Value, at: &str) -> String {
    let number = |name: &str| row.pointer(&format!("{at}/{name}")).and_then(Value::as_f64).unwrap_or(0.0);
    if number("runs") == 0.0 {
        return "none".to_owned();
    }
    let unit = row["unit"].as_str().unwrap_or_default();
    format!("{} {unit} ±{:.0} %", readable(number("median")), number("spread") * 50.0)
}

/// Nanoseconds or instructions per fact: a row for each dialect, a column for each kind of turn.
pub(super) struct Pivot {
    pub(super) streams: Vec<String>,
    pub(super) rows: Vec<(String, Vec<f64>)>,
    unit: &'static str,
    /// What no value should exceed.
    goal: Option<f64>,
}

/// What `tolka-bench encode` and `tolka-bench count` write has another shape: by kind of turn, then by dialect.
pub(super) fn pivot(result: &Value) -> Option<Pivot> {
    let mut pivot = Pivot { streams: Vec::new(), rows: Vec::new(), unit: "ns", goal: result["goal_ns"].as_f64() };
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
        let mut out = format!("| {} per fact | {} |", self.unit, self.streams.join(" | "));
        if let Some(goal) = self.goal {
            out.push_str(&format!(" ≤ {} |", readable(goal)));
        }
        out.push_str(&format!("\n|---|{}", "--:|".repeat(self.streams.len())));
        out.push_str(self.goal.map_or("", |_| "---|"));
        for (dialect, values) in &self.rows {
            let shown: Vec<String> = values.iter().map(|value| readable(*value)).collect();
            out.push_str(&format!("\n| {dialect} | {} |", shown.join(" | ")));
            if let Some(goal) = self.goal {
                let met = values.iter().all(|value| *value <= goal);
                out.push_str(&format!(" {} |", judged(&Value::Bool(met))));
            }
        }
        out.push('\n');
        out
    }

    fn slowest(&self) -> Option<(&str, f64)> {
        let values =
            self.rows.iter().flat_map(|(dialect, values)| values.iter().map(|value| (dialect.as_str(), *value)));
        values.max_by(|one, other| one.1.total_cmp(&other.1))
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
        let result = json!({ "goal_ns": 550, "rows": rows });
        assert_eq!(
            table(&result, &["all"]),
            "| ns per fact | words | tools | ≤ 550 |\n|---|--:|--:|---|\n| tolka | 214 | 500 | met |\n\
             | acp | 320 | 600 | **missed** |\n"
        );
        let table = goals(&Map::from_iter([("encode".to_owned(), result)]));
        assert!(table.contains("| ≤ 550 ns | 600 ns, acp | **missed** |"), "{table}");
    }

    #[test]
    fn every_goal_is_in_one_table_and_what_was_not_measured_is_missed() {
        let mut figures = figures();
        let failed = json!({
            "name": "OpenCode", "what": "figures of OpenCode", "unit": "", "goal": "measured", "met": false,
            "ours": { "median": 0.0, "spread": 0.0, "runs": 0 }, "note": "no token | came",
        });
        figures.insert("peers".to_owned(), json!({ "rows": [failed, { "name": "OpenCode", "what": "no goal" }] }));
        assert_eq!(
            goals(&figures),
            "| what | goal | figure | |\n|---|---|---|---|\n\
             | start to first byte | ≤ 3.00× | 20.0 ms ±5 %; 4.00× of bare hyper 5.00 ms ±5 % | **missed** |\n\
             | figures of OpenCode<br>*no token / came* | measured | none | **missed** |\n\
             | all of `make bench-encode` | measured | none | **missed** |\n"
        );
    }

    #[test]
    fn a_mark_without_an_end_is_said() {
        assert!(filled("<!-- table latest start -->\nall the rest", &figures()).is_err());
    }
}

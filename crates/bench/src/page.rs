//! `make bench-report`: docs/performance.md and its charts, from what was measured. No figure is copied by hand.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::chart::{Below, Line, Scale, bars, lines};
use crate::figure::readable;

const PAGE: &str = "docs/performance.md";
const FOLDER: &str = "docs/performance";
const RESULTS: &str = "bench-results";
/// A part of the page that is written here begins `<!-- table latest burst ready -->` and ends so.
const END: &str = "<!-- end -->";

pub(crate) fn write() -> Result<()> {
    let folder = Path::new(FOLDER);
    std::fs::create_dir_all(folder)?;
    let figures = gather(folder)?;
    anyhow::ensure!(!figures.is_empty(), "nothing was measured yet; run `make bench`");
    std::fs::write(folder.join("figures.json"), serde_json::to_string_pretty(&figures)? + "\n")?;
    for (name, svg) in charts(&figures) {
        std::fs::write(folder.join(format!("{name}.svg")), svg)?;
    }
    let page = std::fs::read_to_string(PAGE)?;
    std::fs::write(PAGE, filled(&page, &figures)?)?;
    println!("{PAGE} and {FOLDER} are written");
    Ok(())
}

/// What was measured last, by the file's name; what was not measured again stays as it was shown before.
fn gather(folder: &Path) -> Result<Map<String, Value>> {
    let before = std::fs::read(folder.join("figures.json")).unwrap_or_default();
    let mut figures: Map<String, Value> = serde_json::from_slice(&before).unwrap_or_default();
    for entry in std::fs::read_dir(RESULTS).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|kind| kind == "json") && name != "selection" {
            let value = serde_json::from_slice(&std::fs::read(&path)?);
            figures.insert(name.to_owned(), value.with_context(|| path.display().to_string())?);
        }
    }
    Ok(figures)
}

fn charts(figures: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let latest = figures.get("latest").unwrap_or(&Value::Null);
    let peers = figures.get("peers").unwrap_or(&Value::Null);
    let mut charts = Vec::new();
    for (name, title) in [
        ("burst", "Events delivered in a burst: agent, journal and encoder included"),
        ("ready", "Events delivered from shared segments"),
    ] {
        let points = of_chart(latest, name, &["Tolka", "raw TCP", "encoded per reader"]);
        if let Some((_, first)) = points.first() {
            let categories: Vec<String> = first.iter().map(|(x, _)| format!("{x} readers")).collect();
            let values: Vec<Line<f64>> =
                points.iter().map(|(name, points)| (name.clone(), points.iter().map(|(_, y)| *y).collect())).collect();
            charts.push((name, bars(title, "events per second", &categories, &values)));
        }
    }
    let delays = of_chart(peers, "delay", &["Tolka", "OpenCode", "sandbox-agent"]);
    if !delays.is_empty() {
        let ticks =
            [(10.0, "10"), (25.0, "25"), (50.0, "50"), (75.0, "75"), (90.0, "90"), (99.0, "99"), (99.9, "99.9")];
        let below = Below { label: "of a hundred deliveries, so many are not later", ticks: &ticks };
        charts.push((
            "delay",
            lines("Delay, 500 readers, a token each 5 ms", "milliseconds", below, Scale::Log, &delays),
        ));
    }
    let idle = of_chart(peers, "peers-memory", &["Tolka", "OpenCode", "sandbox-agent"]);
    if !idle.is_empty() {
        let categories: Vec<String> = idle.iter().map(|(name, _)| name.clone()).collect();
        let values = idle.iter().filter_map(|(_, points)| Some(points.first()?.1)).collect();
        charts
            .push(("memory", bars("Memory of an idle server", "MB", &categories, &[("resident".to_owned(), values)])));
    }
    let growth = of_chart(latest, "growth", &["first resume after a start", "later ones"]);
    if !growth.is_empty() {
        let ticks = [(1e3, "1,000"), (1e4, "10,000"), (1e5, "100,000"), (1e6, "1,000,000")];
        let below = Below { label: "facts in the session", ticks: &ticks };
        charts.push((
            "growth",
            lines("Resume at the end of a session", "milliseconds to the first event", below, Scale::Linear, &growth),
        ));
    }
    charts.extend(appends(latest).map(|svg| ("appends", svg)));
    charts
}

/// The lines of a chart, in this order.
fn of_chart(result: &Value, chart: &str, names: &[&str]) -> Vec<Line<(f64, f64)>> {
    let line = |name: &&str| {
        let points = result["lines"][chart].get(*name)?.as_array()?;
        let points = points.iter().filter_map(|point| Some((point[0].as_f64()?, point[1].as_f64()?)));
        Some(((*name).to_owned(), points.collect()))
    };
    names.iter().filter_map(line).collect()
}

fn appends(latest: &Value) -> Option<String> {
    let rows = rows_of(latest, &["appends"]);
    let rows: Vec<&Value> =
        rows.into_iter().filter(|row| row["unit"] == "per s" && row["reference"].is_object()).collect();
    let beside = rows.first()?["reference"]["what"].as_str()?.to_owned();
    let rows: Vec<&Value> = rows.into_iter().filter(|row| row["reference"]["what"] == beside.as_str()).collect();
    let category = |row: &&Value| {
        let what = row["what"].as_str().unwrap_or_default();
        what.split(", ").nth(1).unwrap_or(what).to_owned()
    };
    let values = |pointer: &str| rows.iter().filter_map(|row| row.pointer(pointer)?.as_f64()).collect();
    let lines = [("Tolka".to_owned(), values("/ours/median")), (beside, values("/reference/figure/median"))];
    Some(bars("Durable appends", "facts per second", &rows.iter().map(category).collect::<Vec<_>>(), &lines))
}

/// The page with every marked part written anew.
fn filled(page: &str, figures: &Map<String, Value>) -> Result<String> {
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

fn rows_of<'a>(result: &'a Value, names: &[&str]) -> Vec<&'a Value> {
    let rows = result["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let chosen = |row: &&Value| names.is_empty() || row["name"].as_str().is_some_and(|name| names.contains(&name));
    rows.iter().filter(chosen).collect()
}

/// The rows of these names; of none, where it was measured.
fn table(result: &Value, names: &[&str]) -> String {
    if names.is_empty() {
        return made(&result["made"]);
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
    fn a_mark_without_an_end_is_said() {
        assert!(filled("<!-- table latest start -->\nall the rest", &figures()).is_err());
    }

    #[test]
    fn charts_are_drawn_for_what_was_measured() {
        let names: Vec<&str> = charts(&figures()).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["growth"]);
    }
}

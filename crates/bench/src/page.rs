//! `make bench-report`: docs/performance.md and its charts, from what was measured. No figure is copied by hand.

mod tables;

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::burst::readers_of;
use crate::chart::{Below, Line, Scale, bars, lines};
use tables::{filled, rows_of};

const PAGE: &str = "docs/performance.md";
const FOLDER: &str = "docs/performance";
const RESULTS: &str = "bench-results";

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
        if path.extension().is_some_and(|kind| kind == "json") {
            let value: Value =
                serde_json::from_slice(&std::fs::read(&path)?).with_context(|| path.display().to_string())?;
            if !is_shown(&figures, name, &value) {
                figures.insert(name.to_owned(), value);
            }
        }
    }
    if let Some(selection) = figures.remove("selection")
        && let Some(latest) = figures.get_mut("latest")
    {
        renew(latest, selection);
    }
    Ok(figures)
}

/// Whether it is what is shown already, into which other rows may have been taken up since.
fn is_shown(figures: &Map<String, Value>, name: &str, value: &Value) -> bool {
    let date = |value: &Value| value["made"]["date"].as_str().map(str::to_owned);
    date(value).is_some() && figures.get(name).and_then(date) == date(value)
}

/// Rows that were measured apart and later take the place of those of the same name, and say so.
fn renew(latest: &mut Value, mut selection: Value) {
    if selection["made"]["date"].as_str() <= latest["made"]["date"].as_str() {
        return;
    }
    let made = selection["made"].take();
    let (Some(new), Some(rows)) = (selection["rows"].as_array_mut(), latest["rows"].as_array_mut()) else { return };
    // Of all readers of all rows, whichever they were.
    new.retain(|row| row["name"] != "lost");
    rows.retain(|row| !new.iter().any(|new| new["name"] == row["name"]));
    for mut row in new.drain(..) {
        row["apart"] = made.clone();
        rows.push(row);
    }
    if let (Some(lines), Some(new)) = (latest["lines"].as_object_mut(), selection["lines"].as_object()) {
        lines.extend(new.clone());
    }
}

fn charts(figures: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let latest = figures.get("latest").unwrap_or(&Value::Null);
    let peers = figures.get("peers").unwrap_or(&Value::Null);
    let mut charts = Vec::new();
    for (name, title) in [
        ("burst", "Events delivered in a burst, from agent to reader"),
        ("ready", "Events delivered from shared segments"),
    ] {
        let points = of_chart(latest, name, &["Tolka", "raw TCP", "encoded per reader"]);
        if let Some((_, first)) = points.first() {
            let categories: Vec<String> = first.iter().map(|(x, _)| readers_of(*x as usize)).collect();
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
    charts.extend(encode(figures.get("encode").unwrap_or(&Value::Null)).map(|svg| ("encode", svg)));
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

/// What it costs to tell a fact, by dialect; a colour for each kind of turn.
fn encode(result: &Value) -> Option<String> {
    let pivot = tables::pivot(result)?;
    let lines: Vec<Line<f64>> = pivot
        .streams
        .iter()
        .enumerate()
        .map(|(nth, stream)| {
            (stream.clone(), pivot.rows.iter().map(|(_, values)| values.get(nth).copied().unwrap_or(0.0)).collect())
        })
        .collect();
    let dialects: Vec<String> = pivot.rows.iter().map(|(dialect, _)| dialect.replace("opencode", "oc")).collect();
    Some(bars("To tell a fact, median", "nanoseconds (oc: opencode)", &dialects, &lines))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_measured_apart_take_the_place_of_older_ones() {
        let row = |name: &str, what: &str| json!({ "name": name, "what": what });
        let before = json!({ "made": { "date": "2026-01-02" }, "rows": [row("idle", "old"), row("start", "old"), row("lost", "all")] });
        let rows = [row("idle", "new"), row("edit", "new"), row("lost", "some")];
        let figures = Map::from_iter([("latest".to_owned(), before.clone())]);
        assert!(is_shown(&figures, "latest", &before));
        assert!(!is_shown(&figures, "peers", &before));
        assert!(!is_shown(&figures, "latest", &json!({ "made": { "date": "2027-01-01" } })));
        assert!(!is_shown(&figures, "encode", &json!({})));
        let selection = |date: &str| json!({ "made": { "date": date }, "rows": rows, "lines": {} });
        let mut latest = before.clone();
        renew(&mut latest, selection("2026-01-01"));
        assert_eq!(latest, before);
        renew(&mut latest, selection("2026-01-03"));
        let apart = |name: &str| json!({ "name": name, "what": "new", "apart": { "date": "2026-01-03" } });
        assert_eq!(latest["rows"], json!([row("start", "old"), row("lost", "all"), apart("idle"), apart("edit")]));
    }

    #[test]
    fn charts_are_drawn_for_what_was_measured() {
        let latest = json!({ "rows": [], "lines": { "growth": { "later ones": [[1000.0, 1.5], [1000000.0, 2.0]] } } });
        let encode = json!({ "rows": [{ "stream": "words", "dialect": "tolka", "cost": { "median_ns": 214 } }] });
        let figures = Map::from_iter([("latest".to_owned(), latest), ("encode".to_owned(), encode)]);
        let names: Vec<&str> = charts(&figures).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["growth", "encode"]);
    }
}

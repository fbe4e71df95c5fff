//! docs/dialects.md, from the tables that encoders and judges are held to.

use std::fmt::Write;

use tolka_dialect::{Carriage, CarriageTable, Dialect, Rule};
use tolka_facts::Event;

use super::about::About;
use crate::command::check::answer;

const INTRODUCTION: &str = "\
# Dialects

Made by `make docs` from the code; do not edit. The encoders are tested against the first two parts, `tolka check`
finds by the last.

Everything an agent does is a fact ([facts.md](facts.md)), and a dialect is a way to tell facts. `tolka convert` tells a
stream of one in another, and counts what the other cannot tell. Any session can be read in any of them:
`/v1/sessions/{id}/events?dialect=<name>`.
";

pub(super) fn document() -> String {
    let mut out = INTRODUCTION.to_owned();
    list(&mut out);
    carried(&mut out);
    lost(&mut out);
    rules(&mut out);
    out
}

/// The profiles of a family carry the same.
fn families() -> Vec<Dialect> {
    let mut families = Dialect::ALL.to_vec();
    families.dedup_by_key(|dialect| std::mem::discriminant(dialect));
    families
}

fn list(out: &mut String) {
    out.push('\n');
    row(out, ["dialect", "what it is", "who says so", "where its clients ask for it"].map(str::to_owned));
    row(out, ["---"; 4].map(str::to_owned));
    for dialect in Dialect::ALL {
        let About { what, document, route } = About::of(dialect);
        row(out, [format!("`{dialect}`"), what.to_owned(), document.to_owned(), route.to_owned()]);
    }
}

fn carried(out: &mut String) {
    out.push_str("\n## Which packet carries which fact\n\n");
    out.push_str("*Partly*: something of it is lost. A dash: nothing tells it. Both are explained below.\n\n");
    let families = families();
    row(out, std::iter::once("fact".to_owned()).chain(families.iter().map(|family| format!("`{family}`"))));
    row(out, std::iter::repeat_n("---".to_owned(), families.len() + 1));
    for event in Event::NAMES {
        let cells = families.iter().map(|family| cell(find(family.carriage(), event)));
        row(out, std::iter::once(format!("`{event}`")).chain(cells));
    }
}

fn cell(carriage: Option<Carriage>) -> String {
    match carriage {
        Some(Carriage::Whole(frames)) => code(frames),
        Some(Carriage::Partly(frames, _)) => format!("{} *partly*", code(frames)),
        Some(Carriage::Never(_)) => "–".to_owned(),
        None => "?".to_owned(),
    }
}

fn lost(out: &mut String) {
    out.push_str("\n## What is lost, and why\n");
    for family in families() {
        let losses = losses(family.carriage());
        let _ = writeln!(out, "\n### `{family}`\n");
        if losses.is_empty() {
            out.push_str("Nothing.\n");
        }
        for (why, events) in losses {
            let _ = writeln!(out, "- {}: {why}", code(&events));
        }
    }
}

/// Facts that are lost for the same reason stand together.
fn losses(table: &'static CarriageTable) -> Vec<(String, Vec<&'static str>)> {
    let mut losses = Vec::<(String, Vec<&str>)>::new();
    for (event, carriage) in table {
        let why = match carriage {
            Carriage::Whole(_) => continue,
            Carriage::Partly(_, lost) => format!("partly. {}", sentence(lost)),
            Carriage::Never(why) => format!("not told. {}", sentence(why)),
        };
        match losses.iter_mut().find(|(known, _)| *known == why) {
            Some((_, events)) => events.push(event),
            None => losses.push((why, vec![event])),
        }
    }
    losses
}

fn rules(out: &mut String) {
    out.push_str("\n## What a stream must hold to\n\n`tolka check` names these rules.\n");
    let mut sets = vec![(vec!["every dialect, over HTTP"], answer::RULES.to_vec())];
    for dialect in Dialect::ALL {
        let rules = dialect.judge().rules();
        match sets.last_mut() {
            Some((names, known)) if *known == rules => names.push(dialect.name()),
            _ => sets.push((vec![dialect.name()], rules)),
        }
    }
    for (names, rules) in sets {
        let _ = writeln!(out, "\n### {}\n", names.join(", "));
        row(out, ["rule", "demand", "where it stands"].map(str::to_owned));
        row(out, ["---"; 3].map(str::to_owned));
        for Rule { name, section, demand } in rules {
            row(out, [format!("`{name}`"), (*demand).to_owned(), (*section).to_owned()]);
        }
    }
}

fn find(table: &CarriageTable, event: &str) -> Option<Carriage> {
    table.iter().find(|(name, _)| *name == event).map(|(_, carriage)| *carriage)
}

/// Some tables have clauses, some sentences.
fn sentence(words: &str) -> String {
    let mut rest = words.trim_end_matches('.').chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).chain(['.']).collect()
}

/// A name in brackets is no packet's.
fn code(names: &[&str]) -> String {
    let names = names.iter().map(|name| if name.starts_with('(') { (*name).to_owned() } else { format!("`{name}`") });
    names.collect::<Vec<_>>().join(", ")
}

fn row(out: &mut String, cells: impl IntoIterator<Item = String>) {
    for cell in cells {
        let _ = write!(out, "| {} ", cell.replace('|', "\\|"));
    }
    out.push_str("|\n");
}

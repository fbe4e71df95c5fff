//! Sizes, times and changes as people read them.

use std::path::Path;

use tolka_facts::Time;
use tolka_workspace::names::shown;

use crate::print::is_coloured;

pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} bytes"),
    }
}

pub(super) fn count(many: u64, what: &str) -> String {
    let s = if many == 1 { "" } else { "s" };
    format!("{many} {what}{s}")
}

pub(super) fn ago(time: Time) -> String {
    before(Time::now(), time)
}

pub(super) fn before(now: Time, time: Time) -> String {
    let seconds = now.micros().saturating_sub(time.micros()) / 1_000_000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => count(seconds / 60, "minute") + " ago",
        3600..172_800 => count(seconds / 3600, "hour") + " ago",
        _ => count(seconds / 86_400, "day") + " ago",
    }
}

/// One path, and what happens to it.
pub(super) fn step(path: &Path, operation: &str, added: u64, removed: u64) -> String {
    let lines = match (added, removed) {
        (0, 0) => String::new(),
        _ => dim(&format!("  +{added} −{removed}")),
    };
    format!("  {operation:6}  {}{lines}", shown(path))
}

pub(super) fn dim(text: &str) -> String {
    painted("2", text, is_coloured())
}

/// A line of a diff.
pub(super) fn coloured(line: &str, is_coloured: bool) -> String {
    match line.as_bytes().first() {
        Some(b'+') => painted("32", line, is_coloured),
        Some(b'-') => painted("31", line, is_coloured),
        Some(b'@') => painted("36", line, is_coloured),
        _ => line.to_owned(),
    }
}

fn painted(colour: &str, text: &str, is_coloured: bool) -> String {
    if is_coloured { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        assert_eq!([bytes(999), bytes(1500), bytes(2_345_678)], ["999 bytes", "1.5 kB", "2.3 MB"]);
        let at = |seconds: u64| {
            before(Time::from_millis(10_000_000_000), Time::from_millis(10_000_000_000 - seconds * 1000))
        };
        assert_eq!([at(5), at(60), at(7200), at(200_000)], ["just now", "1 minute ago", "2 hours ago", "2 days ago"]);
        assert_eq!(before(Time::from_millis(0), Time::from_millis(5000)), "just now", "of a clock that was set back");
    }
}

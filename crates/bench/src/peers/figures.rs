//! What was measured of each, as rows: ours beside theirs.

use super::Who;
use crate::Bench;
use crate::paced::tell_distribution;
use crate::report::{Figure, Goal};

/// Of several runs.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) start: Vec<f64>,
    pub(super) idle: Vec<f64>,
    pub(super) reader: Vec<f64>,
    pub(super) p50: Vec<f64>,
    pub(super) p99: Vec<f64>,
    pub(super) due_p50: Vec<f64>,
    pub(super) due_p99: Vec<f64>,
    pub(super) cpu: Vec<f64>,
    pub(super) lost: Vec<f64>,
    pub(super) before: Vec<f64>,
    pub(super) after: Vec<f64>,
    pub(super) delays: Vec<f64>,
}

impl Figures {
    pub(super) fn add(&mut self, other: Figures) {
        self.start.extend(other.start);
        self.idle.extend(other.idle);
        self.reader.extend(other.reader);
        self.p50.extend(other.p50);
        self.p99.extend(other.p99);
        self.due_p50.extend(other.due_p50);
        self.due_p99.extend(other.due_p99);
        self.cpu.extend(other.cpu);
        self.lost.extend(other.lost);
        self.before.extend(other.before);
        self.after.extend(other.after);
        self.delays = other.delays;
    }
}

pub(super) fn tell(bench: &mut Bench, all: Vec<(Who, Figures)>) {
    let mut all = all.into_iter();
    let Some((_, ours)) = all.next() else { return };
    let of = |runs: &[f64]| Figure::of(runs.to_vec());
    tell_distribution(bench, "Tolka", &ours.delays);
    bench.report.point("peers-memory", "Tolka", 0.0, of(&ours.idle).median);
    for (who, theirs) in all {
        let name = who.name();
        tell_distribution(bench, name, &theirs.delays);
        bench.report.point("peers-memory", name, 0.0, of(&theirs.idle).median);
        let report = &mut bench.report;
        report.begin(name);
        report.row("start to first byte", "ms", of(&ours.start), Some((name, of(&theirs.start))));
        report.row("memory of an idle server", "MB", of(&ours.idle), Some((name, of(&theirs.idle))));
        report.row("memory per idle reader, of 500", "KiB", of(&ours.reader), Some((name, of(&theirs.reader))));
        for (which, mine, due, other) in
            [("p50", &ours.p50, &ours.due_p50, &theirs.p50), ("p99", &ours.p99, &ours.due_p99, &theirs.p99)]
        {
            let what = format!("delay {which}, 500 readers, a token each 5 ms");
            for (what, mine) in [(format!("{what}, ours from when it was due"), due), (what, mine)] {
                let row = report.row(&what, "ms", of(mine), Some((name, of(other))));
                if who == Who::OpenCode {
                    row.goal(Goal::RatioAtMost(0.1));
                }
            }
        }
        report.row("server CPU per delivery, 500 readers", "µs", of(&ours.cpu), Some((name, of(&theirs.cpu))));
        let what = "events lost or doubled, burst of 5,000, 100 readers";
        report.row(what, "%", of(&ours.lost), Some((name, of(&theirs.lost)))).goal(Goal::AtMost(0.0));
        report.row("delay p50, 1 reader", "ms", of(&ours.before), Some((name, of(&theirs.before))));
        let what = format!(
            "delay p50, 1 reader, after 10,000 came and went (theirs: {})",
            crate::burst::thousands(who.come_and_go())
        );
        report.row(&what, "ms", of(&ours.after), Some((name, of(&theirs.after))));
    }
}

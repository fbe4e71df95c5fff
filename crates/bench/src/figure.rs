//! Numbers of several runs: the median, and how far they lie apart.

/// The median of some runs, and their range as a part of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) spread: f64,
    pub(crate) runs: usize,
}

impl Figure {
    pub(crate) fn of(mut runs: Vec<f64>) -> Self {
        runs.sort_by(f64::total_cmp);
        let (first, last) = (runs.first().copied().unwrap_or(0.0), runs.last().copied().unwrap_or(0.0));
        let upper = runs.get(runs.len() / 2).copied().unwrap_or(0.0);
        let lower = runs.get(runs.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
        let median = f64::midpoint(lower, upper);
        Figure { median, spread: if median == 0.0 { 0.0 } else { (last - first) / median }, runs: runs.len() }
    }
}

/// The value that so many hundredths of them do not exceed.
pub(crate) fn percentile(sorted: &[f64], hundredths: f64) -> f64 {
    let rank = (hundredths / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0.0)
}

/// A number as a person reads it in a table.
pub(crate) fn readable(value: f64) -> String {
    match value {
        v if v >= 10_000_000.0 => format!("{:.1} M", v / 1e6),
        v if v >= 1_000_000.0 => format!("{:.2} M", v / 1e6),
        v if v >= 10_000.0 => format!("{:.0} k", v / 1e3),
        v if v >= 1000.0 => format!("{:.1} k", v / 1e3),
        v if v >= 100.0 || v == 0.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_the_spread_is_the_range() {
        let figure = Figure::of(vec![9.0, 1.0, 4.0, 2.0, 100.0]);
        assert_eq!(figure, Figure { median: 4.0, spread: 99.0 / 4.0, runs: 5 });
        assert_eq!(Figure::of(vec![1.0, 3.0]), Figure { median: 2.0, spread: 1.0, runs: 2 });
        assert_eq!(Figure::of(Vec::new()), Figure { median: 0.0, spread: 0.0, runs: 0 });
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!([50.0, 99.0, 100.0, 0.0].map(|p| percentile(&values, p)), [100.0, 198.0, 200.0, 1.0]);
        assert_eq!(percentile(&[], 50.0), 0.0);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [19_000_000.0, 1_230_000.0, 56_780.0, 1234.0, 567.8, 12.34, 0.1234, 0.0].map(readable);
        assert_eq!(shown, ["19.0 M", "1.23 M", "57 k", "1.2 k", "568", "12.3", "0.12", "0"]);
    }
}

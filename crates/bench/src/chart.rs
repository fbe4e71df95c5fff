//! Charts as SVG, by hand: a few rectangles and lines need no library. They follow the reader's light or dark.

use std::fmt::Write;

use crate::figure::readable;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 84.0;
const HEIGHT: f64 = 360.0;
const BOTTOM: f64 = 56.0;

/// Colours that stay apart for most eyes, on white and on near-black.
const STYLE: &str = "\
:root{--ground:#fff;--ink:#1c2024;--soft:#60646c;--line:#e0e1e6;--c0:#0969da;--c1:#8b8d98;--c2:#d97706;--c3:#7c3aed}\
@media(prefers-color-scheme:dark){:root{--ground:#111418;--ink:#edeef0;--soft:#b0b4ba;--line:#2e3135;--c0:#4ea1ff;\
--c1:#9ba1a6;--c2:#f5a524;--c3:#b794ff}}\
text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--soft)}.title{font-size:17px;font-weight:600;\
fill:var(--ink)}.value{font-size:11px;fill:var(--ink)}.grid{stroke:var(--line)}path{fill:none;stroke-width:2.5}";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    Linear,
    Log,
}

/// One colour of a chart: its name and its values.
pub(crate) type Line<T> = (String, Vec<T>);

/// Groups of bars, one per category, a colour per line.
pub(crate) fn bars(title: &str, unit: &str, categories: &[String], lines: &[Line<f64>]) -> String {
    let mut svg = Svg::new(title, unit, lines.iter().map(|(name, _)| name.as_str()));
    let most = lines.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
    let y = Axis::new(0.0, nice(most), Scale::Linear, TOP + HEIGHT, TOP);
    svg.grid(&y);
    let group = (WIDTH - LEFT - RIGHT) / categories.len().max(1) as f64;
    let wide = (group * 0.8 / lines.len().max(1) as f64).min(90.0);
    for (nth, category) in categories.iter().enumerate() {
        let middle = LEFT + group * (nth as f64 + 0.5);
        // Where many stand side by side, every other name is lower.
        let lower = if group < 100.0 && nth % 2 == 1 { 16.0 } else { 0.0 };
        svg.text(middle, TOP + HEIGHT + 22.0 + lower, "middle", "", category);
        for (colour, (_, values)) in lines.iter().enumerate() {
            let Some(value) = values.get(nth).copied() else { continue };
            let x = middle + (colour as f64 - lines.len() as f64 / 2.0) * wide;
            let top = y.at(value);
            let tall = (TOP + HEIGHT - top).max(1.0);
            let bar = wide - 4.0;
            svg.add(format_args!(
                r#"<rect x="{:.1}" y="{:.1}" width="{bar:.1}" height="{tall:.1}" rx="2" fill="var(--c{colour})"/>"#,
                x + 2.0,
                TOP + HEIGHT - tall,
            ));
            if wide > 30.0 {
                svg.text(x + wide / 2.0, TOP + HEIGHT - tall - 5.0, "middle", "value", &readable(value));
            }
        }
    }
    svg.finish()
}

/// What lies below a line chart: where each value of x stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Below<'a> {
    pub(crate) label: &'a str,
    pub(crate) ticks: &'a [(f64, &'a str)],
}

/// Lines over x, each of `x`'s ticks as far from the last as the others are.
pub(crate) fn lines(title: &str, unit: &str, below: Below<'_>, scale: Scale, lines: &[Line<(f64, f64)>]) -> String {
    let mut svg = Svg::new(title, unit, lines.iter().map(|(name, _)| name.as_str()));
    let values = || lines.iter().flat_map(|(_, points)| points.iter().map(|(_, y)| *y)).filter(|y| *y > 0.0);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let y = match scale {
        Scale::Linear => Axis::new(0.0, nice(most), scale, TOP + HEIGHT, TOP),
        Scale::Log => {
            let (low, high) = (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil()));
            Axis::new(low, high.max(low * 10.0), scale, TOP + HEIGHT, TOP)
        }
    };
    svg.grid(&y);
    let step = (WIDTH - LEFT - RIGHT - 40.0) / below.ticks.len().saturating_sub(1).max(1) as f64;
    let place = |value: f64| {
        let nth = below.ticks.iter().position(|(tick, _)| *tick == value)?;
        Some(LEFT + 20.0 + step * nth as f64)
    };
    for (value, name) in below.ticks {
        if let Some(x) = place(*value) {
            svg.text(x, TOP + HEIGHT + 22.0, "middle", "", name);
        }
    }
    svg.text((LEFT + WIDTH - RIGHT) / 2.0, TOP + HEIGHT + 44.0, "middle", "", below.label);
    for (colour, (_, points)) in lines.iter().enumerate() {
        let points: Vec<(f64, f64, f64)> =
            points.iter().filter_map(|(x, value)| Some((place(*x)?, y.at(*value), *value))).collect();
        let mut path = String::new();
        for (nth, (x, y, _)) in points.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if nth == 0 { "M" } else { "L" });
        }
        svg.add(format_args!(r#"<path d="{path}" stroke="var(--c{colour})"/>"#));
        for (x, y, value) in points {
            svg.add(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="var(--c{colour})"/>"#));
            svg.text(x, y - 8.0, "middle", "value", &readable(value));
        }
    }
    svg.finish()
}

/// Where a value stands between two ends.
struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(low: f64, high: f64, scale: Scale, from: f64, to: f64) -> Self {
        Axis { low, high, scale, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
        };
        self.from + (self.to - self.from) * part
    }

    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => (0..=4).map(|nth| self.low + (self.high - self.low) * f64::from(nth) / 4.0).collect(),
            Scale::Log => {
                let decades = (self.high / self.low).log10().round() as i32;
                (0..=decades).map(|nth| self.low * 10f64.powi(nth)).collect()
            }
        }
    }
}

/// A round number that is not less.
fn nice(most: f64) -> f64 {
    let decade = 10f64.powf(most.max(1e-9).log10().floor());
    [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0]
        .into_iter()
        .map(|step| step * decade)
        .find(|step| *step >= most)
        .unwrap_or(most)
}

struct Svg(String);

impl Svg {
    fn new<'a>(title: &str, unit: &str, names: impl Iterator<Item = &'a str>) -> Self {
        let tall = TOP + HEIGHT + BOTTOM;
        let mut svg = Svg(format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" role="img" aria-label="{}"><style>{STYLE}</style><rect width="100%" height="100%" rx="8" fill="var(--ground)"/>"#,
            escaped(title),
        ));
        svg.text(LEFT - 46.0, 32.0, "start", "title", title);
        svg.text(WIDTH - RIGHT, 32.0, "end", "", unit);
        let mut x = LEFT - 46.0;
        for (colour, name) in names.enumerate() {
            svg.add(format_args!(r#"<rect x="{x:.1}" y="47" width="12" height="12" rx="2" fill="var(--c{colour})"/>"#));
            svg.text(x + 18.0, 58.0, "start", "", name);
            // Letters of this size are about seven wide; a little more keeps names apart.
            x += 18.0 + name.chars().count() as f64 * 7.4 + 22.0;
        }
        svg
    }

    fn grid(&mut self, y: &Axis) {
        for tick in y.ticks() {
            let at = y.at(tick);
            let right = WIDTH - RIGHT;
            self.add(format_args!(r#"<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1}" y2="{at:.1}"/>"#));
            self.text(LEFT - 8.0, at + 4.0, "end", "", &readable(tick));
        }
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = escaped(text);
        self.add(format_args!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.0.write_fmt(element);
        self.0.push('\n');
    }

    fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_tall_as_its_value() {
        let lines = [("ours".to_owned(), vec![50.0]), ("raw <TCP>".to_owned(), vec![100.0])];
        let svg = bars("Events & bytes", "per s", &["1 reader".to_owned()], &lines);
        let heights: Vec<&str> = svg.split("height=\"").skip(2).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(heights, ["12", "12", "180.0", "360.0"]);
        assert!(svg.contains("raw &lt;TCP>") && svg.contains("Events &amp; bytes") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn a_logarithmic_axis_gives_each_decade_the_same() {
        let axis = Axis::new(0.1, 1000.0, Scale::Log, 400.0, 0.0);
        assert_eq!([0.1, 1.0, 10.0, 1000.0].map(|value| axis.at(value).round()), [400.0, 300.0, 200.0, 0.0]);
        assert_eq!(axis.ticks().len(), 5);
    }

    #[test]
    fn a_point_without_a_tick_is_left_out() {
        let below = Below { label: "facts", ticks: &[(1.0, "one"), (2.0, "two")] };
        let svg = lines("Growth", "ms", below, Scale::Linear, &[("a".to_owned(), vec![(1.0, 1.0), (3.0, 9.0)])]);
        assert_eq!(svg.matches("<circle").count(), 1);
    }
}

//! What a repetition saw of each main figure over the whole run, per IP version: minimum, maximum,
//! mean, median, standard deviation and variance, in bounded memory however long it goes on.

use netaware_record::{IpVersion, Record};
use netaware_stats::running::RunningSummary;

use super::figures::figures;
use crate::expect::Kind;
use crate::render::{Paint, padded, rate_unit, time_unit};

/// Fed with one record after the other.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// In the order in which they first came; a dozen or two.
    entries: Vec<Entry>,
    /// Records with figures of what was not measured to its end: these are not among the values.
    cut: u64,
}

#[derive(Debug)]
struct Entry {
    name: &'static str,
    kind: Kind,
    way: &'static str,
    version: IpVersion,
    values: RunningSummary,
}

impl Summary {
    pub(crate) fn observe(&mut self, record: &Record) {
        let figures = figures(record);
        self.cut += u64::from(figures.iter().any(|figure| !figure.is_whole));
        for figure in figures.into_iter().filter(|figure| figure.is_whole) {
            let is_it =
                |e: &&mut Entry| (e.name, e.way, e.version) == (figure.name, figure.way, figure.version);
            if let Some(entry) = self.entries.iter_mut().find(is_it) {
                entry.values.observe(figure.value);
                continue;
            }
            let mut values = RunningSummary::new(resolution(figure.kind));
            values.observe(figure.value);
            self.entries.push(Entry {
                name: figure.name,
                kind: figure.kind,
                way: figure.way,
                version: figure.version,
                values,
            });
        }
    }

    /// A section per figure with a line per IP version, 80 columns wide; empty without figures.
    pub(crate) fn lines(&self, paint: Paint) -> String {
        if self.entries.is_empty() {
            return String::new();
        }
        let titles = ["n", "min", "max", "mean", "median", "sd", "variance"];
        let mut lines =
            format!("\n{}\n", paint.heading(&row("OVER THE WHOLE RUN", &titles.map(str::to_owned))));
        let mut told: Vec<(&str, &str)> = Vec::new();
        for first in &self.entries {
            if told.contains(&(first.name, first.way)) {
                continue;
            }
            told.push((first.name, first.way));
            let mut group: Vec<&Entry> =
                self.entries.iter().filter(|e| (e.name, e.way) == (first.name, first.way)).collect();
            group.sort_by_key(|entry| entry.version);
            lines.push_str(&section(&group));
        }
        if self.cut > 0 {
            let what = "points of which a figure was left out, not measured to its end";
            lines.push_str(&paint.faint(&format!("  {what}: {}", self.cut)));
            lines.push('\n');
        }
        if self.entries.iter().any(|entry| !entry.values.is_exact()) {
            let exact = RunningSummary::EXACT;
            lines.push_str(&paint.faint(&format!("  medians of more than {exact} values are within 0.05 %")));
            lines.push('\n');
        }
        lines
    }
}

/// The smallest difference that a median has to tell.
fn resolution(kind: Kind) -> f64 {
    match kind {
        Kind::Time | Kind::Rate => 1.0,
        Kind::Share => 1e-9,
        Kind::Number => 1e-3,
    }
}

/// One figure; the unit is the same for both versions, so that they can be compared.
fn section(group: &[&Entry]) -> String {
    let Some(first) = group.first() else { return String::new() };
    let largest = group.iter().filter_map(|e| e.values.moments().mean()).fold(0.0, f64::max);
    let (unit, scale) = unit(first.kind, largest);
    let title = [first.name, first.way, unit]
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let mut lines = format!("  {title}\n");
    for entry in group {
        let moments = entry.values.moments();
        let shown =
            |value: Option<f64>, scale: f64| value.map_or_else(|| "-".to_owned(), |x| number(x / scale));
        let cells = [
            moments.count().to_string(),
            shown(moments.min(), scale),
            shown(moments.max(), scale),
            shown(moments.mean(), scale),
            shown(entry.values.median(), scale),
            shown(moments.sd(), scale),
            shown(moments.variance(), scale * scale),
        ];
        lines.push_str(&row(&format!("    {}", entry.version.name()), &cells));
        lines.push('\n');
    }
    lines
}

/// A unit and its size in the figure's own unit.
pub(crate) fn unit(kind: Kind, largest: f64) -> (&'static str, f64) {
    match kind {
        Kind::Time => time_unit(largest),
        Kind::Rate => rate_unit(largest),
        Kind::Share => ("%", 0.01),
        Kind::Number => ("", 1.0),
    }
}

fn row(label: &str, cells: &[String; 7]) -> String {
    let right = |(n, cell): (usize, &String)| format!("{cell:>width$}", width = if n == 0 { 7 } else { 9 });
    let cells: Vec<String> = cells.iter().enumerate().map(right).collect();
    format!("{}{}", padded(label, 18), cells.concat())
}

/// Four digits that count, in at most eight columns.
pub(crate) fn number(x: f64) -> String {
    let size = x.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e7).contains(&size) {
        return format!("{x:.2e}");
    }
    let decimals = (3.0 - size.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{x:.decimals$}")
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;
    use crate::render::fixture;

    #[test]
    fn the_table_is_that_of_the_values_seen() {
        let mut summary = Summary::default();
        for p50 in [210, 212, 214, 220] {
            let mut record = fixture::latency();
            for version in &mut record.versions {
                version.latency.as_mut().unwrap().rtt.as_mut().unwrap().p50 = Span::from_micros(p50);
            }
            summary.observe(&record);
        }
        let lines = summary.lines(Paint::PLAIN);
        let of = |title: &str| {
            let mut after = lines.lines().skip_while(|line| line.trim() != title);
            after.nth(1).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        // 210, 212, 214, 220 us: mean 214, deviation the root of (16 + 4 + 0 + 36) / 3.
        assert_eq!(of("rtt.p50 us"), ["IPv4", "4", "210.0", "220.0", "214.0", "213.0", "4.320", "18.67"]);
        for line in lines.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn a_rate_of_a_transfer_that_broke_off_is_not_among_the_values() {
        let mut summary = Summary::default();
        let mut broken = fixture::udp();
        summary.observe(&broken);
        let whole = summary.lines(Paint::PLAIN);
        assert!(!whole.contains("left out"), "{whole}");
        for version in &mut broken.versions {
            version.udp[0].outcome = netaware_record::Outcome::Failed;
            version.udp[0].goodput = None;
        }
        summary.observe(&broken);
        let left = "  points of which a figure was left out, not measured to its end: 1\n";
        assert_eq!(summary.lines(Paint::PLAIN), format!("{whole}{left}"));
        assert!(left.len() <= 80);
    }

    #[test]
    fn numbers_show_four_digits_and_stay_narrow() {
        let rows =
            [(0.0, "0"), (1.0, "1.000"), (213.456, "213.5"), (12_345.6, "12346"), (0.012_346, "0.01235")];
        for (x, want) in rows {
            assert_eq!(number(x), want);
        }
        for x in [1.234e-9, 9.999e6, 3.3e21, 0.001] {
            assert!(number(x).len() <= 8, "{}", number(x));
        }
    }

    #[test]
    fn nothing_seen_is_no_table() {
        let mut summary = Summary::default();
        summary.observe(&fixture::nothing());
        assert_eq!(summary.lines(Paint::PLAIN), "");
    }
}

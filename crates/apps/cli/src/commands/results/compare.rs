//! `netaware results compare A B`: the medians of two groups of results, and whether they differ.

use std::io::Write;
use std::ops::ControlFlow;

use anyhow::{Context, bail, ensure};
use clap::Args;
use netaware_record::{IpVersion, Outcome, Record, printable};
use netaware_stats::bootstrap::{Resampling, Statistic, difference};
use netaware_stats::interval::Interval;
use netaware_stats::quantile::median;
use netaware_store::{Among, Filter, FindError, Found, Store};
use serde_json::json;

use super::Place;
use crate::exit::Exit;
use crate::expect::Kind;
use crate::flags::output::{ColorFlag, TextOrJson};
use crate::render::{Paint, padded, paragraph};
use crate::series::figures::{direction, figures};
use crate::series::summary::{number, unit};
use crate::sink;

const LONG: &str = "\
Compares two groups of results figure by figure: the medians, and the difference of the medians (the second minus the \
first) with its 95 % bootstrap interval. A group is a label, a series or a single result. Where the interval excludes \
zero the line says which one is better; with fewer than two results on a side there is no interval.";

/// Compare two groups of results: labels, series or single results
#[derive(Debug, Args)]
#[command(long_about = LONG)]
pub(super) struct Compare {
    /// A label, or the ID of a series or a result
    #[arg(value_name = "A")]
    first: String,
    /// What to compare it with
    #[arg(value_name = "B")]
    second: String,
    /// Only of this command: test, tcp, udp or latency
    #[arg(long, value_name = "NAME")]
    command: Option<String>,
    /// text or json
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: TextOrJson,
    #[command(flatten)]
    paint: ColorFlag,
    #[command(flatten)]
    place: Place,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct What {
    name: &'static str,
    kind: Kind,
    version: IpVersion,
    way: &'static str,
}

/// The values of one figure in both groups.
struct Pair {
    what: What,
    first: Vec<f64>,
    second: Vec<f64>,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Group {
    results: usize,
    /// Results of which something was not measured to its end.
    cut: usize,
}

/// Values kept of a figure of a group; a longer series is compared by its first ones.
const MOST_VALUES: usize = 100_000;
/// Values drawn in all; fewer resamples of many values leave the interval as good.
const MOST_DRAWN: usize = 20_000_000;
/// Fixed, so that the same results always give the same interval.
const SEED: u64 = 0x6e65_7461;

impl Compare {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let store = self.place.read()?;
        let mut pairs = Vec::new();
        let sides = [
            self.collect(&store, &self.first, &mut pairs, |pair| &mut pair.first)?,
            self.collect(&store, &self.second, &mut pairs, |pair| &mut pair.second)?,
        ];
        pairs.retain(|pair| !pair.first.is_empty() && !pair.second.is_empty());
        let that = if sides.iter().any(|side| side.cut > 0) { " that was measured to its end" } else { "" };
        ensure!(
            !pairs.is_empty(),
            "{} and {} have no figure of the same command in common{that}",
            self.first,
            self.second
        );
        let mut out = sink::stdout();
        if self.format == TextOrJson::Json {
            let all: Vec<_> = pairs.iter().map(Pair::as_json).collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        } else {
            out.write_all(self.lines(&pairs, sides).as_bytes())?;
        }
        Ok(Exit::Done)
    }

    /// Adds the values of a group to one side of the pairs.
    fn collect(
        &self,
        store: &Store,
        name: &str,
        pairs: &mut Vec<Pair>,
        side: impl Fn(&mut Pair) -> &mut Vec<f64>,
    ) -> anyhow::Result<Group> {
        let mut found = Group::default();
        let filter = Filter { command: self.command.clone(), ..group(store, name)? };
        store.each(&filter, |record| {
            found.results += 1;
            found.cut += usize::from(!take(&record, pairs, &side));
            ControlFlow::Continue(())
        })?;
        ensure!(
            found.results > 0,
            "no result is labelled or named {name}; 'netaware results list' shows what there is"
        );
        Ok(found)
    }

    fn lines(&self, pairs: &[Pair], [first, second]: [Group; 2]) -> String {
        let paint = Paint::for_stdout(self.paint.color);
        let results = |n: usize| if n == 1 { "1 result".to_owned() } else { format!("{n} results") };
        let who = [
            format!("{}, {}", printable(&self.first), results(first.results)),
            format!("{}, {}", printable(&self.second), results(second.results)),
        ];
        let mut lines = format!("{}\n{}\n\n", paragraph("A  ", &who[0]), paragraph("B  ", &who[1]));
        let titles = ["median A", "median B", "B - A, 95 % interval", ""].map(str::to_owned);
        lines.push_str(&paint.heading(line("", &titles).trim_end()));
        lines.push('\n');
        let mut shown = None;
        for pair in pairs {
            let title = (pair.what.name, pair.what.way);
            if shown.replace(title) != Some(title) {
                lines.push_str(format!("  {} {}", title.0, title.1).trim_end());
                lines.push('\n');
            }
            lines.push_str(pair.line().trim_end());
            lines.push('\n');
        }
        if let Some(cut) = cut(first, second) {
            lines.push_str(&paint.faint(&cut));
            lines.push('\n');
        }
        lines
    }
}

/// Adds the figures of a record that were measured to their end to one side of the pairs; returns
/// whether nothing was left out, and it did not fail without any figure.
fn take(record: &Record, pairs: &mut Vec<Pair>, side: impl Fn(&mut Pair) -> &mut Vec<f64>) -> bool {
    let figures = figures(record);
    let has_failed = record.outcome == Outcome::Failed && figures.is_empty();
    let is_whole = figures.iter().all(|figure| figure.is_whole) && !has_failed;
    for figure in figures.into_iter().filter(|figure| figure.is_whole) {
        let what = What { name: figure.name, kind: figure.kind, version: figure.version, way: figure.way };
        let at = pairs.iter().position(|pair| pair.what == what).unwrap_or_else(|| {
            pairs.push(Pair { what, first: Vec::new(), second: Vec::new() });
            pairs.len() - 1
        });
        let values = side(&mut pairs[at]);
        if values.len() < MOST_VALUES {
            values.push(figure.value);
        }
    }
    is_whole
}

/// Says of how many results figures were left out, where there are any.
fn cut(first: Group, second: Group) -> Option<String> {
    let what = "results of which a figure was left out, failed or broken off";
    (first.cut + second.cut > 0).then(|| format!("  {what}: A {}, B {}", first.cut, second.cut))
}

impl Pair {
    fn interval(&self) -> Option<Interval> {
        let resamples = (MOST_DRAWN / (self.first.len() + self.second.len()).max(1)).min(2000);
        difference(
            &self.first,
            &self.second,
            &Resampling { resamples, ..Resampling::new(Statistic::Median, SEED) },
        )
    }

    /// The medians; both sides have values.
    fn medians(&self) -> [f64; 2] {
        [median(&self.first).unwrap_or(0.0), median(&self.second).unwrap_or(0.0)]
    }

    /// Which side is better, where the interval says that they differ.
    fn verdict(&self) -> Option<&'static str> {
        let interval = self.interval().filter(Interval::excludes_zero)?;
        let more_is_better = self.what.kind == Kind::Rate || self.what.name == "rpm";
        Some(if (interval.estimate > 0.0) == more_is_better { "B better" } else { "A better" })
    }

    fn line(&self) -> String {
        let [first, second] = self.medians();
        let show = |value: f64| self.what.kind.show(value);
        let interval = self.interval();
        let largest = interval.map_or(second - first, |i| i.lo.abs().max(i.hi.abs()));
        let (unit, scale) = unit(self.what.kind, largest.abs());
        let signed = |value: f64| {
            let sign = if value < 0.0 { "-" } else { "+" };
            format!("{sign}{}", number(value.abs() / scale))
        };
        let apart = interval.map_or_else(
            || format!("{} {unit} (too few)", signed(second - first)),
            |i| format!("{} ({} .. {}) {unit}", signed(i.estimate), signed(i.lo), signed(i.hi)),
        );
        let verdict = self.verdict().unwrap_or("").to_owned();
        line(&format!("    {}", self.what.version.name()), &[show(first), show(second), apart, verdict])
    }

    fn as_json(&self) -> serde_json::Value {
        let [first, second] = self.medians();
        json!({
            "metric": self.what.name, "way": self.what.way, "direction": direction(self.what.way), "version": self.what.version,
            "unit": self.what.kind.unit(), "median_a": first, "median_b": second, "results_a": self.first.len(),
            "results_b": self.second.len(), "difference": second - first, "interval": self.interval(),
        })
    }
}

/// What a name stands for: first a label, for people choose those; then an ID.
fn group(store: &Store, name: &str) -> anyhow::Result<Filter> {
    let labelled = Filter { label: Some(name.to_owned()), ..Filter::default() };
    if !store.list(&labelled, 1)?.is_empty() {
        return Ok(labelled);
    }
    Ok(match store.resolve(name) {
        Ok(Found::Series(id)) => Filter { series: Among::Of(id), ..Filter::default() },
        Ok(Found::Record(id)) => Filter { id: Some(id), ..Filter::default() },
        Err(FindError::NotAnId { .. }) => {
            bail!("'{name}' is no label, and no id either: see 'netaware results list'")
        }
        Err(error) => return Err(error).with_context(|| format!("'{name}' is no label")),
    })
}

fn line(lead: &str, cells: &[String; 4]) -> String {
    const WIDTHS: [usize; 4] = [13, 13, 34, 8];
    let mut line = padded(lead, 10);
    for (cell, width) in cells.iter().zip(WIDTHS) {
        line.push_str(&padded(cell, width));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &'static str, kind: Kind, first: &[f64], second: &[f64]) -> Pair {
        let what = What { name, kind, version: IpVersion::V4, way: "" };
        Pair { what, first: first.to_vec(), second: second.to_vec() }
    }

    #[test]
    fn what_differs_is_said_and_what_is_better_depends_on_the_figure() {
        let (low, high): (Vec<f64>, Vec<f64>) =
            (0..20).map(|n| (1e6 + f64::from(n) * 1e3, 9e6 + f64::from(n) * 1e3)).unzip();
        assert_eq!(pair("rtt.p50", Kind::Time, &low, &high).verdict(), Some("A better"));
        assert_eq!(pair("tcp", Kind::Rate, &low, &high).verdict(), Some("B better"));
        assert_eq!(pair("tcp", Kind::Rate, &high, &low).verdict(), Some("A better"));
        assert_eq!(pair("tcp", Kind::Rate, &low, &low).verdict(), None);
    }

    #[test]
    fn a_rate_of_a_transfer_that_broke_off_is_not_compared() {
        let mut pairs = Vec::new();
        let mut record = crate::render::fixture::udp();
        assert!(take(&record, &mut pairs, |pair| &mut pair.first));
        let had: Vec<usize> = pairs.iter().map(|pair| pair.first.len()).collect();
        assert!(!had.is_empty());
        for version in &mut record.versions {
            version.udp[0].outcome = Outcome::Failed;
        }
        assert!(!take(&record, &mut pairs, |pair| &mut pair.first));
        assert_eq!(pairs.iter().map(|pair| pair.first.len()).collect::<Vec<_>>(), had);
        let (whole, broken) = (Group { results: 2, cut: 0 }, Group { results: 2, cut: 1 });
        let said = "  results of which a figure was left out, failed or broken off: A 0, B 1";
        assert_eq!((cut(whole, whole), cut(whole, broken).as_deref()), (None, Some(said)));
        assert!(said.len() <= 80);
    }

    #[test]
    fn a_line_shows_medians_difference_and_interval() {
        let first: Vec<f64> = vec![2e6; 5];
        let second: Vec<f64> = vec![3.5e6; 5];
        assert_eq!(
            pair("rtt.p50", Kind::Time, &first, &second).line(),
            "    IPv4  2.00 ms      3.50 ms      +1.500 (+1.500 .. +1.500) ms      A better"
        );
        let single = pair("rtt.p50", Kind::Time, &[2e6], &second).line();
        assert!(single.contains("+1.500 ms (too few)"), "{single}");
    }
}

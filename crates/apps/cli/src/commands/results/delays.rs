//! `netaware results delays`: one-way delay and loss between the points of a fleet, each delay
//! beside its bound.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::io::Write;

use anyhow::{Result, ensure};
use clap::Args;
use jiff::tz::TimeZone;
use netaware_record::passive::{DelayRow, DelayStatistics};
use netaware_record::{IpVersion, printable};
use netaware_store::fleet::{DelayPoint, DelayQuery, FleetReader};
use netaware_units::Span;
use serde_json::{Value, json};

use super::fleet::{Fleet, TableFormat, cell, ms};
use super::local;
use crate::exit::Exit;
use crate::sink;

const AFTER: &str = "\
Examples:
  netaware results delays
  netaware results delays --pair berlin,paris --from 2h --resolution 1min
  netaware results delays --store clickhouse://ch/netaware --format csv > delays.csv
  netaware results delays --store one/fleet.db --store two/fleet.db    of collectors that share a join, added up

Delays in ms. 'bound': every delay may be off by so much because of the two clocks; '-' where nothing is known of them, and \
then delays are no more than differences among themselves. '!': some delays were smaller than the bound, which says only \
that they are at most the bound. 'unobs': packets of which it is not known whether the second point watched; they are no loss. 'variation': by how much delays were longer than the shortest (PDV, RFC 5481).";

/// One-way delay and loss between the points of a fleet
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(super) struct Delays {
    /// Only from point A to point B
    #[arg(long, value_name = "A,B")]
    pair: Option<String>,
    /// Only of this task
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Only IPv4
    #[arg(short = '4', conflicts_with = "v6")]
    v4: bool,
    /// Only IPv6
    #[arg(short = '6')]
    v6: bool,
    /// Added up by so much time; 0s: as they are kept
    #[arg(long, value_name = "TIME", default_value = "1h")]
    resolution: Span,
    /// text, json or csv
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: TableFormat,
    #[command(flatten)]
    fleet: Fleet,
}

/// Lines before a screen is no help; the rest is for --format csv.
const MOST_POINTS: usize = 1_000_000;

impl Delays {
    pub(super) fn run(&self) -> Result<Exit> {
        let points = self.points()?;
        let mut out = sink::stdout();
        match self.format {
            TableFormat::Json => {
                let all: Vec<Value> = points.iter().map(as_json).collect();
                writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
            }
            TableFormat::Csv => write!(out, "{}", csv(&points))?,
            TableFormat::Text if points.is_empty() => eprintln!("no delays in this time"),
            TableFormat::Text => write!(out, "{}", text(&points, &TimeZone::system()))?,
        }
        Ok(Exit::Done)
    }

    fn points(&self) -> Result<Vec<DelayPoint>> {
        let mut found = Vec::new();
        for store in self.fleet.open_all()? {
            found.push(self.points_of(&*store)?);
        }
        Ok(if found.len() == 1 { found.remove(0) } else { added(found.concat(), self.resolution) })
    }

    fn points_of(&self, store: &dyn FleetReader) -> Result<Vec<DelayPoint>> {
        let mut query = DelayQuery {
            period: self.fleet.period()?,
            pair: self.pair.as_deref().map(pair).transpose()?,
            task: self.task.clone(),
            version: [(self.v4, IpVersion::V4), (self.v6, IpVersion::V6)]
                .into_iter()
                .find_map(|(only, version)| only.then_some(version)),
            resolution: self.resolution,
            ..DelayQuery::default()
        };
        let mut points = Vec::new();
        loop {
            let page = store.delays(&query)?;
            points.extend(page.items);
            ensure!(
                points.len() <= MOST_POINTS,
                "more than {MOST_POINTS} points: choose a shorter time or a coarser --resolution"
            );
            query.after = page.next;
            if query.after.is_none() {
                return Ok(points);
            }
        }
    }
}

/// What collectors that share a join found of the same paths and times, as one would have: counts
/// and distributions add up.
fn added(points: Vec<DelayPoint>, resolution: Span) -> Vec<DelayPoint> {
    let mut sums: BTreeMap<_, DelayPoint> = BTreeMap::new();
    for point in points {
        let row = &point.row;
        let began = point.period.from.0;
        let bucket = began - if resolution.0 > 1 { began.rem_euclid(resolution.0) } else { 0 };
        let version = row.version.map(IpVersion::name);
        let names = (point.task.clone(), row.from.clone(), row.to.clone(), row.method.clone(), version);
        match sums.entry((bucket, names)) {
            Entry::Vacant(new) => drop(new.insert(point)),
            Entry::Occupied(mut sum) => {
                let sum = sum.get_mut();
                sum.period.from = sum.period.from.min(point.period.from);
                sum.period.until = sum.period.until.max(point.period.until);
                sum.rows += point.rows;
                sum.row.merge(&point.row);
            }
        }
    }
    sums.into_values().collect()
}

fn pair(text: &str) -> Result<(String, String)> {
    match text.split_once(',') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => anyhow::bail!("--pair takes two points, as in --pair berlin,paris"),
    }
}

/// Paths one after the other, each with its times.
fn text(points: &[DelayPoint], zone: &TimeZone) -> String {
    let mut paths: Vec<(String, Vec<&DelayPoint>)> = Vec::new();
    for point in points {
        let title = title(point);
        match paths.iter_mut().find(|(known, _)| *known == title) {
            Some((_, of)) => of.push(point),
            None => paths.push((title, vec![point])),
        }
    }
    let mut out = String::new();
    for (n, (title, points)) in paths.iter().enumerate() {
        let gap = if n > 0 { "\n" } else { "" };
        let _ = writeln!(
            out,
            "{gap}{title}\n{}",
            line(["began", "min", "mean", "p50", "p95", "p99", "max", "bound", "loss", "unobs"])
        );
        for point in points {
            out.push_str(&point_line(point, zone));
            out.push('\n');
        }
        out.push_str(&notes(points));
    }
    out
}

fn title(point: &DelayPoint) -> String {
    let row = &point.row;
    let version = row.version.map_or("", IpVersion::name);
    let parts = [&*row.method, version, &point.task].map(printable);
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    format!("{} -> {}  ({})", printable(&row.from), printable(&row.to), parts.join(", "))
}

fn line(cells: [&str; 10]) -> String {
    let [began, min, mean, p50, p95, p99, max, bound, loss, unobserved] = cells;
    let figures = format!(
        "{min:>6} {mean:>6} {p50:>6} {p95:>6} {p99:>6} {max:>6} {bound:>7} {loss:>6} {unobserved:>6}"
    );
    format!("{began:<16} {figures}")
}

fn point_line(point: &DelayPoint, zone: &TimeZone) -> String {
    let row = &point.row;
    let began = local(point.period.from, zone);
    let [min, mean, p50, p95, p99, max] = figures(&row.delay).map(ms);
    let mut bound = ms(row.clock_bound);
    if row.below_bound > 0 {
        bound.push('!');
    }
    let [loss, unobserved] =
        shares(row).map(|share| share.map_or("-".into(), |share| format!("{:.2}%", share * 100.0)));
    let began = began.get(..16).unwrap_or(&began);
    line([began, &min, &mean, &p50, &p95, &p99, &max, &bound, &loss, &unobserved])
}

/// What a reader must know of these points, below them.
fn notes(points: &[&DelayPoint]) -> String {
    let mut notes = String::new();
    let below: u64 = points.iter().map(|point| point.row.below_bound).sum();
    if below > 0 {
        let _ = writeln!(
            notes,
            "  ! {below} delays were below the bound: they are at most the bound, no more is known"
        );
    }
    notes += &of_all(points);
    let mut warnings: Vec<&String> = points.iter().flat_map(|point| &point.row.warnings).collect();
    warnings.sort_unstable();
    warnings.dedup();
    for warning in warnings {
        let _ = writeln!(notes, "  {}", printable(warning));
    }
    notes
}

/// What has no column, of all times together.
fn of_all(points: &[&DelayPoint]) -> String {
    let Some((first, more)) = points.split_first() else { return String::new() };
    let mut row = first.row.clone();
    for point in more {
        row.merge(&point.row);
    }
    let mut said = String::new();
    if row.delay.count > 0 {
        let [p50, p95, p99] = row.delay.variation_quantiles().as_array().map(ms);
        let _ = writeln!(said, "  variation above the minimum: p50 {p50}, p95 {p95}, p99 {p99} ms");
    }
    if row.collisions > 0 {
        let _ = writeln!(said, "  {} digests of different packets were equal: not matched", row.collisions);
    }
    if row.given_up > 0 {
        let _ = writeln!(said, "  {} packets were given up because memory was full", row.given_up);
    }
    said
}

fn figures(delay: &DelayStatistics) -> [Option<Span>; 6] {
    let some = |span| (delay.count > 0).then_some(span);
    let [p50, p95, p99] = delay.quantiles().as_array();
    [some(delay.min), delay.mean(), p50, p95, p99, some(delay.max)]
}

/// Loss among packets of which it is known, and the share of which it is not.
fn shares(row: &DelayRow) -> [Option<f64>; 2] {
    let unobserved = (row.packets > 0).then(|| row.unobserved as f64 / row.packets as f64);
    [row.loss_ratio(), unobserved]
}

fn as_json(point: &DelayPoint) -> Value {
    let [min, mean, p50, p95, p99, max] = figures(&point.row.delay);
    let [loss, unobserved] = shares(&point.row);
    json!({
        "task": point.task, "period": point.period, "rows": point.rows, "min": min, "mean": mean, "p50": p50, "p95": p95, "p99": p99,
        "max": max, "pdv": point.row.delay.variation_quantiles(), "with_losses": point.row.quantiles_with_losses(),
        "bound": point.row.clock_bound, "loss": loss, "unobserved": unobserved, "row": point.row,
    })
}

const COLUMNS: &str = "task,from,to,version,method,began_ns,ended_ns,packets,matched,lost,unobserved,late,duplicates,reordered,\
                       below_bound,min_ns,mean_ns,p50_ns,p95_ns,p99_ns,max_ns,ipdv_p95_ns,bound_ns,offset_ns,clock,\
                       collisions,given_up,pdv_p50_ns,pdv_p95_ns,pdv_p99_ns,\
                       p50_with_losses_ns,p95_with_losses_ns,p99_with_losses_ns,warnings";

fn csv(points: &[DelayPoint]) -> String {
    let mut out = format!("{COLUMNS}\n");
    for point in points {
        let row = &point.row;
        let names = [&*point.task, &row.from, &row.to, row.version.map_or("", IpVersion::name), &row.method]
            .map(cell);
        let times = [point.period.from.0, point.period.until.0].map(|at| at.to_string());
        let counts = [
            row.packets,
            row.matched,
            row.lost,
            row.unobserved,
            row.late,
            row.duplicates,
            row.reordered,
            row.below_bound,
        ]
        .map(|count| count.to_string());
        let spans: Vec<String> = figures(&row.delay)
            .into_iter()
            .chain([row.ipdv.quantile(0.95), row.clock_bound, Some(row.offset)])
            .map(|span| span.map_or(String::new(), |span| span.0.to_string()))
            .collect();
        let spoilt = [row.collisions, row.given_up].map(|count| count.to_string());
        let variation = row.delay.variation_quantiles().as_array();
        let variation = variation.map(|span| span.map_or(String::new(), |span| span.0.to_string()));
        let clock = [cell(&row.clock_method)];
        let warnings = [cell(&row.warnings.join("; "))];
        let figures = [&spans[..], &clock, &spoilt, &variation, &with_losses(row)].concat();
        let cells = [&names[..], &times, &counts, &figures, &warnings].concat();
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

/// `inf` where so many were lost that the quantile falls among them; nothing where nothing is
/// known.
fn with_losses(row: &DelayRow) -> [String; 3] {
    let beyond = if row.loss_ratio().is_some() { "inf" } else { "" };
    let spans = row.quantiles_with_losses().as_array();
    spans.map(|span| span.map_or(beyond.to_owned(), |span| span.0.to_string()))
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::Period;
    use netaware_units::Wall;

    use super::*;

    fn point() -> DelayPoint {
        let mut row = DelayRow {
            from: "berlin".into(),
            to: "paris\u{1b}".into(),
            version: Some(IpVersion::V4),
            method: "passive".into(),
            packets: 2000,
            matched: 999,
            lost: 1,
            unobserved: 1000,
            late: 0,
            duplicates: 0,
            reordered: 0,
            collisions: 2,
            given_up: 4,
            patience: Span::from_secs(1),
            delay: DelayStatistics::default(),
            ipdv: DelayStatistics::default(),
            offset: Span::ZERO,
            clock_bound: Some(Span(2_100_000)),
            clock_method: "clock_daemons".into(),
            below_bound: 3,
            warnings: vec!["the second point lost packets".into()],
        };
        for n in 1..=100 {
            row.delay.observe(Span(n * 1_000_000));
        }
        let from = Wall(1_795_232_087_123_456_789);
        DelayPoint { task: "web".into(), period: Period { from, until: Wall(from.0 + 1) }, rows: 60, row }
    }

    #[test]
    fn every_delay_stands_beside_its_bound() {
        let bare = DelayPoint {
            row: DelayRow {
                clock_bound: None,
                below_bound: 0,
                delay: DelayStatistics::default(),
                matched: 0,
                lost: 0,
                ..point().row
            },
            ..point()
        };
        let shown = text(&[point(), bare], &TimeZone::UTC);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines,
            [
                "berlin -> paris\u{fffd}  (passive, IPv4, web)",
                "began               min   mean    p50    p95    p99    max   bound   loss  unobs",
                "2026-11-21 03:34  1.000 50.500 49.988 94.994 98.992  100.0  2.100!  0.10% 50.00%",
                "2026-11-21 03:34      -      -      -      -      -      -       -      - 50.00%",
                "  ! 3 delays were below the bound: they are at most the bound, no more is known",
                "  variation above the minimum: p50 48.988, p95 93.994, p99 97.992 ms",
                "  4 digests of different packets were equal: not matched",
                "  8 packets were given up because memory was full",
                "  the second point lost packets",
            ]
        );
        assert!(lines.iter().all(|line| line.len() <= 80), "{shown}");
    }

    #[test]
    fn columns_and_cells_are_as_many_and_the_last_has_the_warnings() {
        let mut warned = point();
        warned.row.warnings.push("the clock of 'a' jumped, twice".into());
        let table = csv(&[point(), warned]);
        let [head, one, two] = table.lines().collect::<Vec<_>>()[..] else { panic!("{table}") };
        assert_eq!([head, one].map(|line| line.split(',').count()), [34, 34]);
        assert!(head.ends_with(",warnings") && one.ends_with(",the second point lost packets"), "{table}");
        assert!(
            two.ends_with(",\"the second point lost packets; the clock of 'a' jumped, twice\""),
            "{table}"
        );
    }

    #[test]
    fn a_quantile_among_the_lost_is_infinite() {
        let mut many = point();
        many.row.matched = 100;
        many.row.lost = 3;
        assert_eq!(with_losses(&many.row), ["51986432", "98009088", "inf"]);
        assert_eq!(as_json(&many)["with_losses"]["p99"], Value::Null);
        let unknown = DelayRow { matched: 0, lost: 0, delay: DelayStatistics::default(), ..many.row };
        assert_eq!(with_losses(&unknown), ["", "", ""]);
    }

    #[test]
    fn json_has_the_row_and_what_it_says() {
        let json = as_json(&point());
        assert_eq!(json["p99"], json!(98_992_128));
        assert_eq!(json["pdv"]["p99"], json!(97_992_128));
        assert_eq!(json["loss"], json!(0.001));
        assert_eq!(serde_json::from_value::<DelayRow>(json["row"].clone()).unwrap(), point().row);
    }

    #[test]
    fn what_collectors_that_share_a_join_found_adds_up() {
        let hour = Span::from_secs(3600);
        let later = |minutes: i64| {
            let by = Span::from_secs(minutes * 60);
            let Period { from, until } = point().period;
            let [from, until] = [from, until].map(|at| Wall(at.0 + by.0));
            DelayPoint { period: Period { from, until }, ..point() }
        };
        let of_another = DelayPoint { task: "mail".into(), ..point() };
        // 03:34 and 03:39, and an hour later.
        let sums = added(vec![point(), of_another, later(5), later(60)], hour);
        let said: Vec<_> = sums.iter().map(|sum| (&*sum.task, sum.rows, sum.row.packets)).collect();
        assert_eq!(said, [("mail", 60, 2000), ("web", 120, 4000), ("web", 60, 2000)]);
        assert_eq!(
            (sums[1].row.delay.count, sums[1].row.delay.quantile(0.5)),
            (200, point().row.delay.quantile(0.5))
        );
        assert_eq!(sums[1].period, Period { until: later(5).period.until, ..point().period });
    }

    #[test]
    fn a_pair_is_two_points() {
        assert_eq!(pair("a,b").unwrap(), ("a".into(), "b".into()));
        assert!(["a", "a,", ",b", ""].iter().all(|text| pair(text).is_err()));
    }
}

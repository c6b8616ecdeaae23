//! Reads `[[cross]]`.

use netaware_record::IpVersion;
use netaware_units::{BitRate, Span};

use super::table::{Field, Table};
use super::{Cross, Factor, Hop, Pattern, ScenarioError, Schedule, SizeShare, bounds};
use crate::Side;

type Read<T> = Result<T, ScenarioError>;

/// Sizes and shares of the "simple Internet mix", 7:4:1.
const IMIX: [(u32, f64); 3] = [(40, 7.0 / 12.0), (576, 4.0 / 12.0), (1500, 1.0 / 12.0)];

pub(super) fn sources(root: &mut Table<'_>, hops: &[Hop]) -> Read<Vec<Cross>> {
    let Some(field) = root.get("cross") else { return Ok(Vec::new()) };
    field.list(0, bounds::CROSS)?.iter().map(|item| source(item, hops)).collect()
}

fn source(field: &Field<'_>, hops: &[Hop]) -> Read<Cross> {
    let mut table = field.table()?;
    let last = hops.len() as i64 - 1;
    let sides = [("a", Side::A), ("b", Side::B)];
    let from = table.read("from", |field| field.word(&sides))?.unwrap_or(Side::A);
    let enter = table.need("enter", "enter = 0")?.integer(0..=last)? as usize;
    let leave = match table.get("leave") {
        Some(field) => leave(&field, from, enter, last)?,
        None => enter,
    };
    let versions = [("v4", IpVersion::V4), ("v6", IpVersion::V6)];
    let version = table.read("version", |field| field.word(&versions))?.unwrap_or(IpVersion::V4);
    let sizes = table.read("sizes", |field| sizes(&field))?.unwrap_or_else(|| vec![only(1500)]);
    let link = if from == Side::A { &hops[enter].forward } else { &hops[enter].reverse };
    let full = Full {
        rate: link.wire(version).rate[0].value.0 * u64::from(link.members.count),
        overhead: f64::from(link.overhead),
        mean: sizes.iter().map(|size| f64::from(size.bytes) * size.share).sum(),
    };
    let pattern = pattern(&mut table, &full)?;
    let schedule = schedule(&mut table)?;
    table.finish()?;
    Ok(Cross { from, enter, leave, version, sizes, pattern, schedule })
}

/// The link that `load` refers to.
struct Full {
    rate: u64,
    overhead: f64,
    mean: f64,
}

fn leave(field: &Field<'_>, from: Side, enter: usize, last: i64) -> Read<usize> {
    let leave = field.integer(0..=last)? as usize;
    let backwards = if from == Side::A { leave < enter } else { leave > enter };
    if backwards {
        let (way, right) = if from == Side::A { ("a", "a hop not before") } else { ("b", "a hop not after") };
        let problem =
            format!("is {leave}, but traffic from \"{way}\" that enters at hop {enter} never gets there");
        return Err(field.problem(problem, format!("{right} {enter}")));
    }
    Ok(leave)
}

fn only(bytes: u32) -> SizeShare {
    SizeShare { bytes, share: 1.0 }
}

/// 1500, "imix", or a list of sizes with weights.
fn sizes(field: &Field<'_>) -> Read<Vec<SizeShare>> {
    if field.is_list() {
        let mut sizes = Vec::new();
        for item in field.list(1, 1000)? {
            let mut table = item.table()?;
            let bytes = table.need("bytes", "bytes = 1500")?.bytes(20, 65_535)? as u32;
            let share = table.need("share", "share = 0.5")?.number(1e-9, 1e9)?;
            table.finish()?;
            sizes.push(SizeShare { bytes, share });
        }
        let sum: f64 = sizes.iter().map(|size| size.share).sum();
        for size in &mut sizes {
            size.share /= sum;
        }
        return Ok(sizes);
    }
    if field.is_string() && field.text("")? == "imix" {
        return Ok(IMIX.map(|(bytes, share)| SizeShare { bytes, share }).to_vec());
    }
    Ok(vec![only(field.bytes(20, 65_535)? as u32)])
}

#[derive(Clone, Copy)]
enum Shape {
    Constant,
    Poisson,
    Pareto,
    OnOff,
    Tcp,
}

fn pattern(table: &mut Table<'_>, full: &Full) -> Read<Pattern> {
    let shapes = [
        ("constant", Shape::Constant),
        ("poisson", Shape::Poisson),
        ("pareto", Shape::Pareto),
        ("on_off", Shape::OnOff),
        ("tcp", Shape::Tcp),
    ];
    let shape = table.need("pattern", "pattern = \"poisson\"")?.word(&shapes)?;
    if matches!(shape, Shape::Tcp) {
        let flows = table.read("flows", |field| field.integer(1..=bounds::SOURCES))?.unwrap_or(1) as u32;
        let back = table.need("back", "back = \"10ms\", the way back of its acknowledgements,")?;
        let back = back.span_up_to(Span::from_micros(1), bounds::DELAY)?;
        let window = table.read("window", |field| field.integer(0..=1_000_000))?.unwrap_or(0) as u32;
        return Ok(Pattern::Tcp { flows, back, window });
    }
    let rate = mean_rate(table, full)?;
    let alpha = |table: &mut Table<'_>| table.need("alpha", "alpha = 1.5")?.number(1.01, 100.0);
    Ok(match shape {
        Shape::Pareto => Pattern::Pareto { rate, alpha: alpha(table)? },
        Shape::OnOff => on_off(table, rate)?,
        Shape::Constant => Pattern::Constant { rate },
        _ => Pattern::Poisson { rate },
    })
}

fn on_off(table: &mut Table<'_>, rate: BitRate) -> Read<Pattern> {
    let sources = table.need("sources", "sources = 50")?.integer(1..=bounds::SOURCES)? as u32;
    let alpha = table.need("alpha", "alpha = 1.5")?.number(1.01, 100.0)?;
    let least = Span::from_micros(1);
    let on = table.need("on", "on = \"10ms\"")?.span_up_to(least, bounds::DELAY)?;
    let off = table.need("off", "off = \"90ms\"")?.span_up_to(least, bounds::DELAY)?;
    Ok(Pattern::OnOff { rate, sources, alpha, on, off })
}

/// `rate` in IP bits, or `load` as a share of the link that the traffic enters.
fn mean_rate(table: &mut Table<'_>, full: &Full) -> Read<BitRate> {
    let rate = table.read("rate", |field| field.rate(BitRate(1), bounds::FASTEST))?;
    let load = table.read("load", |field| field.number(0.000_001, 10.0))?;
    match (rate, load) {
        (Some(rate), None) => Ok(rate),
        (None, Some(load)) => {
            let ip_share = full.mean / (full.mean + full.overhead);
            Ok(BitRate(((full.rate as f64 * load * ip_share).round() as u64).max(1)))
        }
        (None, None) => Err(table.problem("has no rate".to_owned(), "rate = \"50Mbit/s\" or load = 0.5")),
        _ => Err(table.problem("has both rate and load".to_owned(), "one of them")),
    }
}

/// `from_time` and `until`, or `steps`, or `square`.
fn schedule(table: &mut Table<'_>) -> Read<Schedule> {
    let instant = |field: Field<'_>| field.span_up_to(Span::ZERO, bounds::INSTANT);
    let start = table.read("start", instant)?;
    let stop = table.read("stop", instant)?;
    let steps = table.read("steps", |field| steps(&field))?;
    let square = table.read("square", |field| square(&field))?;
    let many = [start.or(stop).is_some(), steps.is_some(), square.is_some()];
    if many.iter().filter(|given| **given).count() > 1 {
        let right = "one of start and stop, steps, and square";
        return Err(table.problem("has several schedules".to_owned(), right));
    }
    let start = start.unwrap_or_default();
    let mut plain = vec![Factor { at: start, factor: 1.0 }];
    if let Some(stop) = stop {
        if stop <= start {
            return Err(table.problem(format!("stops at {stop}, before it starts"), "stop later than start"));
        }
        plain.push(Factor { at: stop, factor: 0.0 });
    }
    Ok(square.or(steps).unwrap_or(Schedule::Steps(plain)))
}

fn steps(field: &Field<'_>) -> Read<Schedule> {
    let mut steps: Vec<Factor> = Vec::new();
    for item in field.list(1, bounds::STEPS)? {
        let mut table = item.table()?;
        let at = table.need("at", "at = \"10s\"")?.span_up_to(Span::ZERO, bounds::INSTANT)?;
        let factor = table.need("factor", "factor = 0.5")?.number(0.0, 1000.0)?;
        table.finish()?;
        if steps.last().is_some_and(|last| last.at >= at) {
            return Err(item.problem("is not later than the step before it", "steps sorted by time"));
        }
        steps.push(Factor { at, factor });
    }
    Ok(Schedule::Steps(steps))
}

fn square(field: &Field<'_>) -> Read<Schedule> {
    let mut table = field.table()?;
    let period = table.need("period", "period = \"10s\"")?;
    let period = period.span_up_to(Span::from_millis(1), Span::from_secs(24 * 3600))?;
    let duty = table.read("duty", |field| field.number(0.001, 0.999))?.unwrap_or(0.5);
    let high = table.read("high", |field| field.number(0.0, 1000.0))?.unwrap_or(1.0);
    let low = table.read("low", |field| field.number(0.0, 1000.0))?.unwrap_or(0.0);
    table.finish()?;
    if high == 0.0 && low == 0.0 {
        return Err(field.problem("is silent in both halves", "high = 1"));
    }
    Ok(Schedule::Square { period, duty, high, low })
}

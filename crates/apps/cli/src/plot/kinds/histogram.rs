//! Distributions of one record: round trips, or gaps between arriving datagrams.
//!
//! Bins of equal width stand on a linear axis as they are. Those of a logarithmic histogram are
//! finer than a picture; they are joined to about a hundred of equal ratio.

use std::collections::BTreeMap;

use netaware_record::{Direction, Histogram, Record};

use super::Sketch;
use super::over::name;
use crate::plot::picture::{Layer, Mark, Panel, Scale, ScaleKind, Stroke};
use crate::plot::source::{Carrier, Way};
use crate::plot::unit::Unit;
use crate::render::figures::{count, nanos};

/// A bar from left to right, with its height.
type Bin = (f64, f64, f64);

pub(super) fn sketch(record: &Record) -> Option<Sketch> {
    let Found { what, plural, of: found } = distributions(record)?;
    let linear = found.iter().all(|(_, histogram)| histogram.width.is_some());
    let bins: Vec<Vec<Bin>> =
        found.iter().map(|(_, histogram)| if linear { even(histogram) } else { joined(histogram) }).collect();
    let highest = bins.iter().flatten().map(|(_, _, entries)| *entries).fold(0.0, f64::max);
    let ways: Vec<_> = found.iter().map(|(way, _)| *way).collect();
    let layers = ways
        .iter()
        .zip(&bins)
        .map(|(way, bins)| Layer::new(name(*way, &ways), way.version, mark(*way, &ways), outline(bins)));
    let x = Scale::new(what, Unit::Time, if linear { ScaleKind::Linear } else { ScaleKind::Logarithmic });
    let tall = if highest >= TALL { ScaleKind::Logarithmic } else { ScaleKind::FromZero };
    let panel = Panel {
        weight: 1,
        x,
        y: Scale::new("entries per bin", Unit::Number, tall),
        layers: layers.collect(),
    };
    let remarks = found
        .iter()
        .map(|(way, histogram)| remark(&name(*way, &ways), histogram))
        .filter(|remark| !remark.is_empty());
    Some(Sketch {
        what: format!("distribution of {plural}"),
        remarks: remarks.collect(),
        panels: vec![panel],
    })
}

/// Two filled areas of one colour could not be told apart.
fn mark(way: Way, ways: &[Way]) -> Mark {
    let is_beside_udp = way.carrier == Carrier::Tcp && ways.iter().any(|it| it.carrier == Carrier::Udp);
    if is_beside_udp { Mark::Line(Stroke::Dashed) } else { Mark::Area }
}

/// Of one quantity, by whose it is.
struct Found<'a> {
    what: &'static str,
    plural: &'static str,
    of: Vec<(Way, &'a Histogram)>,
}

fn distributions(record: &Record) -> Option<Found<'_>> {
    let mut round_trips = Vec::new();
    let mut gaps = Vec::new();
    for result in &record.versions {
        for (carrier, latency) in [(Carrier::Udp, &result.latency), (Carrier::Tcp, &result.latency_tcp)] {
            let latency = latency.as_ref().and_then(|it| asked(it.bins.as_ref(), it.histogram.as_ref()));
            let way = Way { version: result.version, carrier, direction: Direction::RoundTrip };
            round_trips.extend(latency.map(|histogram| (way, histogram)));
        }
        for udp in &result.udp {
            let receiver = udp.receiver.as_ref();
            let histogram = receiver.and_then(|it| asked(it.bins.as_ref(), it.histogram.as_ref()));
            let direction = udp.pedigree.direction;
            let way = Way { version: result.version, carrier: Carrier::Udp, direction };
            gaps.extend(histogram.map(|histogram| (way, histogram)));
        }
    }
    match (round_trips.is_empty(), gaps.is_empty()) {
        (false, _) => Some(Found { what: "round trip", plural: "round trips", of: round_trips }),
        (true, false) => {
            Some(Found { what: "gap between arrivals", plural: "gaps between arrivals", of: gaps })
        }
        (true, true) => None,
    }
}

/// The bins that somebody asked for stand before those that are always there.
fn asked<'a>(bins: Option<&'a Histogram>, usual: Option<&'a Histogram>) -> Option<&'a Histogram> {
    [bins, usual].into_iter().flatten().find(|histogram| !histogram.bins.is_empty())
}

fn even(histogram: &Histogram) -> Vec<Bin> {
    let width = histogram.width.map_or(1.0, |width| width.0.max(1) as f64);
    let bin =
        |(edge, entries): &(u64, u64)| (*edge as f64 / 1e9, (*edge as f64 + width) / 1e9, *entries as f64);
    histogram.bins.iter().map(bin).collect()
}

/// Bins of equal ratio, about [`JOINED`] from the smallest to the largest value, but none finer
/// than the histogram's own.
fn joined(histogram: &Histogram) -> Vec<Bin> {
    let edge = |edge: u64| edge.max(1) as f64;
    let (Some(first), Some(last)) = (histogram.bins.first(), histogram.bins.last()) else {
        return Vec::new();
    };
    let decades = (edge(last.0) / edge(first.0)).log10().max(1e-6);
    let finest = 10.0_f64.powi(i32::from(histogram.digits.unwrap_or(2)));
    let per_decade = (JOINED / decades).clamp(8.0, finest);
    let mut counts = BTreeMap::<i64, u64>::new();
    for (lower, entries) in &histogram.bins {
        let place = (edge(*lower).log10() * per_decade).floor() as i64;
        let sum = counts.entry(place).or_default();
        *sum = sum.saturating_add(*entries);
    }
    let at = |place: i64| 10.0_f64.powf(place as f64 / per_decade) / 1e9;
    counts.into_iter().map(|(place, entries)| (at(place), at(place + 1), entries as f64)).collect()
}

/// The upper edge of the bars, down to nothing between bars that do not touch.
fn outline(bins: &[Bin]) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(bins.len() * 4);
    let mut end = None;
    for (left, right, entries) in bins {
        if end.is_none_or(|end: f64| left - end > (right - left) * 0.01) {
            points.extend(end.map(|end| (end, 0.0)));
            points.push((*left, 0.0));
        }
        points.extend([(*left, *entries), (*right, *entries)]);
        end = Some(*right);
    }
    points.extend(end.map(|end| (end, 0.0)));
    points
}

/// What the bars do not show.
fn remark(name: &str, histogram: &Histogram) -> String {
    let mut parts = Vec::new();
    if let Some(moments) = &histogram.moments {
        let sigma = moments.sigma.map(|sigma| format!(", sigma {}", nanos(sigma)));
        parts.push(format!("mean {}{}", nanos(moments.mean), sigma.unwrap_or_default()));
    }
    let outside = [(histogram.underflow, "below"), (histogram.overflow, "above")];
    parts.extend(
        outside
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, where_to)| format!("{} {where_to} the bins", count(*n))),
    );
    if parts.is_empty() { String::new() } else { format!("{name}: {}", parts.join(", ")) }
}

/// Bars that a picture has room for.
const JOINED: f64 = 120.0;
/// Entries from which single ones beside them could not be seen.
const TALL: f64 = 1000.0;

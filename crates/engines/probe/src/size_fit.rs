//! What a byte more costs: the slope of delay against size over the records of a scan.
//!
//! **Measures** the line through the medians, and through the smallest round trips, of a scan over
//! the size of request, response, or both. A device that takes in a packet before it sends it on
//! (store and forward) adds the packet's length over its rate, so in one packet the slope is the
//! sum of `8 / rate` over all stages, links, buses and copies alike, that the growing message
//! crosses. **Assumes** that each stage handles the message as one piece, which ends where it takes
//! more than one packet: then stages overlap and the slope falls to that of the slowest. So sizes
//! of one packet and of several are fitted apart. **Biased**: medians hold queueing, which grows
//! with size on a loaded path, and read high; the smallest hold least of it, and lean low where few
//! exchanges were made at a size. Padding of the shortest Ethernet frames flattens the line below
//! 46 bytes of IP packet. **Published**: Theil-Sen with Sen's interval
//! ([`netaware_stats::line_fit`]); the reading of the slope is that of request-response latency as
//! UDPmon measures it (Hughes-Jones, Clarke, Dallison, "Performance of 1 and 10 Gigabit Ethernet
//! cards with server quality motherboards", 2005), of pathchar (Jacobson, 1997).

mod meaning;

use std::collections::BTreeMap;

use netaware_record::{DelaySummary, Interval, IpVersion, LatencyResult, Record, SeriesKind, SeriesPoint};
use netaware_stats::line_fit;
use netaware_units::{ByteCount, Span};

use crate::published;
pub use meaning::{KnownCost, Meaning, meaning};

/// The lines through one scan, over one IP version and transport.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeFit {
    /// Over which IP version.
    pub version: IpVersion,
    /// The method of the records: "latency" over UDP, "latency-tcp" over TCP.
    pub method: String,
    /// Which message grows.
    pub grows: Grows,
    /// Whether a message took one packet; absent where no MTU is known.
    pub one_packet: Option<bool>,
    /// Smallest size fitted.
    pub from: ByteCount,
    /// Largest size fitted.
    pub to: ByteCount,
    /// Points fitted.
    pub points: usize,
    /// The other scanned options, where there are any.
    pub others: BTreeMap<String, String>,
    /// Line through the medians.
    pub median: SizeLine,
    /// Line through the smallest round trips.
    pub smallest: SizeLine,
}

/// Which message grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grows {
    /// The request.
    Request,
    /// The response.
    Response,
    /// Both, in step: a byte more crosses the path twice.
    Both,
}

/// A line of delay over size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeLine {
    /// ns per byte.
    pub slope: f64,
    /// The slope between its bounds, 95 %; absent for fewer than five points.
    pub interval: Option<Interval>,
    /// Delay at a size of zero, ns: what an exchange costs however short it is.
    pub intercept_ns: f64,
    /// Median distance of the points from the line, ns.
    pub residual_ns: f64,
}

/// The fits that the records of a scan allow; see [`SizeScan::fits`].
pub fn size_fit(records: &[Record]) -> Vec<SizeFit> {
    let mut scan = SizeScan::default();
    for record in records {
        scan.observe(record);
    }
    scan.fits()
}

/// The points of a scan, taken in one record after the other: 40 bytes for each version and
/// transport of a record.
#[derive(Debug, Default)]
pub struct SizeScan {
    groups: BTreeMap<Key, Vec<Point>>,
    first: Option<Box<Record>>,
}

impl SizeScan {
    /// Takes note of a record; of no effect unless it is a point of a scan over size. Of a long
    /// scan every second, third, … is taken, because each pair of points has its slope.
    pub fn observe(&mut self, record: &Record) {
        let Some(others) = others_of(record) else { return };
        let thinned =
            |series: &SeriesPoint| !series.index.is_multiple_of(series.planned.div_ceil(MOST_POINTS).max(1));
        if record.series.as_ref().is_some_and(thinned) {
            return;
        }
        for version in &record.versions {
            for result in version.latency.iter().chain(&version.latency_tcp) {
                let Some(rtt) = result.rtt else { continue };
                let key = Key {
                    v6: version.version == IpVersion::V6,
                    method: result.pedigree.method.clone(),
                    others: others.clone(),
                };
                self.groups.entry(key).or_default().push(Point::of(record, result, rtt));
                self.first.get_or_insert_with(|| Box::new(record.clone()));
            }
        }
    }

    /// The first record that has a point: what it knows of the hosts holds for all.
    pub fn first(&self) -> Option<&Record> {
        self.first.as_deref()
    }

    /// Adds what copying memory costs on the prober, ns per byte, for points too short to have it
    /// measured.
    pub fn note_memory_copy(&mut self, cost: impl FnOnce() -> Option<f64>) {
        if let Some(first) = &mut self.first
            && first.prober.memory_copy_ns_per_byte.is_none()
        {
            first.prober.memory_copy_ns_per_byte = cost();
        }
    }

    /// One fit for each IP version, transport, combination of other scanned options, and for
    /// messages of one and of several packets; those of fewer than two sizes are left out.
    pub fn fits(&self) -> Vec<SizeFit> {
        self.groups.iter().flat_map(|(key, points)| fits_of(key, points)).collect()
    }
}

/// Of a scan that a fit goes by.
const MOST_POINTS: u64 = 2_000;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    v6: bool,
    method: String,
    others: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    request: u64,
    response: u64,
    /// Longest message that one packet carries.
    fits: Option<u64>,
    median: Span,
    smallest: Span,
}

impl Point {
    fn of(record: &Record, result: &LatencyResult, rtt: DelaySummary) -> Self {
        Self {
            request: result.payload.0,
            response: result.response_payload().0,
            fits: one_packet(record, result),
            median: rtt.p50,
            smallest: rtt.min,
        }
    }

    fn size(&self, grows: Grows) -> u64 {
        match grows {
            Grows::Request => self.request,
            Grows::Response | Grows::Both => self.response,
        }
    }
}

/// The other options of a record that is a point of a scan over size.
fn others_of(record: &Record) -> Option<BTreeMap<String, String>> {
    let point = &record.series.as_ref().filter(|series| series.kind == SeriesKind::Scan)?.point;
    if !SIZES.iter().any(|name| point.contains_key(*name)) {
        return None;
    }
    let others = point.iter().filter(|(name, _)| !SIZES.contains(&name.as_str()));
    Some(others.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// From the smallest MTU of the interfaces at both ends; what lies between them may be smaller.
fn one_packet(record: &Record, result: &LatencyResult) -> Option<u64> {
    let hosts = [Some(&record.prober), record.responder.as_ref()];
    let mtus = hosts.into_iter().flatten().flat_map(|host| &host.nics).map(|nic| nic.mtu);
    let mtu = mtus.filter(|mtu| *mtu > 0).min()?;
    let ip = if result.pedigree.version == IpVersion::V4 { 20 } else { 40 };
    let transport = if result.pedigree.method == TCP { TCP_HEADER } else { UDP_HEADER };
    Some(u64::from(mtu).saturating_sub(ip + transport))
}

fn fits_of(key: &Key, points: &[Point]) -> Vec<SizeFit> {
    let Some(grows) = what_grows(points) else { return Vec::new() };
    let fits = |point: &Point| point.fits.map(|most| point.size(grows) <= most);
    [Some(true), Some(false), None]
        .into_iter()
        .filter_map(|one_packet| {
            let chosen: Vec<Point> =
                points.iter().filter(|point| fits(point) == one_packet).copied().collect();
            fit_of(key, grows, one_packet, chosen)
        })
        .collect()
}

/// `None` where nothing changes, or both change and not in step.
fn what_grows(points: &[Point]) -> Option<Grows> {
    let varies =
        |of: fn(&Point) -> u64| points.windows(2).any(|pair| matches!(pair, [a, b] if of(a) != of(b)));
    match (varies(|point| point.request), varies(|point| point.response)) {
        (true, false) => Some(Grows::Request),
        (false, true) => Some(Grows::Response),
        (true, true) => points.iter().all(|point| point.request == point.response).then_some(Grows::Both),
        (false, false) => None,
    }
}

fn fit_of(key: &Key, grows: Grows, one_packet: Option<bool>, mut points: Vec<Point>) -> Option<SizeFit> {
    points.sort_by_key(|point| point.size(grows));
    let line = |of: fn(&Point) -> Span| {
        let xy: Vec<(f64, f64)> =
            points.iter().map(|point| (point.size(grows) as f64, of(point).nanos() as f64)).collect();
        line_fit::fit(&xy, CONFIDENCE).map(SizeLine::from)
    };
    Some(SizeFit {
        version: if key.v6 { IpVersion::V6 } else { IpVersion::V4 },
        method: key.method.clone(),
        grows,
        one_packet,
        from: ByteCount(points.first()?.size(grows)),
        to: ByteCount(points.last()?.size(grows)),
        points: points.len(),
        others: key.others.clone(),
        median: line(|point| point.median)?,
        smallest: line(|point| point.smallest)?,
    })
}

impl From<line_fit::LineFit> for SizeLine {
    fn from(found: line_fit::LineFit) -> Self {
        Self {
            slope: found.line.slope,
            interval: found.slope.map(published::interval),
            intercept_ns: found.line.intercept,
            residual_ns: found.residual,
        }
    }
}

/// Options whose scan changes a size.
const SIZES: [&str; 3] = ["length", "request", "response"];
/// The method's name over TCP.
const TCP: &str = "latency-tcp";
const UDP_HEADER: u64 = 8;
/// With the timestamp option, which Linux and most others use.
const TCP_HEADER: u64 = 20 + 12;
const CONFIDENCE: f64 = 0.95;

#[cfg(test)]
mod tests;

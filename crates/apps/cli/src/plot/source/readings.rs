//! The figures of a record that pictures of a series show, in base units.

use netaware_record::{
    DelaySummary, Direction, Interval, IpVersion, LatencyResult, MatrixProtocol, MatrixResult, Outcome, Part,
    Record, TcpResult, UdpResult, VersionResult,
};
use netaware_units::{BitRate, Span};

/// What a reading is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Payload rate at the receiver, bit/s.
    Rate,
    /// The bounds of its uncertainty.
    RateLow,
    RateHigh,
    /// Payload rate that left the sender, bit/s.
    Sent,
    /// What the received datagrams take on Ethernet, bit/s.
    Wire,
    /// Datagrams lost, share of 1.
    Loss,
    /// Payload that leaves at each step of a paced stream, bytes: of a datagram, or of a burst of
    /// them.
    Step,
    /// Median round trip, s.
    Rtt,
    /// Smallest, and 99th percentile.
    RttLow,
    RttHigh,
}

/// Whose figure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Way {
    pub(crate) version: IpVersion,
    pub(crate) carrier: Carrier,
    pub(crate) direction: Direction,
}

/// What carried it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Carrier {
    Udp,
    Tcp,
    TcpNodelay,
}

impl Carrier {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::TcpNodelay => "TCP_NODELAY",
        }
    }
}

impl From<MatrixProtocol> for Carrier {
    fn from(protocol: MatrixProtocol) -> Self {
        match protocol {
            MatrixProtocol::Tcp => Self::Tcp,
            MatrixProtocol::TcpNodelay => Self::TcpNodelay,
            MatrixProtocol::Udp => Self::Udp,
        }
    }
}

/// A figure of one record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    pub(crate) way: Way,
    pub(crate) figure: Figure,
    pub(crate) value: f64,
}

/// All of one record that was measured to its end, and whether that is all there is: a point that
/// failed is no point of the curve, and neither is the rate until a transfer broke off.
pub(super) fn of(record: &Record) -> (Vec<Reading>, bool) {
    let burst = record.request.options.get("burst").and_then(|burst| burst.parse().ok()).unwrap_or(1.0);
    let mut is_whole = true;
    let readings = record.versions.iter().flat_map(|version| {
        let (whole, are_all) = whole_parts(version, record);
        is_whole &= are_all;
        of_version(&whole, burst)
    });
    let readings: Vec<Reading> = readings.collect();
    let has_failed = record.outcome == Outcome::Failed && readings.is_empty();
    (readings, is_whole && !has_failed)
}

/// A result of a record without what failed or broke off, and whether nothing did.
fn whole_parts(result: &VersionResult, record: &Record) -> (VersionResult, bool) {
    let holds = |part| result.extent(part, &record.command).holds(record.outcome);
    let mut whole = result.clone();
    whole.tcp.retain(|tcp| holds(Part::Tcp(Some(tcp.pedigree.direction))));
    whole.udp.retain(|udp| holds(Part::Udp(Some(udp.pedigree.direction))));
    whole.latency = whole.latency.filter(|_| holds(Part::RoundTrip));
    whole.latency_tcp = whole.latency_tcp.filter(|_| holds(Part::RoundTripOverTcp));
    if !holds(Part::Trains) {
        whole.path_rates.clear();
    }
    if !holds(Part::Matrix) {
        whole.matrix.clear();
    }
    let are_all =
        !result.broke_off() && (whole.tcp.len(), whole.udp.len()) == (result.tcp.len(), result.udp.len());
    (whole, are_all)
}

fn of_version(result: &VersionResult, burst: f64) -> Vec<Reading> {
    let mut readings = Vec::new();
    let mut add = |carrier, direction, figures: &[(Figure, Option<f64>)]| {
        let way = Way { version: result.version, carrier, direction };
        let known = figures.iter().filter_map(|(figure, value)| Some((*figure, (*value)?)));
        readings.extend(known.map(|(figure, value)| Reading { way, figure, value }));
    };
    for direction in [Direction::Forward, Direction::Reverse] {
        // `test` measures with one stream and with several; the first of a direction stands for it.
        if let Some(tcp) = result.tcp.iter().find(|tcp| tcp.pedigree.direction == direction) {
            add(Carrier::Tcp, direction, &tcp_figures(tcp));
        }
        if let Some(udp) =
            result.udp.iter().find(|udp| udp.pedigree.direction == direction && result.tcp.is_empty())
        {
            add(Carrier::Udp, direction, &udp_figures(udp, burst));
        }
    }
    for (carrier, latency) in [(Carrier::Udp, &result.latency), (Carrier::Tcp, &result.latency_tcp)] {
        if let Some(latency) = latency {
            add(carrier, Direction::RoundTrip, &latency_figures(latency));
        }
    }
    for rate in &result.path_rates {
        let of = |of: fn(&Interval) -> f64| rate.rate.as_ref().map(of);
        let figures = [
            (Figure::Rate, of(|rate| rate.estimate)),
            (Figure::RateLow, of(|rate| rate.lo)),
            (Figure::RateHigh, of(|rate| rate.hi)),
        ];
        add(Carrier::Udp, rate.pedigree.direction, &figures);
    }
    for matrix in &result.matrix {
        add(matrix.protocol.into(), Direction::Forward, &matrix_figures(matrix));
    }
    readings
}

fn latency_figures(latency: &LatencyResult) -> [(Figure, Option<f64>); 3] {
    let rtt = latency.rtt.or(latency.rtt_application);
    let seconds = |of: fn(&DelaySummary) -> Span| rtt.as_ref().map(|rtt| of(rtt).0 as f64 / 1e9);
    [
        (Figure::Rtt, seconds(|rtt| rtt.p50)),
        (Figure::RttLow, seconds(|rtt| rtt.min)),
        (Figure::RttHigh, seconds(|rtt| rtt.p99)),
    ]
}

fn matrix_figures(matrix: &MatrixResult) -> [(Figure, Option<f64>); 4] {
    let best = matrix.best();
    let bound = |of: fn(&Interval) -> f64| best.map(of);
    [
        (Figure::Rate, bound(|best| best.estimate)),
        (Figure::RateLow, bound(|best| best.lo)),
        (Figure::RateHigh, bound(|best| best.hi)),
        (Figure::Loss, (matrix.protocol == MatrixProtocol::Udp).then(|| matrix.lost()).flatten()),
    ]
}

fn tcp_figures(tcp: &TcpResult) -> [(Figure, Option<f64>); 3] {
    let interval = tcp.goodput_interval.as_ref();
    [
        (Figure::Rate, tcp.goodput.map(|rate| rate.0 as f64)),
        (Figure::RateLow, interval.map(|i| i.lo)),
        (Figure::RateHigh, interval.map(|i| i.hi)),
    ]
}

fn udp_figures(udp: &UdpResult, burst: f64) -> [(Figure, Option<f64>); 5] {
    let of = |rate: Option<BitRate>| rate.map(|rate| rate.0 as f64);
    [
        (Figure::Rate, of(udp.goodput)),
        (Figure::Sent, of(udp.sent_rate)),
        (Figure::Wire, of(udp.wire.and_then(|wire| wire.received))),
        (Figure::Loss, udp.loss.ratio.as_ref().map(|ratio| ratio.estimate)),
        (Figure::Step, Some(udp.payload.0 as f64 * burst)),
    ]
}

#[cfg(test)]
mod tests {
    use netaware_record::FailedPhase;

    use super::*;
    use crate::render::fixture;

    /// An echo connection that failed took the round trips over UDP with it, and one of two
    /// transfers of a direction that broke off left the other one as its rate.
    #[test]
    fn a_part_that_is_not_whole_is_left_out_and_no_other() {
        let record = fixture::test();
        let counts = |result: &VersionResult| {
            let (whole, are_all) = whole_parts(result, &record);
            (whole.tcp.len(), whole.udp.len(), whole.latency.is_some(), are_all)
        };
        let whole = &record.versions[0];
        assert_eq!(counts(whole), (4, 2, true, true));
        let failed = |stage: &str| {
            let phase = FailedPhase { stage: stage.to_owned(), reason: "no answer".to_owned() };
            VersionResult { failed_phases: vec![phase], ..whole.clone() }
        };
        assert_eq!(counts(&failed("measure throughput")), (4, 0, true, false));
        assert_eq!(counts(&failed("open the echo connection")), (4, 2, true, false));
        assert_eq!(counts(&failed("measure latency")), (4, 2, false, false));
        let mut broken = whole.clone();
        broken.tcp[0].outcome = Outcome::Failed;
        assert_eq!(counts(&broken), (2, 2, true, false));
        let mut lost = whole.clone();
        lost.unreachable.clone_from(&fixture::half().versions[1].unreachable);
        assert_eq!(counts(&lost), (0, 0, false, false));
        assert_eq!(counts(&fixture::half().versions[1]), (0, 0, false, true));
    }
}

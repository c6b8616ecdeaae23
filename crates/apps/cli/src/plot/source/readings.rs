//! The figures of a record that pictures of a series show, in base units.

use netaware_record::{Direction, IpVersion, Record, TcpResult, UdpResult, VersionResult};

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
    /// Payload that leaves at each step of a paced stream, bytes: of a datagram, or of a burst of them.
    Step,
    /// Median round trip, s.
    Rtt,
    /// Smallest, and 99th percentile.
    RttLow,
    RttHigh,
}

/// A figure of one record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    pub(crate) version: IpVersion,
    pub(crate) direction: Direction,
    pub(crate) figure: Figure,
    pub(crate) value: f64,
}

/// All of one record.
pub(super) fn of(record: &Record) -> Vec<Reading> {
    let burst = record.request.options.get("burst").and_then(|burst| burst.parse().ok()).unwrap_or(1.0);
    record.versions.iter().flat_map(|version| of_version(version, burst)).collect()
}

fn of_version(result: &VersionResult, burst: f64) -> Vec<Reading> {
    let version = result.version;
    let mut readings = Vec::new();
    let mut add = |direction, figures: &[(Figure, Option<f64>)]| {
        let known = figures.iter().filter_map(|(figure, value)| Some((*figure, (*value)?)));
        readings.extend(known.map(|(figure, value)| Reading { version, direction, figure, value }));
    };
    for direction in [Direction::Forward, Direction::Reverse] {
        // `test` measures with one stream and with several; the first of a direction stands for it.
        if let Some(tcp) = result.tcp.iter().find(|tcp| tcp.pedigree.direction == direction) {
            add(direction, &tcp_figures(tcp));
        }
        if let Some(udp) =
            result.udp.iter().find(|udp| udp.pedigree.direction == direction && result.tcp.is_empty())
        {
            add(direction, &udp_figures(udp, burst));
        }
    }
    if let Some(rtt) = result
        .latency
        .as_ref()
        .or(result.latency_tcp.as_ref())
        .and_then(|latency| latency.rtt.or(latency.rtt_application))
    {
        let seconds = |span: netaware_units::Span| Some(span.0 as f64 / 1e9);
        let figures = [
            (Figure::Rtt, seconds(rtt.p50)),
            (Figure::RttLow, seconds(rtt.min)),
            (Figure::RttHigh, seconds(rtt.p99)),
        ];
        add(Direction::RoundTrip, &figures);
    }
    readings
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
    // No rate was observed where nothing, or one datagram, came.
    let some = |rate: f64| (rate > 0.0).then_some(rate);
    [
        (Figure::Rate, some(udp.goodput.0 as f64)),
        (Figure::Sent, some(udp.sent_rate.0 as f64)),
        (Figure::Wire, udp.wire.and_then(|wire| some(wire.received.0 as f64))),
        (Figure::Loss, udp.loss.ratio.as_ref().map(|ratio| ratio.estimate)),
        (Figure::Step, Some(udp.payload.0 as f64 * burst)),
    ]
}

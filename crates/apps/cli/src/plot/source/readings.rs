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
    /// Payload of a datagram, bytes.
    Payload,
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
    let mtu = record.prober.nics.iter().map(|nic| nic.mtu).find(|mtu| *mtu > 0).unwrap_or(USUAL_MTU);
    record.versions.iter().flat_map(|version| of_version(version, mtu)).collect()
}

fn of_version(result: &VersionResult, mtu: u32) -> Vec<Reading> {
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
            add(direction, &udp_figures(udp, version, mtu));
        }
    }
    if let Some(rtt) = result.latency.as_ref().and_then(|latency| latency.rtt.or(latency.rtt_application)) {
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

fn udp_figures(udp: &UdpResult, version: IpVersion, mtu: u32) -> [(Figure, Option<f64>); 5] {
    let payload = udp.payload.0.max(1);
    let received = udp.goodput.0 as f64;
    // No rate was observed where nothing, or one datagram, came.
    let some = |rate: f64| (rate > 0.0).then_some(rate);
    [
        (Figure::Rate, some(received)),
        (Figure::Sent, some(udp.sent_rate.0 as f64)),
        (Figure::Wire, some(received * wire_bytes(payload, version, mtu) as f64 / payload as f64)),
        (Figure::Loss, udp.loss.ratio.as_ref().map(|ratio| ratio.estimate)),
        (Figure::Payload, Some(payload as f64)),
    ]
}

/// What a datagram takes on Ethernet: headers of UDP (8 bytes) and IP, frame header and check (18), preamble (8) and gap (12);
/// short frames are filled up to 46 bytes of payload (IEEE 802.3 §3, §4.4). One longer than the MTU travels in fragments
/// that are multiples of 8 bytes, over IPv6 with a header of 8 each (RFC 791, RFC 8200 §4.5).
fn wire_bytes(payload: u64, version: IpVersion, mtu: u32) -> u64 {
    let (udp, ip, room) = (payload + 8, u64::from(version.header_len()), u64::from(mtu));
    if udp + ip <= room {
        return (udp + ip).max(SHORTEST) + FRAME;
    }
    let header = if version == IpVersion::V6 { ip + 8 } else { ip };
    let each = (room.saturating_sub(header) / 8 * 8).max(8);
    let fragments = udp.div_ceil(each);
    udp + fragments * (header + FRAME)
}

const USUAL_MTU: u32 = 1500;
const SHORTEST: u64 = 46;
const FRAME: u64 = 18 + 8 + 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_counts_headers_gaps_padding_and_fragments() {
        use IpVersion::{V4, V6};
        let rows = [
            (1472, V4, 1538),
            (1452, V6, 1538),
            (1452, V4, 1518),
            (10, V4, 84),
            // Two fragments: 1480 and 528 bytes, each with 20 + 38.
            (2000, V4, 2008 + 2 * 58),
            (2000, V6, 2008 + 2 * 86),
        ];
        for (payload, version, want) in rows {
            assert_eq!(wire_bytes(payload, version, 1500), want, "{payload} {version:?}");
        }
    }
}

//! Series and records with known figures, for tests of pictures.

use netaware_record::{
    Histogram, HistogramMoments, Interval, IpVersion, ReceiverTick, Record, SeriesKind, SeriesPoint,
};
use netaware_units::{BitRate, ByteCount, Span};
use uuid::Uuid;

use super::source::{Series, Source};
use crate::render::fixture;

/// Payload of the scan over spacing.
pub(super) const LENGTH: u64 = 1472;
/// Beyond this rate its path loses.
pub(super) const LIMIT: f64 = 800e6;

fn series(kind: SeriesKind, records: impl Iterator<Item = (String, String, Record)>, planned: u64) -> Source {
    let mut series = Series::default();
    for (index, (name, value, mut record)) in (0..).zip(records) {
        let point = if name.is_empty() { [].into() } else { [(name, value)].into() };
        record.series = Some(SeriesPoint { id: Uuid::from_u128(7), kind, index, planned, point });
        record.started_at.0 += i64::try_from(index).unwrap() * 10_000_000_000;
        series.take(&record);
    }
    series.settle();
    Source::Series(series)
}

/// 1, 2, 4 us and so on: sent is `length / t`, received the same up to [`LIMIT`]; IPv6 gets a tenth
/// less.
pub(super) fn spacing_scan(points: u32) -> Source {
    let record = |n: u32| {
        let micros = 1_i64 << n;
        let sent = LENGTH as f64 * 8e6 / micros as f64;
        let mut record = fixture::udp();
        for version in &mut record.versions {
            let udp = &mut version.udp[0];
            let got = sent.min(LIMIT) * if version.version == IpVersion::V4 { 1.0 } else { 0.9 };
            udp.payload = ByteCount(LENGTH);
            (udp.sent_rate, udp.goodput) = (Some(BitRate(sent as u64)), Some(BitRate(got as u64)));
            let lost = 1.0 - got / sent;
            udp.loss.ratio = Some(Interval { estimate: lost, lo: lost, hi: lost, confidence: 0.95 });
        }
        ("spacing".to_owned(), format!("{micros}us"), record)
    };
    series(SeriesKind::Scan, (0..points).map(record), u64::from(points))
}

/// 50 us and 8 ns for each byte, IPv6 10 us more; every seventh point is an outlier.
pub(super) fn size_scan() -> Source {
    let record = |n: i64| {
        let bytes = 64 + n * 100;
        let mut record = fixture::latency();
        for version in &mut record.versions {
            let more = if version.version == IpVersion::V6 { 10_000 } else { 0 }
                + if n % 7 == 3 { 400_000 } else { 0 };
            let rtt = version.latency.as_mut().unwrap().rtt.as_mut().unwrap();
            (rtt.min, rtt.p50, rtt.p99) =
                (Span(48_000 + bytes * 8), Span(50_000 + bytes * 8 + more), Span(90_000 + bytes * 8));
        }
        ("length".to_owned(), format!("{bytes} B"), record)
    };
    series(SeriesKind::Scan, (0..14).map(record), 14)
}

/// So many measurements, the fifth missing.
pub(super) fn repeated(points: u64) -> Source {
    let record = |n: u64| {
        let mut record = fixture::tcp();
        for version in &mut record.versions {
            let rate = 40_000_000 + n % 17 * 1_000_000 + if n == 4321 { 90_000_000 } else { 0 };
            version.tcp[0].goodput = Some(BitRate(rate));
            version.tcp[0].goodput_interval = None;
        }
        (String::new(), String::new(), record)
    };
    let Source::Series(mut series) = series(SeriesKind::Repeat, (0..points).map(record), points) else {
        unreachable!()
    };
    series.points.retain(|point| point.index != 5);
    Source::Series(series)
}

/// TCP over 1 to 64 streams.
pub(super) fn stream_scan() -> Source {
    let record = |n: u32| {
        let mut record = fixture::tcp();
        for version in &mut record.versions {
            let rate = f64::from(n + 1) * if version.version == IpVersion::V4 { 10e6 } else { 9e6 };
            version.tcp[0].goodput = Some(BitRate(rate as u64));
            version.tcp[0].goodput_interval =
                Some(Interval { estimate: rate, lo: rate * 0.95, hi: rate * 1.05, confidence: 0.95 });
        }
        ("streams".to_owned(), (1 << n).to_string(), record)
    };
    series(SeriesKind::Scan, (0..7).map(record), 8)
}

/// UDP spacings for two lengths.
pub(super) fn two_option_scan() -> Source {
    let mut records = Vec::new();
    for length in [200, 1400] {
        for micros in [10, 20, 40] {
            let mut record = fixture::udp();
            for version in &mut record.versions {
                version.udp[0].payload = ByteCount(length);
                version.udp[0].goodput = Some(BitRate(length * 8_000_000 / micros));
            }
            records.push((length, micros, record));
        }
    }
    let mut series = Series::default();
    for (index, (length, micros, mut record)) in (0..).zip(records) {
        let point =
            [("length".to_owned(), format!("{length} B")), ("spacing".to_owned(), format!("{micros}us"))];
        let (id, kind) = (Uuid::from_u128(8), SeriesKind::Scan);
        record.series = Some(SeriesPoint { id, kind, index, planned: 6, point: point.into() });
        series.take(&record);
    }
    series.settle();
    Source::Series(series)
}

/// A record, three times over.
pub(super) fn again(record: &Record) -> Source {
    let records = (0..3).map(|_| (String::new(), String::new(), record.clone()));
    series(SeriesKind::Repeat, records, 3)
}

/// Ticks of two turns.
pub(super) fn slices() -> Source {
    let mut record = fixture::udp();
    for version in &mut record.versions {
        let tick = |n: i64| ReceiverTick {
            end: Span::from_millis(100 * (n % 20 + 1)),
            length: Span::from_millis(100),
            bytes: ByteCount(1_000_000 + (n.cast_unsigned() * 7919) % 50_000),
            packets: 679,
            lost: if n == 13 { 21 } else { 0 },
            ..ReceiverTick::default()
        };
        version.udp[0].ticks = (0..40).map(tick).collect();
    }
    Source::One(Box::new(record))
}

/// Gaps about 20 us in bins of 1 us, IPv4 with some far above.
pub(super) fn gaps() -> Source {
    let mut record = fixture::udp();
    for version in &mut record.versions {
        let is_v4 = version.version == IpVersion::V4;
        let bins =
            (0..40).map(|n: u64| (n * 1000, 40_000 / (1 + n.abs_diff(20).pow(3)))).filter(|bin| bin.1 > 0);
        version.udp[0].ticks.clear();
        version.udp[0].receiver.as_mut().unwrap().bins = Some(Histogram {
            bins: bins.collect(),
            width: Some(Span::from_micros(1)),
            low: Some(Span::ZERO),
            overflow: if is_v4 { 12 } else { 0 },
            moments: Some(HistogramMoments {
                entries: 90_000,
                mean: 20_000.0,
                sigma: Some(900.0),
                ..HistogramMoments::default()
            }),
            ..Histogram::default()
        });
    }
    Source::One(Box::new(record))
}

/// The matrix of the renderer's tests.
pub(super) fn matrix() -> Source {
    Source::One(Box::new(fixture::matrix()))
}

/// One of each kind.
pub(super) fn all() -> Vec<(&'static str, Source)> {
    vec![
        ("spacing", spacing_scan(8)),
        ("size", size_scan()),
        ("option", stream_scan()),
        ("time", repeated(40)),
        ("block", matrix()),
        ("intervals", slices()),
        ("histogram", gaps()),
    ]
}

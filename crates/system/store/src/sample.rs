//! Records for this crate's tests.

use netaware_record::{Direction, LatencyResult, Layer, Pedigree};
use netaware_record::{HostInfo, IpVersion, Outcome, Reach, Record, Request, VersionResult};
use netaware_record::{SeriesKind, SeriesPoint};
use netaware_units::{ByteCount, ClockSource, Span, Wall};
use uuid::Uuid;

/// Number `n` began `n` seconds after number 0; odd ones are `tcp`. Only IPv4 has figures.
pub(crate) fn record(n: u64) -> Record {
    let mut v4 = VersionResult::new(IpVersion::V4);
    v4.reach = Some(Reach::default());
    v4.latency = Some(latency());
    Record {
        schema: netaware_record::SCHEMA_VERSION,
        id: Uuid::from_u128(0x019a_2b3c_4d5e_7000_8000_0000_0000_0000 + u128::from(n)),
        software: "0.1.0".into(),
        command: if n.is_multiple_of(2) { "test" } else { "tcp" }.into(),
        started_at: Wall(1_700_000_000_000_000_000 + n as i64 * 1_000_000_000),
        started_at_utc: "2023-11-14T22:13:20Z".into(),
        elapsed: Span::from_secs(15),
        outcome: Outcome::Complete,
        request: Request { host: "lab-b".into(), port: 14233, ..Request::default() },
        label: None,
        series: None,
        prober: HostInfo::default(),
        responder: None,
        versions: vec![v4, VersionResult::new(IpVersion::V6)],
        comparison: None,
        ability: None,
        expectations: Vec::new(),
        warnings: vec!["w".repeat(3000)],
    }
}

/// The id of the sample series.
pub(crate) const SERIES: Uuid = Uuid::from_u128(0x019a_2b3c_0000_7000_8000_0000_0000_0000);

/// Record `n` as point `index` of 10 of a scan.
pub(crate) fn point(n: u64, index: u64) -> Record {
    let point = [("length".to_owned(), format!("{index}"))].into();
    let series = SeriesPoint { id: SERIES, kind: SeriesKind::Scan, index, planned: 10, point };
    Record { label: Some("hall B".into()), series: Some(series), ..record(n) }
}

fn latency() -> LatencyResult {
    let pedigree = Pedigree {
        method: "echo".into(),
        layer: Layer::Payload,
        direction: Direction::RoundTrip,
        version: IpVersion::V4,
        clock: ClockSource::Kernel,
        uncertainty: String::new(),
    };
    LatencyResult {
        spacing: Span::from_millis(10),
        sent: 200,
        received: 200,
        patience: Span::from_secs(1),
        ..LatencyResult::before_any(pedigree, ByteCount(64))
    }
}

//! How many rows a second a fleet's store takes: `fleet_rate PLACE [BATCHES]`, PLACE a file or a
//! URL of ClickHouse.
//!
//! Each batch is 100 reports with 100 rows each: delays with 60 bins, and volumes. Told are the
//! rate until the store has said that they are kept, and until they have reached it.

use netaware_record::passive::{
    ClockState, DelayRow, DelayStatistics, FlowKey, Period, ProbeReport, Row, TaskRow, VolumeRow,
};
use netaware_store::fleet::{self, Batch, Settings};
use netaware_units::{ByteCount, Span, Wall};

const REPORTS: u64 = 100;
const ROWS: u64 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().ok_or("which store? a file, or clickhouse://host:port/database")?;
    let batches: u64 = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let buffer = std::env::temp_dir().join(format!("fleet-rate-{}.db", std::process::id()));
    let settings = Settings { buffer: Some(buffer.clone()), ..Settings::default() };
    let mut store = fleet::open_with(&place, &settings)?;
    let rows = batches * REPORTS * ROWS;
    for kind in ["delay", "volume"] {
        let made: Vec<Vec<ProbeReport>> = (0..batches).map(|batch| reports(kind, batch)).collect();
        let begun = clock();
        for reports in &made {
            let incarnation = format!("{kind}-{}", std::process::id());
            let batch: Vec<Batch<'_>> =
                reports.iter().map(|report| Batch::report(&incarnation, report)).collect();
            store.take_all(&batch)?;
        }
        let kept = begun.elapsed().as_secs_f64();
        let all = store.flush(Span::from_secs(600));
        let there = begun.elapsed().as_secs_f64();
        let rate = |seconds: f64| rows as f64 / seconds;
        println!(
            "{kind}: {rows} rows, kept at {:.0} rows/s, there at {:.0} rows/s{}",
            rate(kept),
            rate(there),
            if all { "" } else { " (not all)" }
        );
    }
    drop(store);
    let _ = std::fs::remove_file(buffer);
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "an example that measures its own time, on a floor that has no clock"
)]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}

/// Of 100 probes, one second each.
fn reports(kind: &str, batch: u64) -> Vec<ProbeReport> {
    // Of today, or ClickHouse would delete them at once.
    let today = uuid::Uuid::now_v7().get_timestamp().map_or(0, |stamp| stamp.to_unix().0 / 86_400 * 86_400);
    let from = Wall(((today + batch) * 1_000_000_000).cast_signed());
    let period = Period { from, until: Wall(from.0 + 1_000_000_000) };
    let report = |probe: u64| ProbeReport {
        probe: format!("probe-{probe}"),
        sequence: batch + 1,
        period,
        captures: Vec::new(),
        clock: ClockState::default(),
        rows: (0..ROWS).map(|n| TaskRow::new("rate", period, row(kind, probe, n, period))).collect(),
        rows_cut: std::collections::BTreeMap::new(),
        exchanges: Vec::new(),
    };
    (0..REPORTS).map(report).collect()
}

fn row(kind: &str, probe: u64, n: u64, period: Period) -> Row {
    if kind == "volume" {
        let key = FlowKey { source_port: Some(n as u16), destination_port: Some(443), ..FlowKey::default() };
        let bytes = ByteCount(1200 * n);
        let (first_at, last_at) = (period.from, period.from);
        return Row::Volume(VolumeRow {
            key,
            packets: n,
            bytes,
            first_at,
            last_at,
            packets_error: 0,
            rest: false,
        });
    }
    let mut delay = DelayStatistics {
        count: 60,
        min: Span(1_000_000),
        max: Span(4_000_000),
        sum_ns: 150_000_000,
        ..DelayStatistics::default()
    };
    delay.histogram.bins = (0..60).map(|bin| (1_000_448 + bin * 51_200, 1)).collect();
    delay.histogram.digits = Some(3);
    let (from, to, method) = (format!("probe-{probe}"), format!("probe-{n}"), "passive".to_owned());
    Row::Delay(Box::new(DelayRow {
        from,
        to,
        version: None,
        method,
        packets: 60,
        matched: 60,
        lost: 0,
        unobserved: 0,
        late: 0,
        duplicates: 0,
        reordered: 0,
        collisions: 0,
        given_up: 0,
        patience: Span::from_secs(1),
        ipdv: delay.clone(),
        delay,
        offset: Span::ZERO,
        clock_bound: Some(Span(100_000)),
        clock_method: "clock_daemons".into(),
        below_bound: 0,
        warnings: Vec::new(),
    }))
}

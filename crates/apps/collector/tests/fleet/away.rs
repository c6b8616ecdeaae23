//! A ClickHouse that is away while probes report: what waits, what is given up, and what a reader of `/metrics` sees of it.

use netaware_io::clock;
use netaware_record::passive::{CaptureLoss, DigestRow, Row, TaskRow};
use netaware_units::Span;

use super::bench_server::{Server, serve_if_told};
use super::joined::periods;
use super::metrics::scrape;
use super::probe::{Probe, report};
use super::{Running, TWO, start};

const TEST: &str = "away::what_comes_while_clickhouse_is_away_waits_and_beyond_the_buffer_the_oldest_go";

/// A gauge or counter of the collector's own.
fn metric(collector: &Running, name: &str) -> u64 {
    let text = String::from_utf8(scrape(collector.address, "*/*").1).unwrap();
    let name = format!("netaware_collector_{name} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    let value: f64 = line.unwrap_or_else(|| panic!("no {name}in {text}")).parse().unwrap();
    value as u64
}

#[track_caller]
fn await_metric(collector: &Running, name: &str, want: impl Fn(u64) -> bool) -> u64 {
    let until = clock::now() + Span::from_secs(30);
    loop {
        let value = metric(collector, name);
        if want(value) {
            return value;
        }
        assert!(clock::now() < until, "{name} is {value}");
        clock::sleep(Span::from_millis(20));
    }
}

/// Digest counts that the store has, by their numbers.
fn numbers(collector: &Running) -> Vec<u64> {
    let page = collector.ask("/api/v1/rows/digests?from=-1h&task=numbered");
    let of = |item: &serde_json::Value| item["row"]["observed"].as_u64().unwrap();
    page["items"].as_array().unwrap().iter().map(of).collect()
}

/// Sends batches whose rows are told apart by their numbers.
fn send(probe: &mut Probe, numbers: std::ops::RangeInclusive<u64>) {
    let last = *numbers.end();
    for n in numbers {
        let period = periods(100)[n as usize % 100];
        let mut report = report("a", n, period, 0);
        let digests = DigestRow { observed: n, ..DigestRow::default() };
        let row = TaskRow {
            task: "numbered".into(),
            period,
            row: Row::Digests(digests),
            lost: CaptureLoss::default(),
        };
        let padding = TaskRow { task: "x".repeat(4000), ..row.clone() };
        report.rows = vec![row, padding];
        probe.bytes(n, &[], &serde_json::to_vec(&report).unwrap());
    }
    probe.until_taken(last);
}

#[test]
fn what_comes_while_clickhouse_is_away_waits_and_beyond_the_buffer_the_oldest_go() {
    serve_if_told();
    let Some(mut server) = Server::start(TEST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = format!("store = \"{}\"\nstore_buffer = \"128KiB\"\n{TWO}", server.place("away"));
    let collector = start(folder.path(), &text);
    let mut probe = Probe::join(collector.address, "a");
    send(&mut probe, 1..=5);
    await_metric(&collector, "store_waiting_rows", |rows| rows == 0);
    assert_eq!(metric(&collector, "store_up"), 1);

    server.stop();
    send(&mut probe, 6..=15);
    await_metric(&collector, "store_up", |up| up == 0);
    assert_eq!(metric(&collector, "store_waiting_rows"), 30, "of each batch its report and two rows");
    assert_eq!(metric(&collector, "store_given_up_rows_total"), 0);
    let health = collector.ask("/api/v1/health");
    assert_eq!(health["waiting_rows"], 30);
    assert!(health["trouble"].as_str().unwrap().contains("ClickHouse"), "{health}");

    send(&mut probe, 16..=60);
    let (waiting, given_up) =
        (metric(&collector, "store_waiting_rows"), metric(&collector, "store_given_up_rows_total"));
    assert_eq!(waiting + given_up, 3 * 55);
    assert!(given_up > 0 && metric(&collector, "store_waiting_bytes") <= 128 << 10, "{given_up}");

    server.restart(TEST);
    await_metric(&collector, "store_waiting_rows", |rows| rows == 0);
    await_metric(&collector, "store_up", |up| up == 1);
    assert_eq!(metric(&collector, "store_given_up_rows_total"), given_up);
    let until = clock::now() + Span::from_secs(30);
    let mut found = numbers(&collector);
    while !found.contains(&60) {
        assert!(clock::now() < until, "{found:?}");
        clock::sleep(Span::from_millis(50));
        found = numbers(&collector);
    }
    found.sort_unstable();
    let newest = found.split_off(5);
    assert_eq!(found, [1, 2, 3, 4, 5], "what was there before");
    let first = newest[0];
    assert!(first > 6, "the oldest are gone");
    assert_eq!(newest, (first..=60).collect::<Vec<u64>>(), "and nothing else is");
    collector.end();
}

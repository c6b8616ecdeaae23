//! A ClickHouse that is away while probes report: what waits, what is given up, and what a reader
//! of `/metrics` sees of it.

use netaware_io::clock;
use netaware_record::passive::{CaptureLoss, DigestRow, Row, TaskRow};
use netaware_testkit::clickhouse::{ClickHouse, serve_if_told};
use netaware_units::Span;

use super::joined::periods;
use super::metrics::scrape;
use super::probe::{Probe, report};
use super::{Running, TWO, start};

const TEST: &str =
    "fleet::away::what_comes_while_clickhouse_is_away_waits_and_beyond_the_buffer_the_oldest_go";

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

const ORDERED: &str = "fleet::away::what_waited_is_sent_oldest_first_and_counted";

/// Digest counts that the store has, by their numbers.
fn numbers(collector: &Running) -> Vec<u64> {
    let page = collector.ask("/api/v1/rows/digests?from=-1h&task=numbered");
    let of = |item: &serde_json::Value| item["row"]["observed"].as_u64().unwrap();
    page["items"].as_array().unwrap().iter().map(of).collect()
}

/// Sends batches whose rows are told apart by their numbers.
fn send(probe: &mut Probe, numbers: std::ops::RangeInclusive<u64>) {
    send_padded(probe, numbers, 1);
}

/// The same with so many rows of 4000 bytes beside each.
fn send_padded(probe: &mut Probe, numbers: std::ops::RangeInclusive<u64>, padding: usize) {
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
        let long = TaskRow { task: "x".repeat(4000), ..row.clone() };
        report.rows = std::iter::once(row).chain(std::iter::repeat_n(long, padding)).collect();
        probe.bytes(n, &[], &serde_json::to_vec(&report).unwrap());
    }
    probe.until_taken(last);
}

#[test]
fn what_comes_while_clickhouse_is_away_waits_and_beyond_the_buffer_the_oldest_go() {
    serve_if_told();
    let Some(mut server) = ClickHouse::start(TEST) else { return };
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

/// Number of each batch and of the block with which it came to ClickHouse, by number.
fn blocks(server: &ClickHouse) -> Vec<(u64, u64)> {
    // A part is named by its partition, its first and its last block, and how often it was merged.
    let question = "SELECT sequence, splitByChar('_', _part)[-3] FROM rows WHERE task = 'numbered' \
                    ORDER BY sequence FORMAT TSV";
    let answer = server.ask_in("away", question).unwrap();
    let line = |line: &str| {
        let (number, block) = line.split_once('\t').unwrap();
        (number.parse().unwrap(), block.parse().unwrap())
    };
    answer.lines().map(line).collect()
}

#[test]
fn what_waited_is_sent_oldest_first_and_counted() {
    serve_if_told();
    let Some(mut server) = ClickHouse::start(ORDERED) else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = format!("store = \"{}\"\nstore_buffer = \"40MiB\"\n{TWO}", server.place("away"));
    let collector = start(folder.path(), &text);
    let mut probe = Probe::join(collector.address, "a");
    send(&mut probe, 1..=5);
    await_metric(&collector, "store_waiting_rows", |rows| rows == 0);
    server.ask_in("away", "SYSTEM STOP MERGES").unwrap();

    server.stop();
    // More than the buffer holds, which is more than goes into one insert.
    send_padded(&mut probe, 6..=155, 100);
    await_metric(&collector, "store_up", |up| up == 0);
    let given_up = metric(&collector, "store_given_up_rows_total");
    assert_eq!(given_up + metric(&collector, "store_waiting_rows"), 150 * 102);
    assert!(given_up > 0);
    server.restart(ORDERED);
    server.ask_in("away", "SYSTEM STOP MERGES").unwrap();
    await_metric(&collector, "store_waiting_rows", |rows| rows == 0);
    assert_eq!(metric(&collector, "store_given_up_rows_total"), given_up);

    let blocks = blocks(&server);
    let numbers: Vec<u64> = blocks.iter().map(|(number, _)| *number).collect();
    let first = numbers[5];
    assert_eq!(numbers, (1..=5).chain(first..=155).collect::<Vec<u64>>(), "the oldest went, and no other");
    let count = |table: &str| -> u64 {
        let question = format!("SELECT count() FROM {table} WHERE sequence > 5");
        server.ask_in("away", &question).unwrap().trim().parse().unwrap()
    };
    assert_eq!(count("rows") + count("reports") + given_up, 150 * 102, "each came once or is counted");
    let later = blocks.iter().filter(|(number, _)| *number >= first);
    let later: Vec<u64> = later.map(|(_, block)| *block).collect();
    assert!(later.is_sorted(), "older rows came in earlier blocks: {blocks:?}");
    assert!(later.first() < later.last(), "they came in several: {blocks:?}");
    collector.end();
}

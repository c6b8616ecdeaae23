use std::time::Duration;

use netaware_collector::Config;
use netaware_io::clock;
use netaware_record::passive::{DelayRow, PacketSighting, Period};
use netaware_units::{Span, Wall};
use serde_json::Value;

use super::probe::{Probe, seen};
use super::{Running, TWO, start};

const SECOND: i64 = 1_000_000_000;

/// Whole seconds of the recent past.
pub(crate) fn periods(count: i64) -> Vec<Period> {
    periods_ago(count, 0)
}

/// Whole seconds, the last of which ended so many seconds ago.
pub(crate) fn periods_ago(count: i64, ago: i64) -> Vec<Period> {
    let now = (clock::wall().0 / SECOND - ago) * SECOND;
    (0..count)
        .map(|n| Period {
            from: Wall(now - (count - n) * SECOND),
            until: Wall(now - (count - n - 1) * SECOND),
        })
        .collect()
}

/// Sums over the rows from `a` to `b`: packets, matched, lost, unobserved.
pub(crate) fn sums(collector: &Running) -> [u64; 4] {
    rows_between(collector, "a", "b")
}

/// The same of any two points.
pub(crate) fn rows_between(collector: &Running, from: &str, to: &str) -> [u64; 4] {
    let rows = rows_of(collector, &format!("{from},{to}"));
    let sum = |of: fn(&DelayRow) -> u64| rows.iter().map(|(_, row)| of(row)).sum();
    [sum(|row| row.packets), sum(|row| row.matched), sum(|row| row.lost), sum(|row| row.unobserved)]
}

/// The rows from `a` to `b`.
pub(crate) fn rows(collector: &Running) -> Vec<DelayRow> {
    rows_of(collector, "a,b").into_iter().map(|(_, row)| row).collect()
}

/// The rows of a pair, with the beginning of their period.
pub(crate) fn rows_of(collector: &Running, pair: &str) -> Vec<(i64, DelayRow)> {
    let page = collector.ask(&format!("/api/v1/delays?from=-4h&pair={pair}"));
    let items = page["items"].as_array().unwrap();
    let row = |item: &Value| serde_json::from_value(item["row"].clone()).unwrap();
    items.iter().map(|item| (item["period"]["from"].as_i64().unwrap(), row(item))).collect()
}

/// Asks until the rows say what is awaited, and has the joins settle whatever they hold beside it;
/// returns what the rows say in the end. A count that only passes through the awaited one is not
/// returned for it.
pub(crate) fn awaited(collector: &Running, want: [u64; 4]) -> [u64; 4] {
    awaited_of(&[collector], want)
}

/// The same of what several collectors say together.
pub(crate) fn awaited_of(collectors: &[&Running], want: [u64; 4]) -> [u64; 4] {
    let added = || {
        let each = collectors.iter().map(|collector| sums(collector));
        each.fold([0; 4], |sum, one| std::array::from_fn(|at| sum[at] + one[at]))
    };
    let until = clock::now() + Span::from_secs(15);
    loop {
        let sums = added();
        if sums == want {
            break;
        }
        // What was not settled by itself must not be settled by force.
        if clock::now() > until {
            return sums;
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    for collector in collectors {
        settle_all(collector);
    }
    added()
}

/// Takes the joins out of the configuration, so that they give all they hold, and puts them back.
/// What they gave is stored before the collector looks for the second change.
fn settle_all(collector: &Running) {
    let client = collector.client();
    let before = client.ask("GET", "/api/v1/config", "").unwrap().body;
    let mut without = Config::read(&before).unwrap();
    without.joins.clear();
    for (text, joins) in [(without.to_toml().unwrap(), 0), (before, 1)] {
        let answer = client.ask("PUT", "/api/v1/config", &text).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        let until = clock::now() + Span::from_secs(15);
        while collector.ask("/api/v1/joins").as_array().unwrap().len() != joins {
            assert!(clock::now() < until, "not {joins} joins within 15 s");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

#[test]
fn delay_and_loss_of_packets_that_two_probes_saw_are_exact() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let (mut a, mut b) = (Probe::join(collector.address, "a"), Probe::join(collector.address, "b"));
    for (place, period) in periods(6).into_iter().enumerate() {
        let packet = |n: u64| place as u64 * 1000 + n;
        let at = |n: u64| period.from.0 + 100_000_000 + n as i64 * 100_000;
        let sent: Vec<PacketSighting> = (0..1000).map(|n| seen(packet(n), at(n), 64)).collect();
        // Every tenth is lost in the two periods in the middle; that the other point watched has to
        // be known for as long before and after as a packet may take and clocks may differ: 1.5 s.
        let inner = place == 2 || place == 3;
        let come = (0..1000).filter(|n| !inner || n % 10 != 0);
        let come: Vec<PacketSighting> = come.map(|n| seen(packet(n), at(n) + 376_000, 63)).collect();
        let sequence = place as u64 + 1;
        a.batch(sequence, period, &sent);
        b.batch(sequence, period, &come);
        a.until_taken(sequence);
        b.until_taken(sequence);
    }
    let sums = awaited(&collector, [6000, 5800, 200, 0]);
    assert_eq!(sums, [6000, 5800, 200, 0]);
    let page = collector.ask("/api/v1/delays?from=-1h&pair=a,b&resolution=36500d");
    let items = page["items"].as_array().unwrap();
    let mean: Vec<i64> = items.iter().map(|item| item["mean"].as_i64().unwrap()).collect();
    assert!(mean.iter().all(|mean| (375_000..=377_000).contains(mean)), "{mean:?}");
    assert_eq!(items[0]["row"]["delay"]["min"], 376_000);
    let metrics = collector.client().ask("GET", "/metrics", "").unwrap().body;
    let line = metrics
        .lines()
        .find(|line| line.starts_with("netaware_path_lost_total") && line.contains(r#"from="a""#));
    assert!(line.is_some_and(|line| line.ends_with(" 200")), "{line:?}");
    assert!(
        metrics.contains("netaware_path_delay_seconds_bucket{le=\"0.0005\"") && metrics.ends_with("# EOF\n")
    );
}

#[test]
fn what_the_capture_of_either_point_lost_is_said_of_their_delays() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let (mut a, mut b) = (Probe::join(collector.address, "a"), Probe::join(collector.address, "b"));
    let periods = periods(8);
    for (place, period) in periods.iter().enumerate() {
        let at = |n: u64| period.from.0 + 100_000_000 + n as i64 * 100_000;
        let packets = |delay: i64, ttl| -> Vec<PacketSighting> {
            (0..100).map(|n| seen(place as u64 * 1000 + n, at(n) + delay, ttl)).collect()
        };
        let sequence = place as u64 + 1;
        for (probe, loses_at, seen) in [(&mut a, 2, packets(0, 64)), (&mut b, 5, packets(250_000, 63))] {
            let mut told = probe.report(sequence, *period, 100);
            told.captures[0].health.lost_ring = if place == loses_at { place as u64 * 7 } else { 0 };
            probe.bytes(sequence, &seen, &serde_json::to_vec(&told).unwrap());
            probe.until_taken(sequence);
        }
    }
    assert_eq!(awaited(&collector, [800, 800, 0, 0]), [800, 800, 0, 0], "what was seen at both is known");
    let warned: Vec<(usize, Vec<String>)> = rows_of(&collector, "a,b")
        .into_iter()
        .filter(|(_, row)| !row.warnings.is_empty())
        .map(|(from, row)| (periods.iter().position(|it| it.from.0 == from).unwrap(), row.warnings))
        .collect();
    let said = |place, what: &str| (place, vec![what.to_owned()]);
    assert_eq!(
        warned,
        [said(2, "'a' lost 14 packets in its capture"), said(5, "'b' lost 35 packets in its capture")]
    );
    let page = collector.ask("/api/v1/delays?from=-1h&pair=a,b&resolution=36500d");
    let all = page["items"][0]["row"]["warnings"].to_string();
    assert!(all.contains("'a' lost 14") && all.contains("'b' lost 35"), "of all times together: {all}");
    let metrics = collector.client().ask("GET", "/metrics", "").unwrap().body;
    let line = |from: &str| {
        let of_it = |line: &&str| line.starts_with("netaware_path_warned_total") && line.contains(from);
        metrics.lines().find(of_it).and_then(|line| line.rsplit(' ').next())
    };
    assert_eq!(line(r#"from="a""#), Some("2"), "{metrics}");
}

//! `/metrics` in both forms, of delays that a probe reported.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use netaware_io::clock;
use netaware_record::passive::{DelayRow, DelayStatistics, Row, TaskRow};
use netaware_units::Span;
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model::MetricFamily;
use prost::Message;
use serde_json::Value;

use super::joined::periods;
use super::probe::{Probe, report};
use super::{TWO, start};

const MESSAGES: &str =
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

/// Head and body.
pub(crate) fn scrape(address: SocketAddr, accept: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAccept: {accept}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let body = bytes.split_off(head);
    (String::from_utf8(bytes).unwrap(), body)
}

fn families(mut body: &[u8]) -> Vec<MetricFamily> {
    let mut families = Vec::new();
    while !body.is_empty() {
        families.push(MetricFamily::decode_length_delimited(&mut body).unwrap());
    }
    families
}

/// 100 delays around 1 ms, 10 of 1 s exactly, one of a minute, and two that only clocks can make.
fn delays() -> DelayStatistics {
    let mut delay = DelayStatistics::default();
    let of = |count, ns| std::iter::repeat_n(Span(ns), count);
    for ns in
        of(100, 1_010_000).chain(of(10, 1_000_000_000)).chain(of(1, 60_000_000_000)).chain(of(2, -5_000))
    {
        delay.observe(ns);
    }
    delay
}

pub(crate) fn row(delay: DelayStatistics) -> DelayRow {
    DelayRow {
        from: "a".into(),
        to: "b".into(),
        version: None,
        method: "active".into(),
        packets: delay.count,
        matched: delay.count,
        lost: 0,
        unobserved: 0,
        late: 0,
        duplicates: 0,
        reordered: 0,
        collisions: 0,
        given_up: 0,
        patience: Span::from_secs(1),
        delay,
        ipdv: DelayStatistics::default(),
        offset: Span::ZERO,
        clock_bound: None,
        clock_method: "same_host".into(),
        below_bound: 0,
        warnings: Vec::new(),
    }
}

#[test]
fn text_has_classic_buckets_and_messages_have_native_ones_of_the_same_delays() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let mut probe = Probe::join(collector.address, "a");
    let period = periods(1)[0];
    let mut report = report("a", 1, period, 0);
    report.rows.push(TaskRow::new("owd", period, Row::Delay(Box::new(row(delays())))));
    probe.bytes(1, &[], &serde_json::to_vec(&report).unwrap());
    probe.until_taken(1);
    // What is taken is in the store; the totals follow at once.
    let until = clock::now() + Span::from_secs(10);
    let text = loop {
        let (head, body) = scrape(collector.address, "*/*");
        let text = String::from_utf8(body).unwrap();
        assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
        if text.contains("netaware_path_delay_seconds_bucket") {
            break text;
        }
        assert!(clock::now() < until, "{text}");
        clock::sleep(Span::from_millis(20));
    };
    let bucket = |le: &str| {
        let line = text.lines().find(|line| {
            line.starts_with("netaware_path_delay_seconds_bucket") && line.contains(&format!("le=\"{le}\""))
        });
        line.and_then(|line| line.rsplit(' ').next()).and_then(|count| count.parse::<u64>().ok())
    };
    assert_eq!(
        (bucket("0.001"), bucket("0.002"), bucket("1.0"), bucket("10.0"), bucket("+Inf")),
        (Some(2), Some(102), Some(112), Some(112), Some(113)),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));
    let (head, body) = scrape(collector.address, &format!("{MESSAGES},text/plain;q=0.5"));
    assert!(
        head.contains("application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily"),
        "{head}"
    );
    let families = families(&body);
    let family = families.iter().find(|family| family.name == "netaware_path_delay_seconds").unwrap();
    let histogram = family.metric[0].histogram.as_ref().unwrap();
    assert_eq!((histogram.schema, histogram.sample_count, histogram.zero_count), (3, 113, 2));
    let (mut at, mut count, mut native) = (0, 0, Vec::new());
    let mut deltas = histogram.positive_delta.iter();
    for span in &histogram.positive_span {
        at += span.offset;
        for _ in 0..span.length {
            count += deltas.next().unwrap();
            // The upper end, in ms.
            native.push((((f64::from(at) / 8.0).exp2() * 1e3) as u64, count));
            at += 1;
        }
    }
    // 2^(-79/8) s = 1.06 ms; 1 s is an end itself; 2^(48/8) s = 64 s.
    assert_eq!(native, [(1, 100), (1000, 10), (64_000, 1)]);
    let classic = histogram.bucket.last().unwrap();
    assert_eq!((classic.cumulative_count, classic.upper_bound), (113, f64::INFINITY));
    let own = families.iter().find(|family| family.name == "netaware_collector_connections_total");
    assert!(own.is_some(), "{:?}", families.iter().map(|family| &family.name).collect::<Vec<_>>());
}

#[test]
fn what_captures_lost_is_counted_by_cause_and_adds_up_over_reports() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let mut probes = ["a", "b"].map(|name| Probe::join(collector.address, name));
    for (place, period) in (1_u64..).zip(periods(2)) {
        let mut told = report("a", place, period, 10);
        // Two captures, one of which says nothing of its card.
        let mut second = told.captures[0].clone();
        let health = &mut told.captures[0].health;
        (health.lost_ring, health.lost_kernel, health.lost_nic) = (3, 20, Some(100 * place));
        (health.merged, health.doubtful) = (7, place == 2);
        (second.interface, second.health.lost_ring) = ("eth1".into(), 1000);
        told.captures.push(second);
        told.rows_cut.insert("volume".to_owned(), 5);
        probes[0].bytes(place, &[], &serde_json::to_vec(&told).unwrap());
        probes[0].until_taken(place);
    }
    let nothing = report("b", 1, periods(1)[0], 0);
    probes[1].bytes(1, &[], &serde_json::to_vec(&nothing).unwrap());
    probes[1].until_taken(1);
    let text = String::from_utf8(scrape(collector.address, "*/*").1).unwrap();
    let value = |name: &str, labels: &[String]| -> Option<u64> {
        let is_it = |line: &&str| line.starts_with(name) && labels.iter().all(|label| line.contains(label));
        text.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
    };
    let label = |name: &str, value: &str| format!("{name}=\"{value}\"");
    let losses = |probe: &str| {
        ["ring", "kernel", "nic", "merged"].map(|cause| {
            value("netaware_probe_losses_total{", &[label("probe", probe), label("cause", cause)])
        })
    };
    assert_eq!(losses("a"), [2006, 40, 300, 14].map(Some), "{text}");
    // Nobody has counted what its card lost.
    assert_eq!(losses("b"), [Some(0), Some(0), None, Some(0)]);
    let of =
        |name: &str, probe: &str| value(&format!("netaware_probe_{name}_total{{"), &[label("probe", probe)]);
    assert_eq!((of("doubtful_periods", "a"), of("doubtful_periods", "b")), (Some(1), Some(0)), "{text}");
    assert_eq!((of("rows_cut", "a"), of("rows_cut", "b")), (Some(10), Some(0)), "{text}");
}

/// Values of `field` anywhere in a dashboard.
fn values<'a>(value: &'a Value, field: &str, into: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name == field => into.push(text),
                    _ => values(value, field, into),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| values(value, field, into)),
        _ => {}
    }
}

#[test]
fn dashboards_ask_for_what_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let text = String::from_utf8(scrape(collector.address, "*/*").1).unwrap();
    let mut served = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let ends: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["", "_bucket", "_sum", "_count"],
            _ => &[""],
        };
        served.extend(ends.iter().map(|end| format!("{name}{end}")));
    }
    for board in ["paths", "probes"] {
        let file =
            format!("{}/../../../packaging/grafana/{board}-prometheus.json", env!("CARGO_MANIFEST_DIR"));
        let board: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let mut asked = Vec::new();
        values(&board, "expr", &mut asked);
        assert!(asked.len() >= 8, "{file}: {}", asked.len());
        values(&board, "definition", &mut asked);
        for expression in asked {
            let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for name in words.filter(|word| word.starts_with("netaware_")) {
                assert!(served.contains(name), "{file}: {name} is not served");
            }
        }
    }
}

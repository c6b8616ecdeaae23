//! The slope of latency against size, where the rates of the links are known.

use std::collections::BTreeMap;

use netaware_probe::Pacing;
use netaware_probe::size_fit::{Grows, meaning, size_fit};
use netaware_record::{IpVersion, Record, SeriesKind, SeriesPoint};
use netaware_sim::Scenario;
use netaware_sim::methods::{self, LatencyAsk, Method};
use netaware_stats::patience::Waiting;
use netaware_units::Span;
use uuid::Uuid;

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// A scan in steps of 16 bytes up to what one packet carries over both versions.
fn scan(scenario: &Scenario, grows: Grows, method: impl Fn(u32, u32) -> LatencyAsk) -> Vec<Record> {
    let sizes: Vec<u32> = (64..=1448).step_by(16).collect();
    let name = match grows {
        Grows::Request => "request",
        Grows::Response => "response",
        Grows::Both => "length",
    };
    let record = |(index, size): (usize, &u32)| {
        let ask = match grows {
            Grows::Request => method(*size, 64),
            Grows::Response => method(64, *size),
            Grows::Both => method(*size, *size),
        };
        let seed = index as u64;
        let found: Vec<_> = VERSIONS
            .iter()
            .map(|version| methods::run(scenario, seed, *version, &Method::Latency(ask)).unwrap())
            .collect();
        let mut record = methods::record("latency", "size-slope", seed, BTreeMap::new(), &found);
        record.series = Some(SeriesPoint {
            id: Uuid::nil(),
            kind: SeriesKind::Scan,
            index: seed,
            planned: sizes.len() as u64,
            point: BTreeMap::from([(name.to_owned(), format!("{size}B"))]),
        });
        record
    };
    sizes.iter().enumerate().map(record).collect()
}

fn ping_pong(count: u64) -> impl Fn(u32, u32) -> LatencyAsk {
    move |length, response| LatencyAsk {
        count: Some(count),
        time: None,
        pacing: Pacing::PingPong,
        length,
        response,
        patience: Span::from_secs(1),
        waiting: Waiting::Exactly,
    }
}

/// 10 Mbit/s up, 100 Mbit/s down, then a link of 1 Gbit/s: 800, 80 and 8 ns for each byte.
const STAGES: &str = "about = 'x'
[[hop]]
forward = { rate = '10Mbit/s', delay = '1ms' }
reverse = { rate = '100Mbit/s', delay = '1ms' }
[[hop]]
rate = '1Gbit/s'
delay = '1ms'
";

/// Three tenths of the link of 10 and 100 Mbit/s, both ways.
const CROSS: &str = "
[[cross]]
enter = 0
pattern = 'poisson'
load = 0.3
sizes = 'imix'
[[cross]]
from = 'b'
enter = 0
pattern = 'poisson'
load = 0.3
sizes = 'imix'
";

#[test]
fn on_an_idle_path_the_slope_is_the_sum_over_its_stages() {
    let scenario = Scenario::parse(STAGES).unwrap();
    for (grows, truth) in [(Grows::Request, 808.0), (Grows::Response, 88.0), (Grows::Both, 896.0)] {
        let records = scan(&scenario, grows, ping_pong(20));
        let fits = size_fit(&records);
        assert_eq!(fits.iter().map(|fit| fit.version).collect::<Vec<_>>(), VERSIONS);
        for fit in fits {
            assert_eq!(fit.grows, grows);
            for line in [fit.median, fit.smallest] {
                let within = line.interval.unwrap();
                assert!((line.slope - truth).abs() < 0.01, "{grows:?}: {line:?}");
                assert!(within.lo - 0.01 <= truth && truth <= within.hi + 0.01, "{line:?}");
                assert!(line.residual_ns < 20.0, "{line:?}");
            }
            let crossings = if grows == Grows::Both { 2.0 } else { 1.0 };
            let rate = meaning(&fit, &records[0]).one_stage.unwrap().0 as f64;
            assert!((rate / (crossings * 8e9 / truth) - 1.0).abs() < 1e-4, "{rate}");
        }
    }
}

#[test]
fn under_load_the_smallest_round_trips_keep_the_slope_that_the_medians_blur() {
    let text = format!("{STAGES}{CROSS}");
    let scenario = Scenario::parse(&text).unwrap();
    let fits = size_fit(&scan(&scenario, Grows::Response, ping_pong(200)));
    assert_eq!(fits.iter().map(|fit| fit.version).collect::<Vec<_>>(), VERSIONS);
    for fit in fits {
        let within = fit.smallest.interval.unwrap();
        assert!((fit.smallest.slope - 88.0).abs() < 1.0, "{:?}", fit.smallest);
        assert!(within.lo < 90.0 && within.hi > 86.0, "{within:?}");
        assert!(fit.median.residual_ns > fit.smallest.residual_ns);
    }
}

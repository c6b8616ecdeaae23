//! What a method said, as the record that `netaware` writes of a real measurement.

use std::collections::BTreeMap;

use netaware_record::{HostInfo, Outcome, Record, Request, SCHEMA_VERSION};
use netaware_stats::rng::SplitMix64;
use netaware_units::{Span, Wall};
use uuid::{Builder, Uuid};

use super::Found;

/// The record of one run over one or two IP versions. It says that it is simulated, begins in 1970,
/// and is the same for the same seed to the last byte: its id is drawn from the seed and the names.
pub fn record(
    command: &str,
    scenario: &str,
    seed: u64,
    options: BTreeMap<String, String>,
    found: &[Found],
) -> Record {
    let host = |name: &str| HostInfo {
        name: name.to_owned(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        ..HostInfo::default()
    };
    let mut record = Record {
        schema: SCHEMA_VERSION,
        id: id_of(seed, &[command, scenario]),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
        started_at: Wall(0),
        started_at_utc: "1970-01-01T00:00:00.000Z".to_owned(),
        elapsed: found.iter().map(|found| found.elapsed).sum::<Span>(),
        outcome: Outcome::Complete,
        request: Request { host: scenario.to_owned(), options, ..Request::default() },
        label: None,
        series: None,
        prober: host("simulated host a"),
        responder: Some(host("simulated host b")),
        versions: found.iter().map(|found| found.result.clone()).collect(),
        comparison: None,
        ability: None,
        expectations: Vec::new(),
        warnings: vec!["simulated: no packet left this host, and both hosts are ideal".to_owned()],
    };
    // The rule for records does not know the search for a path MTU, which has found one or has not.
    let mut paths = record.versions.iter().filter_map(|version| version.path.as_ref());
    if paths.all(|path| path.mtu.is_none()) {
        record.settle();
    }
    record
}

fn id_of(seed: u64, words: &[&str]) -> Uuid {
    let mix = |state, byte| SplitMix64::new(state ^ u64::from(byte)).next_u64();
    let mut rng = SplitMix64::new(words.iter().flat_map(|word| word.bytes()).fold(seed, mix));
    let mut random = [0; 10];
    for byte in &mut random {
        *byte = rng.next_u64() as u8;
    }
    Builder::from_unix_timestamp_millis(0, &random).into_uuid()
}

#[cfg(test)]
mod tests {
    use netaware_netmodel::Scenario;
    use netaware_record::IpVersion;
    use netaware_stats::patience::Waiting;

    use super::*;
    use crate::methods::{LatencyAsk, Method, Pacing, run};

    const BLACK_HOLE: &str = "about = 'IPv6 is swallowed'\n[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n\
                              [[hop]]\nrate = '100Mbit/s'\ndelay = '6ms'\nv6 = { black_hole = true }\n";

    fn outcome(method: &Method, versions: &[IpVersion]) -> Outcome {
        let scenario = Scenario::parse(BLACK_HOLE).unwrap();
        let found = versions.iter().map(|version| run(&scenario, 1, *version, method).unwrap());
        let found: Vec<Found> = found.collect();
        record(method.name(), "black-hole", 1, BTreeMap::new(), &found).outcome
    }

    /// Five of five requests were lost, and the outcome was `complete`.
    #[test]
    fn what_nobody_answered_is_not_complete() {
        let latency = Method::Latency(LatencyAsk {
            count: Some(5),
            time: None,
            pacing: Pacing::Even(Span::from_millis(10)),
            length: 64,
            response: 64,
            patience: Span::from_secs(1),
            waiting: Waiting::Exactly,
        });
        for method in [latency, Method::PathMtu] {
            let name = method.name();
            assert_eq!(outcome(&method, &[IpVersion::V6]), Outcome::Failed, "{name}");
            assert_eq!(outcome(&method, &[IpVersion::V4]), Outcome::Complete, "{name}");
            assert_eq!(outcome(&method, &[IpVersion::V4, IpVersion::V6]), Outcome::Complete, "{name}");
        }
    }
}

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
    Record {
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
    }
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

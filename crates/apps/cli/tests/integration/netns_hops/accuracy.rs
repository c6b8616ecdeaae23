//! How near the rates of hops are to the truth, with the emulator at its best.

use netaware_record::RateBound;

use super::*;

/// Holds each rate to `tolerance`, and returns what else is asked of each version.
fn reads(
    change: impl Fn(usize) -> &'static str,
    arguments: &[&str],
    tolerance: f64,
    of: impl Fn(&HopsResult),
) {
    if !permitted() {
        return;
    }
    let (ended, report) = in_lab(&path(change), &[&["hops", "b"], arguments].concat(), 0);
    let record = ended.record();
    let mut off = Vec::new();
    for version in VERSIONS {
        let found = over(&record, version);
        println!("{}: {} packets, {} in {}", version.name(), found.packets, found.bytes, found.took);
        of(found);
        let hops = found.hops.iter().zip(RATES);
        off.extend(hops.filter_map(|(hop, truth)| far(hop, truth, tolerance)));
    }
    judge(&off, &report, LATE);
}

/// Why a rate is not near `truth`, Mbit/s.
fn far(hop: &Hop, truth: f64, tolerance: f64) -> Option<String> {
    let Some(capacity) = &hop.capacity else { return Some(format!("hop {} has no rate: {hop:#?}", hop.ttl)) };
    let error = capacity.rate.estimate / (truth * 1e6) - 1.0;
    let text = format!(
        "hop {} by {}: {:.3} Mbit/s [{:.3} .. {:.3}], {:+.2} % off {truth}, {} samples, {:?}",
        hop.ttl,
        capacity.way,
        capacity.rate.estimate / 1e6,
        capacity.rate.lo / 1e6,
        capacity.rate.hi / 1e6,
        error * 100.0,
        capacity.samples,
        hop.flags
    );
    println!("{text}");
    (error.abs() > tolerance || capacity.bound != RateBound::None).then_some(text)
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn every_link_the_hidden_switch_and_the_choke_point_are_found() {
    reads(
        |_| "",
        &["-t", "40s"],
        0.05,
        |found| {
            let segments = found.hops[1].capacity.as_ref().map(|it| it.segments.clone());
            assert_eq!((segments, found.choke_point), (Some(vec![1e8, 1e8]), Some(4)), "{found:#?}");
        },
    );
}

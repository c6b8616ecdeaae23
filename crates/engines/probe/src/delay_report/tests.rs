//! The report against a path that knows the truth.

use super::*;
use crate::echo::{EchoPlan, EchoTrain, Pacing};
use crate::virtual_path::{Link, VirtualPath, WAKE_UP};
use netaware_units::Mono;

const MS: Span = Span::from_millis(1);

fn context() -> Context {
    Context {
        method: "latency",
        version: IpVersion::V4,
        payload: ByteCount(64),
        spacing: MS * 5,
        patience: MS * 500,
        health: Health { late_sends: 3, ..Health::default() },
    }
}

fn round(path: &VirtualPath, count: u64) -> EchoRound {
    let pacing = Pacing::Even(MS * 5);
    let plan =
        EchoPlan { flow: 1, count: Some(count), pacing, length: 64, patience: MS * 500, start: Mono(0) };
    let mut train = EchoTrain::new(plan).unwrap();
    let mut log = EchoLog::default();
    for (_, event) in path.drive(&mut train) {
        log.observe(&event);
    }
    log.finish(train.counts())
}

#[test]
fn report_agrees_with_the_paths_truth() {
    let way = Link { jitter: MS * 2, loss: 0.02, ..Link::of(MS * 10) };
    let rounds = [1, 2]
        .map(|seed| round(&VirtualPath { forward: way, seed, ..VirtualPath::symmetric(MS * 10) }, 2000));
    let result = latency(&rounds, &context());
    let rtt = result.rtt.unwrap();
    // 20 ms plus a uniform 0 to 2 ms.
    assert!((rtt.min - MS * 20) < Span::from_micros(5) && (rtt.max - MS * 22).abs() < Span::from_micros(5));
    assert!((rtt.p50 - MS * 21).abs() < Span::from_micros(60), "{:?}", rtt.p50);
    assert!((rtt.sd.millis_f64() - 2.0 / 12.0_f64.sqrt()).abs() < 0.02);
    // |difference| of two uniforms has mean 1/3 of the width; PDV is the uniform itself.
    assert!((result.ipdv.unwrap().mean.millis_f64() - 2.0 / 3.0).abs() < 0.03);
    assert!((result.pdv.unwrap().mean.millis_f64() - 1.0).abs() < 0.03);
    assert!((result.jitter.millis_f64() - 2.0 / 3.0).abs() < 0.4);
    assert_eq!(result.responder.unwrap().max, Span::from_micros(30));
    let above = result.rtt_application.unwrap().p50 - rtt.p50;
    assert!((above - Span::from_micros(32) - WAKE_UP).abs() < Span::from_micros(5), "{above:?}");
    assert_eq!((result.sent, result.received + result.lost), (4000, 4000));
    assert!((50..120).contains(&result.lost), "{}", result.lost);
    assert_eq!((result.pedigree.clock, result.health.late_sends), (ClockSource::Kernel, 3));
    let held: u64 = result.histogram.unwrap().bins.iter().map(|(_, count)| count).sum();
    assert_eq!(held, result.received);
}

#[test]
fn rounds_are_no_neighbours_of_each_other() {
    let rounds = [MS, MS * 100].map(|delay| round(&VirtualPath::symmetric(delay), 10));
    let result = latency(&rounds, &context());
    assert_eq!(result.ipdv.unwrap().max, Span::ZERO);
    assert_eq!(result.jitter, Span::ZERO);
    assert_eq!(result.pdv.unwrap().max, MS * 198);
    assert_eq!(rounds[0].hops(), (Some(3), Some(7)));
}

#[test]
fn nothing_answered_yields_counts_and_no_delay() {
    let deaf = VirtualPath { forward: Link { loss: 1.0, ..Link::of(MS) }, ..VirtualPath::symmetric(MS) };
    let result = latency(&[round(&deaf, 10)], &context());
    assert_eq!((result.sent, result.lost, result.received), (10, 10, 0));
    assert_eq!((result.rtt, result.ipdv, result.histogram.is_none()), (None, None, true));
    assert_eq!(under_load(result, None).round_trips_per_minute, None);
}

#[test]
fn load_shows_as_rise_and_fewer_round_trips_per_minute() {
    let [idle, loaded] =
        [MS * 5, MS * 50].map(|delay| latency(&[round(&VirtualPath::symmetric(delay), 50)], &context()));
    let loaded = under_load(loaded, Some(&idle));
    assert_eq!(loaded.rise, Some(MS * 90));
    assert!((loaded.round_trips_per_minute.unwrap() - 600.0).abs() < 1e-9);
}

#[test]
fn variation_blocks_see_the_spread_and_drop_a_short_rest() {
    let way = Link { jitter: MS * 2, ..Link::of(MS * 10) };
    let round = round(&VirtualPath { forward: way, ..VirtualPath::symmetric(MS) }, 208);
    let blocks = round.variation_blocks_ns();
    assert_eq!(blocks.len(), 10);
    assert!(blocks.iter().all(|spread| (1e6..2e6).contains(spread)), "{blocks:?}");
}

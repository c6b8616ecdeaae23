//! Paths that lose, jitter or police.

use netaware_lab::Side;
use netaware_netns::permitted;
use netaware_record::Direction;
use netaware_units::Span;

use super::super::measured::{over, over_text, over_within};
use super::ledger::{Ledger, VERSIONS};

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn one_in_a_hundred_lost_is_read_as_such() {
    if !permitted() {
        return;
    }
    // UDP at a rate of its own: what TCP reaches with this loss is its own affair.
    let path = "[[hop]]\nrate = '50Mbit/s'\ndelay = '10ms'\nloss = '1%'\n";
    let run = over_text("1 % of loss", path, &["-t", "10s", "-b", "20Mbit/s", "-l", "500"]);
    let mut ledger = Ledger::of(&run);
    let (mut lost, mut sent) = (0, 0);
    for version in VERSIONS {
        ledger.hops(version);
        ledger.idle_rtt(version, Span::ZERO);
        ledger.note(run.version(version).udp.len() == 2, "both directions have a stream");
        for udp in &run.version(version).udp {
            let what = format!("{} UDP loss {}", version.name(), udp.pedigree.direction.name());
            match udp.loss.ratio {
                Some(ratio) => ledger.contains(&what, ratio, 0.01),
                None => ledger.note(false, &format!("{what}: {:?}", udp.loss)),
            }
            ledger.note(udp.loss.host == Some(0), &format!("{what}: dropped by a host: {:?}", udp.loss));
            (lost, sent) = (lost + udp.loss.lost, sent + udp.sent);
        }
    }
    let (mean, n) = (sent as f64 * 0.01, sent as f64);
    let half = 2.576 * (n * 0.01 * 0.99).sqrt();
    let right = (lost as f64 - mean).abs() <= half;
    ledger.note(right, &format!("all: {lost} of {sent}; {mean:.0} ± {half:.0} expected (99 %)"));
    ledger.close();
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn jitter_like_that_of_lte_is_seen_and_does_not_move_the_least_round_trip() {
    if !permitted() {
        return;
    }
    // The grid of its jitter is 1 ms, and so is the time within which a burst has to be out.
    let run = over_within(Span::from_millis(1), "lte", &["-t", "20s"]);
    let mut ledger = Ledger::of(&run);
    for version in VERSIONS {
        ledger.hops(version);
        // Exponential jitter of 4 and 2 ms on a grid of 1 ms in both directions: the least of 200
        // is within some steps.
        ledger.idle_rtt(version, Span::from_millis(4));
        let rtt = run.version(version).latency.as_ref().and_then(|it| it.rtt).unwrap_or_default();
        let base = run.scenario.base_rtt(version, 100).unwrap_or_default();
        // Means of 4 and 2 ms, and half a millisecond of waiting for each grid, if not cut.
        let excess = rtt.mean - base;
        let right = excess > Span::from_millis(4) && excess < Span::from_millis(11);
        ledger.note(right, &format!("{} mean excess {excess}; truth about 7 ms", version.name()));
        ledger.rates(version);
    }
    ledger.close();
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn policer_is_never_read_above_its_rate() {
    if !permitted() {
        return;
    }
    let run = over("policer", &["-t", "10s"]);
    let mut ledger = Ledger::of(&run);
    for version in VERSIONS {
        ledger.hops(version);
        ledger.idle_rtt(version, Span::ZERO);
        ledger.note(run.version(version).tcp.len() == 4, "one stream and several, both ways");
        for tcp in &run.version(version).tcp {
            let direction = tcp.pedigree.direction;
            let from = if direction == Direction::Forward { Side::A } else { Side::B };
            let truth = run.payload_rate(from, version);
            // Its credit of 100 kB is 16 ms at that rate: some 2 % on top of a round of a second. A
            // TCP that is not made for policers stays below.
            let estimate = tcp.goodput.unwrap_or_default().0 as f64;
            let lo = tcp.goodput_interval.map_or(estimate, |interval| interval.lo);
            let what = format!("{} TCP {} x{}", version.name(), direction.name(), tcp.streams);
            let right = lo <= truth * 1.005 && estimate <= truth * 1.03 && estimate > truth * 0.3;
            ledger.note(right, &format!("{what}: {estimate:.4e}, at least {lo:.4e}; policer {truth:.4e}"));
        }
    }
    ledger.close();
}

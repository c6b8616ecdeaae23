//! A receiver that takes nothing for a while, once, in a short run of each method: no figure may be
//! wrong without a flag. The same for the load searches is among their own tests.

use netaware_stats::interval::Interval;
use netaware_units::Span;

use super::fifo::{Path, Traffic, instrument};
use super::{Automatic, Chirp, Curve, Slops, Spruce};
use crate::capacity::{self, Bulk, Pathrate, PathrateRules};
use crate::{Bound, Estimate, Estimator, Instrument};

const CAPACITY: f64 = 4e7;
const AVAILABLE: f64 = 2.4e7;

/// Each method, and what it should find.
fn methods(short: &Instrument) -> [(&'static str, f64, Box<dyn Estimator>); 8] {
    let known = Interval { estimate: CAPACITY, lo: CAPACITY * 0.99, hi: CAPACITY * 1.01, confidence: 0.95 };
    [
        ("curve", AVAILABLE, Box::new(Curve::new(short))),
        ("slops", AVAILABLE, Box::new(Slops::new(short))),
        ("chirp", AVAILABLE, Box::new(Chirp::new(short))),
        ("spruce", AVAILABLE, Box::new(Spruce::new(short, known, 1))),
        ("available", AVAILABLE, Box::new(Automatic::new(short))),
        ("bulk", CAPACITY, Box::new(Bulk::new(short, 1))),
        ("pathrate", CAPACITY, Box::new(Pathrate::new(short, PathrateRules::default(), 1))),
        ("capacity", CAPACITY, Box::new(capacity::Automatic::new(short, 1))),
    ]
}

/// By a fifth, or by half a width beyond its interval.
fn is_wrong(answer: &Estimate, truth: f64) -> bool {
    let Interval { estimate, lo, hi, .. } = answer.rate;
    let half = (hi - lo) / 2.0;
    match answer.bound {
        Bound::None => (estimate / truth - 1.0).abs() > 0.2 && !(lo - half..=hi + half).contains(&truth),
        Bound::AtLeast => lo > truth * 1.05,
        Bound::AtMost => hi < truth * 0.95,
    }
}

#[test]
fn one_stall_of_the_receiver_makes_no_method_mislead() {
    let short = Instrument { time_limit: Span::from_secs(3), ..instrument(CAPACITY) };
    let mut answers = 0;
    for (tenth, ms) in (0..30).flat_map(|tenth| [5, 20, 60, 120].map(|ms| (tenth, ms))) {
        for (name, truth, mut method) in methods(&short) {
            let mut path = Path::single(CAPACITY, 0.4, Traffic::Even, 1);
            path.stall_after(f64::from(tenth) * 1e8, f64::from(ms) * 1e6);
            let Some(answer) = path.run(method.as_mut()).answer else { continue };
            let misleads = is_wrong(&answer, truth) && answer.flags.is_empty();
            assert!(!misleads, "{name}, stalled {ms} ms after {tenth} tenths of a second: {answer:?}");
            answers += 1;
        }
    }
    assert!(answers > 900, "only {answers} of 960 runs have a figure");
}

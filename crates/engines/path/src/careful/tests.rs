use netaware_stats::interval::Interval;

use super::*;
use crate::available::fifo::{Path, Traffic, instrument};
use crate::capacity::Bulk;

fn answer(bound: Bound, estimate: f64, lo: f64, hi: f64) -> Estimate {
    Estimate {
        rate: Interval { estimate, lo, hi, confidence: 0.9 },
        bound,
        method: "made up",
        bytes: 0,
        packets: 0,
        took: Span::ZERO,
        flags: Vec::new(),
    }
}

#[test]
fn a_bound_of_zero_is_no_answer() {
    let rows = [
        (Bound::AtMost, 0.0, 0.0, 0.0),
        (Bound::AtMost, 0.0, -5e6, -1e6),
        (Bound::AtMost, 1.0, 0.0, f64::INFINITY),
        (Bound::AtLeast, 1e6, 0.0, 2e6),
        (Bound::AtLeast, 1e6, -1.0, 2e6),
        (Bound::None, 0.0, 0.0, 0.0),
        (Bound::None, f64::NAN, 1.0, 2.0),
    ];
    for (bound, estimate, lo, hi) in rows {
        assert_eq!(sound(answer(bound, estimate, lo, hi)), None, "{bound:?} {estimate} {lo} {hi}");
    }
    let open = sound(answer(Bound::None, 1e6, -1e6, 3e6)).unwrap();
    assert_eq!(
        (open.bound, open.rate.lo.to_bits(), open.rate.hi.to_bits()),
        (Bound::AtMost, 0, 3e6_f64.to_bits())
    );
    assert_eq!(sound(answer(Bound::AtMost, 1e6, 0.0, 2e6)), Some(answer(Bound::AtMost, 1e6, 0.0, 2e6)));
}

fn bulk(limit: Span) -> Careful {
    let host = Instrument { time_limit: limit, ..instrument(1e8) };
    Careful::new(&host, Bulk::NEEDS, |host| Box::new(Bulk::new(host, 1)))
}

#[test]
fn whoever_has_no_figure_has_a_reason() {
    let mut dead = Path::single(1e8, 0.0, Traffic::Even, 1);
    dead.loss = 1.1;
    let mut careful = bulk(Span::from_secs(10));
    dead.run(&mut careful);
    assert!(matches!(careful.conclusion(), Err(NoFigure::NothingCame { packets: 1.. })), "{careful:?}");
    let mut slow = Path::single(1e5, 0.0, Traffic::Even, 1);
    let mut careful = bulk(Span::from_secs(10));
    slow.run(&mut careful);
    let Err(NoFigure::TooShort { carried: Some(rate), enough: Some(enough) }) = careful.conclusion() else {
        panic!("{:?}", careful.conclusion());
    };
    assert!((rate / 1e5 - 1.0).abs() < 0.1 && enough > Span::from_secs(10), "{rate} {enough}");
    let stopped = bulk(Span::from_secs(10));
    assert_eq!(stopped.conclusion(), Err(NoFigure::Stopped));
}

#[test]
fn a_method_behind_first_trains_finds_what_it_finds_without() {
    let mut path = Path::single(1e8, 0.3, Traffic::Poisson, 1);
    let outcome = path.run(&mut bulk(Span::from_secs(10)));
    let answer = outcome.answer.unwrap();
    assert!((answer.rate.estimate / 1e8 - 1.0).abs() < 0.02, "{answer:?}");
    assert!((outcome.bits - answer.bytes as f64 * 8.0).abs() < 1.0, "first trains count: {answer:?}");
}

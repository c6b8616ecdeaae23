//! Any numbers in any order: the sums of a sequence tracker stay true.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_stats::sequence::{SequenceCounts, SequenceTracker};

#[derive(Debug, arbitrary::Arbitrary)]
struct Arrivals {
    first: u64,
    sent: Option<u64>,
    steps: Vec<Step>,
}

/// Mostly near the present number, as on a real path.
#[derive(Debug, arbitrary::Arbitrary)]
enum Step {
    Next,
    Near(i8),
    Far(i32),
    Anywhere(u64),
    Run(u16),
}

fuzz_target!(|arrivals: Arrivals| {
    let mut tracker = SequenceTracker::starting_at(arrivals.first);
    let (mut number, mut seen) = (arrivals.first, 0_u64);
    for step in &arrivals.steps {
        let run = if let Step::Run(length) = step { *length } else { 1 };
        for _ in 0..run {
            number = follow(number, step);
            tracker.observe(number);
        }
        seen += u64::from(run);
        check(tracker.counts(), seen);
    }
    let report = tracker.finish(arrivals.sent);
    check(report.counts, seen);
    assert!(report.lost >= report.counts.missing);
    assert!(report.loss_runs.count() <= report.lost);
    assert_eq!(report.reorder_extents.count(), report.counts.reordered);
    assert_eq!(report.reorder_distances.count(), report.counts.reordered);
});

fn follow(number: u64, step: &Step) -> u64 {
    match step {
        Step::Next | Step::Run(_) => number.wrapping_add(1),
        Step::Near(by) => number.wrapping_add_signed(i64::from(*by)),
        Step::Far(by) => number.wrapping_add_signed(i64::from(*by)),
        Step::Anywhere(to) => *to,
    }
}

fn check(counts: SequenceCounts, seen: u64) {
    assert_eq!(counts.received + counts.duplicates + counts.late + counts.rejected, seen);
    assert!(counts.reordered <= counts.received);
    assert_eq!(counts.highest.is_some(), counts.received > 0);
}

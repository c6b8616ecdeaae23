//! Judges figures whose truth is known.
//!
//! Two rules. A figure may be wrong, but never without saying so: see [`misleads`]. And what
//! depends on the machine's time is judged only in a lab that was itself on time: see [`judge`].

use netaware_lab::Report;
use netaware_record::{Interval, PathRate, RateBound};
use netaware_units::Span;

use crate::inconclusive;

/// Returns why a rate misleads its reader; `None` if it does not.
///
/// A rate is honest if one of its `doubts` (flags that say why it may be wrong) is there, if it is
/// within a fifth of `truth`, or if its own interval allows the truth. Intervals that claim 95 %
/// miss now and then, by little: half of the width is added on both sides. A bound has to hold on
/// its one side.
pub fn misleads(rate: &Interval, bound: RateBound, doubts: &[String], truth: f64) -> Option<String> {
    let half = (rate.hi - rate.lo).max(0.0) / 2.0;
    let is_honest = match bound {
        RateBound::None => {
            (rate.estimate / truth - 1.0).abs() <= 0.2 || (rate.lo - half..=rate.hi + half).contains(&truth)
        }
        RateBound::AtLeast => rate.lo <= truth * 1.05,
        RateBound::AtMost => rate.hi >= truth * 0.95,
    };
    (!is_honest && doubts.iter().all(|flag| flag == HARMLESS)).then(|| {
        format!(
            "{:.4e} in {:.4e} ..= {:.4e} ({bound:?}, {doubts:?}) misleads: the truth is {truth:.4e}",
            rate.estimate, rate.lo, rate.hi
        )
    })
}

/// Whether a figure, or the lack of one, is said to be the doing of a host that others used.
pub fn has_a_busy_host(found: &PathRate) -> bool {
    found.flags.iter().any(|flag| BUSY.contains(&flag.as_str()))
}

const BUSY: [&str; 3] = ["host_busy", "host_limited", "fell_behind"];

/// This flag describes how packets arrive and expresses no doubt.
const HARMLESS: &str = "coalescing";

/// Ends a test by what was `off`: if nothing was, it has passed. Otherwise it has failed, unless
/// the lab reports that it released packets later than `bound` or lost some itself: then nothing is
/// known, and the test is inconclusive.
///
/// Call it last. Whatever must hold in every run is asserted before.
///
/// # Panics
/// If something was off although the lab was on time, or its emulator ended with an error.
#[track_caller]
pub fn judge(off: &[String], report: &Report, bound: Span) {
    if off.is_empty() {
        return;
    }
    let off = off.join("\n");
    assert_eq!(report.ended, None, "the emulator failed, which excuses nothing; {off}");
    match report.why_invalid(bound) {
        Some(why) => inconclusive(format!("{why}; {off}")),
        None => panic!("{off}\n{report}"),
    }
}

/// Whether every packet can be counted: the emulator lost none itself and wrote down what became of
/// each. Otherwise the calling test is inconclusive and must return.
pub fn is_exact(report: &Report) -> bool {
    assert_eq!(report.ended, None, "the emulator failed, which excuses nothing");
    let missing = report.truth_missing;
    let holes = (missing > 0).then(|| format!("what became of {missing} packets was not written down"));
    // Lateness moves no count.
    let why = report.why_invalid(Span(i64::MAX)).or(holes);
    why.map(inconclusive).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misled(lo: f64, estimate: f64, hi: f64, bound: RateBound, flags: &[&str]) -> bool {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        misleads(&Interval { estimate, lo, hi, confidence: 0.95 }, bound, &flags, 100.0).is_some()
    }

    #[test]
    fn wrong_rates_need_a_flag_an_interval_or_a_bound() {
        use RateBound::{AtLeast, AtMost, None};
        let rows = [
            (119.0, 119.0, 119.0, None, &[][..], false),
            (130.0, 130.0, 130.0, None, &[], true),
            (130.0, 130.0, 130.0, None, &["coalescing"], true),
            (130.0, 130.0, 130.0, None, &["coalescing", "noisy"], false),
            (99.0, 150.0, 201.0, None, &[], false),
            (120.0, 150.0, 170.0, None, &[], false),
            (140.0, 150.0, 160.0, None, &[], true),
            (30.0, 40.0, 50.0, AtLeast, &[], false),
            (110.0, 140.0, 150.0, AtLeast, &[], true),
            (110.0, 140.0, 150.0, AtMost, &[], false),
            (30.0, 40.0, 50.0, AtMost, &[], true),
        ];
        for (n, (lo, estimate, hi, bound, flags, want)) in rows.into_iter().enumerate() {
            assert_eq!(misled(lo, estimate, hi, bound, flags), want, "row {n}");
        }
    }
}

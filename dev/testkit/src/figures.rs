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
/// A rate is honest if one of its `flags` says why it may be wrong (see [`is_doubt`]), if it is
/// within a fifth of `truth`, or if its own interval allows the truth. Intervals that claim 95 %
/// miss now and then, by little: half of the width is added on both sides. A bound has to hold on
/// its one side.
///
/// # Panics
/// If [`is_doubt`] does not know one of the flags.
pub fn misleads(rate: &Interval, bound: RateBound, flags: &[String], truth: f64) -> Option<String> {
    let half = (rate.hi - rate.lo).max(0.0) / 2.0;
    let is_honest = match bound {
        RateBound::None => {
            (rate.estimate / truth - 1.0).abs() <= 0.2 || (rate.lo - half..=rate.hi + half).contains(&truth)
        }
        RateBound::AtLeast => rate.lo <= truth * 1.05,
        RateBound::AtMost => rate.hi >= truth * 0.95,
    };
    // Every flag is looked at, also where the rate is right: so a flag on which nobody has decided
    // is noticed in any run.
    let doubts: Vec<&String> = flags.iter().filter(|flag| is_doubt(flag)).collect();
    (!is_honest && doubts.is_empty()).then(|| {
        format!(
            "{:.4e} in {:.4e} ..= {:.4e} ({bound:?}, {flags:?}) misleads: the truth is {truth:.4e}",
            rate.estimate, rate.lo, rate.hi
        )
    })
}

/// Whether a flag beside a rate says that the rate cannot be taken as the path's.
///
/// These do: the hosts set the figure, or others used them; there was more than one path; the
/// traffic gave way, or varied more than could be averaged out; more was lost than the method
/// bears; its answers disagree; its time ran out; and of a hop, that its slope has outliers or
/// assumes something.
///
/// The others describe how packets arrive, who answers and what the path is, or they explain why
/// there is no rate. What a token bucket lets pass for long (`shaped`) is claimed as the figure
/// itself. What trains of echoes say against pairs makes the figure a bound, which has to hold.
///
/// # Panics
/// If the flag is not listed here: whoever adds a flag decides whether it excuses a wrong rate.
#[track_caller]
pub fn is_doubt(flag: &str) -> bool {
    match flag {
        "host_limited" | "host_busy" | "path_changed" | "elastic" | "noisy" | "lossy" | "ambiguous"
        | "cut_short" | "fits_disagree" | "assumes_symmetry" | "answers_in_the_way" | "fell_behind" => true,
        "coalescing" | "reordered" | "shaped" | "batched" | "pairs_slow" | "not_sustained" | "unsettled"
        | "unconfirmed" | "silent" | "filtered" | "rate_limited" | "several_addresses"
        | "too_few_answers" | "slope_falls" | "destination_silent" | "refused" | "mtu" => false,
        other => panic!("decide in `is_doubt` whether the flag '{other}' excuses a wrong rate"),
    }
}

/// Whether a figure, or the lack of one, is said to be the doing of a host that others used.
pub fn has_a_busy_host(found: &PathRate) -> bool {
    found.flags.iter().any(|flag| BUSY.contains(&flag.as_str()))
}

const BUSY: [&str; 2] = ["host_busy", "host_limited"];

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
/// each. Otherwise the calling test is inconclusive and must not judge this run.
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
            (130.0, 130.0, 130.0, None, &["shaped", "reordered", "mtu"], true),
            (110.0, 140.0, 150.0, AtLeast, &["pairs_slow"], true),
            (110.0, 140.0, 150.0, AtLeast, &["pairs_slow", "host_busy"], false),
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

    #[test]
    fn flag_that_nobody_decided_on_fails_the_test_even_if_the_rate_is_right() {
        // The gate allows a test to survive the panics of a thread with this name.
        let thread = std::thread::Builder::new().name("panics on purpose".to_owned());
        let ended = thread.spawn(|| misled(100.0, 100.0, 100.0, RateBound::None, &["noisy", "other"]));
        let panic = ended.unwrap().join().unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains("whether the flag 'other' excuses a wrong rate"), "{message}");
    }
}

//! What capacity and available bandwidth say together: who uses the path, and whether the two
//! figures can both be right.

use netaware_stats::interval::Interval;

use crate::{Bound, Estimate, Flag};

/// How much of a path others use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Use {
    /// Nothing that could be shown: the intervals allow that all of the capacity is available.
    NotShown {
        /// Share of the capacity that others use at most, 0..=1.
        at_most: f64,
    },
    /// Others use this share of the capacity, 0..=1.
    Shared(Interval),
    /// Others used the hosts while at least one of the figures was taken; the share of the capacity
    /// that others use is what both intervals say all the same, absent where they say none.
    HostSuspected(Option<Interval>),
    /// The hosts set at least one of the figures: how much of the path is used is not known.
    HostLimited,
    /// More is available than there is, beyond both intervals: one of the figures is wrong, or the
    /// path changed in between.
    Contradiction,
    /// One of the figures is missing, or both are bounds.
    Unknown,
}

impl Use {
    /// Of the two answers for one direction of one path.
    pub fn of(capacity: Option<&Estimate>, available: Option<&Estimate>) -> Self {
        let (Some(capacity), Some(available)) = (capacity, available) else { return Self::Unknown };
        let is_host_limited =
            |it: &Estimate| it.bound != Bound::None && it.flags.contains(&Flag::HostLimited);
        if is_host_limited(capacity) || is_host_limited(available) {
            return Self::HostLimited;
        }
        let is_busy = |it: &Estimate| it.flags.iter().any(|flag| matches!(flag, Flag::HostBusy { .. }));
        if is_busy(capacity) || is_busy(available) {
            return match Self::of_figures(capacity, available) {
                Self::Shared(used) => Self::HostSuspected(Some(used)),
                _ => Self::HostSuspected(None),
            };
        }
        Self::of_figures(capacity, available)
    }

    /// Of hosts that set neither.
    fn of_figures(capacity: &Estimate, available: &Estimate) -> Self {
        if capacity.bound != Bound::None || available.bound != Bound::None {
            return Self::Unknown;
        }
        let (c, a) = (capacity.rate, available.rate);
        if c.lo.is_nan() || c.lo <= 0.0 || !a.hi.is_finite() {
            return Self::Unknown;
        }
        if a.lo > c.hi {
            return Self::Contradiction;
        }
        // The corners of both intervals: wider than either deserves, and right whatever they have
        // in common.
        let used = |available: f64, capacity: f64| (1.0 - available / capacity).clamp(0.0, 1.0);
        let (lo, hi) = (used(a.hi, c.lo), used(a.lo, c.hi));
        if lo <= 0.0 {
            return Self::NotShown { at_most: hi };
        }
        let estimate = used(a.estimate, c.estimate).max(lo).min(hi);
        Self::Shared(Interval { estimate, lo, hi, confidence: c.confidence.min(a.confidence) })
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;

    fn answer(estimate: f64, lo: f64, hi: f64) -> Estimate {
        Estimate {
            rate: Interval { estimate, lo, hi, confidence: 0.95 },
            bound: Bound::None,
            method: "made up",
            bytes: 0,
            packets: 0,
            took: Span::ZERO,
            flags: Vec::new(),
        }
    }

    #[test]
    fn what_is_missing_of_the_capacity_is_used_by_others() {
        let of = Use::of(Some(&answer(100.0, 99.0, 101.0)), Some(&answer(60.0, 58.0, 62.0)));
        let Use::Shared(used) = of else { panic!("{of:?}") };
        assert!((used.estimate - 0.4).abs() < 1e-9);
        assert!(
            (used.lo - (1.0 - 62.0 / 99.0)).abs() < 1e-9 && (used.hi - (1.0 - 58.0 / 101.0)).abs() < 1e-9
        );
    }

    #[test]
    fn intervals_that_meet_show_nothing() {
        let of = Use::of(Some(&answer(100.0, 98.0, 102.0)), Some(&answer(97.0, 93.0, 101.0)));
        let Use::NotShown { at_most } = of else { panic!("{of:?}") };
        assert!((at_most - (1.0 - 93.0 / 102.0)).abs() < 1e-9);
    }

    #[test]
    fn the_share_that_is_used_lies_between_the_corners_of_both_intervals() {
        let capacity = answer(100.0, 80.0, 128.0);
        let available = answer(50.0, 32.0, 60.0);
        let rate = Interval { confidence: 0.9, ..available.rate };
        assert_eq!(
            Use::of(Some(&capacity), Some(&Estimate { rate, ..available })),
            Use::Shared(Interval { estimate: 0.5, lo: 0.25, hi: 0.75, confidence: 0.9 })
        );
        // A host that was late all the same has measured what it says: it is no bound.
        let late = Estimate { flags: vec![Flag::HostLimited], ..answer(100.0, 80.0, 128.0) };
        assert_eq!(
            Use::of(Some(&late), Some(&answer(50.0, 32.0, 60.0))),
            Use::Shared(Interval { estimate: 0.5, lo: 0.25, hi: 0.75, confidence: 0.95 })
        );
        // Intervals that touch do not contradict each other.
        assert_eq!(
            Use::of(Some(&answer(100.0, 90.0, 110.0)), Some(&answer(120.0, 110.0, 130.0))),
            Use::NotShown { at_most: 0.0 }
        );
    }

    #[test]
    fn more_than_there_is_cannot_be() {
        let of = Use::of(Some(&answer(100.0, 99.0, 101.0)), Some(&answer(120.0, 110.0, 130.0)));
        assert_eq!(of, Use::Contradiction);
    }

    #[test]
    fn a_busy_host_is_suspected_with_what_the_figures_say_all_the_same() {
        let busy =
            |it: Estimate| Estimate { flags: vec![Flag::CutShort, Flag::HostBusy { away: 0.1 }], ..it };
        let capacity = busy(answer(100.0, 90.0, 110.0));
        let of = |available: &Estimate| Use::of(Some(&capacity), Some(available));
        let shared = of(&answer(50.0, 45.0, 55.0));
        let Use::HostSuspected(Some(used)) = shared else { panic!("{shared:?}") };
        assert!((used.estimate - 0.5).abs() < 1e-9);
        // Neither that nobody uses it nor that something is wrong with the path can be said by such
        // hosts.
        for available in [answer(97.0, 93.0, 101.0), busy(answer(150.0, 140.0, 160.0))] {
            assert_eq!(of(&available), Use::HostSuspected(None));
        }
        let bound = Estimate { bound: Bound::AtMost, ..busy(answer(50.0, 45.0, 55.0)) };
        assert_eq!(of(&bound), Use::HostSuspected(None));
    }

    #[test]
    fn a_bound_leaves_it_open_and_a_host_is_named() {
        let exact = answer(100.0, 99.0, 101.0);
        let bound = Estimate { bound: Bound::AtLeast, ..exact.clone() };
        let host = Estimate { flags: vec![Flag::HostLimited], ..bound.clone() };
        assert_eq!(Use::of(Some(&bound), Some(&exact)), Use::Unknown);
        assert_eq!(Use::of(Some(&host), Some(&exact)), Use::HostLimited);
        assert_eq!(Use::of(Some(&exact), None), Use::Unknown);
        for nonsense in [answer(0.0, 0.0, 0.0), answer(f64::NAN, f64::NAN, f64::NAN)] {
            assert_eq!(Use::of(Some(&nonsense), Some(&exact)), Use::Unknown);
        }
    }
}

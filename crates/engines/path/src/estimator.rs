//! The contract of an estimator.

use netaware_units::{Mono, Span};

use crate::available::TightLink;
use crate::{Estimate, RateMode, Volley, VolleyReport};

/// What an estimator wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send this, not before `due`; then [`Estimator::take`] its report.
    Volley {
        /// The question.
        volley: Volley,
        /// The plan; in the past means at once.
        due: Mono,
    },
    /// Nothing more: [`Estimator::answer`] is final.
    Done,
}

/// A method. After [`Step::Volley`] it is given the report of that volley, then asked again. It
/// ends by itself within its time limit; somebody who wants to stop earlier stops asking and takes
/// [`Estimator::answer`].
pub trait Estimator {
    /// What to do next. `now` never runs backwards.
    fn next(&mut self, now: Mono) -> Step;

    /// What became of the volley asked for last. `took` is from its first packet until the report
    /// was here.
    fn take(&mut self, now: Mono, report: &VolleyReport, took: Span);

    /// After [`Step::Done`]: lets a method that ended because of the time that it takes by itself,
    /// and would have known more with more of it, go on until `limit` after its begin. Returns
    /// whether it does; then [`next`](Self::next) has more to ask.
    fn prolong(&mut self, _limit: Span) -> bool {
        false
    }

    /// Whether a test of the answer came at a lower rate in the end, and what held it back cannot
    /// be told: the answer may not last.
    fn may_not_last(&self) -> bool {
        false
    }

    /// What is known so far; `None` as long as nothing is.
    fn answer(&self) -> Option<Estimate>;

    /// The tight link's own capacity, where the method tells that as well.
    fn tight_link(&self) -> Option<TightLink> {
        None
    }

    /// Where bandwidths of packet pairs gather, the fullest first, where the method looks for that.
    fn modes(&self) -> Vec<RateMode> {
        Vec::new()
    }
}

impl<E: Estimator + ?Sized> Estimator for Box<E> {
    fn next(&mut self, now: Mono) -> Step {
        (**self).next(now)
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, took: Span) {
        (**self).take(now, report, took);
    }

    fn prolong(&mut self, limit: Span) -> bool {
        (**self).prolong(limit)
    }

    fn may_not_last(&self) -> bool {
        (**self).may_not_last()
    }

    fn answer(&self) -> Option<Estimate> {
        (**self).answer()
    }

    fn tight_link(&self) -> Option<TightLink> {
        (**self).tight_link()
    }

    fn modes(&self) -> Vec<RateMode> {
        (**self).modes()
    }
}

#[cfg(test)]
mod tests {
    use netaware_stats::interval::Interval;

    use super::*;
    use crate::Bound;

    const RATE: Interval = Interval { estimate: 5e7, lo: 4e7, hi: 6e7, confidence: 0.9 };

    /// Has all that a method can have.
    struct Known;

    impl Estimator for Known {
        fn next(&mut self, now: Mono) -> Step {
            Step::Volley { volley: Volley::default(), due: now }
        }

        fn take(&mut self, _now: Mono, _report: &VolleyReport, _took: Span) {}

        fn prolong(&mut self, limit: Span) -> bool {
            limit > Span(1)
        }

        fn may_not_last(&self) -> bool {
            true
        }

        fn answer(&self) -> Option<Estimate> {
            let (bound, flags) = (Bound::None, Vec::new());
            Some(Estimate { rate: RATE, bound, method: "known", bytes: 1, packets: 1, took: Span(1), flags })
        }

        fn tight_link(&self) -> Option<TightLink> {
            Some(TightLink { capacity: RATE, quality: 0.5 })
        }

        fn modes(&self) -> Vec<RateMode> {
            vec![RateMode { lo: 4e7, hi: 6e7, share: 0.5, merit: 1.0, chosen: true }]
        }
    }

    fn all_of(
        mut method: impl Estimator,
    ) -> (Step, Option<Estimate>, Option<TightLink>, Vec<RateMode>, [bool; 2]) {
        let says = [method.prolong(Span(2)), method.may_not_last()];
        (method.next(Mono(7)), method.answer(), method.tight_link(), method.modes(), says)
    }

    #[test]
    fn a_boxed_method_says_what_the_method_says() {
        let boxed: Box<dyn Estimator> = Box::new(Known);
        let said = all_of(boxed);
        assert!(said.1.is_some() && said.2.is_some() && said.4 == [true; 2], "{said:?}");
        assert_eq!(said, all_of(Known));
    }
}

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

/// A method. After [`Step::Volley`] it is given the report of that volley, then asked again. It ends by itself within its
/// time limit; somebody who wants to stop earlier stops asking and takes [`Estimator::answer`].
pub trait Estimator {
    /// What to do next. `now` never runs backwards.
    fn next(&mut self, now: Mono) -> Step;

    /// What became of the volley asked for last. `took` is from its first packet until the report was here.
    fn take(&mut self, now: Mono, report: &VolleyReport, took: Span);

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

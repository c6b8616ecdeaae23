//! How figures are held against the truth.

use netaware_path::{Bound, Estimate, Flag};
use netaware_sim::Estimated;
use netaware_sim::cells::Cell;
use netaware_stats::quantile::linear;

/// What many runs of one cell came to.
#[derive(Debug, Default, Clone)]
pub(crate) struct Score {
    pub(crate) runs: usize,
    /// Relative errors of figures that are no bounds.
    pub(crate) errors: Vec<f64>,
    pub(crate) bounds: usize,
    /// Nothing said at all.
    pub(crate) silent: usize,
    pub(crate) covered: usize,
    /// More than 20 % off, without a flag or a bound.
    pub(crate) nonsense: usize,
    pub(crate) longest: f64,
    pub(crate) load: f64,
    pub(crate) bytes: u64,
}

impl Score {
    pub(crate) fn add(&mut self, ended: &Estimated, truth: f64) {
        self.runs += 1;
        self.longest = self.longest.max(ended.took.secs_f64());
        self.load = self.load.max(ended.bytes as f64 * 8.0 / ended.took.secs_f64().max(1e-9) / truth);
        self.bytes = self.bytes.max(ended.bytes);
        let Some(answer) = &ended.answer else {
            self.silent += 1;
            self.covered += 1;
            return;
        };
        let error = answer.rate.estimate / truth - 1.0;
        self.covered += usize::from(holds(answer, truth));
        if answer.bound == Bound::None {
            self.errors.push(error);
        } else {
            self.bounds += 1;
        }
        let false_bound = answer.bound == Bound::AtLeast && answer.rate.lo > truth * 1.2;
        self.nonsense += usize::from(false_bound || (error.abs() > 0.2 && !is_flagged(answer)));
    }

    pub(crate) fn absolute(&self, quantile: f64) -> f64 {
        let mut errors: Vec<f64> = self.errors.iter().map(|error| error.abs()).collect();
        errors.sort_unstable_by(f64::total_cmp);
        linear(&errors, quantile).unwrap_or(f64::NAN)
    }

    pub(crate) fn bias(&self) -> f64 {
        let mut errors = self.errors.clone();
        errors.sort_unstable_by(f64::total_cmp);
        linear(&errors, 0.5).unwrap_or(f64::NAN)
    }
}

fn holds(answer: &Estimate, truth: f64) -> bool {
    match answer.bound {
        Bound::None => answer.rate.contains(truth),
        Bound::AtLeast => truth >= answer.rate.lo,
        Bound::AtMost => truth <= answer.rate.hi,
    }
}

fn is_flagged(answer: &Estimate) -> bool {
    let warns = |flag: &Flag| !matches!(flag, Flag::Coalescing { .. });
    answer.bound != Bound::None || answer.flags.iter().any(warns)
}

/// Error in the middle and of nine runs of ten that a figure may have.
pub(crate) fn target(cell: &Cell) -> (f64, f64) {
    match cell.rate.0 {
        ..1_000_000_000 => (0.01, 0.02),
        1_000_000_000..10_000_000_000 => (0.02, 0.05),
        _ => (0.05, 0.10),
    }
}

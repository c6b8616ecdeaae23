//! A link in front of the tight one that is slower: no train is faster behind it, so those that
//! leave faster come all alike.
//!
//! Behind a narrow link of rate N a train of rate R is one of rate min(R, N), longer in time and
//! less stretched by what comes then. So for each N that may be, the trains are read as those and a
//! line is fitted to them; the squares that are left, each divided by the variance that cross
//! traffic gives it, say how likely that N is against no such link at all. Where several cannot be
//! told apart, what they make of the available bandwidth is the width of the answer.

use crate::available::line::{Fit, Fitter, Sample};

/// What trains say of a narrow link, and of the tight one with it.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// bit/s; infinite without one.
    pub(super) narrow: f64,
    /// Trains as the tight link saw them, those that were strained for certain.
    pub(super) used: Vec<Sample>,
    pub(super) fitter: Fitter,
    pub(super) fit: Fit,
    /// Least and most that is available if a narrow link is where it cannot be ruled out, bit/s.
    pub(super) range: (f64, f64),
}

/// One N.
struct Candidate {
    narrow: f64,
    used: Vec<Sample>,
    fit: Fit,
    /// Squares that the line leaves.
    left: f64,
}

impl Reading {
    /// From trains, and the lines that a `fitter` allows. `None` for too few.
    pub(super) fn of(samples: &[Sample], fitter: Fitter) -> Option<Self> {
        let without = candidate(samples, fitter, f64::INFINITY)?;
        let others = places(samples).into_iter().filter_map(|narrow| candidate(samples, fitter, narrow));
        let mut all: Vec<Candidate> = others.collect();
        let best = all.iter().map(|one| one.left).fold(without.left, f64::min);
        let degrees = samples.len().saturating_sub(4).max(1) as f64;
        let limit = best * (1.0 + RULED_OUT / degrees);
        all.retain(|one| one.left <= limit);
        let values = all.iter().map(|one| one.fit.available);
        let (lo, hi) = values.fold((f64::INFINITY, 0.0), |(lo, hi), it| (it.min(lo), it.max(hi)));
        let chosen = if without.left <= limit {
            without
        } else {
            all.into_iter().min_by(|a, b| a.left.total_cmp(&b.left))?
        };
        let Candidate { narrow, used, fit, .. } = chosen;
        let range = (lo.min(fit.available), hi.max(fit.available));
        Some(Self { narrow, used, fitter, fit, range })
    }
}

/// What a train is behind a link of this rate, bit/s.
fn behind(sample: &Sample, narrow: f64) -> Sample {
    let slower = (narrow / sample.rate).min(1.0);
    Sample { rate: sample.rate * slower, stretch: sample.stretch * slower, lasted: sample.lasted / slower }
}

/// Rates at which a narrow link would show: some trains were faster and some slower.
fn places(samples: &[Sample]) -> Vec<f64> {
    let mut rates: Vec<f64> = samples.iter().map(|sample| sample.rate).collect();
    rates.sort_unstable_by(f64::total_cmp);
    if rates.len() < FEWEST_BELOW + FEWEST_ABOVE {
        return Vec::new();
    }
    let (least, most) = (rates[FEWEST_BELOW - 1], rates[rates.len() - FEWEST_ABOVE] / ABOVE);
    if most <= least {
        return Vec::new();
    }
    let step = (most / least).powf(1.0 / f64::from(PLACES));
    (0..=PLACES).map(|place| least * step.powi(place as i32)).collect()
}

fn candidate(samples: &[Sample], fitter: Fitter, narrow: f64) -> Option<Candidate> {
    let seen: Vec<Sample> = samples.iter().map(|sample| behind(sample, narrow)).collect();
    let mut used = seen.clone();
    for _ in 0..3 {
        let fit = fitter.fit(&used)?;
        let strained: Vec<Sample> = seen
            .iter()
            .filter(|sample| super::strain(sample, &fit) >= super::LEAST_STRAIN)
            .copied()
            .collect();
        // Too few: then the rates were too low, and the next volley has higher ones.
        if strained.len() * 2 < seen.len().max(4) {
            break;
        }
        used = strained;
    }
    let fit = fitter.fit(&used)?;
    let square = |sample: &Sample| {
        let rest = sample.stretch - 1.0 - super::strain(sample, &fit).max(0.0);
        rest * rest * sample.weight()
    };
    let left = seen.iter().map(square).sum();
    Some(Candidate { narrow, used, fit, left })
}

/// A place for a narrow link is ruled out by so many variances: 95 % of Fisher's F with one degree
/// of freedom.
const RULED_OUT: f64 = 4.0;
/// Trains that are faster than a narrow link, and by how much at least.
const FEWEST_ABOVE: usize = 2;
const ABOVE: f64 = 1.03;
/// Trains that are slower: as many as a line needs.
const FEWEST_BELOW: usize = 4;
/// Places that are tried.
const PLACES: u32 = 24;

//! Whether arrivals come one by one or in batches: the toolkit's rule, and what it leaves open for
//! trains with cross traffic.

use super::{FEWEST_BATCHES, Point, ns};
use crate::Arrival;
use crate::batching::{Batching, lasts};

/// How arrivals are handed over.
#[derive(Debug, Clone)]
pub(super) enum Handed {
    Singly,
    /// With the places of the last packets of batches, the train's last batch apart.
    Batched(Batching, Vec<usize>),
    /// In batches, of which there are too few to tell their period.
    InFew,
}

pub(super) fn handed(points: &[Point]) -> Handed {
    let arrivals: Vec<Arrival> =
        points.iter().map(|point| Arrival { number: point.number, at: point.at }).collect();
    let ends = lasts(&arrivals);
    // Stamps that err by more than a gap look like small batches, pairs by a slow timer are some.
    let batching = Batching::of(&arrivals).filter(|batching| batching.batch >= REAL_BATCH);
    match batching.or_else(|| pairs(&arrivals, &ends)) {
        Some(batching) => Handed::Batched(batching, ends),
        None if ends.len() <= FEWEST_BATCHES && ends.len() * 10 < arrivals.len() => Handed::InFew,
        None => Handed::Singly,
    }
}

/// Batches of two: nearly half of the gaps are next to nothing.
fn pairs(arrivals: &[Arrival], ends: &[usize]) -> Option<Batching> {
    let (first, last) = (ends.first()?, ends.last()?);
    let gaps = arrivals.windows(2).map(|pair| ns(pair[1].at, pair[0].at));
    let mean = gaps.clone().sum::<f64>() / arrivals.len().max(2) as f64;
    let tiny = gaps.filter(|gap| *gap <= mean * TINY).count();
    let batches = ends.len().checked_sub(1).filter(|batches| *batches >= FEWEST_BATCHES)? as f64;
    let period = ns(arrivals.get(*last)?.at, arrivals.get(*first)?.at) / batches;
    let paired = tiny as f64 >= PAIRED * arrivals.len() as f64;
    paired.then_some(Batching { period, batch: (last - first) as f64 / batches })
}

/// A gap within a pair, as a share of the mean gap.
const TINY: f64 = 0.1;
/// Share of such gaps among pairs.
const PAIRED: f64 = 0.4;
/// Packets of a batch that is one, on average.
const REAL_BATCH: f64 = 2.5;

//! What to do about batches, from the best down to a bound.

use super::Batching;

/// The ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Every stamp counts.
    Nothing,
    /// The last packet of each batch, which waited least, stands for it: there are six batches or more.
    LastOfBatch,
    /// Gaps are averaged over each batch: there are two or more.
    Means,
    /// Only the mean of the whole train counts, from batch start to batch start: it lasts twenty periods.
    WholeTrain,
    /// No train that the path takes is long enough: the figure is a bound.
    Bound,
}

impl Remedy {
    /// For looking inside a train of `duration` ns.
    pub fn inside(batching: Option<&Batching>, duration: f64) -> Self {
        let Some(batching) = batching else { return Self::Nothing };
        match duration / batching.period {
            batches if batches >= FEWEST_BATCHES => Self::LastOfBatch,
            batches if batches >= 2.0 => Self::Means,
            _ => Self::Bound,
        }
    }

    /// For the mean rate of a train that may last `longest` ns.
    pub fn whole(batching: Option<&Batching>, longest: f64) -> Self {
        match batching {
            None => Self::Nothing,
            Some(batching) if longest >= PERIODS * batching.period => Self::WholeTrain,
            Some(_) => Self::Bound,
        }
    }
}

/// How long a train must last, ns, so that stamps that are wrong by `error` ns at each end make its rate wrong by no more
/// than `accuracy`: sqrt(2) error / accuracy, which is 141 errors for one per cent; under coalescing at least twenty
/// periods, so that a batch too many or too few at its ends is five per cent at most.
pub fn least_duration(error: f64, accuracy: f64, batching: Option<&Batching>) -> f64 {
    let of_stamps = std::f64::consts::SQRT_2 * error / accuracy.max(1e-6);
    batching.map_or(of_stamps, |batching| of_stamps.max(PERIODS * batching.period))
}

const FEWEST_BATCHES: f64 = 6.0;
const PERIODS: f64 = 20.0;

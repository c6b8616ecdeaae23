//! What streams answer: the search's bracket, widened by what it cannot know, or a bound.

use netaware_stats::interval::Interval;
use netaware_units::Span;

use super::search::Search;
use super::{CONFIDENCE, PACKETS, STREAMS, Slops, State};
use crate::available::approach::Ceiling;
use crate::{Bound, Estimate, Flag};

impl Slops {
    pub(super) fn estimate(&self, rate: Interval, bound: Bound, mut flags: Vec<Flag>) -> Estimate {
        flags.extend(self.health.flags(LOSS_LIMIT));
        match self.state {
            State::Content => {}
            State::Blind => flags.push(Flag::Unreadable),
            State::Approaching | State::Searching | State::OutOfTime => flags.push(Flag::CutShort),
        }
        Estimate {
            rate,
            bound,
            method: "slops",
            bytes: self.budget.bytes,
            packets: self.budget.packets,
            took: self.budget.took(),
            flags,
        }
    }

    pub(super) fn at_least(&self, rate: f64, why: Ceiling) -> Estimate {
        let rate = Interval { estimate: rate, lo: rate * 0.97, hi: rate, confidence: CONFIDENCE };
        let flags = if why == Ceiling::Sender { vec![Flag::HostLimited] } else { Vec::new() };
        self.estimate(rate, Bound::AtLeast, flags)
    }

    /// By what streams cannot see, a rise of less than a packet from their begin to their end, and
    /// by the chance that is left after so many streams.
    fn widened(&self, range: Interval) -> Interval {
        let capacity = self.search.as_ref().map_or(0.0, Search::capacity);
        let packets = self.asked.trains.first().map_or(PACKETS, |train| f64::from(train.packets));
        let unseen = UNSEEN * capacity / packets;
        let mean = self.scatter.iter().sum::<f64>() / self.scatter.len().max(1) as f64;
        let streams = (self.scatter.len() * STREAMS).max(1) as f64;
        let chance = CHANCE * capacity * (mean / streams).sqrt();
        let estimate = (range.estimate - unseen / 2.0).max(0.0);
        let (lo, hi) = ((range.lo - unseen - chance).max(0.0), range.hi + UPWARDS * chance);
        Interval { estimate, lo: lo.min(estimate), hi: hi.max(estimate), ..range }
    }

    /// What the strained streams say by how much they were: A = R - C (s - 1), as a curve has it,
    /// and what chance makes of that, bit/s. Bursts look like trends and pull the bracket down;
    /// strains far above A they hardly move.
    fn by_strain(&self) -> Option<(f64, f64)> {
        let capacity = self.search.as_ref().map_or(0.0, Search::capacity);
        let (mut sum, mut squares, mut streams) = (0.0, 0.0, 0.0);
        for (rate, stretches) in &self.strained {
            let (Some(mean), Some(variance)) = (stretches.mean(), stretches.variance()) else { continue };
            let count = stretches.count() as f64;
            sum += count * (rate - capacity * (mean - 1.0));
            squares += count * variance;
            streams += count;
        }
        (streams > 0.0).then(|| (sum / streams, 2.0 * capacity * (squares / streams / streams).sqrt()))
    }

    /// Whether the streams of a fleet met very different traffic.
    fn varied(&self, range: &Interval) -> bool {
        let capacity = self.search.as_ref().map_or(0.0, Search::capacity);
        let mean = self.scatter.iter().sum::<f64>() / self.scatter.len().max(1) as f64;
        mean.sqrt() * capacity > VARIED * range.estimate
    }

    /// Whether all that the streams saw, in batches as the receiver hands packets over, may have
    /// been one burst, which looks like a trend in each of them alike.
    fn saw_little(&self) -> bool {
        !self.confirms && self.health.period() > Span::ZERO && self.watched < LITTLE
    }

    pub(super) fn range(&self, search: &Search) -> Option<Estimate> {
        let between = |lo: f64, estimate: f64, hi: f64| Interval { estimate, lo, hi, confidence: CONFIDENCE };
        match (search.below(), search.above()) {
            (Some(lo), Some(hi)) => {
                let range = self.widened(between(lo, search.centre(lo, hi), hi));
                let range = self.by_strain().map_or(range, |(strained, chance)| {
                    let (lo, hi) = (strained - chance, strained + chance);
                    Interval { lo: range.lo.min(lo).max(0.0), hi: range.hi.max(hi), ..range }
                });
                let is_wide = range.hi - range.estimate > NOISY * range.estimate
                    || range.estimate - range.lo > NOISY * range.estimate;
                // Of a path that was known to be steady a stream that differs met a host's pause.
                let is_noisy = is_wide && !search.is_confirmed()
                    || self.varied(&range) && !self.is_certain()
                    || self.saw_little()
                    || search.contradicted()
                    || search.strayed(range.estimate);
                Some(self.estimate(range, Bound::None, if is_noisy { vec![Flag::Noisy] } else { Vec::new() }))
            }
            (Some(lo), None) if lo > 0.9 * self.sender.fastest => Some(self.at_least(lo, Ceiling::Sender)),
            (Some(lo), None) => Some(self.estimate(between(lo, lo, lo), Bound::AtLeast, Vec::new())),
            (None, Some(hi)) => Some(self.estimate(between(0.0, hi, hi), Bound::AtMost, Vec::new())),
            (None, None) => None,
        }
    }
}

/// Pathload gives a fleet up above this.
const LOSS_LIMIT: f64 = 0.03;
/// A range of more than this to each side is told as noisy.
const NOISY: f64 = 0.06;
/// A stream's rise that its packets' own sizes hide, packets.
const UNSEEN: f64 = 0.6;
/// Standard errors of what the streams met that the range is wider by: few streams see few bursts,
/// and not the longest.
const CHANCE: f64 = 5.0;
/// Bursts look like trends, so the truth is above the range more often than below it.
const UPWARDS: f64 = 2.0;
/// Bursts of self-similar traffic last as long.
const LITTLE: Span = Span::from_millis(200);
/// Chance in one stream that is told as noisy, as a share of the figure.
const VARIED: f64 = 0.1;

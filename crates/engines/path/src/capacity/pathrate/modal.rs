//! From pairs to bandwidths, their modes, and the one that is the capacity.

use netaware_stats::interval::Interval;
use netaware_stats::modes::{Mode, ModeRules, modes};
use netaware_stats::moments::Moments;
use netaware_stats::quantile::linear;

use super::PathrateRules;
use super::phases::trimmed;
use crate::RateMode;

/// One pair, or a train that stands for one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair {
    /// Bytes of each packet.
    pub(super) length: u32,
    /// ns per packet.
    pub(super) gap: f64,
    /// How many gaps it is the mean of.
    pub(super) gaps: f64,
}

impl Pair {
    fn rate(&self) -> f64 {
        f64::from(self.length) * 8e9 / self.gap
    }
}

/// The rules of the game.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modal<'a> {
    pub(super) rules: &'a PathrateRules,
    pub(super) largest: u32,
    /// Standard deviation of the difference of two stamps, ns.
    pub(super) error: f64,
}

/// What the preliminary trains say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preliminary {
    /// Mean, and half a window to both sides.
    pub(super) rate: Interval,
    /// Width of the window of the mode search, bit/s.
    pub(super) bin: f64,
    /// They need no modes.
    pub(super) alike: bool,
}

impl Modal<'_> {
    pub(super) fn preliminary(&self, pairs: &[Pair]) -> Option<Preliminary> {
        let rates: Vec<f64> = pairs.iter().map(Pair::rate).collect();
        let kept = if rates.len() > 30 { trimmed(&rates, 5) } else { trimmed(&rates, 0) };
        let spread: Moments = kept.iter().copied().collect();
        let (span, gaps) = without_extremes(pairs)
            .iter()
            .fold((0.0, 0.0), |(span, gaps), pair| (span + pair.gap * pair.gaps, gaps + pair.gaps));
        let estimate = f64::from(self.largest) * 8e9 * gaps / span;
        let range = linear(&kept, 0.9)? - linear(&kept, 0.1)?;
        let bin = (self.rules.bin_share * range).max(estimate * 0.005);
        let even = spread.sd()? / spread.mean()? < self.rules.alike;
        let alike = pairs.len() >= 20 && even && !self.grow_with_length(pairs) && self.is_of_stamps(pairs);
        // Traffic that spreads the pairs leans to one side, which more pairs do not average out.
        let varied = spread.sd().unwrap_or(0.0) / spread.mean()?;
        let half = (bin / 2.0).max(0.005 * estimate) + estimate * varied * (2.0 / gaps.sqrt() + LEANS);
        let rate = Interval { estimate, lo: estimate - half, hi: estimate + half, confidence: 0.9 };
        estimate.is_finite().then_some(Preliminary { rate, bin, alike })
    }

    /// Whether nothing but stamps spreads them, and a foreign packet between two of theirs would
    /// show: steady traffic stretches all trains alike, but not to the packet.
    fn is_of_stamps(&self, pairs: &[Pair]) -> bool {
        let kept = without_extremes(pairs);
        let gaps: f64 = kept.iter().map(|pair| pair.gaps).sum();
        let gap = kept.iter().map(|pair| pair.gap * pair.gaps).sum::<f64>() / gaps;
        let of_stamps = |pair: &Pair| self.error.hypot(gap * FINE) / pair.gaps;
        let squares = kept.iter().map(|pair| ((pair.gap - gap) / of_stamps(pair)).powi(2)).sum::<f64>();
        gap >= SHOWS * self.error && squares <= MORE * kept.len() as f64
    }

    /// Whether longer trains come more slowly: then cross traffic is in them, and their mean is
    /// none of the link.
    fn grow_with_length(&self, pairs: &[Pair]) -> bool {
        let middle = |short: bool| {
            let gaps = pairs.iter().filter(|pair| (pair.gaps <= 3.0) == short).map(|pair| pair.gap);
            netaware_stats::quantile::median(&gaps.collect::<Vec<_>>())
        };
        let (Some(short), Some(long)) = (middle(true), middle(false)) else { return false };
        long > short * 1.005 + self.error / 4.0
    }

    /// Whether the stamps are too coarse to tell pairs of this rate with another's packet between
    /// them from those without.
    pub(super) fn is_coarse(&self, rate: f64) -> bool {
        f64::from(self.largest) * 8e9 / rate < SHOWS * self.error
    }

    /// The mode with the most merit of those that reach above `adr`, and whether another comes near
    /// it.
    pub(super) fn mode_above(&self, pairs: &[Pair], bin: f64, adr: Option<f64>) -> Option<(Interval, bool)> {
        let found = all_modes(pairs, bin);
        let above = self.above(&found, adr);
        let best = above.first()?;
        let second = above.get(1).map_or(0.0, |mode| (self.rules.merit)(mode));
        let within = bin.max(best.hi - best.lo);
        let inside = |pair: &&Pair| pair.rate() >= best.lo - within && pair.rate() <= best.hi + within;
        let gathered: Vec<Pair> = pairs.iter().filter(inside).copied().collect();
        let estimate = self.fitted(&gathered).unwrap_or_else(|| best.middle());
        let off = (estimate - best.middle()).abs();
        let half = (bin / 2.0).max((best.hi - best.lo) / 2.0).max(estimate * 0.01) + off;
        let rate = Interval { estimate, lo: estimate - half, hi: estimate + half, confidence: 0.9 };
        let doubtful =
            second > RIVAL * (self.rules.merit)(best) || best.share < WEAK || is_of_few_sizes(pairs, best);
        Some((rate, doubtful))
    }

    /// All modes, the fullest first, with the one that [`Self::mode_above`] takes.
    pub(super) fn told(&self, pairs: &[Pair], bin: f64, adr: Option<f64>) -> Vec<RateMode> {
        let found = all_modes(pairs, bin);
        let best = self.above(&found, adr).first().copied();
        let told = found.iter().map(|mode| RateMode {
            lo: mode.lo,
            hi: mode.hi,
            share: mode.share,
            merit: (self.rules.merit)(mode),
            chosen: best.is_some_and(|best| best == mode),
        });
        told.collect()
    }

    /// Those that reach above `adr`, the one with the most merit first.
    fn above<'m>(&self, found: &'m [Mode], adr: Option<f64>) -> Vec<&'m Mode> {
        let floor = adr.unwrap_or(0.0);
        let mut above: Vec<&Mode> = found.iter().filter(|mode| mode.hi > floor).collect();
        above.sort_by(|a, b| (self.rules.merit)(b).total_cmp(&(self.rules.merit)(a)));
        above
    }

    /// Bandwidth of packets of the largest size, by a line through the gaps over the sizes: what
    /// layer 2 adds to a packet is in its height, not in its slope. `None` where the line is no
    /// better than the mean.
    fn fitted(&self, pairs: &[Pair]) -> Option<f64> {
        let count = pairs.len() as f64;
        let mean = |of: &dyn Fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>() / count;
        let (length, gap) = (mean(&|pair| f64::from(pair.length)), mean(&|pair| pair.gap));
        let spread = mean(&|pair| (f64::from(pair.length) - length).powi(2));
        let both = mean(&|pair| (f64::from(pair.length) - length) * (pair.gap - gap));
        let slope = both / spread;
        let expected = gap + slope * (f64::from(self.largest) - length);
        let plain = gap / length;
        let likely = slope > plain * 0.85 && slope < plain * 1.02 && self.error < gap;
        (pairs.len() >= 30 && likely).then(|| f64::from(self.largest) * 8e9 / expected)
    }
}

fn all_modes(pairs: &[Pair], bin: f64) -> Vec<Mode> {
    let mut rates: Vec<f64> = pairs.iter().map(Pair::rate).collect();
    rates.sort_unstable_by(f64::total_cmp);
    modes(&rates, &ModeRules::new(bin))
}

/// Whether packets of one half of the sizes hardly ever come at this bandwidth. A link's bandwidth
/// is that of packets of all sizes; where a foreign packet comes in between, or another link's
/// clock sets the distance, the bandwidth goes with the size.
fn is_of_few_sizes(pairs: &[Pair], mode: &Mode) -> bool {
    let lengths: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.length)).collect();
    let Some(middle) = netaware_stats::quantile::median(&lengths) else { return false };
    let share_of = |small: bool| {
        let half = pairs.iter().filter(|pair| (f64::from(pair.length) < middle) == small);
        let inside: Moments =
            half.map(|pair| f64::from(u8::from((mode.lo..=mode.hi).contains(&pair.rate())))).collect();
        inside.mean()
    };
    let (Some(small), Some(large)) = (share_of(true), share_of(false)) else { return false };
    small.min(large) < ONE_SIDED * small.max(large)
}

/// Without the sixth with the largest gaps and that with the smallest, but five of each at most.
fn without_extremes(pairs: &[Pair]) -> Vec<Pair> {
    let mut by_gap = pairs.to_vec();
    by_gap.sort_unstable_by(|a, b| a.gap.total_cmp(&b.gap));
    let cut = 5.min(by_gap.len() / 6);
    by_gap[cut..by_gap.len() - cut].to_vec()
}

/// A foreign packet shows in gaps of so many stamp errors.
const SHOWS: f64 = 10.0;
/// Variance over that of stamps which nothing but stamps makes.
const MORE: f64 = 4.0;
/// Share of a gap that clocks and timers blur.
const FINE: f64 = 0.02;
/// Another mode with this share of the best one's merit makes it doubtful.
const RIVAL: f64 = 0.3;
/// And so does a best mode with no more of the pairs.
const WEAK: f64 = 0.15;
/// A half of the sizes has less than this share of what the other half has in the mode.
const ONE_SIDED: f64 = 0.2;
/// Share of the pairs' relative spread by which their middle may be wrong.
const LEANS: f64 = 0.25;

//! An answer, and how far it can be trusted.

use netaware_stats::interval::Interval;
use netaware_units::Span;

/// A rate of the path with its pedigree.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// bit/s of the IP layer.
    pub rate: Interval,
    /// What kind of figure it is.
    pub bound: Bound,
    /// The method, as its page in docs/methods is called: "bulk", "pathrate", "slops".
    pub method: &'static str,
    /// IP bytes sent so far.
    pub bytes: u64,
    /// Packets sent so far.
    pub packets: u64,
    /// From the begin to the last report.
    pub took: Span,
    /// Whatever a reader must know.
    pub flags: Vec<Flag>,
}

impl Estimate {
    /// Whether the path changed in the middle, so that the figure is of two paths.
    pub fn is_of_two_paths(&self) -> bool {
        self.flags.iter().any(|flag| matches!(flag, Flag::PathChanged | Flag::Slower { .. }))
    }

    /// The same without the claim that the hosts set the figure, where the sending host probes far
    /// faster than that, `host` bit/s: what held the method up is not known then, unless packets
    /// were overtaken, which takes trains apart.
    #[must_use]
    pub fn unless_host_is_faster(mut self, host: Option<f64>) -> Self {
        // A lower bound says no more than its lower end, whatever packets that came at once look
        // like.
        let figure = if self.bound == Bound::AtLeast { self.rate.lo } else { self.rate.estimate };
        let is_far = host.is_some_and(|host| figure < host * NEAR);
        let is_claimed = self.flags.contains(&Flag::HostLimited);
        if is_far && is_claimed {
            self.flags.retain(|flag| *flag != Flag::HostLimited);
            let explains = |flag: &Flag| matches!(flag, Flag::Reordered(_) | Flag::Policed { .. });
            let is_explained = self.flags.iter().any(explains);
            if !is_explained && self.bound != Bound::None {
                self.flags.push(Flag::Unexplained);
            }
        }
        self
    }
}

/// Of what a host can do: it sets no figure that is lower.
pub const NEAR: f64 = 0.25;

/// A bandwidth at which pairs of packets gather.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateMode {
    /// Slowest pair of its fullest window, bit/s.
    pub lo: f64,
    /// Fastest pair of that window, bit/s.
    pub hi: f64,
    /// Of all pairs, those in that window, 0..=1.
    pub share: f64,
    /// What decides among modes; more is better.
    pub merit: f64,
    /// Whether the method took it for the capacity.
    pub chosen: bool,
}

/// Whether the truth may lie beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The truth lies in the interval.
    None,
    /// The truth is at least the interval's lower bound.
    AtLeast,
    /// The truth is at most the interval's upper bound.
    AtMost,
}

/// What was noticed on the way.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Flag {
    /// The hosts, not the path, set the figure.
    HostLimited,
    /// The figure is a bound, and what held the method up is not known: it is not that the hosts
    /// cannot do more.
    Unexplained,
    /// Others used the hosts meanwhile: the interval, or the bound, holds what that may have done.
    HostBusy {
        /// Share of the time that they wanted a core and had none, 0..1.
        away: f64,
    },
    /// Arrivals were handed over in batches: their period, and packets in one.
    Coalescing {
        /// From batch to batch.
        period: Span,
        /// Packets, on average.
        batch: f64,
    },
    /// Share of the packets lost, 0..=1.
    Lossy(f64),
    /// Most of what was lost was lost in one stretch: the path was gone for a while.
    Interrupted {
        /// Packets in a row that were lost.
        packets: u64,
        /// From the first of them to the last.
        over: Span,
    },
    /// Share of the packets that came behind later ones, 0..=1.
    Reordered(f64),
    /// The delay moved by more than queueing explains: another path, or a clock that was set.
    PathChanged,
    /// The path became far slower in the middle.
    Slower {
        /// Rate that it carried before, bit/s.
        from: f64,
        /// And after, bit/s.
        to: f64,
    },
    /// Cross traffic gave way to the probes.
    Elastic,
    /// The answers of several modes or methods disagree.
    Ambiguous,
    /// Time or bytes ran out before the method was content.
    CutShort,
    /// Too few trains came in a way that the method can read: packets were lost, or handed over in
    /// batches that hide how far apart they came. More time would not have changed that.
    Unreadable,
    /// Trains differed by more than the measurement could average out, or were too few for that: a
    /// rough figure. Traffic that varies makes them so, and so do jitter and hosts.
    Noisy,
    /// Short bulks pass at this rate, bit/s; what lasts is held to the figure by a token bucket.
    Shaped {
        /// The rate that a credit buys.
        peak: f64,
    },
    /// Trains pass at this rate, bit/s, and packets behind their first ones are dropped as a
    /// policer drops them: what lasts is known as far as the bound says.
    Policed {
        /// The rate that a credit seems to buy.
        peak: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_probes_at_gigabits_is_not_the_limit_of_ten_megabits() {
        let bound = |rate: f64, more: &[Flag]| Estimate {
            rate: Interval { estimate: rate, lo: rate * 0.9, hi: rate, confidence: 0.95 },
            bound: Bound::AtLeast,
            method: "bulk",
            bytes: 0,
            packets: 0,
            took: Span::ZERO,
            flags: [&[Flag::HostLimited], more].concat(),
        };
        let told = |rate, more: &[Flag], host| bound(rate, more).unless_host_is_faster(host).flags;
        assert_eq!(told(1e7, &[], Some(4.5e9)), [Flag::Unexplained]);
        assert_eq!(told(1e7, &[Flag::Reordered(0.3)], Some(4.5e9)), [Flag::Reordered(0.3)]);
        assert_eq!(told(2e9, &[], Some(4.5e9)), [Flag::HostLimited]);
        assert_eq!(told(1e7, &[], None), [Flag::HostLimited]);
        let mut at_once = bound(1e7, &[Flag::Reordered(0.4)]);
        at_once.rate.estimate = 2e9;
        assert_eq!(at_once.unless_host_is_faster(Some(4.5e9)).flags, [Flag::Reordered(0.4)]);
        let figure = Estimate { bound: Bound::None, ..bound(1e7, &[]) };
        assert_eq!(figure.unless_host_is_faster(Some(4.5e9)).flags, []);
    }
}

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
    /// Others used the hosts meanwhile: the interval holds what that may have done.
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
    /// The path's traffic varied more than the measurement could average out: the interval is wide.
    Noisy,
    /// Short bulks pass at this rate, bit/s; what lasts is held to the figure by a token bucket.
    Shaped {
        /// The rate that a credit buys.
        peak: f64,
    },
}

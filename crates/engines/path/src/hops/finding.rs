//! What was found out, hop by hop.

use std::net::IpAddr;

use netaware_stats::ceasing::Ceased;
use netaware_stats::interval::Interval;
use netaware_units::Span;

use super::ration::AnswerRate;
use super::segments::Segments;
use super::slope::Way;
use crate::estimate::Bound;

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct HopsFinding {
    /// From the first router on.
    pub hops: Vec<HopFinding>,
    /// Whether the last of them is the destination.
    pub reached: bool,
    /// Hop number at which trains are stretched last: the tight link's, as seen from here.
    pub choke_point: Option<u8>,
    /// Trains sent.
    pub trains: u32,
    /// Largest IP packet used, bytes.
    pub largest: u32,
    /// Packets sent.
    pub packets: u64,
    /// IP bytes sent.
    pub bytes: u64,
    /// From the first packet to the last report.
    pub took: Span,
    /// The destination answered, and then no more until the end; or, where it never did, all hops.
    pub ceased: Option<Ceased>,
    /// What holds for the path as a whole.
    pub flags: Vec<PathFlag>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct HopFinding {
    /// 1 is the first router.
    pub ttl: u8,
    /// Who answered, most frequent first; empty for a silent hop.
    pub addresses: Vec<IpAddr>,
    /// Probes that asked it alone.
    pub asked: u32,
    /// Of these, answered.
    pub answered: u32,
    /// Smallest round trip of the smallest packets.
    pub rtt_min: Option<Span>,
    /// Median of the same.
    pub rtt_median: Option<Span>,
    /// What round trips took beyond the smallest of their size.
    pub queueing: Option<Queueing>,
    /// The link in front of it.
    pub capacity: Option<HopCapacity>,
    /// Trains as they came by here.
    pub train: Option<TrainAtHop>,
    /// What a reader must know.
    pub flags: Vec<HopFlag>,
}

/// Time in queues, there and back, up to a hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queueing {
    /// Half of the round trips took no longer.
    pub median: Span,
    /// One of ten took longer.
    pub p90: Span,
    /// Mean, less that of the hop before; may be below zero by chance.
    pub own_mean: Span,
}

/// The rate of the link in front of a hop, and of those before it back to the last hop with a
/// slope.
#[derive(Debug, Clone, PartialEq)]
pub struct HopCapacity {
    /// bit/s.
    pub rate: Interval,
    /// Whether it is a bound.
    pub bound: Bound,
    /// The same by least squares, bit/s.
    pub least_squares: Option<f64>,
    /// How the slope came about.
    pub way: Way,
    /// The first hop it covers: its own number unless hops in between have no slope.
    pub from: u8,
    /// Layer-2 segments that would explain it.
    pub segments: Option<Segments>,
    /// Sizes behind the slope.
    pub sizes: usize,
    /// Delays behind the slope.
    pub samples: usize,
}

/// How long a train was at a hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainAtHop {
    /// Bits of the train over the time between the answers to its ends, median, bit/s.
    pub rate: f64,
    /// Trains of which both ends were answered.
    pub seen: u32,
    /// Whether trains come out longer than from any hop before.
    pub stretched: bool,
}

/// What was noticed at a hop.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum HopFlag {
    /// It never answered.
    Silent,
    /// It answers a part of what it is asked, so it was asked less often; and how many times a
    /// second it answers, as far as that is known.
    RateLimited(Option<AnswerRate>),
    /// Several addresses answer in turns: parallel paths, or one router's several.
    SeveralAddresses,
    /// Another address answers since, or the smallest round trip moved.
    PathChanged,
    /// Least squares and Theil-Sen disagree by more than the interval.
    FitsDisagree,
    /// The slope falls: no figure.
    SlopeFalls,
    /// Too few sizes were answered for a slope.
    TooFewAnswers,
    /// The figure assumes one rate both ways.
    AssumesSymmetry,
    /// The answers to large packets may have been in the way of the small ones' answers.
    AnswersInTheWay,
    /// It is so much faster than a link before it that the small packet has fallen behind: the
    /// figure is the rate from which on that happens, as a bound.
    FellBehind,
    /// What this host's stamps err, how far apart it sends, or how long it had no core, leaves no
    /// more than this.
    HostLimited,
}

/// What was noticed of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum PathFlag {
    /// The destination did not answer; the last hop is the furthest that did.
    DestinationSilent,
    /// A router goes no further.
    Refused,
    /// Packets larger than this did not pass, bytes.
    Mtu(u32),
    /// The way changed while it was measured.
    PathChanged,
    /// Time ran out before every size had been asked for.
    CutShort,
    /// Others used this host meanwhile: intervals hold what that may have done.
    HostBusy {
        /// Share of the time that it wanted a core and had none, 0..1.
        away: f64,
    },
}

//! Why a measurement of a path's rate has no figure.

use netaware_units::Span;

/// The reason, for the record and for people: whoever has no figure has one of these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoFigure {
    /// None of the packets left the sending host.
    NotSent,
    /// Packets left, and none of them came.
    NothingCame {
        /// How many left.
        packets: u64,
    },
    /// Packets came at first, and later none did.
    WentSilent {
        /// How many of the last ones did not come.
        packets: u64,
    },
    /// So much was lost that too few trains came whole: share of what left, 0..=1.
    TooLossy(f64),
    /// Trains lose what comes behind their first packets, as behind a policer, and no rate of them
    /// is one that lasts.
    Policed {
        /// Share of what left that was lost, 0..=1.
        lost: f64,
        /// Rate at which packets came all the same, bit/s.
        lasts: f64,
    },
    /// Most of what was lost was lost in one stretch: the path was gone for a while, and what came
    /// before and after was too little.
    Interrupted {
        /// Packets in a row that were lost.
        packets: u64,
        /// From the first of them to the last.
        over: Span,
    },
    /// The time was too short for the packets that the method needs at the load that is allowed.
    TooShort {
        /// Rate that the path was seen to carry, bit/s, as far as that is known.
        carried: Option<f64>,
        /// A time limit that would be enough, if the path stays as it was.
        enough: Option<Span>,
    },
    /// The shortest train that says something would fill the path for too long: rate that the path
    /// was seen to carry, bit/s.
    TooSlow(f64),
    /// The receiving host handed packets over in batches that hide how far apart they came.
    Batched,
    /// The path or a clock changed in the middle.
    PathChanged,
    /// The path became far slower in the middle, and a figure of before is not true of it any more.
    Slower {
        /// Rate that the path carried before, bit/s.
        from: f64,
        /// And after, bit/s.
        to: f64,
    },
    /// Nothing is left for this traffic, or less than the method can tell from nothing.
    NothingLeft,
    /// Somebody stopped the measurement before there was a figure.
    Stopped,
    /// Trains came, and do not say the same.
    Undecided,
}

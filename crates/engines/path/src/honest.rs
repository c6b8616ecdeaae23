//! The highest rate that a host can probe with a stated error, and what limits it: arithmetic over
//! what the host was measured to cost.
//!
//! A rate is a distance: packets of L bytes at R bit/s are 8 L / R apart. Whatever the host adds to
//! a distance (the clock's resolution, the error of stamps, the cost of a call) is there at any
//! rate, so its share grows with the rate, and the highest rate at which it is no more than ε of
//! what is measured follows. For a clock that errs by `t`:
//!
//! ```text
//!   t / (8 L / R) <= ε   =>   R <= ε 8 L / t          959 ns on packets of 1500 B at 1 Gbit/s: 8 %, at 10 Gbit/s: 80 %
//! ```
//!
//! (Jin and Tierney, "System capability effects on algorithms for network bandwidth measurement",
//! IMC 2003; the example is from §6.) Ways of probing differ in the distance that they measure: a
//! pair has one, a train of N packets has N - 1 of them in one. Each way has several such ceilings;
//! the lowest counts, and [`HonestRate`] names it with its formula.
//!
//! **Assumes** that costs measured on loopback hold on the path's interface. **Biased low** for
//! sending, since on loopback the sender pays for the delivery too; **high** for anything that a
//! card does to packets and does not tell, as moderation that no traffic has shown. Where the
//! system does not tell something (link rate, coalescing), its ceiling is left out, not guessed.

mod ceiling;
mod cost;

pub use ceiling::Ceiling;
pub use cost::CostBySize;

use ceiling::Distance;

/// What a host was measured to cost. Times in ns.
#[derive(Debug, Clone, PartialEq)]
pub struct HostCosts {
    /// One reading of the clock.
    pub clock_read: f64,
    /// Shortest time that two readings tell apart.
    pub clock_resolution: f64,
    /// Standard error of one stamp.
    pub stamp_error: f64,
    /// Arrivals are stamped by the kernel, not by the program.
    pub kernel_stamps: bool,
    /// From the begin of one send to the next.
    pub send: CostBySize,
    /// Taking in a datagram with its stamp.
    pub receive: CostBySize,
    /// A datagram of many that are handed over and taken in together, both ends at work.
    pub bulk: CostBySize,
    /// How late a paced packet leaves, 99th percentile: rare stalls are seen as such, and are no
    /// matter of the rate.
    pub pacing: Option<f64>,
    /// Copying a byte.
    pub memory_copy: Option<f64>,
    /// Period at which the card hands over arrivals.
    pub coalescing: Option<f64>,
    /// Packets that its receiving ring holds.
    pub ring: Option<f64>,
    /// Rate of the card's link, bit/s on the wire.
    pub link: Option<f64>,
    /// Most bytes of a train.
    pub largest_burst: u64,
}

/// How packets are laid out in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Two packets: pathrate's pairs, spruce, the paired echoes of reach.
    Pairs,
    /// Steps of three packets, each faster than the one before: chirp.
    Chirps,
    /// Streams of even distances in which a trend is looked for: slops.
    Streams,
    /// Trains that are looked at as a whole: bulk, curve.
    Trains,
    /// Round trips of lone packets of several sizes: hops.
    Sizes,
    /// One packet per call for seconds: maximum.
    Filling,
    /// A stream at planned distances: udp with a spacing.
    Paced,
    /// As much as can be handed over: udp without one.
    Bulk,
}

impl Way {
    /// All, the most demanding first.
    pub const ALL: [Self; 8] = [
        Self::Sizes,
        Self::Pairs,
        Self::Chirps,
        Self::Streams,
        Self::Trains,
        Self::Paced,
        Self::Filling,
        Self::Bulk,
    ];

    /// The word in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Chirps => "chirps",
            Self::Streams => "streams",
            Self::Trains => "trains",
            Self::Sizes => "sizes",
            Self::Filling => "filling",
            Self::Paced => "paced",
            Self::Bulk => "bulk",
        }
    }

    /// The methods that probe so.
    pub fn methods(self) -> &'static [&'static str] {
        match self {
            Self::Pairs => &["pathrate", "spruce", "reach"],
            Self::Chirps => &["chirp"],
            Self::Streams => &["slops"],
            Self::Trains => &["bulk", "curve"],
            Self::Sizes => &["hops"],
            Self::Filling => &["maximum"],
            Self::Paced => &["udp --spacing"],
            Self::Bulk => &["udp"],
        }
    }

    /// Of the method that an [`Estimate`](crate::Estimate) names.
    pub fn of_method(method: &str) -> Self {
        match method {
            "pathrate" | "spruce" | "reach" => Self::Pairs,
            "hops" => Self::Sizes,
            "chirp" => Self::Chirps,
            "slops" => Self::Streams,
            "maximum-capacity" => Self::Filling,
            // What `auto` ends with when both of its methods agree is a train's figure.
            _ => Self::Trains,
        }
    }
}

/// A rate that a host can probe, bit/s of whole IP packets.
#[derive(Debug, Clone, PartialEq)]
pub struct HonestRate {
    /// How.
    pub way: Way,
    /// IP packet, bytes.
    pub packet: u32,
    /// Relative error that was allowed.
    pub error: f64,
    /// The ceilings, lowest first; never empty.
    pub ceilings: Vec<Ceiling>,
}

impl HonestRate {
    /// The ceilings of one way with packets of one size; `None` if nothing that would limit it was
    /// measured.
    pub fn of(costs: &HostCosts, way: Way, packet: u32, error: f64) -> Option<Self> {
        let distance = Distance::new(costs, packet, error);
        let mut ceilings = match way {
            Way::Pairs => pairs(&distance),
            Way::Chirps => chirps(&distance),
            Way::Streams => streams(&distance),
            Way::Trains => trains(&distance),
            Way::Sizes => vec![distance.sizes(SMALLEST_PROBE), distance.clock()],
            Way::Filling => vec![distance.sending(), distance.receiving()],
            Way::Paced => vec![distance.sending(), distance.pacing()],
            Way::Bulk => vec![distance.bulk()],
        };
        ceilings.extend([distance.memory(), distance.link(), distance.ring()]);
        let mut ceilings: Vec<Ceiling> = ceilings.into_iter().flatten().filter(Ceiling::is_usable).collect();
        ceilings.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        // A link alone says nothing of who probes it.
        let has_own = ceilings.iter().any(|ceiling| !matches!(ceiling.by, "link" | "ring" | "memory"));
        has_own.then_some(Self { way, packet, error, ceilings })
    }

    /// All ways with packets of each size, way by way.
    pub fn table(costs: &HostCosts, packets: &[u32], error: f64) -> Vec<Self> {
        let each = |way| packets.iter().filter_map(move |packet| Self::of(costs, way, *packet, error));
        Way::ALL.into_iter().flat_map(each).collect()
    }

    /// The lowest ceiling.
    pub fn limit(&self) -> &Ceiling {
        &self.ceilings[0]
    }
}

fn pairs(of: &Distance<'_>) -> Vec<Option<Ceiling>> {
    vec![of.sending(), of.stamps("a pair", 1), of.clock(), of.calls(), of.coalescing("a pair", 1, 1.0)]
}

fn chirps(of: &Distance<'_>) -> Vec<Option<Ceiling>> {
    let gaps = CHIRP_STEP;
    vec![
        of.sending(),
        of.stamps("a step of three packets", gaps),
        of.coalescing("a step of three packets", gaps, CHIRP_PERIODS),
    ]
}

fn streams(of: &Distance<'_>) -> Vec<Option<Ceiling>> {
    let gaps = of.longest_train() - 1;
    let what = format!("a stream of {} packets", gaps + 1);
    let lasting = of.lasting_stamps(&what, gaps, STREAM_ERRORS);
    vec![of.sending(), lasting, of.coalescing(&what, gaps, STREAM_PERIODS)]
}

fn trains(of: &Distance<'_>) -> Vec<Option<Ceiling>> {
    let gaps = of.longest_train() - 1;
    let what = format!("a train of {} packets", gaps + 1);
    vec![of.sending(), of.stamps(&what, gaps), of.coalescing(&what, gaps, TRAIN_PERIODS)]
}

/// Smallest packet of [`hops`](crate::hops), that of IPv6, bytes.
const SMALLEST_PROBE: u32 = 64;
/// Distances in a step of [`chirp`](crate::available::Chirp).
const CHIRP_STEP: u32 = 3;
/// Periods of coalescing that its steps last.
const CHIRP_PERIODS: f64 = 2.5;
/// Stamp errors that a stream of [`slops`](crate::available::Slops) lasts: a trend is fainter than
/// a mean.
const STREAM_ERRORS: f64 = 600.0;
/// Periods of coalescing that it lasts.
const STREAM_PERIODS: f64 = 12.0;
/// Of a whole train: a batch too many or too few at its ends is five per cent at most.
const TRAIN_PERIODS: f64 = 20.0;

#[cfg(test)]
mod tests;

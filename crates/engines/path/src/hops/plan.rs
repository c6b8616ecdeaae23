//! What a measurement of hops is told to do.

use netaware_units::Span;

/// How slopes are come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapacityWay {
    /// Directly where a hop's answers allow it, by tailgating elsewhere.
    #[default]
    Automatic,
    /// By answers of the hop itself only.
    Direct,
    /// By small packets behind large ones only.
    Tailgating,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub struct HopsPlan {
    /// Highest TTL tried, 1..=255.
    pub max_hops: u8,
    /// Smallest IP packet, bytes.
    pub smallest: u32,
    /// Largest IP packet, bytes.
    pub largest: u32,
    /// IP length of the small packet behind a large one, bytes.
    pub tail: u32,
    /// IP header, bytes.
    pub header: u32,
    /// IP lengths to use instead of evenly spaced ones; at least five.
    pub sizes: Vec<u32>,
    /// What the whole may take.
    pub time: Span,
    /// Ends sooner when each hop has so many delays behind its slope.
    pub per_hop: Option<u32>,
    /// How slopes are come by.
    pub way: CapacityWay,
    /// Whether echoes can be sent.
    pub echo: bool,
    /// Whether choke points are looked for.
    pub trains: bool,
    /// How wrong a smallest delay may be for reasons of the host's own that repetition does not
    /// show.
    pub stamp_error: Span,
    /// Shortest distance at which the host starts two packets: what a small packet is behind a
    /// large one at least.
    pub send_gap: Span,
    /// Of the order of sizes.
    pub seed: u64,
}

//! Trains of packets: what is to be sent, and what became of it.

use netaware_units::Span;

/// Packets of one length at planned distances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Train {
    /// At least one.
    pub packets: u32,
    /// Bytes of each IP packet, headers included.
    pub length: u32,
    /// From packet to packet.
    pub gaps: Gaps,
    /// From the plan's last packet of the train before (or the volley's begin) to the first packet
    /// of this one.
    pub rest: Span,
}

/// Distances from the begin of one packet to the begin of the next, as planned; ps, so that rates
/// are exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gaps {
    /// As fast as the host can.
    BackToBack,
    /// All the same.
    Even(u64),
    /// One for each packet but the first.
    Each(Vec<u64>),
}

/// Trains that are sent one after the other without waiting for an answer: one question to the
/// other host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Volley {
    /// In the order of sending.
    pub trains: Vec<Train>,
}

/// What became of a [`Volley`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VolleyReport {
    /// As many as the volley has trains, in its order.
    pub trains: Vec<TrainReport>,
}

/// What became of one train. Times of sending and of arrival are of two clocks without a common
/// origin; each runs through the whole measurement without a break.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrainReport {
    /// When each packet left, by the sender's clock, ns, by number; `None` for one that never left.
    pub sent: Vec<Option<i64>>,
    /// In the order of arrival, each packet at most once.
    pub arrivals: Vec<Arrival>,
}

/// A packet that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number in the train, from zero.
    pub number: u32,
    /// By the receiver's clock, ns.
    pub at: i64,
}

impl Volley {
    /// Bytes of all its IP packets.
    pub fn bytes(&self) -> u64 {
        self.trains.iter().map(|train| u64::from(train.packets) * u64::from(train.length)).sum()
    }
}

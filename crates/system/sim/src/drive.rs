//! What became of the datagrams of a run.

use netaware_engine::Tag;
use netaware_netmodel::Side;
use netaware_units::{Mono, Span};

/// A run, as somebody saw it who knows everything.
#[derive(Debug, Clone, PartialEq)]
pub struct Drive {
    /// How it came to its end.
    pub ended: Ended,
    /// True time.
    pub began_at: Mono,
    /// True time.
    pub ended_at: Mono,
    /// What A sent, then what B sent.
    pub ways: [Way; 2],
}

impl Drive {
    pub(crate) fn new(began_at: Mono) -> Self {
        Self { ended: Ended::CutOff, began_at, ended_at: began_at, ways: [Way::default(), Way::default()] }
    }

    /// What this host sent.
    pub fn way(&self, from: Side) -> &Way {
        &self.ways[index(from)]
    }

    pub(crate) fn way_mut(&mut self, from: Side) -> &mut Way {
        &mut self.ways[index(from)]
    }
}

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The engine at A said that it was done.
    Done,
    /// Its time was over, or nothing was left that could happen.
    CutOff,
}

/// The datagrams of one host. `sent = delays + corrupted + dropped + too_big + time_exceeded +`
/// those still under way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Way {
    /// Left the host.
    pub sent: u64,
    /// Never left it.
    pub not_sent: u64,
    /// Tag of each datagram that arrived, and its true one-way delay, in the order of arrival;
    /// copies left out.
    pub delays: Vec<(Tag, Span)>,
    /// Further copies that arrived.
    pub copies: u64,
    /// Arrived with a flipped bit, so that the host's checksum dropped it; copies left out.
    pub corrupted: u64,
    /// Gone on the way, by cause in the order of `DropCause::ALL`.
    pub dropped: [u64; 11],
    /// A router answered that it is too big for the next link.
    pub too_big: u64,
    /// A router answered that its hop limit ran out.
    pub time_exceeded: u64,
}

impl Way {
    /// Datagrams that left and did not arrive as they were sent.
    pub fn lost(&self) -> u64 {
        self.corrupted + self.dropped.iter().sum::<u64>() + self.too_big + self.time_exceeded
    }
}

pub(crate) const fn index(side: Side) -> usize {
    match side {
        Side::A => 0,
        Side::B => 1,
    }
}

//! What a stream knows of one connection.

use std::collections::VecDeque;

use netaware_units::Span;
use netaware_wire::dual::Record;

use super::Violation;

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Link {
    pub(super) up: bool,
    /// Which connection of its IP version it is; the last one where there is none now.
    pub(super) generation: u32,
    /// To be written before anything else.
    pub(super) said: VecDeque<Record>,
    /// There and back.
    pub(super) round_trip: Option<Span>,
}

impl Link {
    pub(super) fn up(generation: u32) -> Self {
        Self { up: true, generation, ..Self::default() }
    }

    pub(super) fn down(generation: u32) -> Self {
        Self { generation, ..Self::default() }
    }

    /// Whether the peer listens at all: one that asks faster than that would make this end keep its
    /// answers.
    pub(super) fn hears(&self) -> Result<(), Violation> {
        if self.said.len() < MOST_SAID { Ok(()) } else { Err(Violation::TooMuchAsked) }
    }
}

/// Far more than a peer that keeps the rules has unanswered.
const MOST_SAID: usize = 64;

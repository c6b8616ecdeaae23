//! Arrivals one by one, for those who want to see each.

use netaware_record::LoggedArrival;
use netaware_units::Mono;
use netaware_wire::control::{MAX_LOGGED, UdpPlan};

/// Holds the first [`MAX_LOGGED`] arrivals, and counts the rest.
#[derive(Debug)]
pub(super) struct ArrivalLog {
    arrivals: Vec<LoggedArrival>,
    beyond: u64,
}

impl ArrivalLog {
    /// `None` if the plan wants none. Memory is taken at once, so that none is looked for while
    /// datagrams arrive.
    pub(super) fn new(plan: &UdpPlan) -> Option<Self> {
        let expected = plan.packets.map_or(MAX_LOGGED, |n| usize::try_from(n).unwrap_or(MAX_LOGGED));
        // Copies may come besides.
        let room = expected.saturating_add(expected / 16).saturating_add(16).min(MAX_LOGGED);
        plan.log.then(|| Self { arrivals: Vec::with_capacity(room), beyond: 0 })
    }

    #[inline]
    pub(super) fn take(&mut self, seq: u64, sent_at: u64, at: Mono) {
        if self.arrivals.len() < MAX_LOGGED {
            self.arrivals.push(LoggedArrival(seq, sent_at, at.0));
        } else {
            self.beyond += 1;
        }
    }

    /// The arrivals, and how many more there were.
    pub(super) fn finish(self) -> (Vec<LoggedArrival>, u64) {
        (self.arrivals, self.beyond)
    }
}

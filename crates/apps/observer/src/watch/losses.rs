//! Which periods a loss belongs to.
//!
//! The kernel tells how many packets it dropped since it was asked last, and it is asked when a
//! period closes: some may have been dropped in later periods that close in the same turn (this
//! process was held up), or since the end of the last, in the one that runs. The count goes to the
//! first, so that no packet is lost twice; the others are marked as doubtful, so that nobody takes
//! them for complete and calls a packet that they lack a loss of the network.

use netaware_record::passive::CaptureHealth;

use super::source::Source;
use super::station::Handed;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// The period that ran when something was last lost.
    running_is_doubtful: bool,
}

impl Losses {
    /// Adds what `source` lost to the periods that close.
    pub(super) fn charge(&mut self, handed: &mut [Handed], source: &mut dyn Source) {
        let mut closed = handed.iter_mut().filter_map(closed);
        let Some(first) = closed.next() else { return };
        let lost = source.health();
        let loses = lost.lost() > 0 || lost.link_was_down;
        let before = std::mem::replace(&mut self.running_is_doubtful, loses);
        add(first, &lost);
        first.doubtful = loses || before;
        closed.for_each(|health| health.doubtful = loses);
    }
}

/// Last words of tasks are no period.
fn closed(handed: &mut Handed) -> Option<&mut CaptureHealth> {
    match handed {
        Handed::Closed(period, health, _) if period.until > period.from => Some(health),
        Handed::Closed(..) | Handed::Sightings(_) => None,
    }
}

/// Counts of one cause each add up; packets are the station's.
fn add(health: &mut CaptureHealth, source: &CaptureHealth) {
    health.lost_ring += source.lost_ring;
    health.lost_kernel += source.lost_kernel;
    health.lost_nic = match (health.lost_nic, source.lost_nic) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
    };
    health.merged += source.merged;
    health.link_was_down |= source.link_was_down;
    health.mtu_changed |= source.mtu_changed;
    health.backlog = health.backlog.max(source.backlog);
    health.lost_by_writer += source.lost_by_writer;
    health.stamped_by_nic += source.stamped_by_nic;
}

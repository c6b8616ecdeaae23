//! The emulator's own error: by this a run is believed or thrown away.

use netaware_netmodel::scenario::Protocol;
use netaware_units::Span;
use serde::{Deserialize, Serialize};

use crate::tally::Tally;

/// What an emulator did and how well. Times are in nanoseconds.
///
/// Lateness is that of the release: from the instant at which the model lets a packet go to the
/// instant at which it is handed to the receiving host. How late a packet was *seen* after its
/// sender's kernel had it is told beside it ([`Self::seen_p99`]); for each of [`Self::woken`] it is
/// the time of a wake-up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How long it has been running.
    pub elapsed: Span,
    /// Packets that entered the path.
    pub taken: u64,
    /// What host A sent into the path, by protocol.
    #[serde(default)]
    pub entered_from_a: Entered,
    /// The same of host B.
    #[serde(default)]
    pub entered_from_b: Entered,
    /// Packets, duplicates and ICMP answers that were handed to a host.
    pub released: u64,
    /// Median lateness; absent before the first release, like the others.
    pub lateness_p50: Option<Span>,
    /// What one in a hundred exceeds.
    pub lateness_p99: Option<Span>,
    /// The worst, exact.
    pub lateness_max: Option<Span>,
    /// How late packets were seen: what one in a hundred lay in its host's device for longer than.
    /// Where each packet's truth is written, by the kernel's stamps, and told there; elsewhere an
    /// upper bound, by the time since the loop had last found nothing there, without the packets
    /// that ended a sleep.
    #[serde(default)]
    pub seen_p99: Option<Span>,
    /// Of the same, the mean: what a mean delay is longer by than the scenario and the lateness
    /// say.
    #[serde(default)]
    pub seen_mean: Option<Span>,
    /// And the most.
    #[serde(default)]
    pub seen_max: Option<Span>,
    /// Packets lost that the scenario would have delivered.
    pub own_drops: OwnDrops,
    /// How often the thread was without its core for more than 1 ms.
    pub core_losses: u64,
    /// The longest of these.
    pub longest_core_loss: Span,
    /// Packets that were taken right after a sleep.
    pub woken: u64,
    /// What one in a hundred sleeps of the emulator overran its timer by: about what a packet that
    /// woke it was seen late by.
    #[serde(default)]
    pub oversleep_p99: Option<Span>,
    /// Packets for nobody in the lab; the kernel sends some by itself. They were not offered to the
    /// path.
    pub strangers: u64,
    /// Lines of truth that are missing because the disk was behind.
    pub truth_missing: u64,
    /// Whether the thread runs before all ordinary ones (`SCHED_FIFO`).
    pub raised: bool,
    /// The core it keeps to, counted from 0.
    pub core: Option<usize>,
    /// Why the emulator ended by itself; absent while it runs and when it was told to end.
    pub ended: Option<String>,
}

/// What a host sent into the path. What its own device had no room for is in
/// [`OwnDrops::not_read`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entered {
    /// UDP.
    pub udp: EnteredCount,
    /// TCP.
    pub tcp: EnteredCount,
    /// ICMP and `ICMPv6`.
    pub icmp: EnteredCount,
    /// Anything else, later fragments included.
    pub other: EnteredCount,
}

/// Packets of one protocol that entered the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnteredCount {
    /// How many.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// IP bytes in the second that had the most, counted in whole seconds since time zero.
    pub busiest_second: u64,
}

impl Entered {
    pub(crate) fn of_mut(&mut self, protocol: Protocol) -> &mut EnteredCount {
        match protocol {
            Protocol::Udp => &mut self.udp,
            Protocol::Tcp => &mut self.tcp,
            Protocol::Icmp => &mut self.icmp,
            Protocol::Other => &mut self.other,
        }
    }
}

/// Packets that are the emulator's fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnDrops {
    /// No room left for packets on their way.
    pub slab_full: u64,
    /// The receiving host's TUN device did not take it.
    pub write_refused: u64,
    /// The sending host's TUN queue was full: we did not read fast enough.
    pub not_read: u64,
}

impl OwnDrops {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.slab_full + self.write_refused + self.not_read
    }
}

impl Report {
    /// Whether a run may be blamed on what ran in it: 99 of 100 packets were at most `bound` late,
    /// and none was lost by us.
    pub fn is_valid(&self, bound: Span) -> bool {
        self.why_invalid(bound).is_none()
    }

    /// In words, what spoiled the run; `None` if nothing did.
    pub fn why_invalid(&self, bound: Span) -> Option<String> {
        if let Some(why) = &self.ended {
            return Some(format!("the emulator ended: {why}"));
        }
        if self.own_drops.total() > 0 {
            let OwnDrops { slab_full, write_refused, not_read } = self.own_drops;
            return Some(format!(
                "the emulator itself lost packets: {slab_full} for want of room, {write_refused} refused by a host, \
                 {not_read} not read in time"
            ));
        }
        let late = self.lateness_p99.filter(|p99| *p99 > bound)?;
        Some(format!("one in a hundred packets was released more than {late} late, the bound is {bound}"))
    }

    pub(crate) fn of(tally: &Tally, not_read: u64, raised: bool, core: Option<usize>) -> Self {
        let latest = (tally.released > 0).then_some(tally.latest);
        Self {
            elapsed: tally.now - tally.since,
            taken: tally.taken,
            entered_from_a: tally.entered[0],
            entered_from_b: tally.entered[1],
            released: tally.released,
            lateness_p50: tally.lateness(0.5),
            lateness_p99: tally.lateness(0.99),
            lateness_max: latest,
            seen_p99: tally.seen_late(0.99),
            seen_mean: tally.seen_late_mean(),
            seen_max: tally.seen_late(1.0),
            own_drops: OwnDrops { slab_full: tally.slab_full, write_refused: tally.write_refused, not_read },
            core_losses: tally.core_losses,
            longest_core_loss: tally.longest_core_loss,
            woken: tally.woken,
            oversleep_p99: tally.oversleep(0.99),
            strangers: tally.strangers,
            truth_missing: tally.truth_missing,
            raised,
            core,
            ended: None,
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} packets in, {} out", self.taken, self.released)?;
        if let (Some(p50), Some(p99), Some(max)) = (self.lateness_p50, self.lateness_p99, self.lateness_max) {
            write!(f, "; late by {p50} (half), {p99} (1 in 100), {max} (worst)")?;
        }
        write!(f, "; {} lost by the emulator", self.own_drops.total())?;
        if self.core_losses > 0 {
            write!(f, "; without its core {} times, longest {}", self.core_losses, self.longest_core_loss)?;
        }
        if !self.raised {
            f.write_str("; without priority")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::Mono;

    use super::*;

    #[test]
    fn a_late_run_and_a_run_with_losses_of_our_own_are_invalid() {
        let mut tally = Tally::new(Mono(0));
        (0..100).for_each(|_| tally.released(Span::from_micros(10)));
        let good = Report::of(&tally, 0, true, Some(1));
        assert!(good.is_valid(Span::from_micros(11)) && !good.is_valid(Span::from_micros(9)));
        let lossy = Report::of(&tally, 1, true, Some(1));
        assert!(lossy.why_invalid(Span::from_secs(1)).unwrap().contains("1 not read in time"));
    }

    #[test]
    fn an_emulator_without_packets_is_valid_and_says_so() {
        let report = Report::of(&Tally::new(Mono(0)), 0, true, None);
        assert!(report.is_valid(Span::ZERO));
        assert_eq!(report.to_string(), "0 packets in, 0 out; 0 lost by the emulator");
    }
}

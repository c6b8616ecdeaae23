//! When the datagrams of a planned stream are due, and the account of how they kept to it.

use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::UdpPlan;

use super::outbox::Outbox;
use super::refusals::Refusals;
use crate::pacer::Pacer;
use crate::stop::StopFlag;

/// Due times from `start` to the plan's end.
#[derive(Debug)]
pub(super) struct Timetable<'a> {
    pub(super) pacer: Pacer,
    pub(super) gap: Span,
    pub(super) refusals: Refusals,
    start: Mono,
    end: Mono,
    packets: u64,
    /// Datagrams of each step.
    burst: u64,
    stop: &'a StopFlag,
    last: Option<Mono>,
    late: u64,
    worst: Span,
}

impl<'a> Timetable<'a> {
    pub(super) fn new(plan: &UdpPlan, start: Mono, gap_ps: u64, stop: &'a StopFlag) -> Self {
        Self {
            pacer: Pacer::new(start, gap_ps),
            gap: Span((gap_ps / 1000) as i64),
            refusals: Refusals::default(),
            start,
            end: start + plan.duration.or_zero(),
            packets: plan.packets.unwrap_or(u64::MAX),
            burst: u64::from(plan.burst.max(1)),
            stop,
            last: None,
            late: 0,
            worst: Span::ZERO,
        }
    }

    /// Datagrams of the steps that have passed.
    fn passed(&self) -> u64 {
        self.pacer.steps().saturating_mul(self.burst)
    }

    /// How many datagrams leave at the present step: a burst, or what is left of the plan.
    #[inline]
    pub(super) fn now_due(&self) -> u64 {
        self.burst.min(self.packets.saturating_sub(self.passed()))
    }

    /// Leaves out the steps that were due before `now`.
    pub(super) fn skip_to(&mut self, now: Mono) {
        let before = self.passed().min(self.packets);
        // What would come after the end was never planned.
        self.pacer.skip_to(now.min(self.end));
        self.refusals.left_out(self.passed().min(self.packets) - before);
    }

    /// When the next datagram is due, or how the stream ended.
    #[inline]
    pub(super) fn due(&self) -> Result<Mono, Outcome> {
        let due = self.pacer.due();
        if due >= self.end || self.passed() >= self.packets {
            return Err(Outcome::Complete);
        }
        if self.stop.is_raised() {
            return Err(Outcome::Interrupted);
        }
        Ok(due)
    }

    /// While catching up, a datagram follows the one before it by no less than this.
    pub(super) fn shortest_gap(&self) -> Span {
        Span(self.gap.0 * 4 / 5)
    }

    /// A datagram's turn came so much after it was due.
    #[inline]
    pub(super) fn behind(&mut self, lateness: Span) {
        self.worst = self.worst.max(lateness);
    }

    /// A datagram left.
    #[inline]
    pub(super) fn left(&mut self, at: Mono, is_late: bool) {
        self.late += u64::from(is_late);
        self.last = Some(at);
    }

    /// When the last datagram left.
    #[cfg(target_os = "linux")]
    pub(super) fn last(&self) -> Option<Mono> {
        self.last
    }

    /// What both ways of pacing tell in the end.
    pub(super) fn account(&self, outbox: &Outbox<'_>, outcome: Outcome) -> UdpSenderEnd {
        UdpSenderEnd {
            outcome,
            elapsed: self.last.map_or(Span::ZERO, |last| last - self.start),
            sent: outbox.sent(),
            not_sent: self.refusals.not_sent(),
            bytes: ByteCount(outbox.sent() * outbox.length()),
            late: self.late,
            worst_lateness: self.worst,
            ..UdpSenderEnd::default()
        }
    }
}

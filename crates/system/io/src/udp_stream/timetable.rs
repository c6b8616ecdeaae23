//! When the datagrams of a planned stream are due, and the account of how they kept to it.
//!
//! Nothing is planned at the stream's end or later, nor beyond the plan's count. A sender that was
//! held up past the end therefore leaves out, as `not_sent`, what was due before it and no more: a
//! host that sleeps for a minute adds no minute's datagrams to a stream of ten seconds.

use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::UdpPlan;

use super::outbox::Outbox;
use super::refusals::Refusals;
use crate::pacer::Pacer;
use crate::stop::StopFlag;

/// Due times from `start` to the plan's end, one for each step: a datagram, or a burst of
/// `plan.burst`.
///
/// A step is taken by [`advance`](Self::advance) before what belongs to it is tried, or left out by
/// [`skip_to`](Self::skip_to).
#[derive(Debug)]
pub struct Timetable<'a> {
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
    /// The first step is due at `start`, each next one `gap_ps` picoseconds later; `plan.duration`
    /// after `start`, or with `plan.packets` datagrams, the stream is complete. The plan's own gap
    /// is not looked at: a sender has a shortest one.
    pub fn new(plan: &UdpPlan, start: Mono, gap_ps: u64, stop: &'a StopFlag) -> Self {
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

    /// Goes on to the next step.
    #[inline]
    pub fn advance(&mut self) {
        self.pacer.advance();
    }

    /// Leaves out the steps that were due before `now`, and counts their datagrams as not sent. Of
    /// those there are none at the stream's end or later, nor beyond the plan's count.
    pub fn skip_to(&mut self, now: Mono) {
        let before = self.passed().min(self.packets);
        // What would come after the end was never planned.
        self.pacer.skip_to(now.min(self.end));
        self.refusals.left_out(self.passed().min(self.packets) - before);
    }

    /// When the present step is due; stays the same until it is taken or left out.
    ///
    /// # Errors
    /// The stream has ended: complete, or interrupted by the flag.
    #[inline]
    pub fn due(&self) -> Result<Mono, Outcome> {
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
    pub fn behind(&mut self, lateness: Span) {
        self.worst = self.worst.max(lateness);
    }

    /// A datagram did not leave at its turn, and never will: one that is not sent.
    pub fn held_back(&mut self) {
        self.refusals.left_out(1);
    }

    /// A datagram left at this time; `is_late` by the sender's own tolerance.
    #[inline]
    pub fn left(&mut self, at: Mono, is_late: bool) {
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
            sent: outbox.sent(),
            bytes: ByteCount(outbox.sent() * outbox.length()),
            ..self.kept()
        }
    }

    /// How the stream kept to its times: `elapsed` from `start` to when the last datagram left,
    /// `not_sent` and `late` in datagrams, and `worst_lateness`. All else is the sender's to say,
    /// its outcome too, and has its default here.
    pub fn kept(&self) -> UdpSenderEnd {
        UdpSenderEnd {
            elapsed: self.last.map_or(Span::ZERO, |last| last - self.start),
            not_sent: self.refusals.not_sent(),
            late: self.late,
            worst_lateness: self.worst,
            ..UdpSenderEnd::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    const START: Mono = Mono(7_000_000_000);
    const GAP: Span = Span::from_millis(1);

    #[test]
    fn what_would_come_after_the_end_is_not_counted_as_not_sent() {
        // Three steps of 1 ms have been taken when the sender is held up until `awake`.
        let table = [
            // row, datagrams of a step, most datagrams, duration, awake after the start, not sent
            (1, 1, None, Span::from_millis(20), Span::from_millis(10), 7),
            (2, 1, None, Span::from_millis(20), Span::from_millis(20), 17),
            (3, 1, None, Span::from_millis(20), Span::from_secs(60), 17),
            // The twenty-first is due half a gap before the end.
            (4, 1, None, Span::from_micros(20_500), Span::from_secs(60), 18),
            (5, 4, None, Span::from_millis(20), Span::from_secs(60), 68),
            (6, 1, Some(10), Span::from_millis(20), Span::from_secs(60), 7),
            (7, 4, Some(18), Span::from_millis(20), Span::from_secs(60), 6),
            (8, 1, Some(1000), Span::from_millis(20), Span::from_secs(60), 17),
            (9, 1, Some(3), Span::from_millis(20), Span::from_secs(60), 0),
        ];
        for (row, burst, packets, duration, awake, not_sent) in table {
            let plan = UdpPlan { burst, packets, duration, ..plan(100, Some(GAP)) };
            let stop = StopFlag::new();
            let mut timetable = Timetable::new(&plan, START, plan.gap_ps.unwrap(), &stop);
            for _ in 0..3 {
                timetable.advance();
            }
            timetable.skip_to(START + awake);
            assert_eq!(timetable.kept().not_sent, not_sent, "row {row}");
            let over = awake >= duration;
            let next = if over { Err(Outcome::Complete) } else { Ok(START + awake) };
            assert_eq!(timetable.due(), next, "row {row}");
            // Once over, it stays so.
            timetable.skip_to(START + Span::from_secs(3600));
            timetable.skip_to(START + Span::from_secs(7200));
            let more = if over { 0 } else { 10 };
            assert_eq!(timetable.kept().not_sent, not_sent + more, "row {row}");
        }
    }
}

//! At a planned spacing, each datagram at its own absolute deadline.
//!
//! A datagram is never sent early. After a hole (the hypervisor or another program had the core) those that are overdue
//! follow each other at four fifths of the gap until the plan is caught up with: the mean rate stays exact, no burst
//! leaves, and a stream at 80 % of what a path carries does not exceed it. Beyond [`HOPELESS`] they are left out and
//! counted as `not_sent`. `late` counts datagrams that left later than a tenth of the gap or 10 us, whichever is more.

use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::UdpPlan;

use super::gaps::GapRecorder;
use super::outbox::{Outbox, Refusal};
use super::unpaced::MOST_UNANSWERED;
use super::wait::Wait;
use crate::clock;
use crate::pacer::{self, Pacer};
use crate::stop::StopFlag;

pub(super) fn send(outbox: &mut Outbox<'_>, plan: &UdpPlan, gap_ps: u64, stop: &StopFlag) -> UdpSenderEnd {
    let _precise = pacer::precise_sleep();
    let wait = Wait::new(pacer::margin());
    let start = clock::now() + LEAD;
    let mut stream = Paced::new(start, gap_ps.max(SHORTEST_GAP_PS), wait);
    let outcome = stream.run(outbox, plan, start + plan.duration.or_zero(), stop);
    UdpSenderEnd {
        outcome,
        elapsed: stream.last.map_or(Span::ZERO, |last| last - start),
        sent: outbox.sent(),
        not_sent: stream.not_sent,
        bytes: ByteCount(outbox.sent() * outbox.length()),
        late: stream.late,
        worst_lateness: stream.worst,
        gaps: stream.gaps.summary(stream.gap),
        ..UdpSenderEnd::default()
    }
}

#[derive(Debug)]
struct Paced {
    pacer: Pacer,
    gap: Span,
    wait: Wait,
    tolerance: Span,
    /// From a datagram that left to the next, at least, while catching up.
    shortest_gap: Span,
    hopeless: Span,
    /// Before this the next one does not leave, however overdue it is.
    not_before: Mono,
    gaps: GapRecorder,
    last: Option<Mono>,
    late: u64,
    not_sent: u64,
    worst: Span,
    unanswered: u32,
}

impl Paced {
    fn new(start: Mono, gap_ps: u64, wait: Wait) -> Self {
        let gap = Span((gap_ps / 1000) as i64);
        Self {
            pacer: Pacer::new(start, gap_ps),
            gap,
            wait,
            tolerance: (gap / 10).max(LEAST_TOLERANCE),
            shortest_gap: Span(gap.0 * 4 / 5),
            hopeless: gap.max(HOPELESS),
            not_before: start,
            gaps: GapRecorder::new(),
            last: None,
            late: 0,
            not_sent: 0,
            worst: Span::ZERO,
            unanswered: 0,
        }
    }

    fn run(&mut self, outbox: &mut Outbox<'_>, plan: &UdpPlan, end: Mono, stop: &StopFlag) -> Outcome {
        let planned = plan.packets.unwrap_or(u64::MAX);
        loop {
            let due = self.pacer.due();
            if due >= end || self.pacer.steps() >= planned {
                return Outcome::Complete;
            }
            if stop.is_raised() {
                return Outcome::Interrupted;
            }
            let leave = due.max(self.not_before);
            let now = self.wait.until(leave, stop);
            if now < leave {
                continue;
            }
            let lateness = now - due;
            self.worst = self.worst.max(lateness);
            if lateness > self.hopeless {
                self.not_sent += self.pacer.skip_to(now);
                continue;
            }
            self.pacer.advance();
            self.not_before = now + self.shortest_gap;
            if let Err(error) = outbox.send(1, now) {
                if self.is_over(Refusal::from(&error)) {
                    return Outcome::Failed;
                }
                continue;
            }
            self.count(now, lateness);
        }
    }

    #[inline]
    fn count(&mut self, now: Mono, lateness: Span) {
        self.late += u64::from(lateness > self.tolerance);
        if let Some(last) = self.last.replace(now) {
            self.gaps.observe(now - last);
        }
    }

    fn is_over(&mut self, refusal: Refusal) -> bool {
        self.not_sent += 1;
        self.unanswered += u32::from(refusal == Refusal::NobodyThere);
        refusal == Refusal::Fatal || self.unanswered > MOST_UNANSWERED
    }
}

/// So far behind there is no catching up within the sight of any interval.
const HOPELESS: Span = Span::from_millis(100);
const LEAST_TOLERANCE: Span = Span::from_micros(10);
/// Before the first datagram, so that it is on time.
const LEAD: Span = Span::from_millis(1);
/// 1 us: faster than any host sends one by one, and no plan makes the arithmetic absurd.
const SHORTEST_GAP_PS: u64 = 1_000_000;

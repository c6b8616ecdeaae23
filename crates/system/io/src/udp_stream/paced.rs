//! At a planned spacing, each datagram at its own absolute deadline.
//!
//! A datagram is never sent early. One that is overdue by up to [`HOLE`] leaves at once, so the mean rate is exact. After a
//! longer hole (the hypervisor or another program had the core) the datagrams that were due in it are left out and counted
//! as `not_sent`: sent back to back they would make a burst that no plan asked for, and the receiver would blame the
//! network. `late` counts datagrams that left later than a tenth of the gap or 10 us, whichever is more.

use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::UdpPlan;

use super::breath::Breath;
use super::gaps::GapRecorder;
use super::outbox::{Outbox, Refusal};
use super::sleep_watching;
use super::unpaced::MOST_UNANSWERED;
use crate::clock;
use crate::pacer::{self, Pacer};
use crate::priority;
use crate::stop::StopFlag;

pub(super) fn send(outbox: &mut Outbox<'_>, plan: &UdpPlan, gap_ps: u64, stop: &StopFlag) -> UdpSenderEnd {
    let margin = pacer::margin();
    if gap_ps / 1000 > (margin + SHORTEST_SLEEP).0.cast_unsigned() {
        // It sleeps in every gap, so priority does no harm. Without privilege it goes on all the same.
        priority::raise();
    }
    let _precise = pacer::precise_sleep();
    let start = clock::now() + LEAD;
    let mut stream = Paced::new(start, gap_ps.max(SHORTEST_GAP_PS), margin);
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
    hole: Span,
    gaps: GapRecorder,
    last: Option<Mono>,
    late: u64,
    not_sent: u64,
    worst: Span,
    unanswered: u32,
}

impl Paced {
    fn new(start: Mono, gap_ps: u64, margin: Span) -> Self {
        let gap = Span((gap_ps / 1000) as i64);
        Self {
            pacer: Pacer::new(start, gap_ps),
            gap,
            wait: Wait::new(start, margin),
            tolerance: (gap / 10).max(LEAST_TOLERANCE),
            hole: gap.max(HOLE),
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
            let now = self.wait.until(due, stop);
            if now < due {
                continue;
            }
            let lateness = now - due;
            self.worst = self.worst.max(lateness);
            if lateness > self.hole {
                self.wait.breath.note_hole(now);
                self.not_sent += self.pacer.skip_to(now);
                continue;
            }
            self.pacer.advance();
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

/// Waits for deadlines: sleeps up to a margin and spins the rest where there is room, breathes where there is none.
#[derive(Debug)]
struct Wait {
    margin: Span,
    breath: Breath,
}

impl Wait {
    fn new(start: Mono, margin: Span) -> Self {
        Self { margin, breath: Breath::new(start) }
    }

    /// The time when the deadline is over, or earlier when `stop` is raised.
    #[inline]
    fn until(&mut self, due: Mono, stop: &StopFlag) -> Mono {
        let now = clock::now();
        let wake = due - self.margin;
        if wake - now > LONGEST_SLEEP {
            sleep_watching(wake, stop);
            if stop.is_raised() {
                return clock::now();
            }
        } else if wake - now > SHORTEST_SLEEP {
            clock::sleep_until(wake);
        } else {
            self.breath.take_if_owed(now);
        }
        pacer::spin_until(due)
    }
}

/// A hole; see the module.
const HOLE: Span = Span::from_millis(1);
const LEAST_TOLERANCE: Span = Span::from_micros(10);
/// Before the first datagram, so that it is on time.
const LEAD: Span = Span::from_millis(1);
/// 1 us: faster than any host sends one by one, and no plan makes the arithmetic absurd.
const SHORTEST_GAP_PS: u64 = 1_000_000;
/// Going to sleep and waking cost some 15 us of CPU time on a virtual machine; a shorter sleep frees nothing and only
/// makes the datagram late.
const SHORTEST_SLEEP: Span = Span::from_micros(20);
/// Longer sleeps watch the stop flag.
const LONGEST_SLEEP: Span = Span::from_millis(20);

//! At a planned spacing, each datagram at its own absolute deadline, or each burst of them.
//!
//! A datagram is never sent early. After a hole (the hypervisor or another program had the core)
//! those that are overdue follow each other at four fifths of the gap until the plan is caught up
//! with: the mean rate stays exact, no burst leaves, and a stream at 80 % of what a path carries
//! does not exceed it. Beyond [`HOPELESS`] they are left out and counted as `not_sent`. `late`
//! counts datagrams that left later than a tenth of the gap or 10 us, whichever is more.

use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::{Mono, Span};
use netaware_wire::control::UdpPlan;

use super::gaps::GapRecorder;
use super::outbox::Outbox;
use super::timetable::Timetable;
use super::wait::Wait;
use crate::priority::Permits;
use crate::stop::StopFlag;
use crate::{clock, pacer};

pub(super) fn send(
    outbox: &mut Outbox<'_>,
    plan: &UdpPlan,
    gap_ps: u64,
    permits: &Permits,
    stop: &StopFlag,
) -> UdpSenderEnd {
    let _precise = pacer::precise_sleep();
    let wait = Wait::new(pacer::margin(), permits);
    let start = clock::now() + LEAD;
    outbox.begin(start);
    let mut stream =
        Paced::new(Timetable::new(plan, start, gap_ps.max(super::SHORTEST_GAP_PS), stop), start, wait);
    let outcome = stream.run(outbox, stop);
    let gaps = stream.gaps.summary(Some(stream.timetable.gap));
    UdpSenderEnd { gaps, ..stream.timetable.account(outbox, outcome) }
}

#[derive(Debug)]
struct Paced<'a> {
    timetable: Timetable<'a>,
    wait: Wait,
    tolerance: Span,
    hopeless: Span,
    /// Before this the next one does not leave, however overdue it is.
    not_before: Mono,
    /// When the latest one left, or the first of the latest burst.
    last: Option<Mono>,
    gaps: GapRecorder,
}

impl<'a> Paced<'a> {
    fn new(timetable: Timetable<'a>, start: Mono, wait: Wait) -> Self {
        Self {
            wait,
            tolerance: (timetable.gap / 10).max(LEAST_TOLERANCE),
            hopeless: timetable.gap.max(HOPELESS),
            not_before: start,
            last: None,
            gaps: GapRecorder::new(),
            timetable,
        }
    }

    fn run(&mut self, outbox: &mut Outbox<'_>, stop: &StopFlag) -> Outcome {
        let shortest_gap = self.timetable.shortest_gap();
        loop {
            let due = match self.timetable.due() {
                Ok(due) => due,
                Err(outcome) => return outcome,
            };
            let leave = due.max(self.not_before);
            let now = self.wait.until(leave, stop);
            if now < leave {
                continue;
            }
            let lateness = now - due;
            self.timetable.behind(lateness);
            if lateness > self.hopeless {
                self.timetable.skip_to(now);
                continue;
            }
            let burst = self.timetable.now_due();
            self.timetable.pacer.advance();
            self.not_before = now + shortest_gap;
            match outbox.send(1, now) {
                Ok(_) => self.count(now, lateness),
                Err(error) if self.timetable.refusals.end_it(&error, outbox.sent()) => {
                    return Outcome::Failed;
                }
                Err(_) => {}
            }
            for _ in 1..burst {
                let now = clock::now();
                self.wait.count(now);
                match outbox.send(1, now) {
                    Ok(_) => self.timetable.left(now, false),
                    Err(error) if self.timetable.refusals.end_it(&error, outbox.sent()) => {
                        return Outcome::Failed;
                    }
                    Err(_) => {}
                }
            }
        }
    }

    #[inline]
    fn count(&mut self, now: Mono, lateness: Span) {
        self.timetable.left(now, lateness > self.tolerance);
        if let Some(last) = self.last.replace(now) {
            self.gaps.observe(now - last);
        }
    }
}

/// So far behind there is no catching up within the sight of any interval.
const HOPELESS: Span = Span::from_millis(100);
const LEAST_TOLERANCE: Span = Span::from_micros(10);
/// Before the first datagram, so that it is on time.
const LEAD: Span = Span::from_millis(1);

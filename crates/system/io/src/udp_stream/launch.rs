//! At a planned spacing, each datagram given to the system ahead of its time, with its time (`SO_TXTIME`).
//!
//! The queueing discipline releases it then; see [`super::queue`] for which ones do. The program wakes once a millisecond
//! or two instead of once a datagram and keeps no core busy. What it cannot see is when a datagram really left, so there
//! are no gaps at the sender; the receiver's tell. A datagram handed over after its time leaves at once, and as in
//! [`super::paced`] not sooner than four fifths of a gap after the one before it.

use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::UdpPlan;

use super::outbox::{Outbox, Refusal};
use super::sleep_watching;
use super::unpaced::MOST_UNANSWERED;
use crate::clock;
use crate::pacer::{self, Pacer};
use crate::stop::StopFlag;

pub(super) fn send(outbox: &mut Outbox<'_>, plan: &UdpPlan, gap_ps: u64, stop: &StopFlag) -> UdpSenderEnd {
    let _precise = pacer::precise_sleep();
    let gap = Span((gap_ps / 1000) as i64);
    let start = clock::now() + AHEAD;
    let mut stream = Launch {
        pacer: Pacer::new(start, gap_ps.max(1000)),
        ahead: AHEAD.min(gap * MOST_AHEAD).max(LEAST_AHEAD),
        shortest_gap: Span(gap.0 * 4 / 5),
        last: None,
        late: 0,
        not_sent: 0,
        unanswered: 0,
        worst: Span::ZERO,
    };
    let outcome = stream.run(outbox, plan, start + plan.duration.or_zero(), stop);
    // What follows the stream must not overtake it.
    clock::sleep_until(stream.last.unwrap_or(start));
    UdpSenderEnd {
        outcome,
        elapsed: stream.last.map_or(Span::ZERO, |last| last - start),
        sent: outbox.sent(),
        not_sent: stream.not_sent,
        bytes: ByteCount(outbox.sent() * outbox.length()),
        late: stream.late,
        worst_lateness: stream.worst,
        released_by_queue: true,
        ..UdpSenderEnd::default()
    }
}

struct Launch {
    pacer: Pacer,
    /// How long before its time a datagram is handed over, at most.
    ahead: Span,
    shortest_gap: Span,
    last: Option<Mono>,
    late: u64,
    not_sent: u64,
    unanswered: u32,
    worst: Span,
}

impl Launch {
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
            let now = clock::now();
            if due - now > self.ahead {
                // Half of it, so that a late wake-up is still ahead.
                sleep_watching(due - self.ahead / 2, stop);
                continue;
            }
            self.pacer.advance();
            if self.hand_over(outbox, due, now).is_err() {
                return Outcome::Failed;
            }
        }
    }

    fn hand_over(&mut self, outbox: &mut Outbox<'_>, due: Mono, now: Mono) -> Result<(), ()> {
        let lateness = (now - due).or_zero();
        self.late += u64::from(lateness > Span::ZERO);
        self.worst = self.worst.max(lateness);
        let leave = self.last.map_or(due, |last| due.max(last + self.shortest_gap));
        match outbox.send_to_leave_at(leave) {
            Ok(()) => {
                self.last = Some(leave);
                Ok(())
            }
            Err(error) => {
                self.not_sent += 1;
                let refusal = Refusal::from(&error);
                self.unanswered += u32::from(refusal == Refusal::NobodyThere);
                let over = refusal == Refusal::Fatal || self.unanswered > MOST_UNANSWERED;
                if over { Err(()) } else { Ok(()) }
            }
        }
    }
}

const AHEAD: Span = Span::from_millis(2);
/// `fq` holds 100 packets of a flow by default and drops what is more.
const MOST_AHEAD: i64 = 40;
const LEAST_AHEAD: Span = Span::from_micros(100);

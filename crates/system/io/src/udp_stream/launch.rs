//! At a planned spacing, each datagram given to the system ahead of its time, with its time
//! (`SO_TXTIME`).
//!
//! The queueing discipline releases it then; see [`super::queue`] for which ones do. The program
//! wakes once a millisecond or two instead of once a datagram and keeps no core busy. What it
//! cannot see is when a datagram really left, so there are no gaps at the sender; the receiver's
//! tell. A datagram handed over after its time leaves at once, and as in [`super::paced`] not
//! sooner than four fifths of a gap after the one before it.

use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::{Mono, Span};
use netaware_wire::control::UdpPlan;

use super::outbox::Outbox;
use super::sleep_watching;
use super::timetable::Timetable;
use crate::stop::StopFlag;
use crate::{clock, pacer};

pub(super) fn send(outbox: &mut Outbox<'_>, plan: &UdpPlan, gap_ps: u64, stop: &StopFlag) -> UdpSenderEnd {
    let _precise = pacer::precise_sleep();
    let start = clock::now() + AHEAD;
    outbox.begin(start);
    let mut timetable = Timetable::new(plan, start, gap_ps.max(1000), stop);
    let outcome = run(&mut timetable, outbox, stop);
    // What follows the stream must not overtake it.
    clock::sleep_until(timetable.last().unwrap_or(start));
    UdpSenderEnd { released_by_queue: true, ..timetable.account(outbox, outcome) }
}

fn run(timetable: &mut Timetable<'_>, outbox: &mut Outbox<'_>, stop: &StopFlag) -> Outcome {
    let ahead = AHEAD.min(timetable.gap * MOST_AHEAD).max(LEAST_AHEAD);
    loop {
        let due = match timetable.due() {
            Ok(due) => due,
            Err(outcome) => return outcome,
        };
        let now = clock::now();
        if due - now > ahead {
            // Half of it, so that a late wake-up is still ahead.
            sleep_watching(due - ahead / 2, stop);
            continue;
        }
        timetable.pacer.advance();
        if !hand_over(timetable, outbox, due, now) {
            return Outcome::Failed;
        }
    }
}

/// Whether the stream can go on.
fn hand_over(timetable: &mut Timetable<'_>, outbox: &mut Outbox<'_>, due: Mono, now: Mono) -> bool {
    let lateness = (now - due).or_zero();
    timetable.behind(lateness);
    let leave = timetable.last().map_or(due, |last| due.max(last + timetable.shortest_gap()));
    match outbox.send_to_leave_at(leave) {
        Ok(()) => {
            timetable.left(leave, lateness > Span::ZERO);
            true
        }
        Err(error) => !timetable.refusals.end_it(&error, outbox.sent()),
    }
}

/// How long before its time a datagram is handed over, at most.
const AHEAD: Span = Span::from_millis(2);
/// `fq` holds 100 packets of a flow by default and drops what is more.
const MOST_AHEAD: i64 = 40;
const LEAST_AHEAD: Span = Span::from_micros(100);

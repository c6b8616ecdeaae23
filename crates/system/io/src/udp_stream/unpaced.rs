//! As fast as the host can.

use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::ByteCount;
use netaware_wire::control::UdpPlan;

use super::outbox::Outbox;
use super::refusals::Refusals;
use crate::clock;
use crate::stop::StopFlag;

pub(super) fn send(outbox: &mut Outbox<'_>, plan: &UdpPlan, stop: &StopFlag) -> UdpSenderEnd {
    let start = clock::now();
    outbox.begin(start);
    let end = start + plan.duration.or_zero();
    let planned = plan.packets.unwrap_or(u64::MAX);
    let mut refusals = Refusals::default();
    let mut now = start;
    let outcome = loop {
        if stop.is_raised() {
            break Outcome::Interrupted;
        }
        if now >= end || outbox.sent() >= planned {
            break Outcome::Complete;
        }
        match outbox.send(planned - outbox.sent(), now) {
            Ok(_) => refusals.over(),
            Err(error) if refusals.end_it(&error, outbox.sent()) => break Outcome::Failed,
            Err(_) => {
                if let Some(pause) = refusals.pause() {
                    clock::sleep(pause);
                }
            }
        }
        now = clock::now();
    };
    UdpSenderEnd {
        outcome,
        elapsed: now - start,
        sent: outbox.sent(),
        not_sent: not_sent(plan, outbox.sent(), outcome, &refusals),
        bytes: ByteCount(outbox.sent() * outbox.length()),
        ..UdpSenderEnd::default()
    }
}

/// Of a number that was planned, what is missing when the time is over: what was refused was tried
/// again. Without one, the attempts that failed.
fn not_sent(plan: &UdpPlan, sent: u64, outcome: Outcome, refusals: &Refusals) -> u64 {
    match plan.packets {
        Some(planned) if outcome != Outcome::Interrupted => planned.saturating_sub(sent),
        _ => refusals.not_sent(),
    }
}

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
        if let Err(error) = outbox.send(planned - outbox.sent(), now)
            && refusals.end_it(&error)
        {
            break Outcome::Failed;
        }
        now = clock::now();
    };
    UdpSenderEnd {
        outcome,
        elapsed: now - start,
        sent: outbox.sent(),
        not_sent: refusals.not_sent(),
        bytes: ByteCount(outbox.sent() * outbox.length()),
        ..UdpSenderEnd::default()
    }
}

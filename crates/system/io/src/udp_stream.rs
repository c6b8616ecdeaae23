//! A stream of numbered datagrams, as fast as the host can or at a planned spacing.
//!
//! What is measured: datagrams that left and that arrived, by their sequence numbers; what was
//! lost, doubled or reordered; the spacing at both ends; how the delay varies. Datagrams carry
//! `netaware_wire::datagram::Header`; numbers are given only to datagrams that the system took, so
//! a refused one (`not_sent`) is never mistaken for a lost one.
//!
//! Unpaced sending has no back-pressure: loopback and veth take the buffer off the sender's account
//! before the receiver has read it, so no choice of `SO_SNDBUF` slows a sender down to its
//! receiver. What keeps loss at zero is a receiver that costs less per datagram than the sender
//! (merged datagrams, `UDP_GRO`) and a receive buffer that covers the time in which the scheduler
//! lets it wait. We ask for [`RECEIVE_BUFFER`]; `UdpReceiverEnd::receive_buffer` says what was got.

mod account;
mod allowance;
mod breath;
mod bursts;
mod crowd;
mod delay;
mod follower;
mod gaps;
#[cfg(target_os = "linux")]
mod inbox;
#[cfg(not(target_os = "linux"))]
#[path = "udp_stream/inbox_portable.rs"]
mod inbox;
#[cfg(target_os = "linux")]
mod launch;
mod log;
mod outbox;
mod paced;
#[cfg(target_os = "linux")]
mod queue;
mod receiver;
pub(crate) mod refusals;
mod standing;
mod timetable;
mod unpaced;
mod wait;

use std::net::UdpSocket;

use netaware_record::{CpuUse, Outcome, ReceiverTick, UdpReceiverEnd, UdpSenderEnd};
use netaware_units::Span;
use netaware_wire::control::UdpPlan;
#[cfg(target_os = "linux")]
use netaware_wire::control::UdpSend;

use crate::priority::Permits;
use crate::stop::StopFlag;
use crate::{clock, thread};

pub use follower::Follower;
pub use receiver::Ready;
pub(crate) use receiver::ask_for_room;
pub use timetable::Timetable;

#[cfg(target_os = "linux")]
pub(crate) use outbox::set_segment as set_segment_length;
#[cfg(target_os = "linux")]
pub use queue::queueing_disciplines;

/// Receive buffer asked for unless the plan sets a window: 64 MiB cover 20 ms at 3 GB/s. Without
/// privilege `net.core.rmem_max` limits it, on most hosts to 208 KiB, and then a fast stream is
/// lost in the receiving host.
pub const RECEIVE_BUFFER: u32 = 64 << 20;

/// Datagrams that are paced are planned no closer than this, picoseconds: 1 us is faster than any
/// host sends one by one.
pub const SHORTEST_GAP_PS: u64 = 1_000_000;

/// Sends as planned over a connected socket, then says how many have been sent
/// ([`netaware_wire::datagram::Kind::End`], five times). A plan with a gap is paced, one datagram
/// per call, by the program or (`UdpSend::LaunchTime`, where it can) by the queueing discipline;
/// otherwise `plan.send` chooses how they leave. On a busy host a stream that the program paces
/// takes real-time priority, where `permits` and the system allow it.
#[expect(clippy::needless_pass_by_value, reason = "the socket ends with the stream")]
pub fn send(
    socket: UdpSocket,
    flow: u32,
    plan: &UdpPlan,
    affinity: Option<usize>,
    permits: &Permits,
    stop: &StopFlag,
) -> UdpSenderEnd {
    on_own_thread("udp-send", affinity, || {
        let mut outbox = outbox::Outbox::new(&socket, flow, plan);
        let mut end = match plan.gap_ps {
            #[cfg(target_os = "linux")]
            Some(gap) if plan.send == UdpSend::LaunchTime && plan.burst <= 1 && outbox.can_give_times() => {
                launch::send(&mut outbox, plan, gap, stop)
            }
            Some(gap) => paced::send(&mut outbox, plan, gap, permits, stop),
            None => unpaced::send(&mut outbox, plan, stop),
        };
        outbox.say_end();
        end.calls = outbox.calls();
        end.refusals = outbox.answers();
        if end.sent == 0 && end.not_sent > 0 {
            // Nothing left: whatever ended the stream, it was not carried out.
            end.outcome = Outcome::Failed;
        }
        end
    })
    .map_or_else(failed_sender, |(mut end, cpu)| {
        end.cpu = Some(CpuUse { busiest_thread: cpu, ..CpuUse::default() });
        end
    })
}

/// Makes a socket ready for [`receive`]. Best before the sender is told that it may begin: what
/// arrives from then on has its kernel stamp, and is counted if this host drops it.
pub fn ready(socket: UdpSocket, plan: &UdpPlan) -> Ready {
    receiver::ready(socket, plan)
}

/// Gives a socket the largest receive buffer that can be had, up to [`RECEIVE_BUFFER`].
pub fn widen(socket: &UdpSocket) {
    ask_for_room(socket);
}

/// Receives until `plan.settle` (300 ms) after the sender has said that it ended, at the latest two
/// seconds after the plan's end. Datagrams that do not belong to the flow are ignored and counted.
/// Ticks count from the first datagram.
#[expect(clippy::needless_pass_by_value, reason = "the socket ends with the stream")]
pub fn receive(
    ready: Ready,
    flow: u32,
    plan: &UdpPlan,
    affinity: Option<usize>,
    stop: &StopFlag,
    tick: &mut dyn FnMut(ReceiverTick),
) -> UdpReceiverEnd {
    receiver::receive(&ready, flow, plan, affinity, stop, tick)
}

/// The calling thread's core and priority are left alone. Gives the share of a core that the work
/// took, where the system tells it.
fn on_own_thread<T: Send>(
    name: &str,
    core: Option<usize>,
    work: impl FnOnce() -> T + Send,
) -> std::io::Result<(T, Option<f64>)> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.into()).spawn_scoped(scope, || {
            // A core that cannot be had costs precision, which the gaps show, and nothing else.
            let _ = core.map(thread::pin);
            let usage = thread::ThreadUse::begin();
            let done = work();
            (done, usage.share().used)
        })?;
        thread.join().map_err(|_| std::io::Error::other("the thread panicked"))
    })
}

fn failed_sender(_: std::io::Error) -> UdpSenderEnd {
    UdpSenderEnd { outcome: Outcome::Failed, ..UdpSenderEnd::default() }
}

/// A blocked call returns after this and looks at the stop flag and the clock.
const LOOK_UP: Span = Span::from_millis(20);

fn sleep_watching(until: netaware_units::Mono, stop: &StopFlag) {
    let mut now = clock::now();
    while now < until && !stop.is_raised() {
        clock::sleep_until(until.min(now + LOOK_UP));
        now = clock::now();
    }
}

#[cfg(test)]
mod tests;

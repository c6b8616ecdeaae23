//! STAMP over real sockets: a flow to a reflector, and a [`reflector`].
//!
//! T1 and T4 are the kernel's where it gives them, T2 as well, T3 is read just before the system
//! call. All are on the wall clock, which is the monotonic one plus a constant taken when the flow
//! begins: a clock that is set meanwhile shifts none of our stamps. It is told as
//! [`StampRun::stepped`].

pub mod periods;
pub mod reflector;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::SocketAddr;

pub use netaware_probe::stamp::IfSilent;
use netaware_probe::stamp::{StampCounts, StampEvent, StampFlow, StampPlan, StampPlanError};
use netaware_stats::patience::{LEAST, Waiting};
use netaware_units::{Span, Wall};
use netaware_wire::proof::Key;
use netaware_wire::stamp::ErrorEstimate;
use netaware_wire::stamp::tlv::Told;

use crate::clock;
use crate::driver::{self, Drive, DriveError};
use crate::options::{ConnectError, SocketOptions, connect_udp};
use crate::probe_socket::{ProbeSocket, Stamping};
use crate::stop::StopFlag;

/// A flow to send.
#[derive(Debug, Clone)]
pub struct StampOptions {
    /// From packet to packet.
    pub interval: Span,
    /// Packets; absent: until it is stopped.
    pub count: Option<u64>,
    /// UDP payload, bytes: 44 at least, 112 with a key.
    pub length: usize,
    /// A packet without an answer for so long is lost.
    pub patience: Span,
    /// Whether that is meant exactly.
    pub waiting: Waiting,
    /// What becomes of it where nobody answers.
    pub if_silent: IfSilent,
    /// Packets prove it and must.
    pub key: Option<Key>,
    /// Of the socket; replies are asked to have the same DSCP.
    pub socket: SocketOptions,
    /// How good our clock is; see [`clock_quality`].
    pub error: ErrorEstimate,
}

impl StampOptions {
    /// A packet every 10 ms, with room for all questions.
    pub fn new() -> Self {
        Self {
            interval: Span::from_millis(10),
            count: None,
            length: USUAL_LENGTH,
            patience: LEAST,
            waiting: Waiting::AtLeast,
            if_silent: IfSilent::GoOn,
            key: None,
            socket: SocketOptions::default(),
            error: clock_quality(),
        }
    }
}

impl Default for StampOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// How good the kernel says that our wall clock is.
pub fn clock_quality() -> ErrorEstimate {
    match clock::steering() {
        Some(steering) => ErrorEstimate::of(steering.bound, steering.synchronised),
        None => ErrorEstimate::UNKNOWN,
    }
}

/// Why a flow could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum StampRunError {
    /// No socket to there.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A socket that cannot be used.
    #[error("cannot use a UDP socket to {to}: {source}")]
    Socket {
        /// The reflector.
        to: SocketAddr,
        /// What the system answered.
        source: io::Error,
    },
    /// A flow that cannot be.
    #[error("{0}")]
    Plan(StampPlanError),
    /// The socket broke.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// How a flow went, beside its events.
#[derive(Debug, Clone)]
pub struct StampRun {
    /// Counts.
    pub counts: StampCounts,
    /// What the reflector's TLVs told last.
    pub told: Told,
    /// Whether it reads the clock that we read.
    pub same_clock: Option<bool>,
    /// Whether it counts its answers.
    pub stateful: Option<bool>,
    /// How long an answer was waited for in the end.
    pub patience: Span,
    /// Whether questions about that had room in the packets.
    pub asked_questions: bool,
    /// The instrument.
    pub drive: Drive,
    /// Our address and port.
    pub local: Option<SocketAddr>,
    /// The wall clock was set meanwhile, by this much.
    pub stepped: Option<Span>,
}

/// Sends a flow until its count is reached or it is stopped. `on_event` delays the measurement by
/// what it takes.
///
/// # Errors
/// No way to the reflector, or a plan that cannot be. An answer that does not come is no error.
pub fn run(
    to: SocketAddr,
    options: &StampOptions,
    stop: &StopFlag,
    on_event: &mut dyn FnMut(StampEvent),
) -> Result<StampRun, StampRunError> {
    let epoch = clock::wall_at_zero();
    let plan = plan(options, epoch);
    let flow = match options.waiting {
        Waiting::Exactly => StampFlow::new(plan),
        Waiting::AtLeast => StampFlow::following(plan),
    };
    let mut flow = flow.map_err(StampRunError::Plan)?.if_silent(options.if_silent);
    let unusable = |source| StampRunError::Socket { to, source };
    let socket = ProbeSocket::new(connect_udp(to, &options.socket)?, Stamping::Kernel).map_err(unusable)?;
    let drive = driver::run(&mut flow, &socket, driver::AnswerWait::Asleep, stop, on_event)?;
    let moved = clock::wall_at_zero().since(epoch);
    Ok(StampRun {
        counts: flow.counts(),
        told: flow.told(),
        same_clock: flow.same_clock(),
        stateful: flow.is_stateful(),
        patience: flow.patience(),
        asked_questions: flow.asks_questions(),
        drive,
        local: socket.local_addr().ok(),
        stepped: Some(moved).filter(|moved| moved.abs() > STEP),
    })
}

fn plan(options: &StampOptions, epoch: Wall) -> StampPlan {
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&unpredictable().to_be_bytes());
    nonce[8..].copy_from_slice(&unpredictable().to_be_bytes());
    StampPlan {
        start: clock::now() + FIRST_AFTER,
        interval: options.interval,
        count: options.count,
        length: options.length,
        patience: options.patience,
        ssid: (unpredictable() as u16).max(1),
        error: options.error,
        epoch,
        key: options.key.clone(),
        dscp: options.socket.dscp,
        nonce,
        run_of_kernel: run_of_kernel(),
    }
}

/// The standard library seeds its hashers from the system.
fn unpredictable() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The name of this run of the kernel (`boot_id`), the same in all its namespaces and containers; a
/// virtual machine that was copied while it ran has its original's.
pub fn run_of_kernel() -> Option<Vec<u8>> {
    std::fs::read("/proc/sys/kernel/random/boot_id").ok().filter(|name| !name.is_empty())
}

/// Base packet, all questions, a proof, and some padding.
const USUAL_LENGTH: usize = 128;
/// Time to get into the driver.
const FIRST_AFTER: Span = Span::from_millis(1);
/// What two readings of the constant between the clocks may differ by without a step.
const STEP: Span = Span::from_micros(50);

#[cfg(all(test, target_os = "linux"))]
mod tests;

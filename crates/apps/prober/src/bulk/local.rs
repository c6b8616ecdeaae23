//! This host's end of a transfer: the thread that moves the data, and what the host was doing
//! meanwhile.

use std::net::{TcpStream, UdpSocket};
use std::sync::mpsc::Sender;

use netaware_host::{CpuSnapshot, DropSnapshot};
use netaware_io::options::SocketOptions;
use netaware_io::priority::Permits;
use netaware_io::stop::StopFlag;
use netaware_io::{clock, tcp, udp_stream};
use netaware_record::{
    CpuUse, Direction, HostDrops, IpVersion, Outcome, TcpEnd, UdpReceiverEnd, UdpSenderEnd,
};
use netaware_units::{Mono, Span};
use netaware_wire::control::{TcpPlan, UdpPlan};

use super::{BulkPlan, Ended, Tick};
use crate::own_absence::watching;
use crate::session::Session;

/// What a transfer moves its data over.
pub(super) enum Attached {
    Streams(Vec<TcpStream>),
    Flow { socket: UdpSocket, number: u32 },
}

/// What this end saw.
#[expect(clippy::large_enum_variant, reason = "one per transfer")]
pub(super) enum Local {
    TcpSender(TcpEnd),
    TcpReceiver(TcpEnd),
    /// And for how long the program did not run meanwhile.
    UdpSender(UdpSenderEnd, Span),
    UdpReceiver(UdpReceiverEnd),
}

/// Counters of this host when the transfer began.
pub(super) struct Before {
    cpu: CpuSnapshot,
    drops: DropSnapshot,
    interfaces: Vec<String>,
    version: IpVersion,
    at: Mono,
}

impl Before {
    pub(super) fn now(session: &Session) -> Self {
        let interfaces: Vec<String> = session.interface.iter().cloned().collect();
        Self {
            cpu: CpuSnapshot::take(),
            drops: DropSnapshot::take(&interfaces),
            interfaces,
            version: session.version,
            at: clock::now(),
        }
    }

    fn cpu_since(&self) -> CpuUse {
        CpuSnapshot::take().use_since(&self.cpu, clock::now() - self.at)
    }

    fn drops_since(&self, socket: Option<u64>) -> HostDrops {
        DropSnapshot::take(&self.interfaces).since(&self.drops, self.version, socket)
    }
}

impl Local {
    /// How this end ended.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::TcpSender(end) | Self::TcpReceiver(end) => end.outcome,
            Self::UdpSender(end, _) => end.outcome,
            Self::UdpReceiver(end) => end.outcome,
        }
    }

    pub(super) fn set_outcome(&mut self, outcome: Outcome) {
        match self {
            Self::TcpSender(end) | Self::TcpReceiver(end) => end.outcome = outcome,
            Self::UdpSender(end, _) => end.outcome = outcome,
            Self::UdpReceiver(end) => end.outcome = outcome,
        }
    }

    /// Puts the report in its place, with what this host used and dropped meanwhile.
    pub(super) fn keep_in(self, ended: &mut Ended, before: &Before) {
        let used = |own: Option<CpuUse>| {
            let busiest_thread = own.and_then(|own| own.busiest_thread);
            Some(CpuUse { busiest_thread, ..before.cpu_since() })
        };
        match self {
            Self::TcpSender(end) => ended.tcp_sender = Some(TcpEnd { cpu: used(end.cpu), ..end }),
            Self::TcpReceiver(end) => ended.tcp_receiver = Some(TcpEnd { cpu: used(end.cpu), ..end }),
            Self::UdpSender(end, away) => {
                ended.udp_sender = Some(UdpSenderEnd { cpu: used(end.cpu), ..end });
                ended.own_absence = Some(away);
            }
            Self::UdpReceiver(end) => {
                let drops = before.drops_since(end.drops.socket);
                ended.udp_receiver = Some(UdpReceiverEnd { cpu: used(end.cpu), drops, ..end });
            }
        }
    }
}

/// The body of a data thread.
pub(super) fn move_data(
    attached: Attached,
    plan: &BulkPlan,
    affinity: &[usize],
    stop: &StopFlag,
    tell: &Sender<Tick>,
) -> Local {
    // A listener that is gone wants no more slices; the end report still has the totals.
    let mut receiver_tick = |tick| drop(tell.send(Tick::Receiver(tick)));
    let mut sender_tick = |tick| drop(tell.send(Tick::Sender(tick)));
    let forward = plan.direction() == Direction::Forward;
    match (attached, plan) {
        (Attached::Streams(streams), BulkPlan::Tcp(plan)) if forward => {
            Local::TcpSender(tcp::send(streams, plan, affinity, stop, &mut sender_tick))
        }
        (Attached::Streams(streams), BulkPlan::Tcp(plan)) => {
            Local::TcpReceiver(tcp::receive(streams, plan, affinity, stop, &mut receiver_tick))
        }
        (Attached::Flow { socket, number }, BulkPlan::Udp(plan)) if forward => {
            let core = affinity.first().copied();
            // The user of this very program asked for the stream.
            let permits = Permits::unlimited();
            let send = || udp_stream::send(socket, number, plan, core, &permits, stop);
            let (end, away) = watching(send);
            Local::UdpSender(end, away)
        }
        (Attached::Flow { socket, number }, BulkPlan::Udp(plan)) => {
            let core = affinity.first().copied();
            Local::UdpReceiver(udp_stream::receive(
                udp_stream::ready(socket, plan),
                number,
                plan,
                core,
                stop,
                &mut receiver_tick,
            ))
        }
        // `Transfer::prepare` attaches what the plan needs.
        (Attached::Streams(_), BulkPlan::Udp(_)) => Local::UdpSender(UdpSenderEnd::default(), Span::ZERO),
        (Attached::Flow { .. }, BulkPlan::Tcp(_)) => Local::TcpSender(TcpEnd::default()),
    }
}

pub(super) fn options_of_tcp(base: &SocketOptions, plan: &TcpPlan) -> SocketOptions {
    SocketOptions {
        window: plan.window.or(base.window),
        mss: plan.mss.or(base.mss),
        nodelay: plan.nodelay,
        dscp: plan.dscp,
        congestion: plan.congestion.clone(),
        ..base.clone()
    }
}

pub(super) fn options_of_udp(base: &SocketOptions, plan: &UdpPlan) -> SocketOptions {
    SocketOptions { window: plan.window.or(base.window), dscp: plan.dscp, ..base.clone() }
}

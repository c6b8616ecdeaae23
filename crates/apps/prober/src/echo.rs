//! An attached UDP flow that answers, and the trains of requests that run over it.

use netaware_host::CpuSnapshot;
use netaware_io::driver::Waiting;
use netaware_io::options::SocketOptions;
use netaware_io::probe_socket::{ProbeSocket, Stamping};
use netaware_io::stop::StopFlag;
use netaware_io::{clock, driver};
use netaware_probe::delay_report::{EchoLog, EchoRound};
use netaware_probe::{EchoEvent, EchoPlan, EchoTrain, Pacing};
use netaware_record::CpuUse;
use netaware_units::Span;
use netaware_wire::control::TestPlan;

use crate::attach;
use crate::request::Transport;
use crate::session::Session;
use crate::stage::Cause;

/// What to ask of an echo.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EchoOrder {
    /// Requests; absent: until time or somebody ends it.
    pub(crate) count: Option<u64>,
    /// At most so long.
    pub(crate) time: Option<Span>,
    pub(crate) spacing: Span,
    pub(crate) length: u32,
    pub(crate) patience: Span,
    pub(crate) ping_pong: bool,
}

impl EchoOrder {
    /// Even spacing, a second of patience.
    pub(crate) fn open_loop(count: Option<u64>, spacing: Span, length: u32) -> Self {
        Self { count, time: None, spacing, length, patience: Span::from_secs(1), ping_pong: false }
    }

    /// Even spacing for as long as something else lasts.
    pub(crate) fn until_stopped(spacing: Span, length: u32) -> Self {
        Self::open_loop(None, spacing, length)
    }

    /// The spacing as records tell it.
    pub(crate) fn shown_spacing(&self) -> Span {
        if self.ping_pong { Span::ZERO } else { self.spacing }
    }
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) struct EchoRun {
    pub(crate) order: EchoOrder,
    pub(crate) transport: Transport,
    pub(crate) round: EchoRound,
    pub(crate) late_sends: u64,
    pub(crate) worst_lateness: Span,
    pub(crate) stamp_fallbacks: u64,
    /// Answers that this host's socket dropped.
    pub(crate) host_drops: u64,
    /// Of this host.
    pub(crate) cpu: CpuUse,
}

/// A flow to the responder's reflector.
pub(crate) struct EchoFlow {
    pub(crate) socket: ProbeSocket,
    pub(crate) number: u32,
}

impl EchoFlow {
    /// Opens an echo test and attaches a flow to it. `duration` is how long it will be needed at most.
    pub(crate) fn open(
        session: &mut Session,
        options: &SocketOptions,
        duration: Span,
        length: u32,
    ) -> Result<Self, Cause> {
        let plan = TestPlan::UdpEcho { length, duration, dscp: options.dscp };
        let test = session.open_test(plan)?;
        let flow = attach::flow(session, options, test)?;
        session.await_ready(test)?;
        session.start_test(test)?;
        let system = |e: std::io::Error| Cause::System(e.to_string());
        flow.socket.set_nonblocking(false).map_err(system)?;
        let socket = ProbeSocket::new(flow.socket, Stamping::Kernel).map_err(system)?;
        Ok(Self { socket, number: flow.number })
    }

    /// Sends a train and waits for its answers.
    pub(crate) fn run(&mut self, order: &EchoOrder, stop: &StopFlag) -> Result<EchoRun, Cause> {
        let start = clock::now() + HEAD_START;
        let mut train = EchoTrain::new(EchoPlan {
            flow: self.number,
            count: order.count,
            pacing: if order.ping_pong { Pacing::PingPong } else { Pacing::Even(order.spacing) },
            length: order.length as usize,
            patience: order.patience,
            start,
        })
        .map_err(|e| Cause::System(e.to_string()))?;
        let over = stop.child();
        let ends_at = order.time.map(|time| start + time);
        let mut log = EchoLog::default();
        let cpu_before = (CpuSnapshot::take(), clock::now());
        let drops_before = self.socket.drops();
        let waiting = if order.ping_pong { Waiting::AwakeForSoonAnswers } else { Waiting::Asleep };
        let drive = driver::run(&mut train, &self.socket, waiting, &over, &mut |event| {
            log.observe(&event);
            let at = match &event {
                EchoEvent::Answered(exchange) => exchange.rx_application,
                _ => clock::now(),
            };
            if ends_at.is_some_and(|ends_at| at >= ends_at) {
                over.raise();
            }
        })
        .map_err(|e| Cause::System(e.to_string()))?;
        Ok(EchoRun {
            order: *order,
            transport: Transport::Udp,
            round: log.finish(train.counts()),
            late_sends: drive.late_sends,
            worst_lateness: drive.worst_lateness,
            stamp_fallbacks: drive.stamp_fallbacks,
            host_drops: self.socket.drops() - drops_before,
            cpu: CpuSnapshot::take().use_since(&cpu_before.0, clock::now() - cpu_before.1),
        })
    }
}

/// The first request is due a little later than now, so that it is not late by construction.
const HEAD_START: Span = Span::from_millis(1);

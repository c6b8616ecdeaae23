//! Threads that run tests.

use std::net::{IpAddr, UdpSocket};
use std::{io, thread};

use netaware_host::{CpuSnapshot, DropSnapshot};
use netaware_io::priority::Permits;
use netaware_io::stop::StopFlag;
use netaware_io::tcp::{Carriage, Stream};
use netaware_io::{clock, tcp, udp_stream};
use netaware_record::{CpuUse, Direction, IpVersion, ReceiverTick, SenderTick};
use netaware_units::Mono;
use netaware_wire::control::{EndReport, TcpPlan, UdpPlan};

use crate::context::Events;
use crate::event::Event;

/// Tells a session about one of its tests; that it has ended in any case, a panic included.
pub(crate) struct Reporter {
    events: Events,
    test: u32,
    report: Option<Box<EndReport>>,
}

impl Reporter {
    pub(crate) fn new(events: Events, test: u32) -> Self {
        Self { events, test, report: None }
    }

    pub(crate) fn receiver_tick(&self, tick: ReceiverTick) {
        let _ = self.events.send(Event::ReceiverTick { test: self.test, tick });
    }

    fn sender_tick(&self, tick: SenderTick) {
        let _ = self.events.send(Event::SenderTick { test: self.test, tick });
    }

    /// Packets of a volley.
    pub(crate) fn volley_times(&self, volley: u32, times: Vec<(u64, u64)>, last: bool, unstamped: u64) {
        let _ = self.events.send(Event::VolleyTimes { test: self.test, volley, times, last, unstamped });
    }

    pub(crate) fn end(mut self, report: EndReport) {
        self.report = Some(Box::new(report));
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let _ = self.events.send(Event::Ended { test: self.test, report: self.report.take() });
    }
}

/// Runs a bulk TCP test.
pub(crate) fn run_tcp(
    reporter: Reporter,
    streams: Vec<Stream>,
    carriage: Carriage,
    plan: TcpPlan,
    affinity: Vec<usize>,
    stop: StopFlag,
) -> io::Result<()> {
    spawn("netaware-tcp", move || {
        let cpu = CpuMeter::start();
        let report = match plan.direction {
            Direction::Reverse => {
                let mut end = tcp::send_carried(streams, &plan, &affinity, &stop, &mut |tick| {
                    reporter.sender_tick(tick);
                });
                end.cpu = Some(cpu.stop(end.cpu));
                EndReport::TcpSender(end)
            }
            Direction::Forward | Direction::RoundTrip => {
                let mut tell = |tick| reporter.receiver_tick(tick);
                let mut end = tcp::receive_carried(streams, carriage, &plan, &affinity, &stop, &mut tell);
                end.cpu = Some(cpu.stop(end.cpu));
                EndReport::TcpReceiver(end)
            }
        };
        reporter.end(report);
    })
}

/// Where a UDP stream runs.
pub(crate) struct UdpPath {
    pub(crate) socket: UdpSocket,
    pub(crate) flow: u32,
    pub(crate) peer: IpAddr,
    /// Interfaces whose drops count.
    pub(crate) interfaces: Vec<String>,
}

/// Runs a UDP stream.
pub(crate) fn run_udp(
    reporter: Reporter,
    path: UdpPath,
    plan: UdpPlan,
    core: Option<usize>,
    permits: Permits,
    stop: StopFlag,
) -> io::Result<()> {
    let UdpPath { socket, flow, peer, interfaces } = path;
    if plan.direction == Direction::Reverse {
        return spawn("netaware-udp", move || {
            let cpu = CpuMeter::start();
            let mut end = udp_stream::send(socket, flow, &plan, core, &permits, &stop);
            end.cpu = Some(cpu.stop(end.cpu));
            reporter.end(EndReport::UdpSender(end));
        });
    }
    // Here and not in the thread: the sender begins when it hears that this has been done.
    let ready = udp_stream::ready(socket, &plan);
    spawn("netaware-udp", move || {
        let cpu = CpuMeter::start();
        let before = DropSnapshot::take(&interfaces);
        let mut tell = |tick| reporter.receiver_tick(tick);
        let mut end = udp_stream::receive(ready, flow, &plan, core, &stop, &mut tell);
        end.drops = DropSnapshot::take(&interfaces).since(&before, IpVersion::of(peer), end.drops.socket);
        end.cpu = Some(cpu.stop(end.cpu));
        reporter.end(EndReport::UdpReceiver(end));
    })
}

/// What the processors do from its start on.
pub(crate) struct CpuMeter {
    before: CpuSnapshot,
    began_at: Mono,
}

impl CpuMeter {
    pub(crate) fn start() -> Self {
        Self { before: CpuSnapshot::take(), began_at: clock::now() }
    }

    /// `own` knows the busiest thread, which the host's counters do not.
    pub(crate) fn stop(&self, own: Option<CpuUse>) -> CpuUse {
        let elapsed = clock::now() - self.began_at;
        let host = CpuSnapshot::take().use_since(&self.before, elapsed);
        CpuUse { busiest_thread: own.and_then(|own| own.busiest_thread), ..host }
    }
}

/// A thread of a test.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // Detached on purpose: whoever waits for it waits for its last event.
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work).map(drop)
}

/// A thousand echo connections must not reserve gigabytes; buffers of tests live on the heap.
const STACK: usize = 256 << 10;

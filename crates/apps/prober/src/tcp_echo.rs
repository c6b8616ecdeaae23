//! Request-responses over one TCP connection.
//!
//! TCP repairs loss by itself, so there is none to see: a lost segment shows as a round trip longer by a retransmission
//! time-out. A request that outlives `patience` ends the run.

use std::io::{Read, Write};
use std::net::TcpStream;

use netaware_host::CpuSnapshot;
use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_io::{clock, pacer};
use netaware_probe::delay_report::EchoLog;
use netaware_probe::{EchoCounts, Exchange};
use netaware_units::{ClockSource, Mono, Span, Stamp};
use netaware_wire::control::TestPlan;
use netaware_wire::preface::Role;

use crate::attach;
use crate::echo::{EchoOrder, EchoRun};
use crate::request::Transport;
use crate::session::Session;
use crate::stage::Cause;

/// A connection to the responder's reflector.
pub(crate) struct TcpEcho {
    stream: TcpStream,
    bytes: Vec<u8>,
}

/// A send that is this much behind its plan counts as late.
const LATE: Span = Span::from_micros(50);

impl TcpEcho {
    /// Opens an echo test and attaches a connection to it.
    pub(crate) fn open(
        session: &mut Session,
        options: &SocketOptions,
        duration: Span,
        length: u32,
    ) -> Result<Self, Cause> {
        let test = session.open_test(TestPlan::TcpEcho { length, duration })?;
        let options = SocketOptions { nodelay: true, ..options.clone() };
        let mut streams = attach::streams(session, &options, test, 1, Role::Echo)?;
        session.await_ready(test)?;
        session.start_test(test)?;
        let stream = streams.pop().ok_or_else(|| Cause::Protocol("no connection attached".into()))?;
        Ok(Self { stream, bytes: vec![0; length as usize] })
    }

    /// Sends requests one after the other; with a spacing, each waits for its time, and for the previous answer.
    pub(crate) fn run(&mut self, order: &EchoOrder, stop: &StopFlag) -> Result<EchoRun, Cause> {
        let system = |e: std::io::Error| Cause::System(format!("TCP echo: {e}"));
        self.stream.set_read_timeout(Some(order.patience.to_std())).map_err(system)?;
        let (cpu_before, start) = (CpuSnapshot::take(), clock::now());
        let ends_at = order.time.map(|time| start + time);
        let (mut log, mut counts) = (EchoLog::default(), EchoCounts::default());
        let (mut late_sends, mut worst_lateness) = (0, Span::ZERO);
        while order.count.is_none_or(|count| counts.asked < count) && !stop.is_raised() {
            let seq = counts.asked;
            let due = start + order.shown_spacing() * seq.cast_signed();
            if ends_at.is_some_and(|ends_at| due.max(clock::now()) >= ends_at) {
                break;
            }
            let sent_at = if order.ping_pong { clock::now() } else { pacer::wait_until(due) };
            if !order.ping_pong && sent_at - due > LATE {
                late_sends += 1;
                worst_lateness = worst_lateness.max(sent_at - due);
            }
            counts.asked += 1;
            match self.exchange() {
                Ok(()) => {
                    counts.received += 1;
                    log.push(&exchange(seq, due, sent_at, clock::now()));
                }
                Err(e)
                    if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
                {
                    // The stream is out of step from here on: a later answer could not be told from the next.
                    counts.lost += 1;
                    break;
                }
                Err(e) => return Err(system(e)),
            }
        }
        Ok(EchoRun {
            order: *order,
            transport: Transport::Tcp,
            round: log.finish(counts),
            late_sends,
            worst_lateness,
            stamp_fallbacks: 0,
            host_drops: 0,
            cpu: CpuSnapshot::take().use_since(&cpu_before, clock::now() - start),
        })
    }

    fn exchange(&mut self) -> std::io::Result<()> {
        self.stream.write_all(&self.bytes)?;
        self.stream.read_exact(&mut self.bytes)
    }
}

fn exchange(seq: u64, due: Mono, sent_at: Mono, received_at: Mono) -> Exchange {
    Exchange {
        seq,
        due,
        tx: Stamp::application(sent_at),
        rx: Stamp::application(received_at),
        tx_application: sent_at,
        rx_application: received_at,
        responder: None,
        responder_clock: ClockSource::Application,
        ttl_forward: None,
        ttl_reverse: None,
    }
}

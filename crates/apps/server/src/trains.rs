//! The thread of a test whose trains are asked for volley by volley.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use netaware_host::CoreDemand;
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_io::volley::VolleySocket;
use netaware_record::{CpuUse, Direction, Outcome};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::{EndReport, TIMES_IN_A_MESSAGE, TrainsPlan, VolleySpec};

use crate::runner::{CpuMeter, Reporter, UdpPath, spawn};

/// Asks a running test for volleys.
#[derive(Debug, Clone)]
pub(crate) struct Asking(Sender<VolleySpec>);

impl Asking {
    /// Queues a volley that has been checked; one at a time is all that a prober needs.
    pub(crate) fn ask(&self, volley: VolleySpec) {
        // A test that has ended answers with its end.
        let _ = self.0.send(volley);
    }
}

/// Runs the test until it is stopped.
pub(crate) fn run(
    reporter: Reporter,
    path: UdpPath,
    plan: &TrainsPlan,
    stop: StopFlag,
) -> io::Result<Asking> {
    let (sender, asked) = channel();
    // Here and not in the thread: the sender begins when it hears that this has been done.
    let socket = VolleySocket::new(path.socket, path.flow)?;
    let trains = Trains {
        reporter,
        socket,
        direction: plan.direction,
        stop,
        packets: 0,
        bytes: 0,
        demand: CoreDemand::default(),
    };
    spawn("netaware-trains", move || trains.serve(&asked))?;
    Ok(Asking(sender))
}

struct Trains {
    reporter: Reporter,
    socket: VolleySocket,
    direction: Direction,
    stop: StopFlag,
    packets: u64,
    bytes: u64,
    /// Of the thread that sends or takes in.
    demand: CoreDemand,
}

impl Trains {
    fn serve(mut self, asked: &Receiver<VolleySpec>) {
        let cpu = CpuMeter::start();
        let outcome = loop {
            if self.stop.is_raised() {
                break Outcome::Complete;
            }
            match asked.recv_timeout(LOOK_UP.to_std()) {
                Ok(volley) => {
                    if self.answer(&volley).is_err() {
                        break Outcome::Failed;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Outcome::Complete,
            }
        };
        let (packets, bytes) = (self.packets, ByteCount(self.bytes));
        let cpu = CpuUse { denied: self.demand.denied(), ..cpu.stop(None) };
        self.reporter.end(EndReport::Trains { outcome, packets, bytes, cpu: Some(cpu) });
    }

    fn answer(&mut self, volley: &VolleySpec) -> io::Result<()> {
        let Self { socket, stop, demand, .. } = self;
        let (times, unstamped) = if self.direction == Direction::Reverse {
            (demand.during(clock::now, volley.rests(), || socket.send(volley, stop)), 0)
        } else {
            let caught = demand.during(clock::now, Span::ZERO, || socket.catch(volley, stop))?;
            (caught.arrivals, caught.unstamped)
        };
        self.packets += times.len() as u64;
        // Each train has a length of its own; the mean is near enough for the log's sum.
        self.bytes += volley.payload() * times.len() as u64 / volley.packets().max(1);
        self.tell(volley.number, &times, unstamped);
        Ok(())
    }

    fn tell(&self, volley: u32, times: &[(u64, Mono)], mut unstamped: u64) {
        let mut rest = times;
        loop {
            let (now, later) = rest.split_at(rest.len().min(TIMES_IN_A_MESSAGE));
            let of_these = unstamped.min(now.len() as u64);
            unstamped -= of_these;
            let times = now.iter().map(|(seq, at)| (*seq, at.0)).collect();
            self.reporter.volley_times(volley, times, later.is_empty(), of_these);
            if later.is_empty() {
                return;
            }
            rest = later;
        }
    }
}

/// A thread that waits for a question returns after this and looks at the stop flag.
const LOOK_UP: Span = Span::from_millis(20);

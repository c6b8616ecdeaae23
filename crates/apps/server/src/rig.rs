//! What a session has set up for each of its tests.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_io::tcp::{Carriage, Stream};
use netaware_pool::Place;
use netaware_record::{Direction, Outcome, TcpEnd, UdpReceiverEnd, UdpSenderEnd};
use netaware_wire::control::{EndReport, TcpPlan, TestPlan, TrainsPlan, UdpPlan};
use netaware_wire::header::HeaderFields;
use netaware_wire::preface::Role;
use tokio::sync::watch;

use crate::channel::Channel;
use crate::event::Welcome;
use crate::flows::Flow;
use crate::meter::{Gate, Meter};
use crate::trains::Asking;

/// Sockets and threads of one test.
pub(crate) enum Rig {
    /// Streams that are here already; all carry their payload alike, as the first one did.
    Tcp { plan: TcpPlan, streams: BTreeMap<u16, (Stream, Place)>, carriage: Option<Carriage> },
    /// The flow, once it has entered.
    Udp { plan: UdpPlan, flow: Option<Arc<Flow>> },
    /// The flow, once it has entered.
    Trains { plan: TrainsPlan, flow: Option<Arc<Flow>> },
    /// In a data channel, whether it is open yet or not.
    Channel {
        plan: TestPlan,
        channel: Channel,
        /// Whose place among the echo flows it keeps.
        _before: Option<Box<Rig>>,
    },
    /// Threads run and will report; those of trains can be asked.
    Running {
        stop: StopFlag,
        asking: Option<Asking>,
        /// Of its streams.
        _places: Vec<Place>,
    },
    /// Reflected by the shared socket.
    UdpEcho { flow: Option<Arc<Flow>>, drops_before: u64, _place: Place },
    /// A thread per connection.
    TcpEcho { request: u32, response: Option<u32>, connections: EchoConnections, _place: Place },
}

/// The connections of a TCP echo test; their threads end when this is dropped.
pub(crate) struct EchoConnections {
    pub(crate) answered: Arc<AtomicU64>,
    /// Holds them to the owner's caps, where there are any.
    pub(crate) meter: Option<Arc<Meter>>,
    /// Raised at the end, for a thread that waits until a cap allows more.
    over: StopFlag,
    streams: Vec<TcpStream>,
    /// Who watches it sees it go.
    alive: watch::Sender<()>,
}

impl EchoConnections {
    pub(crate) fn metered(meter: Option<Arc<Meter>>) -> Self {
        Self {
            answered: Arc::default(),
            meter,
            over: StopFlag::new(),
            streams: Vec::new(),
            alive: watch::Sender::new(()),
        }
    }

    /// How the thread of a connection asks before it answers.
    pub(crate) fn gate(&self) -> Gate {
        Gate { meter: self.meter.clone(), over: self.over.clone() }
    }

    /// Keeps a second handle, by which the connection can be closed under its thread.
    pub(crate) fn keep(&mut self, stream: &TcpStream) -> std::io::Result<()> {
        self.streams.push(stream.try_clone()?);
        Ok(())
    }

    /// Ends with the test.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.alive.subscribe()
    }
}

impl Drop for EchoConnections {
    fn drop(&mut self) {
        self.over.raise();
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Rig {
    /// Whether such a connection can be one of its streams.
    pub(crate) fn takes(&self, welcome: &Welcome, stream: &Stream) -> bool {
        match (self, welcome) {
            (Self::Tcp { plan, .. }, _) if stream.encryption.is_some() && plan.block_spacing.is_some() => {
                false
            }
            (Self::Tcp { carriage: Some(first), .. }, _) if *first != welcome.carriage() => false,
            (Self::Tcp { plan, .. }, Welcome::BrowserSends { .. }) => plan.direction == Direction::Forward,
            (Self::Tcp { plan, .. }, Welcome::BrowserReceives { .. }) => plan.direction == Direction::Reverse,
            (Self::Tcp { .. }, Welcome::Prober(Role::Data))
            | (Self::TcpEcho { .. }, Welcome::Prober(Role::Echo)) => true,
            _ => false,
        }
    }

    /// The report of a test that no thread reports about. `drops` is the shared socket's counter
    /// now.
    pub(crate) fn report(&self, drops: u64) -> Option<EndReport> {
        let outcome = Outcome::Interrupted;
        Some(match self {
            Self::Running { .. } => return None,
            Self::UdpEcho { flow, drops_before, .. } => EndReport::Echo {
                answered: flow.as_ref().map_or(0, |flow| flow.answered.load(Ordering::Acquire)),
                drops: drops.saturating_sub(*drops_before)
                    + flow.as_ref().and_then(|flow| flow.meter.as_ref()).map_or(0, |meter| meter.held_back()),
            },
            Self::TcpEcho { connections, .. } => {
                EndReport::Echo { answered: connections.answered.load(Ordering::Acquire), drops: 0 }
            }
            Self::Tcp { plan, .. } => empty_tcp(plan.direction, outcome),
            Self::Udp { plan, .. } | Self::Channel { plan: TestPlan::Udp(plan), .. } => {
                empty_udp(plan.direction, outcome)
            }
            Self::Channel { channel, .. } => {
                let (answered, drops) = channel.counts();
                EndReport::Echo { answered, drops }
            }
            Self::Trains { .. } => empty_trains(outcome),
        })
    }
}

/// For a test whose thread did not live to report.
pub(crate) fn failed(plan: &TestPlan) -> EndReport {
    match plan {
        TestPlan::Tcp(plan) => empty_tcp(plan.direction, Outcome::Failed),
        TestPlan::Udp(plan) => empty_udp(plan.direction, Outcome::Failed),
        TestPlan::Trains(_) => empty_trains(Outcome::Failed),
        TestPlan::UdpEcho { .. } | TestPlan::TcpEcho { .. } => EndReport::Echo { answered: 0, drops: 0 },
    }
}

fn empty_tcp(direction: Direction, outcome: Outcome) -> EndReport {
    let end = TcpEnd { outcome, ..TcpEnd::default() };
    if direction == Direction::Reverse { EndReport::TcpSender(end) } else { EndReport::TcpReceiver(end) }
}

fn empty_udp(direction: Direction, outcome: Outcome) -> EndReport {
    if direction == Direction::Reverse {
        EndReport::UdpSender(UdpSenderEnd { outcome, ..UdpSenderEnd::default() })
    } else {
        EndReport::UdpReceiver(UdpReceiverEnd { outcome, ..UdpReceiverEnd::default() })
    }
}

fn empty_trains(outcome: Outcome) -> EndReport {
    EndReport::Trains { outcome, packets: 0, bytes: netaware_units::ByteCount(0), cpu: None }
}

/// The options of a TCP plan that a socket takes.
pub(crate) fn tcp_options(plan: &TcpPlan, header: HeaderFields) -> SocketOptions {
    SocketOptions {
        window: plan.window,
        mss: plan.mss,
        nodelay: plan.nodelay,
        dscp: plan.dscp,
        congestion: plan.congestion.clone(),
        ..header_options(header)
    }
}

/// The options of a UDP plan that a socket takes.
pub(crate) fn udp_options(plan: &UdpPlan, header: HeaderFields) -> SocketOptions {
    SocketOptions { window: plan.window, dscp: plan.dscp, ..header_options(header) }
}

/// The options of a plan of trains that a socket takes.
pub(crate) fn trains_options(plan: &TrainsPlan, header: HeaderFields) -> SocketOptions {
    SocketOptions { dscp: plan.dscp, ..header_options(header) }
}

/// Of a connection that answers requests.
pub(crate) fn tcp_echo_options(header: HeaderFields) -> SocketOptions {
    SocketOptions { nodelay: true, ..header_options(header) }
}

/// Of whatever has no options of its own.
pub(crate) fn header_options(header: HeaderFields) -> SocketOptions {
    let HeaderFields { dscp, ttl, flow_label } = header;
    SocketOptions { dscp, ttl, flow_label, ..SocketOptions::default() }
}

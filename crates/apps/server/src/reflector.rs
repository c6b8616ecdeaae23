//! The thread behind each UDP socket of the responder: it attaches flows, answers echo requests,
//! and passes on what is of a data channel that is being opened.
//!
//! It blocks in the kernel between datagrams, so an idle responder costs nothing. What it adds to
//! an answer: the kernel's stamp of the arrival, and the clock just before the answer is handed to
//! the kernel. The difference of the two is the responder's own delay; the way down through the
//! stack is not in it and counts as network.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use netaware_io::clock;
use netaware_io::options::header;
use netaware_io::probe_socket::{Arrival, ProbeSocket};
use netaware_io::stop::StopFlag;
use netaware_io::zone::ZonedIp;
use netaware_units::{ClockSource, Span};
use netaware_wire::datagram::{EchoStamps, as_remote};
use netaware_wire::echo;
use netaware_wire::header::HeaderFields;
use socket2::SockRef;

use crate::channel::Doors;
use crate::context::Registry;
use crate::event::Event;
use crate::flows::{Deed, FlowTable};

#[derive(Debug)]
pub(crate) struct Reflector {
    socket: ProbeSocket,
    local: SocketAddr,
    flows: Arc<FlowTable>,
    doors: Arc<Doors>,
    registry: Arc<Registry>,
    stop: StopFlag,
    /// DSCP set on the socket now.
    dscp: AtomicU8,
    /// TTL set on the socket now.
    ttl: AtomicU8,
    /// What the system gave the socket.
    default_ttl: u8,
    /// The socket sends the flow label of each address.
    uses_labels: AtomicBool,
}

impl Reflector {
    pub(crate) fn new(
        socket: ProbeSocket,
        flows: Arc<FlowTable>,
        registry: Arc<Registry>,
        stop: StopFlag,
    ) -> io::Result<Self> {
        let local = socket.local_addr()?;
        let default_ttl = header::default_ttl(&SockRef::from(socket.socket()), local.is_ipv6())?;
        Ok(Self {
            socket,
            local,
            flows,
            doors: Arc::default(),
            registry,
            stop,
            dscp: AtomicU8::new(0),
            ttl: AtomicU8::new(default_ttl),
            default_ttl,
            uses_labels: AtomicBool::new(false),
        })
    }

    /// Where the socket is bound.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The data channels whose datagrams come here until they have sockets of their own.
    pub(crate) fn doors(&self) -> &Arc<Doors> {
        &self.doors
    }

    /// Sends for a data channel, to a port of its page's address, from the one that it spoke to.
    pub(crate) fn send_from(&self, bytes: &[u8], to: SocketAddr, from: Option<IpAddr>) -> io::Result<()> {
        self.set(HeaderFields::default());
        self.socket.send_to(bytes, to, from)
    }

    /// Datagrams that the socket dropped since it exists.
    pub(crate) fn drops(&self) -> u64 {
        self.socket.drops()
    }

    /// Serves until the flag is raised and [`Reflector::nudge`] has been called.
    pub(crate) fn run(&self) {
        let mut buf = vec![0; LARGEST];
        while !self.stop.is_raised() {
            match self.socket.receive(&mut buf, None) {
                // The nudge itself is nobody's datagram.
                Ok(Some(_)) if self.stop.is_raised() => {}
                Ok(Some(arrival)) => self.serve(&mut buf, &arrival),
                Ok(None) => {}
                // None is known of an unconnected socket; should there be one that stays, it must
                // not cost a core.
                Err(error) => {
                    tracing::warn!(local = %self.local, %error, "cannot receive UDP");
                    clock::sleep(Span::from_millis(100));
                }
            }
        }
    }

    /// Wakes [`Reflector::run`] so that it looks at its flag.
    pub(crate) fn nudge(&self) {
        let ip = match self.local.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            _ => ZonedIp::of(self.local),
        };
        if let Ok(socket) = UdpSocket::bind(ip.at(0)) {
            let _ = socket.send_to(b"", ip.at(self.local.port()));
        }
    }

    /// Answers a datagram, wherever it was received.
    pub(crate) fn serve(&self, buf: &mut [u8], arrival: &Arrival) {
        let Some(bytes) = buf.get_mut(..arrival.len) else { return };
        if self.doors.pass(bytes, arrival) {
            return;
        }
        match self.flows.judge(bytes, arrival.from, arrival.to) {
            Deed::Drop => {}
            // An answer that cannot leave is a loss to the prober, as on the network.
            Deed::Answer(answer) => drop(self.answer(&answer, arrival, HeaderFields::default())),
            Deed::Welcome(answer, token, test, flow) => {
                drop(self.answer(&answer, arrival, HeaderFields::default()));
                // A session that has just gone needs to know nothing.
                let _ = self.registry.tell(token, Event::Entered { test, flow });
            }
            Deed::Echo { flow, response, dscp } => {
                if let Some(meter) = &flow.meter
                    && !meter.passes(clock::now(), arrival.len + response)
                {
                    return;
                }
                let stamps = EchoStamps {
                    received_at: as_remote(arrival.rx.at),
                    answered_at: as_remote(clock::now()),
                    ttl: arrival.ttl.unwrap_or(0),
                    kernel_stamp: arrival.rx.by != ClockSource::Application,
                };
                if echo::answer(buf, arrival.len, response, flow.number, &stamps).is_ok() {
                    // Counted first: its prober may have the answer, and ask for the count, before
                    // `send_to` returns.
                    flow.answered.fetch_add(1, Ordering::AcqRel);
                    let fields = HeaderFields { dscp, ..flow.header };
                    if self.answer(&buf[..response], arrival, fields).is_err() {
                        flow.answered.fetch_sub(1, Ordering::AcqRel);
                    }
                }
            }
        }
    }

    /// From the address that was spoken to: a host with several would else answer from another, and
    /// the prober's connected socket or its firewall would drop that.
    fn answer(&self, bytes: &[u8], arrival: &Arrival, fields: HeaderFields) -> io::Result<()> {
        self.set(fields);
        let to = match fields.flow_label {
            Some(label) => header::address_with_label(arrival.from, label),
            None => arrival.from,
        };
        self.socket.send_to(bytes, to, arrival.to)
    }

    /// Only what differs from the answer before: nearly always nothing does.
    fn set(&self, fields: HeaderFields) {
        let (socket, is_v6) = (SockRef::from(self.socket.socket()), self.local.is_ipv6());
        let HeaderFields { dscp, ttl, flow_label } = fields;
        if self.dscp.load(Ordering::Relaxed) != dscp && header::set_dscp(&socket, is_v6, dscp).is_ok() {
            self.dscp.store(dscp, Ordering::Relaxed);
        }
        let ttl = ttl.unwrap_or(self.default_ttl);
        if self.ttl.load(Ordering::Relaxed) != ttl && header::set_ttl(&socket, is_v6, ttl).is_ok() {
            self.ttl.store(ttl, Ordering::Relaxed);
        }
        if is_v6
            && flow_label.is_some()
            && !self.uses_labels.load(Ordering::Relaxed)
            && header::use_labels(&socket).is_ok()
        {
            self.uses_labels.store(true, Ordering::Relaxed);
        }
    }
}

/// No UDP datagram is longer.
pub(crate) const LARGEST: usize = 65_535;

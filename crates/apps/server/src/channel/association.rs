//! One WebRTC association with its sockets: drives the library, which does no I/O and reads no
//! clock.
//!
//! The library's contract: every change is followed by [`Association::drain`]. Each method here
//! keeps it before it returns.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use netaware_io::clock;
use netaware_io::options::SocketOptions;
use netaware_io::probe_socket::{Arrival, ProbeSocket, Stamping, is_refusal};
use netaware_io::zone::ZonedIp;
use netaware_units::{Mono, Span};
use netaware_wire::control::{ChannelEnd, MAX_CHANNEL_PAYLOAD};
use netaware_wire::webrtc::Guest;
use str0m::channel::{ChannelConfig, ChannelId, Reliability};
use str0m::config::{CryptoProvider, DtlsCert, Fingerprint};
use str0m::net::{DatagramRecv, Protocol, Receive, Transmit};
use str0m::{Candidate, Event, IceConnectionState, IceCreds, Input, Output, Rtc, RtcConfig, RtcError};

use super::doors::{Door, Packet};
use super::ledger::Ledger;
use super::ports::{Ports, unlabelled};
use crate::reflector::Reflector;
use crate::stream_socket;

/// What the responder's channels show of themselves; made once.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    provider: Arc<CryptoProvider>,
    pair: DtlsCert,
    pub(super) fingerprint: String,
}

impl Certificate {
    /// Takes a key pair of its own: some milliseconds. `None` where the system gives no random
    /// bytes.
    pub(crate) fn make() -> Option<Self> {
        let provider = Arc::new(str0m::crypto::from_feature_flags());
        let pair = provider.dtls_provider.generate_certificate()?;
        let digest = provider.sha256_provider.sha256(&pair.certificate);
        let fingerprint = ChannelEnd::fingerprint(&digest);
        Some(Self { provider, pair, fingerprint })
    }
}

/// Both ends, as they were agreed on.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    pub(super) ours: ChannelEnd,
    pub(super) theirs: ChannelEnd,
    pub(super) local: SocketAddr,
    /// The host of the page, which its control connection has proven.
    pub(super) page: ZonedIp,
}

/// Why an association came to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Gone {
    #[error("the browser closed the data channel, or is not heard any more")]
    Closed,
    #[error("the data channel broke: {0}")]
    Broken(#[from] RtcError),
    #[error("the data channel's socket failed: {0}")]
    Socket(#[from] io::Error),
}

/// A message that has come, with the arrival of the datagram that completed it.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    pub(super) arrival: Arrival,
}

pub(super) struct Association {
    rtc: Rtc,
    channel: ChannelId,
    is_open: bool,
    is_gone: bool,
    reflector: Arc<Reflector>,
    /// Connected to the port that the handshake was held with, once the channel is open.
    socket: Option<(SocketAddr, ProbeSocket)>,
    options: SocketOptions,
    door: Door,
    packets: Receiver<Packet>,
    /// This end as the library knows it.
    candidate: SocketAddr,
    ports: Ports,
    /// The address here that the browser speaks to.
    local: Option<IpAddr>,
    /// When the library wants to be called.
    due: Mono,
    inbox: VecDeque<Message>,
    /// Messages for which the inbox had no room.
    overflow: u64,
    pub(super) ledger: Ledger,
    buf: Vec<u8>,
}

impl Association {
    pub(super) fn new(
        reflector: Arc<Reflector>,
        door: Door,
        packets: Receiver<Packet>,
        certificate: &Certificate,
        ends: &Ends,
        options: SocketOptions,
    ) -> Result<Self, RtcError> {
        let now = clock::now();
        let credentials = |end: &ChannelEnd| IceCreds { ufrag: end.ufrag.clone(), pass: end.pwd.clone() };
        let mut rtc = RtcConfig::new()
            .set_crypto_provider(Arc::clone(&certificate.provider))
            .set_dtls_cert(certificate.pair.clone())
            .set_ice_lite(true)
            .set_local_ice_credentials(credentials(&ends.ours))
            .set_sctp_max_message_size(MAX_CHANNEL_PAYLOAD as u32)
            .build(clock::instant(now));
        let candidate = SocketAddr::new(ends.local.ip().to_canonical(), ends.local.port());
        rtc.add_local_candidate(Candidate::host(candidate, "udp")?);
        let mut direct = rtc.direct_api();
        direct.set_remote_ice_credentials(credentials(&ends.theirs));
        let bytes = ends.theirs.digest().unwrap_or_default().to_vec();
        direct.set_remote_fingerprint(Fingerprint { hash_func: "sha-256".to_owned(), bytes });
        direct.set_ice_controlling(false);
        direct.start_dtls(false)?;
        direct.start_sctp(false);
        let channel = direct.create_data_channel(ChannelConfig {
            label: LABEL.to_owned(),
            ordered: false,
            reliability: Reliability::MaxRetransmits { retransmits: 0 },
            negotiated: Some(STREAM),
            protocol: String::new(),
        });
        let mut association = Self {
            rtc,
            channel,
            is_open: false,
            is_gone: false,
            reflector,
            socket: None,
            options,
            door,
            packets,
            candidate,
            ports: Ports::new(ends.page),
            local: None,
            due: now,
            inbox: VecDeque::new(),
            overflow: 0,
            ledger: Ledger::new(netaware_units::ByteCount(0)),
            buf: vec![0; LARGEST],
        };
        // Nobody has been heard yet, so nothing leaves.
        let _ = association.drain();
        Ok(association)
    }

    /// Whether messages can be sent.
    pub(super) fn is_open(&self) -> bool {
        self.is_open && self.socket.is_some()
    }

    /// The next message that has come.
    pub(super) fn next_message(&mut self) -> Option<Message> {
        self.inbox.pop_front()
    }

    /// Datagrams and messages that this host has dropped.
    pub(super) fn drops(&self) -> u64 {
        self.door.dropped() + self.overflow + self.socket.as_ref().map_or(0, |(_, socket)| socket.drops())
    }

    /// Datagrams that were dropped unread because of the port that they came from, and those of
    /// addresses of no page, of all channels of this socket.
    pub(super) fn refused(&self) -> (u64, u64) {
        (self.ports.refused(), self.door.foreign())
    }

    /// Waits for what comes first: a datagram, the library's timer, or `until`; at most
    /// [`LOOK_UP`].
    pub(super) fn turn(&mut self, until: Mono) -> Result<(), Gone> {
        let until = until.min(self.due).min(clock::now() + LOOK_UP);
        if let Some((_, socket)) = &self.socket {
            let arrival = socket.receive(&mut self.buf, Some(until));
            self.take_in(arrival)?;
            self.take_passed_on()?;
        } else {
            let wait = (until - clock::now()).or_zero();
            if let Ok(Packet { bytes, arrival }) = self.packets.recv_timeout(wait.to_std()) {
                self.local = arrival.to;
                self.feed(&bytes, arrival)?;
                self.take_socket()?;
            }
        }
        self.keep_time()
    }

    /// Takes what has come, without waiting.
    pub(super) fn look(&mut self) -> Result<(), Gone> {
        for _ in 0..MOST_AT_ONCE {
            let Some((_, socket)) = &self.socket else { break };
            let arrival = socket.try_receive(&mut self.buf);
            if !self.take_in(arrival)? {
                break;
            }
        }
        self.keep_time()
    }

    /// Gives a message to SCTP; false where its buffer is full.
    pub(super) fn write(&mut self, message: &[u8]) -> Result<bool, Gone> {
        let Some(mut channel) = self.rtc.channel(self.channel) else { return Err(Gone::Closed) };
        let taken = channel.write(true, message)?;
        self.drain()?;
        Ok(taken)
    }

    /// Bytes that SCTP holds, those in flight among them.
    pub(super) fn buffered(&mut self) -> usize {
        self.rtc.channel(self.channel).map_or(0, |mut channel| channel.buffered_amount())
    }

    fn take_in(&mut self, arrival: io::Result<Option<Arrival>>) -> Result<bool, Gone> {
        match arrival {
            Ok(Some(arrival)) => {
                let bytes = std::mem::take(&mut self.buf);
                let fed = self.feed(&bytes[..arrival.len.min(bytes.len())], arrival);
                self.buf = bytes;
                fed.map(|()| true)
            }
            Ok(None) => Ok(false),
            // What ICMP says of an earlier datagram decides nothing: browsers change ports.
            Err(error) if is_refusal(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn feed(&mut self, bytes: &[u8], arrival: Arrival) -> Result<(), Gone> {
        // What is no packet of WebRTC, comes from elsewhere, or proves nothing, has never come.
        let Some(kind) = Guest::of(bytes) else { return Ok(()) };
        let source = unlabelled(arrival.from);
        if !self.ports.may_read(kind, source) {
            return Ok(());
        }
        let Ok(contents) = DatagramRecv::try_from(bytes) else { return Ok(()) };
        let received = Receive { proto: Protocol::Udp, source, destination: self.candidate, contents };
        let input = Input::Receive(clock::instant(clock::now()), received);
        if !self.rtc.accepts(&input) {
            return Ok(());
        }
        self.ports.recognised(kind, source, bytes.len());
        self.rtc.handle_input(input)?;
        self.drain_for(Some(arrival))
    }

    fn keep_time(&mut self) -> Result<(), Gone> {
        let now = clock::now();
        if now >= self.due {
            self.rtc.handle_input(Input::Timeout(clock::instant(now)))?;
            self.drain()?;
        }
        if self.is_gone || !self.rtc.is_alive() { Err(Gone::Closed) } else { Ok(()) }
    }

    fn drain(&mut self) -> Result<(), Gone> {
        self.drain_for(None)
    }

    fn drain_for(&mut self, arrival: Option<Arrival>) -> Result<(), Gone> {
        loop {
            match self.rtc.poll_output()? {
                Output::Timeout(at) => {
                    self.due = clock::mono(at);
                    return Ok(());
                }
                Output::Transmit(transmit) => self.transmit(&transmit),
                Output::Event(event) => self.on(event, arrival),
            }
        }
    }

    fn on(&mut self, event: Event, arrival: Option<Arrival>) {
        match event {
            Event::Connected => self.ports.handshake_finished(),
            Event::ChannelOpen(..) => self.is_open = true,
            Event::ChannelData(data) => match arrival {
                Some(arrival) if self.inbox.len() < MOST_MESSAGES => {
                    self.inbox.push_back(Message { bytes: data.data, arrival });
                }
                _ => self.overflow += 1,
            },
            Event::ChannelClose(_) | Event::IceConnectionStateChange(IceConnectionState::Disconnected) => {
                self.is_gone = true;
            }
            _ => {}
        }
    }

    /// The library sends to wherever a signed request says that it comes from; [`Ports`] decides
    /// whether that is so.
    fn transmit(&mut self, transmit: &Transmit) {
        let (bytes, wanted) = (&*transmit.contents, transmit.destination);
        let Some(kind) = Guest::of(bytes) else { return };
        let Some(to) = self.ports.destination(kind, wanted, bytes.len()) else { return };
        let sent = match &self.socket {
            Some((peer, socket)) if *peer == to => {
                let sent = socket.send(bytes);
                // Their stamps are not needed, and would fill the socket's error queue.
                socket.sent_stamps().for_each(drop);
                sent
            }
            _ if self.door.admit(to) => self.reflector.send_from(bytes, to, self.local),
            _ => return,
        };
        self.ledger.packet(bytes, sent.is_ok());
    }

    /// Once the channel is open: a socket of its own.
    fn take_socket(&mut self) -> Result<(), Gone> {
        let Some(peer) = self.ports.peer().filter(|_| self.is_open && self.socket.is_none()) else {
            return Ok(());
        };
        let socket = stream_socket::open(&self.reflector, peer, self.local, &self.options)
            .map_err(|error| Gone::Socket(io::Error::other(error)))?;
        netaware_io::udp_stream::widen(&socket);
        self.socket = Some((peer, ProbeSocket::new(socket, Stamping::Kernel)?));
        // What came for the channel while it was bound.
        self.take_passed_on()
    }

    /// From other ports of the browser, and from before there was a socket.
    fn take_passed_on(&mut self) -> Result<(), Gone> {
        while let Ok(Packet { bytes, arrival }) = self.packets.try_recv() {
            self.feed(&bytes, arrival)?;
        }
        Ok(())
    }
}

/// A blocked call returns after this, for whoever looks at a flag.
pub(super) const LOOK_UP: Span = Span::from_millis(20);
/// The stream of SCTP that both ends agree on beforehand.
const STREAM: u16 = 0;
const LABEL: &str = "netaware";
/// Longer than any packet of a browser.
const LARGEST: usize = 4096;
/// Messages that wait to be looked at: some milliseconds' worth at the highest rate.
const MOST_MESSAGES: usize = 4096;
const MOST_AT_ONCE: usize = 64;

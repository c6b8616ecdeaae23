//! The browser's end of a data channel, by the same library; with a network that loses what it is
//! told to.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use netaware_io::clock;
use netaware_units::{Mono, Span};
use netaware_wire::control::{ChannelEnd, ClientMessage, ServerMessage};
use str0m::channel::{ChannelConfig, ChannelId, Reliability};
use str0m::config::Fingerprint;
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, IceCreds, Input, Output, Rtc, RtcConfig};

use super::speaker::Speaker;

/// Bytes that the kernel needs at most for the datagrams of one test.
const BURST: usize = 16 << 20;

pub(crate) struct Browser {
    rtc: Rtc,
    channel: ChannelId,
    socket: UdpSocket,
    here: SocketAddr,
    there: SocketAddr,
    due: Mono,
    pub(crate) is_open: bool,
    pub(crate) inbox: Vec<Vec<u8>>,
    /// Every so many packets of data that come in are lost; zero: none.
    pub(crate) lose_in: u64,
    /// As many of those that go out.
    pub(crate) lose_out: u64,
    data: [u64; 2],
    pub(crate) lost: [u64; 2],
    /// Bytes of datagrams that came in and that went out.
    pub(crate) bytes: [u64; 2],
    /// DTLS has gone out.
    pub(crate) has_greeted: bool,
}

impl Browser {
    /// Not signalled yet.
    pub(crate) fn new(there: SocketAddr) -> Self {
        Self::at(there.ip(), there)
    }

    /// At this address of the host.
    pub(crate) fn at(here: IpAddr, there: SocketAddr) -> Self {
        let provider = std::sync::Arc::new(str0m::crypto::from_feature_flags());
        let now = clock::now();
        let mut rtc = RtcConfig::new().set_crypto_provider(provider).build(clock::instant(now));
        let socket = UdpSocket::bind(SocketAddr::new(here, 0)).unwrap();
        // Room for a whole unpaced burst, so that the socket loses nothing however late it is read.
        // Only root gets it.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BURST);
        let here = socket.local_addr().unwrap();
        rtc.add_local_candidate(Candidate::host(here, "udp").unwrap());
        let mut direct = rtc.direct_api();
        direct.set_ice_controlling(true);
        let channel = direct.create_data_channel(ChannelConfig {
            label: "netaware".into(),
            ordered: false,
            reliability: Reliability::MaxRetransmits { retransmits: 0 },
            negotiated: Some(0),
            protocol: String::new(),
        });
        Self {
            rtc,
            channel,
            socket,
            here,
            there,
            due: now,
            is_open: false,
            inbox: Vec::new(),
            lose_in: 0,
            lose_out: 0,
            data: [0; 2],
            lost: [0; 2],
            bytes: [0; 2],
            has_greeted: false,
        }
    }

    pub(crate) fn end(&mut self) -> ChannelEnd {
        let direct = self.rtc.direct_api();
        let IceCreds { ufrag, pass } = direct.local_ice_credentials();
        let digest = direct.local_dtls_fingerprint().bytes.clone().try_into().unwrap();
        ChannelEnd { ufrag, pwd: pass, fingerprint: ChannelEnd::fingerprint(&digest) }
    }

    pub(crate) fn know(&mut self, end: &ChannelEnd) {
        let mut direct = self.rtc.direct_api();
        direct.set_remote_ice_credentials(IceCreds { ufrag: end.ufrag.clone(), pass: end.pwd.clone() });
        let bytes = end.digest().unwrap().to_vec();
        direct.set_remote_fingerprint(Fingerprint { hash_func: "sha-256".into(), bytes });
        direct.start_dtls(true).unwrap();
        direct.start_sctp(true);
        self.rtc.add_remote_candidate(Candidate::host(self.there, "udp").unwrap());
        self.drain();
    }

    /// Signalled over the session, and open.
    pub(crate) fn open(speaker: &mut Speaker, test: u32, there: SocketAddr) -> Self {
        let mut browser = Self::new(there);
        speaker.say(&ClientMessage::Channel { test, end: browser.end() });
        let end = speaker.hear_until(|message| match message {
            ServerMessage::Channel { test: of, end } if *of == test => Some(end.clone()),
            _ => None,
        });
        assert_eq!(end.fault(), None);
        browser.know(&end);
        assert!(browser.run_until(Span::from_secs(5), |browser| browser.is_open), "the channel opens");
        speaker.ready(test);
        browser
    }

    pub(crate) fn write(&mut self, message: &[u8]) -> bool {
        let taken = self.rtc.channel(self.channel).expect("an open channel").write(true, message).unwrap();
        self.drain();
        taken
    }

    /// Lets time pass until `done` or its end; whether it was done.
    pub(crate) fn run_until(&mut self, span: Span, done: impl Fn(&Self) -> bool) -> bool {
        let until = clock::now() + span;
        while !done(self) {
            let now = clock::now();
            if now >= until {
                return false;
            }
            self.turn(until.min(self.due) - now);
        }
        true
    }

    /// Counts what comes, and is silent itself.
    pub(crate) fn count_for(&mut self, span: Span) {
        let until = clock::now() + span;
        self.socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        while clock::now() < until {
            if let Ok(len) = self.socket.recv(&mut [0; 4096]) {
                self.bytes[0] += len as u64;
            }
        }
    }

    fn turn(&mut self, wait: Span) {
        let wait = wait.to_std().max(Duration::from_micros(100));
        self.socket.set_read_timeout(Some(wait.min(Duration::from_millis(20)))).unwrap();
        let mut buf = [0; 4096];
        match self.socket.recv_from(&mut buf) {
            Ok((len, source)) => {
                self.bytes[0] += len as u64;
                if !is_lost(&buf[..len], self.lose_in, &mut self.data[0], &mut self.lost[0])
                    && let Ok(contents) = buf[..len].try_into()
                {
                    let received = Receive { proto: Protocol::Udp, source, destination: self.here, contents };
                    let now = clock::instant(clock::now());
                    self.rtc.handle_input(Input::Receive(now, received)).unwrap();
                }
            }
            Err(error) => assert!(matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
            )),
        }
        self.drain();
        if clock::now() >= self.due {
            self.rtc.handle_input(Input::Timeout(clock::instant(clock::now()))).unwrap();
            self.drain();
        }
    }

    fn drain(&mut self) {
        loop {
            match self.rtc.poll_output().unwrap() {
                Output::Timeout(at) => {
                    self.due = clock::mono(at);
                    return;
                }
                Output::Transmit(transmit) => {
                    self.bytes[1] += transmit.contents.len() as u64;
                    self.has_greeted |= transmit.contents[0] == HANDSHAKE;
                    if !is_lost(&transmit.contents, self.lose_out, &mut self.data[1], &mut self.lost[1]) {
                        let _ = self.socket.send_to(&transmit.contents, transmit.destination);
                    }
                }
                Output::Event(Event::ChannelOpen(..)) => self.is_open = true,
                Output::Event(Event::ChannelData(data)) => self.inbox.push(data.data),
                Output::Event(_) => {}
            }
        }
    }
}

/// Only packets with data of a stream are lost: they are longer than all others.
fn is_lost(packet: &[u8], every: u64, seen: &mut u64, lost: &mut u64) -> bool {
    if every == 0 || packet[0] != 23 || packet.len() < LONGER_THAN_CONTROL {
        return false;
    }
    *seen += 1;
    let is_lost = seen.is_multiple_of(every);
    *lost += u64::from(is_lost);
    is_lost
}

/// Content type of a DTLS record.
const HANDSHAKE: u8 = 22;
const LONGER_THAN_CONTROL: usize = 600;

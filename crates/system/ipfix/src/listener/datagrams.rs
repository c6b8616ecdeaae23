//! One socket for all exporters that send datagrams.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};

use netaware_io::clock;
use netaware_units::{Mono, Span, Wall};
use netaware_wire::ipfix::{Header, Limits, MAX_MESSAGE, Reader, Transport};
use socket2::SockRef;

use super::{Over, Session, Shared};

/// The socket's buffer, as far as the system allows: at 100,000 messages/s of 1400 B it holds 60
/// ms.
const BUFFER: usize = 8 << 20;
/// How often the stop flag is looked at and the totals are told.
const TURN: Span = Span::from_millis(50);
/// Anybody can send from any address: what 1024 of them can make us keep is less than what a
/// connection may.
const LIMITS: Limits =
    Limits { domains: 4, templates: 512, fields: 8192, lifetime: Span::from_secs(3 * 1800) };

pub(super) fn begin(
    at: SocketAddr,
    exporters: usize,
    shared: Shared,
) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    let socket = UdpSocket::bind(at)?;
    // Less is granted where the system's limit is lower: more may be lost then, and the sequence
    // numbers will tell.
    let _ = SockRef::from(&socket).set_recv_buffer_size(BUFFER);
    socket.set_read_timeout(Some(TURN.to_std()))?;
    let bound = socket.local_addr()?;
    let inbox = Inbox { socket, sessions: HashMap::new(), exporters, refused: 0, shared };
    let thread = thread::Builder::new().name("ipfix-udp".into()).spawn(move || inbox.run())?;
    Ok((bound, thread))
}

struct Inbox {
    socket: UdpSocket,
    /// By address and port; beside each, when something came last.
    sessions: HashMap<SocketAddr, (Session, Mono)>,
    exporters: usize,
    refused: u64,
    shared: Shared,
}

impl Inbox {
    fn run(mut self) {
        let mut buffer = vec![0; MAX_MESSAGE + 1];
        let (mut now, mut wall) = (clock::now(), clock::wall());
        let mut tell_at = now + TURN;
        let mut unlooked = 0_u32;
        while !self.shared.stop.is_raised() {
            let came = self.socket.recv_from(&mut buffer);
            // What is timed here lasts for minutes: a look at the clock at every 64th message is
            // exact enough.
            unlooked += 1;
            if unlooked == 64 || came.is_err() {
                unlooked = 0;
                (now, wall) = (clock::now(), clock::wall());
            }
            if let Ok((length, peer)) = came {
                self.datagram(peer, &buffer[..length], now, wall);
            }
            if now >= tell_at {
                tell_at = now + TURN;
                self.tell();
                self.sessions.values_mut().for_each(|(session, _)| session.inlet.turn(now));
            }
        }
        self.tell();
    }

    fn datagram(&mut self, peer: SocketAddr, bytes: &[u8], now: Mono, wall: Wall) {
        if !self.sessions.contains_key(&peer) && !self.admit(peer, bytes, now) {
            self.refused += 1;
            return;
        }
        if let Some((session, heard_at)) = self.sessions.get_mut(&peer) {
            *heard_at = now;
            // Damage is counted by the session.
            let _ = session.message(wall, bytes);
        }
    }

    /// Makes a place for who sends IPFIX, of one that was silent for too long if need be.
    fn admit(&mut self, peer: SocketAddr, bytes: &[u8], now: Mono) -> bool {
        if Header::parse(bytes).is_err() {
            return false;
        }
        if self.sessions.len() >= self.exporters {
            let patience = self.shared.patience;
            self.tell();
            self.sessions.retain(|_, (_, heard_at)| now - *heard_at < patience);
        }
        let room = self.sessions.len() < self.exporters;
        if room {
            let reader = Reader::with_limits(Transport::Datagrams, LIMITS);
            let session = Session::new(reader, peer, Over::Udp, &self.shared);
            self.sessions.insert(peer, (session, now));
        }
        room
    }

    fn tell(&mut self) {
        let Self { sessions, shared, refused, .. } = self;
        shared.tell(|totals| {
            for (session, _) in sessions.values_mut() {
                session.tell(totals);
            }
            totals.exporters = sessions.len() as u64;
            totals.refused += std::mem::take(refused);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use netaware_io::stop::StopFlag;

    use super::super::{Sink, Totals};
    use super::*;

    /// A message without sets: version 10, 16 bytes, exported at 0, number 0, domain 1.
    const EMPTY: [u8; 16] = [0, 10, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

    struct Place {
        inbox: Inbox,
        totals: Arc<Mutex<Totals>>,
    }

    impl Place {
        /// For two exporters, who are forgotten after a minute.
        fn new() -> Self {
            let totals: Arc<Mutex<Totals>> = Arc::default();
            let sink: Sink = Arc::new(|_, _| {});
            let shared = Shared {
                inlets: Arc::new(sink),
                totals: totals.clone(),
                stop: StopFlag::new(),
                first_message: Span::from_secs(10),
                patience: Span::from_secs(60),
                places: 1,
            };
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let inbox = Inbox { socket, sessions: HashMap::new(), exporters: 2, refused: 0, shared };
            Self { inbox, totals }
        }

        /// What is said from a port at a second; the ports that have a place then.
        fn hears(&mut self, port: u16, second: i64, bytes: &[u8]) -> Vec<u16> {
            let peer = SocketAddr::from(([192, 0, 2, 1], port));
            self.inbox.datagram(peer, bytes, Mono(0) + Span::from_secs(second), Wall(0));
            let mut there: Vec<u16> = self.inbox.sessions.keys().map(SocketAddr::port).collect();
            there.sort_unstable();
            there
        }
    }

    #[test]
    fn an_exporter_that_was_silent_for_too_long_makes_room_and_one_that_speaks_keeps_its_place() {
        let mut place = Place::new();
        assert_eq!(place.hears(1, 0, &EMPTY), [1]);
        assert_eq!(place.hears(2, 30, &EMPTY), [1, 2]);
        assert_eq!(place.hears(3, 59, &EMPTY), [1, 2], "both spoke within a minute");
        assert_eq!(place.hears(4, 60, b"noise"), [1, 2], "noise puts nobody out");
        assert_eq!(place.hears(3, 60, &EMPTY), [2, 3]);
        assert_eq!(place.hears(2, 80, &EMPTY), [2, 3]);
        assert_eq!(place.hears(1, 119, &EMPTY), [2, 3]);
        assert_eq!(place.hears(1, 120, &EMPTY), [1, 2], "the one that spoke last stays");
        place.inbox.tell();
        let totals = *place.totals.lock().unwrap();
        // What those who went had said is not forgotten.
        assert_eq!((totals.counts.messages, totals.exporters, totals.refused), (5, 2, 3));
    }
}

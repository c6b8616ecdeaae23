//! The addresses that a data channel reads from, answers, and sends to.
//!
//! TCP has proven the IP address of the page's control connection. Datagrams of all other addresses
//! are dropped unread, and no datagram leaves for another address, whatever STUN says. Whoever was
//! told the password can sign a request and forge its source, so a signature proves no address.
//!
//! A NAT may give UDP another port than TCP, so ports are not compared. Instead:
//!
//! 1. A port is answered once a signed STUN request came from it. A channel answers few ports, and
//!    takes no more once DTLS has begun.
//! 2. DTLS goes to the port from which the first DTLS came, and to no other one as long as the
//!    channel exists. ICE lite makes no connectivity checks of its own; the handshake is the check,
//!    because nobody can finish it who did not receive what was sent to that port.
//! 3. Until the handshake is over, what leaves is at most three times what came (RFC 9000 §8.1 has
//!    the same bound). A flight of the handshake for which there is no room is dropped, and DTLS
//!    repeats it once the page has repeated its own.

use std::net::{IpAddr, SocketAddr};

use netaware_io::zone::{ZonedIp, needs_zone};
use netaware_wire::webrtc::Guest;

use super::doors::MOST_SOURCES;

/// The host behind a socket's address: IPv4 stays the same when it is mapped into IPv6, and only an
/// address that needs its interface has one.
pub(super) fn host_of(address: SocketAddr) -> ZonedIp {
    let ip: IpAddr = address.ip().to_canonical();
    if needs_zone(ip) { ZonedIp::of(address) } else { ip.into() }
}

/// The address without a flow label, which a connected socket has in the address of its peer and an
/// unconnected one has not.
pub(super) fn unlabelled(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(mut v6) => {
            v6.set_flowinfo(0);
            v6.into()
        }
        SocketAddr::V4(_) => address,
    }
}

/// What one channel knows about its page's ports.
#[derive(Debug)]
pub(super) struct Ports {
    page: ZonedIp,
    /// A signed STUN request came from each of these.
    answered: Vec<SocketAddr>,
    /// The source of the first DTLS.
    peer: Option<SocketAddr>,
    /// The DTLS handshake is over.
    is_proven: bool,
    received: u64,
    sent: u64,
    refused: u64,
}

impl Ports {
    pub(super) fn new(page: ZonedIp) -> Self {
        Self { page, answered: Vec::new(), peer: None, is_proven: false, received: 0, sent: 0, refused: 0 }
    }

    /// Whether a datagram may be read at all. Those that may not are counted.
    pub(super) fn may_read(&mut self, kind: Guest, from: SocketAddr) -> bool {
        let may_ask = kind == Guest::Stun
            && host_of(from) == self.page
            && self.peer.is_none()
            && self.answered.len() < MOST_SOURCES;
        let may_read = may_ask || self.answered.contains(&from);
        self.refused += u64::from(!may_read);
        may_read
    }

    /// The library has recognised a datagram as one of this channel: signed STUN, or DTLS.
    pub(super) fn recognised(&mut self, kind: Guest, from: SocketAddr, len: usize) {
        self.received += len as u64;
        match kind {
            Guest::Stun if !self.answered.contains(&from) => self.answered.push(from),
            Guest::Stun => {}
            Guest::Dtls => self.peer = self.peer.or(Some(from)),
        }
    }

    /// The DTLS handshake is over, so the port to which it was sent is the page's.
    pub(super) fn handshake_finished(&mut self) {
        self.is_proven = self.peer.is_some();
    }

    /// Where a datagram goes that the library wants to send to `wanted`. `None` if it must not be
    /// sent; otherwise it counts as sent.
    pub(super) fn destination(&mut self, kind: Guest, wanted: SocketAddr, len: usize) -> Option<SocketAddr> {
        let to = match kind {
            Guest::Stun => self.answered.contains(&wanted).then_some(wanted),
            Guest::Dtls => self.peer,
        }?;
        let sent = self.sent.saturating_add(len as u64);
        if !self.is_proven && sent > self.received.saturating_mul(MOST_SENT_PER_RECEIVED) {
            return None;
        }
        self.sent = sent;
        Some(to)
    }

    /// The port that DTLS goes to.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Datagrams that were dropped unread.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}

/// Bytes that leave for a byte that came, before the handshake is over.
const MOST_SENT_PER_RECEIVED: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: [u8; 4] = [192, 0, 2, 1];
    const VICTIM: [u8; 4] = [198, 51, 100, 7];
    const REQUEST: usize = 120;
    const HELLO: usize = 234;
    const FLIGHT: usize = 627;

    fn at(ip: [u8; 4], port: u16) -> SocketAddr {
        SocketAddr::from((ip, port))
    }

    fn ports() -> Ports {
        Ports::new(host_of(at(PAGE, 40_000)))
    }

    /// A signed request and a first DTLS datagram have come from this port of the page.
    fn begun(port: u16) -> Ports {
        let mut ports = ports();
        let page = at(PAGE, port);
        assert!(ports.may_read(Guest::Stun, page));
        ports.recognised(Guest::Stun, page, REQUEST);
        assert!(ports.may_read(Guest::Dtls, page));
        ports.recognised(Guest::Dtls, page, HELLO);
        ports
    }

    #[test]
    fn a_signed_request_with_a_forged_source_moves_nothing_to_its_victim() {
        let mut ports = begun(1);
        ports.handshake_finished();
        assert!(!ports.may_read(Guest::Stun, at(VICTIM, 9)));
        assert!(!ports.may_read(Guest::Stun, at(PAGE, 9)), "another port of the page, once DTLS has begun");
        assert_eq!(ports.refused(), 2);
        // ICE nominates a pair by a priority that the sender chooses; DTLS stays where it is.
        for wanted in [at(VICTIM, 9), at(PAGE, 9), at(PAGE, 1)] {
            assert_eq!(ports.destination(Guest::Dtls, wanted, 1200), Some(at(PAGE, 1)));
        }
        assert_eq!(ports.destination(Guest::Stun, at(VICTIM, 9), 64), None);
        assert_eq!(ports.destination(Guest::Stun, at(PAGE, 9), 64), None);
    }

    #[test]
    fn a_forged_hello_is_neither_read_nor_answered() {
        let mut ports = ports();
        assert!(!ports.may_read(Guest::Stun, at(VICTIM, 1)) && !ports.may_read(Guest::Dtls, at(VICTIM, 1)));
        assert!(!ports.may_read(Guest::Dtls, at(PAGE, 1)), "DTLS of a port that has not asked yet");
        for kind in [Guest::Stun, Guest::Dtls] {
            assert_eq!(ports.destination(kind, at(VICTIM, 1), 64), None);
        }
        assert_eq!((ports.peer(), ports.refused()), (None, 3));
    }

    #[test]
    fn a_hello_gives_its_source_at_most_three_times_its_bytes_until_the_handshake_is_over() {
        let mut ports = begun(1);
        let to = at(PAGE, 1);
        // Three times 354 bytes are 1062.
        assert_eq!(ports.destination(Guest::Stun, to, 64), Some(to));
        assert_eq!(ports.destination(Guest::Dtls, to, FLIGHT), Some(to));
        for _ in 0..100 {
            assert_eq!(ports.destination(Guest::Dtls, to, FLIGHT), None, "a repeated flight");
        }
        // A page that did not get the flight repeats its hello, and that is room for another one.
        ports.recognised(Guest::Dtls, to, HELLO);
        assert_eq!(ports.destination(Guest::Dtls, to, FLIGHT), Some(to));
        assert_eq!(ports.destination(Guest::Dtls, to, FLIGHT), None);
        ports.handshake_finished();
        for _ in 0..100 {
            assert_eq!(ports.destination(Guest::Dtls, to, FLIGHT), Some(to));
        }
    }

    #[test]
    fn few_ports_are_answered_and_each_of_them_asked_first() {
        let mut ports = ports();
        for port in 0..1000 {
            if ports.may_read(Guest::Stun, at(PAGE, port)) {
                ports.recognised(Guest::Stun, at(PAGE, port), REQUEST);
            }
        }
        let answered =
            (0..1000).filter(|port| ports.destination(Guest::Stun, at(PAGE, *port), 64).is_some()).count();
        assert_eq!((answered, ports.refused()), (MOST_SOURCES, 1000 - MOST_SOURCES as u64));
        // A request whose signature does not fit takes no place.
        let mut unsigned = Ports::new(host_of(at(PAGE, 40_000)));
        assert!((0..1000).all(|port| unsigned.may_read(Guest::Stun, at(PAGE, port))));
    }

    #[test]
    fn a_page_that_changes_between_its_ports_is_still_read_and_answered_at_both() {
        let mut ports = ports();
        for port in [1, 2] {
            ports.recognised(Guest::Stun, at(PAGE, port), REQUEST);
        }
        ports.recognised(Guest::Dtls, at(PAGE, 2), HELLO);
        assert!(ports.may_read(Guest::Stun, at(PAGE, 1)) && ports.may_read(Guest::Dtls, at(PAGE, 1)));
        ports.recognised(Guest::Dtls, at(PAGE, 1), HELLO);
        assert_eq!(ports.destination(Guest::Stun, at(PAGE, 1), 64), Some(at(PAGE, 1)));
        assert_eq!(ports.destination(Guest::Dtls, at(PAGE, 1), 64), Some(at(PAGE, 2)));
    }

    #[test]
    fn a_host_is_the_same_mapped_into_ipv6_and_another_on_another_link() {
        let host = |text: &str| host_of(text.parse().unwrap());
        assert_eq!(host("[::ffff:192.0.2.1]:1"), host("192.0.2.1:2"));
        assert_ne!(host("[2001:db8::1]:1"), host("[2001:db8::2]:1"));
        assert_eq!(host("[fe80::1%3]:1"), host("[fe80::1%3]:2"));
        assert_ne!(host("[fe80::1%3]:1"), host("[fe80::1%4]:1"));
        assert_eq!(host("[2001:db8::1%3]:1"), host("[2001:db8::1]:1"), "a zone that means nothing");
    }

    #[test]
    fn a_connected_socket_with_a_flow_label_is_still_heard() {
        let plain: SocketAddr = "[2001:db8::1]:1".parse().unwrap();
        let SocketAddr::V6(mut labelled) = plain else { panic!("IPv6") };
        labelled.set_flowinfo(7);
        assert_ne!(SocketAddr::V6(labelled), plain);
        assert_eq!(unlabelled(labelled.into()), plain);
        assert_eq!(unlabelled(at(PAGE, 1)), at(PAGE, 1));
    }

    /// Whatever comes in whatever order: nothing leaves for another address, DTLS has one
    /// destination at most, and before the end of the handshake the bound on bytes holds.
    #[test]
    fn no_order_of_datagrams_makes_the_channel_a_weapon() {
        for seed in 1..=2000_u64 {
            let mut state = seed;
            let mut next = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut ports = ports();
            let (mut received, mut sent, mut is_over) = (0, 0, false);
            let mut to_dtls = None;
            for _ in 0..100 {
                let kind = if next(2) == 0 { Guest::Stun } else { Guest::Dtls };
                let address = at(if next(3) == 0 { VICTIM } else { PAGE }, next(12) as u16);
                let len = next(1500) as usize;
                if next(2) == 0 {
                    if ports.may_read(kind, address) {
                        ports.recognised(kind, address, len);
                        received += len;
                    }
                } else if let Some(to) = ports.destination(kind, address, len) {
                    sent += len;
                    assert_eq!(to.ip(), IpAddr::from(PAGE), "seed {seed}");
                    assert!(is_over || sent <= 3 * received, "seed {seed}: {sent} for {received}");
                    if kind == Guest::Dtls {
                        assert_eq!(*to_dtls.get_or_insert(to), to, "seed {seed}");
                    }
                }
                // Nobody can finish a handshake of which nothing was sent.
                if to_dtls.is_some() && next(40) == 0 {
                    ports.handshake_finished();
                    is_over = true;
                }
            }
        }
    }
}

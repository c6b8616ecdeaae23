//! Round trips by the spin bit of QUIC.
//!
//! Client and server keep the bit so that it changes once in a round trip, seen anywhere: time
//! between two edges in one direction is the round trip between the ends. Three things make edges
//! that are none (RFC 9312 §4.2), and are told apart by their timing alone, since packet numbers
//! are encrypted:
//!
//! - reordering across an edge: a packet with the old value right behind it. Edges within a tenth
//!   of the round trip of the last are no edges (De Vaere's time filter);
//! - a sender with nothing to send holds its edge back: ten times the round trip is no round trip,
//!   unless it stays like that;
//! - ends that set the bit at random (at least one connection in 16 does not spin): then most
//!   changes come too early, or edges come in less than half the time that the handshake took. Such
//!   directions say nothing. In a period of too few edges, as the last of a connection is, what was
//!   found before holds.

use netaware_units::{Span, Wall};
use netaware_wire::packet::Packet;

use crate::Delays;

/// Of a packet whose conversation is known to be QUIC. There the fixed bit means nothing: ends that
/// have told each other so set it at random (RFC 9287).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// Of a version that has a spin bit. With the fixed bit it opens a connection.
    Long { fixed: bool },
    /// With its spin bit.
    Short { spin: bool },
}

impl Header {
    /// `None` of what cannot be QUIC, of STUN, which ends that look for paths send between, and of
    /// long headers of unknown versions.
    #[inline]
    pub(super) fn parse(packet: &Packet<'_>) -> Option<Self> {
        let payload = packet.bytes.get(packet.transport + UDP_HEADER..)?;
        let first = *payload.first()?;
        if first & FORM == 0 {
            let is_stun = first < STUN_ENDS && payload.get(4..8) == Some(&STUN_COOKIE);
            return (!is_stun).then_some(Self::Short { spin: first & SPIN != 0 });
        }
        let version = u32::from_be_bytes(*payload.get(1..)?.first_chunk::<4>()?);
        matches!(version, VERSION_1 | VERSION_2).then_some(Self::Long { fixed: first & FIXED != 0 })
    }

    pub(super) fn opens(self) -> bool {
        self == Self::Long { fixed: true }
    }
}

/// A connection.
#[derive(Debug, Default)]
pub(super) struct Spin {
    handshake: Handshake,
    ways: [Way; 2],
}

/// A first round trip to hold others against: from the first flight of one side to its second,
/// after the other had answered.
#[derive(Debug, Default)]
enum Handshake {
    #[default]
    Nothing,
    Asked(usize, Wall),
    Answered(usize, Wall),
    Took(Span),
}

#[derive(Debug, Default)]
struct Way {
    last: Option<bool>,
    edge_at: Option<Wall>,
    /// Smoothed, of this direction.
    usual: Option<Span>,
    /// Since the last call of [`Spin::begin_period`].
    accepted: u32,
    too_early: u32,
    /// In a row.
    too_late: u32,
    /// Whether it spun in the last period of which that can be said.
    has_spun: Option<bool>,
}

impl Spin {
    pub(super) fn observe(&mut self, way: usize, header: Header, at: Wall) -> Option<Span> {
        self.handshake(way, header, at);
        let Header::Short { spin } = header else { return None };
        let expected = match self.handshake {
            Handshake::Took(span) => Some(span),
            _ => None,
        };
        self.ways[way].observe(spin, at, expected)
    }

    fn handshake(&mut self, way: usize, header: Header, at: Wall) {
        self.handshake = match self.handshake {
            Handshake::Nothing if header.opens() => Handshake::Asked(way, at),
            Handshake::Asked(first, since) if way != first => Handshake::Answered(first, since),
            Handshake::Answered(first, since) if way == first => Handshake::Took(at.since(since).or_zero()),
            _ => return,
        };
    }

    /// Whether the bit of a direction spun, by what came of it in a period; if that is too little,
    /// by what came before. A direction of which nothing is known is believed.
    pub(super) fn spins(&mut self, way: usize, found: &Delays) -> bool {
        let spun = self.spun(way, found);
        let edges = &mut self.ways[way];
        edges.has_spun = spun.or(edges.has_spun);
        edges.has_spun != Some(false)
    }

    /// The same by this period alone; `None` if there is too little in it.
    fn spun(&self, way: usize, found: &Delays) -> Option<bool> {
        let edges = &self.ways[way];
        if edges.accepted >= ENOUGH && edges.too_early > 4 * edges.accepted {
            return Some(false);
        }
        match &self.handshake {
            Handshake::Took(took) => {
                let median = found.median().filter(|_| found.count() >= 2 * u64::from(ENOUGH));
                median.map(|median| median.0 > took.0 / 2)
            }
            _ => (edges.accepted >= ENOUGH).then_some(true),
        }
    }

    pub(super) fn begin_period(&mut self) {
        for way in &mut self.ways {
            (way.accepted, way.too_early) = (0, 0);
        }
    }
}

impl Way {
    fn observe(&mut self, spin: bool, at: Wall, handshake: Option<Span>) -> Option<Span> {
        let Some(last) = self.last else {
            self.last = Some(spin);
            return None;
        };
        if spin == last {
            return None;
        }
        let Some(edge_at) = self.edge_at else {
            // The value before this edge may have begun before we looked: only from here on edges
            // are edges.
            self.edge_at = Some(at);
            self.last = Some(spin);
            return None;
        };
        let round = at.since(edge_at);
        if !super::plausible(round) {
            // A clock that stepped, or a silence: begin anew.
            (self.last, self.edge_at) = (Some(spin), Some(at));
            return None;
        }
        let expected = self.usual.max(handshake);
        if expected.is_some_and(|expected| round.0 < expected.0 / 10) {
            self.too_early += 1;
            return None;
        }
        (self.last, self.edge_at) = (Some(spin), Some(at));
        self.accept(round, expected)
    }

    fn accept(&mut self, round: Span, expected: Option<Span>) -> Option<Span> {
        if expected.is_some_and(|expected| round.0 > expected.0.max(1).saturating_mul(10)) {
            self.too_late += 1;
            if self.too_late < STAYS {
                return None;
            }
            self.usual = None;
        }
        self.too_late = 0;
        self.accepted += 1;
        self.usual = Some(self.usual.map_or(round, |usual| Span(usual.0 + (round.0 - usual.0) / 8)));
        Some(round)
    }
}

const FORM: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
const UDP_HEADER: usize = 8;
/// First bytes below this are STUN's where it shares a port with QUIC (RFC 9443).
const STUN_ENDS: u8 = 4;
const STUN_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

/// Edges before anything is judged by them.
const ENOUGH: u32 = 8;

/// Rounds of ten times the usual one in a row that make it the usual one.
const STAYS: u32 = 4;

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;

    use super::*;
    use crate::made_up::Made;

    const MS: i64 = 1_000_000;

    fn short(spin: bool) -> Header {
        Header::Short { spin }
    }

    /// A connection whose handshake took 40 ms.
    fn opened() -> Spin {
        let mut spin = Spin::default();
        spin.observe(0, Header::Long { fixed: true }, Wall(-40 * MS));
        spin.observe(1, Header::Long { fixed: false }, Wall(-10 * MS));
        spin.observe(0, Header::Long { fixed: true }, Wall(0));
        spin
    }

    #[test]
    fn headers_are_told_apart() {
        let header = |payload: &[u8]| Header::parse(&Made::udp4().payload(payload).packet());
        assert_eq!(header(&[0x40, 1, 2]), Some(short(false)));
        assert_eq!(header(&[0x60 | 0x1f]), Some(short(true)));
        assert_eq!(header(&[0x20, 1, 2]), Some(short(true)), "greased");
        assert_eq!(header(&[0xc3, 0, 0, 0, 1, 8]), Some(Header::Long { fixed: true }));
        assert_eq!(header(&[0xd0, 0x6b, 0x33, 0x43, 0xcf]), Some(Header::Long { fixed: true }));
        let greased = header(&[0x83, 0, 0, 0, 1, 8]).unwrap();
        assert_eq!(greased, Header::Long { fixed: false });
        assert!(!greased.opens(), "it may be anything");
        for none in [
            &[0xc0, 0, 0, 0, 0][..],
            &[0xc0, 0xa, 0xa, 0xa, 0xa],
            &[0xc0, 0, 0],
            &[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42],
            &[0x80, 0, 0, 0, 2],
            &[],
        ] {
            assert_eq!(header(none), None, "{none:?}");
        }
    }

    #[test]
    fn edges_are_a_round_trip_apart() {
        let mut spin = opened();
        let found: Vec<Span> =
            (0..1000).filter_map(|n| spin.observe(0, short(n * 2 / 40 % 2 == 1), Wall(n * 2 * MS))).collect();
        assert_eq!(found.len(), 48);
        assert!(found.iter().all(|rtt| *rtt == Span::from_millis(40)), "{found:?}");
    }

    #[test]
    fn packets_that_come_late_over_an_edge_make_no_edges() {
        let mut spin = opened();
        let (mut found, mut delays) = (Vec::new(), Delays::default());
        for n in 0..2000_i64 {
            // Every packet right behind an edge comes with the old value.
            let sent = if n % 40 == 1 { n - 2 } else { n };
            let rtt = spin.observe(0, short(sent.max(0) / 40 % 2 == 1), Wall(n * MS));
            found.extend(rtt);
            if let Some(rtt) = rtt {
                delays.observe(rtt);
            }
        }
        assert!(found.iter().all(|rtt| *rtt == Span::from_millis(40)), "{found:?}");
        assert!(found.len() > 40 && spin.spins(0, &delays));
    }

    #[test]
    fn a_pause_of_the_sender_is_no_round_trip_but_a_longer_path_is() {
        let mut spin = opened();
        let mut at = 0;
        let mut edge = |spin: &mut Spin, bit: bool, wait: i64| {
            at += wait * MS;
            spin.observe(0, short(bit), Wall(at))
        };
        for n in 0..6 {
            edge(&mut spin, n % 2 == 0, 40);
        }
        assert_eq!(edge(&mut spin, true, 900), None);
        assert_eq!(edge(&mut spin, false, 41), Some(Span::from_millis(41)));
        let slow: Vec<_> = (0..6).map(|n| edge(&mut spin, n % 2 == 0, 900)).collect();
        assert_eq!(slow.iter().flatten().count(), 3, "{slow:?}");
    }

    #[test]
    fn a_bit_set_at_random_says_nothing() {
        for every in [MS / 4, MS, 6 * MS] {
            let mut spin = opened();
            let mut rng = SplitMix64::new(3);
            let mut delays = Delays::default();
            for n in 0..4000 {
                let rtt = spin.observe(0, short(rng.below(2) == 1), Wall(n * every));
                if let Some(rtt) = rtt {
                    delays.observe(rtt);
                }
            }
            assert!(!spin.spins(0, &delays), "a packet every {every} ns");
        }
    }

    #[test]
    fn a_first_flight_of_several_packets_is_no_answered_handshake() {
        let mut spin = Spin::default();
        for at in [-40, -39, -38] {
            spin.observe(0, Header::Long { fixed: true }, Wall(at * MS));
        }
        assert!(matches!(spin.handshake, Handshake::Asked(0, Wall(since)) if since == -40 * MS), "{spin:?}");
        spin.observe(1, Header::Long { fixed: false }, Wall(-10 * MS));
        spin.observe(0, Header::Long { fixed: true }, Wall(0));
        assert!(matches!(spin.handshake, Handshake::Took(Span(took)) if took == 40 * MS), "{spin:?}");
    }

    #[test]
    fn edges_within_a_tenth_of_the_usual_round_are_none_and_ten_times_it_must_stay() {
        let mut way = Way::default();
        let seen = |way: &mut Way, steps: &[(bool, i64, Option<i64>)]| {
            for (spin, at, round) in steps {
                assert_eq!(way.observe(*spin, Wall(*at), None), round.map(Span), "at {at}");
            }
        };
        seen(
            &mut way,
            &[(false, 0, None), (true, 100, None), (false, 500, Some(400)), (true, 980, Some(480))],
        );
        assert_eq!((way.usual, way.accepted), (Some(Span(410)), 2));
        // A tenth is 41.
        seen(&mut way, &[(false, 1020, None), (false, 1021, Some(41))]);
        assert_eq!((way.usual, way.accepted, way.too_early), (Some(Span(364)), 3, 1));
        seen(&mut way, &[(true, 4661, Some(3640))]);
        assert_eq!((way.usual, way.too_late), (Some(Span(773)), 0));
        seen(&mut way, &[(false, 12_392, None), (true, 20_123, None), (false, 27_854, None)]);
        assert_eq!((way.usual, way.accepted, way.too_late), (Some(Span(773)), 4, 3));
        seen(&mut way, &[(true, 35_585, Some(7731))]);
        assert_eq!((way.usual, way.accepted, way.too_late), (Some(Span(7731)), 5, 0));
        // The clock steps back.
        seen(&mut way, &[(false, 30_000, None), (true, 38_000, Some(8000))]);
        assert_eq!((way.usual, way.accepted, way.too_early), (Some(Span(7764)), 6, 1));
    }

    #[test]
    fn before_the_first_round_the_handshake_says_what_is_too_early() {
        let mut way = Way::default();
        let handshake = Some(Span(400));
        for (spin, at, round) in [
            (false, 0, None),
            (true, 100, None),
            (false, 139, None),
            (false, 140, Some(40)),
            (true, 4141, None),
        ] {
            assert_eq!(way.observe(spin, Wall(at), handshake), round.map(Span), "at {at}");
        }
        assert_eq!((way.accepted, way.too_early, way.too_late), (1, 1, 1));
    }

    #[test]
    fn a_bit_spins_unless_most_edges_were_early_or_rounds_are_half_the_handshake() {
        let edges = |accepted: u32, too_early: u32| Spin {
            ways: [Way { accepted, too_early, ..Way::default() }, Way::default()],
            ..Spin::default()
        };
        for (accepted, too_early, spins) in [(8, 32, true), (8, 33, false), (7, 100, true), (9, 36, true)] {
            let mut spin = edges(accepted, too_early);
            assert_eq!(spin.spins(0, &Delays::default()), spins, "{accepted} and {too_early}");
            assert!(spin.spins(1, &Delays::default()), "the other direction has its own");
        }
        let mut took = Spin { handshake: Handshake::Took(Span(100)), ..Spin::default() };
        for (count, ns, spins) in [(15, 1, true), (16, 50, false), (16, 51, true)] {
            let mut found = Delays::default();
            (0..count).for_each(|_| found.observe(Span(ns)));
            assert_eq!(took.spins(1, &found), spins, "{count} of {ns}");
            assert!(Spin::default().spins(1, &found), "there is nothing to hold it against");
        }
        let mut spin = edges(8, 33);
        spin.begin_period();
        assert_eq!((spin.ways[0].accepted, spin.ways[0].too_early), (0, 0));
    }

    #[test]
    fn the_few_last_edges_of_a_bit_set_at_random_say_nothing_either() {
        let delays = |count: u32, rtt: Span| {
            let mut delays = Delays::default();
            (0..count).for_each(|_| delays.observe(rtt));
            delays
        };
        let (random, round) = (Span::from_millis(7), Span::from_millis(40));
        let mut spin = opened();
        assert!(spin.spins(0, &delays(15, random)), "nothing is known yet");
        assert!(!spin.spins(0, &delays(200, random)));
        assert!(!spin.spins(0, &delays(15, random)), "the rest of the connection");
        assert!(spin.spins(1, &delays(15, round)), "the other direction has its own");
        // A period in which it does spin says so.
        assert!(spin.spins(0, &delays(16, round)) && spin.spins(0, &delays(2, round)));
    }

    #[test]
    fn a_direction_seen_alone_is_believed_again_once_its_edges_are_in_time() {
        let mut spin = Spin::default();
        for (accepted, too_early, spins) in [(8, 33, false), (7, 0, false), (8, 32, true), (0, 3, true)] {
            (spin.ways[0].accepted, spin.ways[0].too_early) = (accepted, too_early);
            assert_eq!(spin.spins(0, &Delays::default()), spins, "{accepted} and {too_early}");
        }
    }
}

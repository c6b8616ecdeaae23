//! The other end of a flow: which packets are answered and with what, without a socket or a clock.
//!
//! It counts its answers in each session (a stateful reflector, RFC 8762 §4), a session being both
//! addresses, both ports and the SSID (RFC 8972 §3). Sessions need not be agreed upon beforehand,
//! other than RFC 8972 §3 wishes: with a key strangers get nothing; without one everybody gets
//! answers, never longer than what they sent and never more of them. What somebody else can make it
//! send to a forged address is therefore at most what he sends himself, and no more of it than
//! [`ReflectorSettings::most_per_second`] and [`ReflectorSettings::rates`] allow. What that answer
//! draws is not answered again, or the two would go on for ever:
//!
//! - Nothing is answered that looks like an answer ([`looks_reflected`]), be it another reflector's
//!   or its own that an echo service has sent back.
//! - Nothing is answered to the ports below 1024, at which services answer whatever comes (echo,
//!   DNS, NTP, and 862 a reflector), to a responder's usual port and to the one here. Senders have
//!   ports that their system chooses, and translators keep those out of the low ones (RFC 4787
//!   §4.2.1).
//! - No number of a session is answered twice, nor a proof of a key as long as it is remembered:
//!   who has recorded a packet gets nothing for it. A session starts again with any number where it
//!   had no answer for [`NEW_START`], so that a sender that was restarted waits for no longer than
//!   that.
//!
//! Memory: 600 bytes a session, [`ReflectorSettings::most_sessions`] of them; idle ones are
//! forgotten after [`IDLE`], or after [`NEW_START`] if there is no room for others: who forges many
//! addresses could keep everybody out with a packet each. 100 bytes a host, and 3 MB of proofs if
//! there is a key.

mod answered;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use netaware_pool::{AtShare, Id, Limits, OverRate, Pool, Rate, RateLimits, Rates, Standing};
use netaware_units::{Mono, Span, Wall};
use netaware_wire::DEFAULT_PORT;
use netaware_wire::proof::Key;
use netaware_wire::stamp::tlv::{self, Facts};
use netaware_wire::stamp::{ErrorEstimate, Mode, Reply, Request, StampError, looks_reflected, proof_in};

use answered::{Number, Numbers, Proofs};

/// What its owner decides.
#[derive(Debug, Clone)]
pub struct ReflectorSettings {
    /// Packets must prove it.
    pub key: Option<Key>,
    /// Sessions at the same time.
    pub most_sessions: usize,
    /// Of these so many of one host (an IPv4 address or an IPv6 /64), unless they proved the key.
    pub most_sessions_per_host: usize,
    /// Answers to one session within a second; bursts of a tenth of it pass at once.
    pub most_per_second: u32,
    /// Answers to all sessions of one host, and to all there are.
    pub rates: RateLimits,
    /// Highest DSCP that a sender may ask for.
    pub highest_dscp: u8,
    /// `boot_id` of this host's kernel, for those who ask whether they read the same clock.
    pub run_of_kernel: Option<Vec<u8>>,
}

impl Default for ReflectorSettings {
    fn default() -> Self {
        Self {
            key: None,
            most_sessions: 4096,
            most_sessions_per_host: 512,
            most_per_second: 20_000,
            rates: RATES,
            highest_dscp: 63,
            run_of_kernel: None,
        }
    }
}

/// A datagram that has come.
#[derive(Debug, Clone, Copy)]
pub struct Incoming {
    /// Now.
    pub now: Mono,
    /// T2.
    pub received_at: Wall,
    /// Its sender.
    pub from: SocketAddr,
    /// The address here that it was sent to.
    pub to: Option<IpAddr>,
    /// The port here.
    pub port: u16,
    /// TTL or hop limit.
    pub ttl: Option<u8>,
    /// DSCP and ECN: the whole byte of the header.
    pub traffic_class: Option<u8>,
    /// Whether a kernel took T2.
    pub stamped_by_kernel: bool,
    /// How good the clock is.
    pub error: ErrorEstimate,
    /// What synchronises it (IANA: 1 NTP, 2 PTP, 5 nothing).
    pub synchronised_by: u8,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// No packet of STAMP, or of another key.
    Packet(StampError),
    /// From a port at which services answer, or reflectors.
    Loop,
    /// It looks like an answer.
    Answer,
    /// Of a new session, for which there is no room, or none for that host.
    Full,
    /// More than a session may have.
    Rate,
    /// More than the sessions of one host may have.
    HostRate,
    /// More than all sessions may have.
    AllRate,
    /// Its number was answered before, or its proof was.
    Repeated,
    /// Its number is so far behind that nobody knows whether it was answered.
    Old,
}

impl Refused {
    /// All there are.
    pub const ALL: [Self; 11] = [
        Self::Packet(StampError::Short),
        Self::Packet(StampError::Proof),
        Self::Packet(StampError::ErrorEstimate),
        Self::Loop,
        Self::Answer,
        Self::Full,
        Self::Rate,
        Self::HostRate,
        Self::AllRate,
        Self::Repeated,
        Self::Old,
    ];

    /// One word, for counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet(error) => error.name(),
            Self::Loop => "loop",
            Self::Answer => "answer",
            Self::Full => "full",
            Self::Rate => "rate",
            Self::HostRate => "host_rate",
            Self::AllRate => "all_rate",
            Self::Repeated => "repeated",
            Self::Old => "old",
        }
    }

    fn index(self) -> usize {
        Self::ALL.iter().position(|other| *other == self).unwrap_or(0)
    }
}

impl From<OverRate> for Refused {
    fn from(over: OverRate) -> Self {
        match over {
            OverRate::Host => Self::HostRate,
            OverRate::All => Self::AllRate,
        }
    }
}

/// What it did since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReflectorCounts {
    /// Answers.
    pub answered: u64,
    refused: [u64; Refused::ALL.len()],
}

impl ReflectorCounts {
    /// How often for this reason.
    pub fn refused(&self, why: Refused) -> u64 {
        self.refused[why.index()]
    }
}

/// An answer that lacks nothing but the time at which it leaves.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    reply: Reply,
    /// To be sent with.
    pub dscp: u8,
}

impl Ready {
    /// Finishes the answer in `packet`, which holds the request as [`Reflector::take`] left it.
    /// Call it last before sending.
    pub fn seal(self, packet: &mut [u8], sent_at: Wall, key: Option<&Key>) {
        Reply { sent_at, ..self.reply }.emit(packet, key);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Name {
    from: SocketAddr,
    to: Option<IpAddr>,
    ssid: u16,
}

#[derive(Debug, Clone, Copy)]
struct Session {
    place: Id,
    /// Answers sent.
    sent: u32,
    /// Requests that were answered, and those that came a second time and were not. So the
    /// difference to `sent` tells a sender how many were doubled on their way. What is over a rate
    /// is out of profile (RFC 8972 §4.5), and not in it.
    received: u32,
    seen_at: Mono,
    /// The last answer.
    answered_at: Mono,
    /// Answers that may be sent at once, ns of the rate's time.
    credit: i64,
    numbers: Numbers,
}

impl Session {
    fn new(place: Id, now: Mono, credit: i64) -> Self {
        let numbers = Numbers::default();
        Self { place, sent: 0, received: 0, seen_at: now, answered_at: now, credit, numbers }
    }

    /// A request has come; `most` is what the credit never exceeds.
    fn refresh(&mut self, now: Mono, most: i64) {
        self.credit = self.credit.saturating_add(now.since(self.seen_at).nanos()).min(most);
        self.seen_at = now;
        if now.since(self.answered_at) >= NEW_START {
            self.numbers = Numbers::default();
        }
    }

    fn note_answer(&mut self, now: Mono, number: u32, cost: i64) {
        self.credit -= cost;
        self.received = self.received.wrapping_add(1);
        self.sent = self.sent.wrapping_add(1);
        self.answered_at = now;
        self.numbers.note(number);
    }
}

/// The sessions of a reflector.
#[derive(Debug)]
pub struct Reflector {
    settings: ReflectorSettings,
    sessions: HashMap<Name, Session>,
    /// One for each session, and whose it is.
    places: Pool<Name>,
    proofs: Proofs,
    rates: Rates,
    counts: ReflectorCounts,
    swept_at: Mono,
}

impl Reflector {
    /// Without sessions.
    pub fn new(settings: ReflectorSettings) -> Self {
        Self {
            rates: Rates::new(settings.rates),
            places: Pool::new(Limits {
                all: settings.most_sessions,
                reserved: 0,
                per_host: settings.most_sessions_per_host,
                per_site: settings.most_sessions_per_host.saturating_mul(2),
                // What runs goes on, whoever floods.
                at_share: AtShare::Refuse,
            }),
            settings,
            sessions: HashMap::new(),
            proofs: Proofs::default(),
            counts: ReflectorCounts::default(),
            swept_at: Mono(0),
        }
    }

    /// For [`Ready::seal`].
    pub fn key(&self) -> Option<&Key> {
        self.settings.key.as_ref()
    }

    /// Up to now.
    pub fn counts(&self) -> ReflectorCounts {
        self.counts
    }

    /// Sessions that are remembered.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Judges a request and answers its TLVs in place.
    ///
    /// # Errors
    /// Why it is not answered, which is counted.
    pub fn take(&mut self, incoming: &Incoming, packet: &mut [u8]) -> Result<Ready, Refused> {
        let answer = self.answer(incoming, packet);
        match &answer {
            Ok(_) => self.counts.answered += 1,
            Err(why) => self.counts.refused[why.index()] += 1,
        }
        answer
    }

    fn answer(&mut self, incoming: &Incoming, packet: &mut [u8]) -> Result<Ready, Refused> {
        let from = incoming.from.port();
        if from <= LAST_OF_SERVICES || from == DEFAULT_PORT || from == incoming.port {
            return Err(Refused::Loop);
        }
        let request = Request::parse(packet, self.key()).map_err(Refused::Packet)?;
        if looks_reflected(packet, Mode::of(self.key())) {
            return Err(Refused::Answer);
        }
        let proof = self.key().and_then(|_| proof_in(packet));
        let name = Name { from: incoming.from, to: incoming.to, ssid: request.ssid };
        let session = self.admit(name, request.seq, proof, incoming.now)?;
        let (number, class) = (session.sent.wrapping_sub(1), incoming.traffic_class);
        let facts = Facts {
            ports: (incoming.port, from),
            dscp: class.map(|class| class >> 2),
            ecn: class.unwrap_or(0) & 3,
            highest_dscp: self.settings.highest_dscp,
            received: session.received,
            sent: session.sent,
            synchronised_by: incoming.synchronised_by,
            stamped_in: if incoming.stamped_by_kernel { SOFTWARE } else { CONTROL_PLANE },
            stamped_out: CONTROL_PLANE,
            run_of_kernel: self.settings.run_of_kernel.as_deref(),
        };
        let base = Mode::of(self.key()).base_len().min(packet.len());
        let asked = tlv::reflect(&mut packet[base..], &facts, self.key(), (request.seq, number));
        let reply = Reply {
            seq: number,
            sent_at: incoming.received_at,
            error: incoming.error,
            ssid: request.ssid,
            received_at: incoming.received_at,
            request_seq: request.seq,
            request_sent_at: request.sent_at,
            request_error: request.error,
            request_ttl: incoming.ttl.unwrap_or(u8::MAX),
        };
        Ok(Ready { reply, dscp: asked.dscp })
    }

    /// Counts a request in its session, and the answer that it may have.
    fn admit(&mut self, name: Name, number: u32, proof: Option<u128>, now: Mono) -> Result<Session, Refused> {
        let cost = NS_PER_S / i64::from(self.settings.most_per_second.max(1));
        let most = (NS_PER_S / 10).max(cost);
        let is_recorded = proof.is_some_and(|proof| self.proofs.contain(proof));
        let known = self.sessions.get(&name).copied();
        let mut session = match known {
            Some(session) => session,
            None if is_recorded => return Err(Refused::Repeated),
            None => Session::new(self.take_place(name, now)?, now, most),
        };
        session.refresh(now, most);
        let verdict = match session.numbers.judge(number) {
            Number::Old => Err(Refused::Old),
            Number::New if !is_recorded => {
                if session.credit < cost {
                    Err(Refused::Rate)
                } else {
                    self.rates.allow(now, name.from.ip()).map_err(Refused::from)
                }
            }
            Number::New | Number::Repeated => {
                session.received = session.received.wrapping_add(1);
                Err(Refused::Repeated)
            }
        };
        if verdict.is_ok() {
            session.note_answer(now, number, cost);
            if let Some(proof) = proof {
                self.proofs.note(proof);
            }
        }
        // Nothing is kept of a session that had no answer yet.
        if known.is_some() || verdict.is_ok() {
            self.sessions.insert(name, session);
        } else {
            self.places.leave(session.place);
        }
        verdict.map(|()| session)
    }

    /// Takes a place for a new session. Looks for idle ones at most once a second, so that a flood
    /// of new ones costs no more than that.
    fn take_place(&mut self, name: Name, now: Mono) -> Result<Id, Refused> {
        let is_time = now.since(self.swept_at) >= Span::from_secs(1);
        if is_time || self.sessions.is_empty() {
            self.swept_at = now;
            let is_full = self.places.len() >= self.settings.most_sessions;
            let idle = if is_full { NEW_START } else { IDLE };
            let places = &mut self.places;
            self.sessions.retain(|_, session| {
                let is_kept = now.since(session.seen_at) < idle;
                if !is_kept {
                    places.leave(session.place);
                }
                is_kept
            });
        }
        let standing = if self.settings.key.is_some() { Standing::Proven } else { Standing::Unproven };
        let entered = self.places.enter(name.from.ip(), standing, name).map_err(|_| Refused::Full)?;
        if let Some(evicted) = entered.evicted {
            self.sessions.remove(&evicted);
        }
        Ok(entered.id)
    }
}

/// After so long without a request a session begins anew (RFC 5357's REFWAIT is 15 min); after
/// [`NEW_START`] if there is no room for another one.
pub const IDLE: Span = Span::from_secs(300);
/// After so long without an answer a session may begin with any number.
pub const NEW_START: Span = Span::from_secs(10);
/// One host may have two sessions at a session's highest rate, and all hosts together five of them,
/// or a thousand at the usual 100 packets a second. Bursts of a tenth pass at once, as in a
/// session.
const RATES: RateLimits = RateLimits {
    per_host: Rate { per_second: 40_000, burst: 4_000 },
    all: Rate { per_second: 100_000, burst: 10_000 },
    hosts: 4096,
};
/// System ports (RFC 6335 §6); 0 is none.
const LAST_OF_SERVICES: u16 = 1023;
const NS_PER_S: i64 = 1_000_000_000;
/// IANA, STAMP Timestamping Methods: software local.
const SOFTWARE: u8 = 2;
/// IANA, STAMP Timestamping Methods: control plane, that is the program.
const CONTROL_PLANE: u8 = 3;

#[cfg(test)]
mod attacks;

#[cfg(test)]
mod tests {
    use netaware_wire::stamp::{PORT, Timestamp};

    use super::*;

    pub(super) fn incoming(now: i64, port: u16) -> Incoming {
        Incoming {
            now: Mono(0) + Span(now),
            received_at: Wall(1_700_000_000_000_000_000 + now),
            from: SocketAddr::new("192.0.2.1".parse().unwrap(), port),
            to: None,
            port: PORT,
            ttl: Some(60),
            traffic_class: Some(46 << 2 | 1),
            stamped_by_kernel: true,
            error: ErrorEstimate::UNKNOWN,
            synchronised_by: 5,
        }
    }

    /// Of no whole number of nanoseconds.
    const ODD: u64 = 0xe8fe_6f80_8000_0001;

    pub(super) fn request(seq: u32, ssid: u16) -> [u8; 44] {
        let mut packet = [0; 44];
        Request { seq, sent_at: Timestamp(ODD), error: ErrorEstimate::UNKNOWN, ssid }.emit(&mut packet, None);
        packet
    }

    #[test]
    fn every_session_has_numbers_of_its_own() {
        let mut reflector = Reflector::new(ReflectorSettings::default());
        let mut numbers = Vec::new();
        let rows = [(9, 5000, 1), (7, 5000, 1), (9, 5000, 2), (9, 5001, 1), (8, 5000, 1)];
        for (seq, port, ssid) in rows {
            let mut packet = request(seq, ssid);
            let ready = reflector.take(&incoming(0, port), &mut packet).unwrap();
            ready.seal(&mut packet, Wall(1_700_000_000_000_009_000), None);
            let reply = Reply::parse(&packet, None).unwrap();
            assert_eq!((reply.request_seq, reply.request_ttl, reply.ssid), (seq, 60, ssid));
            assert_eq!(reply.request_sent_at, Timestamp(ODD), "copied, not understood");
            assert_eq!(reply.sent_at.since(reply.received_at), Span(9000));
            numbers.push(reply.seq);
        }
        assert_eq!(numbers, [0, 1, 0, 0, 2]);
        assert_eq!((reflector.sessions(), reflector.counts().answered), (3, 5));
    }

    #[test]
    fn reflectors_do_not_entertain_each_other() {
        let mut reflector = Reflector::new(ReflectorSettings::default());
        for port in [PORT, 0] {
            assert_eq!(reflector.take(&incoming(0, port), &mut request(0, 1)).unwrap_err(), Refused::Loop);
        }
        assert_eq!(reflector.counts().refused(Refused::Loop), 2);
    }

    #[test]
    fn room_and_rate_are_bounded_and_come_back() {
        let settings = ReflectorSettings { most_sessions: 2, most_per_second: 100, ..Default::default() };
        let mut reflector = Reflector::new(settings);
        let burst =
            (0..50).filter(|n| reflector.take(&incoming(0, 5000), &mut request(*n, 1)).is_ok()).count();
        assert_eq!(burst, 10);
        let second = 1_000_000_000;
        let paced = (1..=100_u32)
            .filter(|n| {
                let now = i64::from(*n) * second / 100;
                reflector.take(&incoming(now, 5000), &mut request(50 + n, 1)).is_ok()
            })
            .count();
        assert_eq!(paced, 100);
        reflector.take(&incoming(second, 5001), &mut request(0, 1)).unwrap();
        assert_eq!(reflector.take(&incoming(second, 5002), &mut request(0, 1)).unwrap_err(), Refused::Full);
        reflector.take(&incoming(400 * second, 5002), &mut request(0, 1)).unwrap();
        assert_eq!(reflector.sessions(), 1);
        assert_eq!(reflector.counts().refused(Refused::Rate), 40);
    }

    #[test]
    fn strangers_to_the_key_get_nothing() {
        let key = Key::new(*b"sesame").unwrap();
        let mut reflector = Reflector::new(ReflectorSettings { key: Some(key), ..Default::default() });
        let short = Refused::Packet(StampError::Short);
        assert_eq!(reflector.take(&incoming(0, 5000), &mut request(0, 1)).unwrap_err(), short);
        let refused = reflector.take(&incoming(0, 5000), &mut [0; 112]).unwrap_err();
        assert_eq!((refused, reflector.sessions()), (Refused::Packet(StampError::Proof), 0));
    }

    #[test]
    fn the_port_of_any_reflector_and_its_own_are_a_loop() {
        for (here, from, want) in [(5000, PORT, true), (5000, 5000, true), (5000, 5001, false)] {
            let mut reflector = Reflector::new(ReflectorSettings::default());
            let incoming = Incoming { port: here, ..incoming(0, from) };
            let refused = reflector.take(&incoming, &mut request(0, 1)).err();
            assert_eq!(refused, want.then_some(Refused::Loop), "{from} to {here}");
        }
    }

    #[test]
    fn the_marks_of_a_request_are_told_back_and_those_wished_for_are_given() {
        let mut reflector = Reflector::new(ReflectorSettings::default());
        let mut packet = [0; 52];
        packet[..44].copy_from_slice(&request(0, 1));
        let wish = tlv::Questions::fitting(&[tlv::Question::ClassOfService(10)], 8, None);
        wish.emit(&mut packet[44..], None, 0, 1);
        let ready = reflector.take(&incoming(0, 5000), &mut packet).unwrap();
        let class = tlv::ClassOfService { dscp: 46, ecn: 1, refused: false };
        assert_eq!((ready.dscp, tlv::told(&packet[44..], None, 0).class), (10, Some(class)));
    }

    #[test]
    fn a_session_is_forgotten_once_it_was_idle_for_five_minutes() {
        for (idle, left) in [(IDLE - Span(1), 2), (IDLE, 1)] {
            let mut reflector = Reflector::new(ReflectorSettings::default());
            reflector.take(&incoming(0, 5000), &mut request(0, 1)).unwrap();
            reflector.take(&incoming(idle.nanos(), 5001), &mut request(0, 1)).unwrap();
            assert_eq!(reflector.sessions(), left, "after {idle}");
        }
    }

    #[test]
    fn each_reason_has_a_word_and_a_count_of_its_own() {
        let names = [
            "short",
            "proof",
            "error_estimate",
            "loop",
            "answer",
            "full",
            "rate",
            "host_rate",
            "all_rate",
            "repeated",
            "old",
        ];
        assert_eq!(Refused::ALL.map(Refused::name), names);
        let mut reflector = Reflector::new(ReflectorSettings { most_sessions: 1, ..Default::default() });
        let mut without_multiplier = request(0, 1);
        without_multiplier[13] = 0;
        let mut an_answer = request(0, 1);
        an_answer[37] = 1;
        reflector.take(&incoming(0, 5000), &mut request(9_000, 1)).unwrap();
        let packets: [&mut [u8]; 7] = [
            &mut [0; 40],
            &mut without_multiplier,
            &mut an_answer,
            &mut request(0, 2),
            &mut request(1, 2),
            &mut request(9_000, 1),
            &mut request(0, 1),
        ];
        for packet in packets {
            reflector.take(&incoming(0, 5000), packet).unwrap_err();
        }
        reflector.take(&incoming(0, PORT), &mut request(0, 1)).unwrap_err();
        let counts = reflector.counts();
        let refused = Refused::ALL.map(|why| counts.refused(why));
        assert_eq!((counts.answered, refused), (1, [1, 0, 1, 1, 1, 2, 0, 0, 0, 1, 1]));
    }
}

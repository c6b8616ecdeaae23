//! What somebody who forges sources can make a responder send to others: every kind of datagram, to
//! each UDP port of a responder, from addresses that have proven nothing.
//!
//! The victims' own sockets stand for forged sources: a responder cannot tell the two apart. They
//! count what comes and never answer it. SECURITY.md has the table.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use netaware_io::clock;
use netaware_server::Config;
use netaware_testkit::program::free_port;
use netaware_units::{Span, Wall};
use netaware_wire::Token;
use netaware_wire::control::{ChannelEnd, ClientMessage, TestPlan};
use netaware_wire::datagram::{Header, Kind, Setup};
use netaware_wire::proof::Key;
use netaware_wire::stamp::{ErrorEstimate, Mode, Reply, Request, Timestamp};

use super::browser::Browser;
use super::channels::{forged, signalled, signed};
use super::speaker::{Responder, Speaker, enter, set_up, udp};

/// Makes the next datagram.
type Make<'a> = Box<dyn FnMut(&mut Noise) -> Vec<u8> + 'a>;

/// One kind of datagram.
struct Attack<'a> {
    name: &'static str,
    to: SocketAddr,
    draws: Draws,
    /// Makes the next one.
    make: Make<'a>,
    victims: Vec<Victim>,
}

/// What the datagrams of one kind draw, all together.
#[derive(Debug, Clone, Copy)]
enum Draws {
    Nothing,
    /// Something, and fewer bytes than they have.
    Less,
    /// Something, and no more bytes than they have.
    AsMuch,
}

/// A source that is forged.
struct Victim {
    socket: UdpSocket,
    /// Datagrams and bytes that were sent in its name.
    sent: [u64; 2],
}

impl Victim {
    fn at(last: u8) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, last), 0)).unwrap();
        Self { socket, sent: [0; 2] }
    }

    /// Datagrams and bytes that it was sent.
    fn drawn(&self) -> [u64; 2] {
        self.socket.set_nonblocking(true).unwrap();
        let (mut buffer, mut drawn) = (vec![0; 65_536], [0; 2]);
        while let Ok(length) = self.socket.recv(&mut buffer) {
            drawn = [drawn[0] + 1, drawn[1] + length as u64];
        }
        drawn
    }
}

/// Steele and Vigna's SplitMix64.
struct Noise(u64);

impl Noise {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From the first to the last of these, both included.
    fn between(&mut self, first: usize, last: usize) -> usize {
        first + (self.draw() % (last - first + 1) as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.draw() as u8).collect()
    }

    fn token(&mut self) -> Token {
        Token(std::array::from_fn(|_| self.draw() as u8))
    }
}

fn attack<'a>(
    name: &'static str,
    to: SocketAddr,
    draws: Draws,
    make: impl FnMut(&mut Noise) -> Vec<u8> + 'a,
) -> Attack<'a> {
    Attack { name, to, draws, make: Box::new(make), victims: SOURCES.map(Victim::at).into() }
}

/// Sends all kinds in a random order, waits for what comes late, and compares. `stay` is called at
/// least once a second.
fn measure(attacks: &mut [Attack<'_>], mut stay: impl FnMut()) {
    let mut noise = Noise(32);
    let mut order = Vec::new();
    for (at, attack) in attacks.iter().enumerate() {
        for victim in 0..attack.victims.len() {
            order.extend(std::iter::repeat_n((at, victim), ROUNDS));
        }
    }
    for last in (1..order.len()).rev() {
        order.swap(last, noise.between(0, last));
    }
    for (count, (at, victim)) in order.into_iter().enumerate() {
        let attack = &mut attacks[at];
        let bytes = (attack.make)(&mut noise);
        let victim = &mut attack.victims[victim];
        victim.socket.send_to(&bytes, attack.to).unwrap();
        victim.sent = [victim.sent[0] + 1, victim.sent[1] + bytes.len() as u64];
        // The room of the responder's buffer is no part of the claim.
        if count.is_multiple_of(16) {
            clock::sleep(Span::from_millis(1));
        }
    }
    for _ in 0..3 {
        stay();
        clock::sleep(Span::from_secs(1));
    }
    println!(
        "| from an address that has proven nothing | bytes in | bytes out | out : in |\n|---|---|---|---|"
    );
    for Attack { name, draws, victims, .. } in &*attacks {
        let (mut sent, mut drawn) = (0, 0);
        for victim in victims {
            let [datagrams, bytes] = victim.drawn();
            assert!(datagrams <= victim.sent[0], "{name}: {datagrams} answers for {:?}", victim.sent);
            assert!(bytes <= victim.sent[1], "{name}: {bytes} bytes for {:?}", victim.sent);
            (sent, drawn) = (sent + victim.sent[1], drawn + bytes);
        }
        println!("| {name} | {sent} | {drawn} | {:.2} |", drawn as f64 / sent as f64);
        let fits = match draws {
            Draws::Nothing => drawn == 0,
            Draws::Less => (1..sent).contains(&drawn),
            Draws::AsMuch => (1..=sent).contains(&drawn),
        };
        assert!(fits, "{name}: {drawn} bytes for {sent}, which is not {draws:?}");
    }
}

/// Of an open session: its `token`, a `flow` of its test 2 that somebody else has, and the cookie
/// of another address for its test 1, which has no flow.
fn of_flows(to: SocketAddr, token: Token, flow: u32, stolen: Token) -> Vec<Attack<'static>> {
    let none = Token::default();
    let setup = |kind, token, test, cookie| Setup { token, test, cookie }.emit_request(kind).to_vec();
    let kind = move |kind, length| {
        let mut bytes = vec![0; length];
        Header { kind, flow, seq: 1, sent_at: 77 }.emit(&mut bytes);
        bytes
    };
    let longer = move |noise: &mut Noise| {
        let mut knock = setup(Kind::Knock, token, 1, none);
        knock.resize(noise.between(64, 1500), 0);
        knock
    };
    let unknown = move |noise: &mut Noise| {
        let mut bytes = kind(Kind::Knock, noise.between(24, 1500));
        bytes[2] = (noise.between(9, 256) % 256) as u8;
        bytes
    };
    let guessed = move |noise: &mut Noise| {
        let mut bytes = kind(Kind::EchoRequest, noise.between(24, 64));
        bytes[4..8].copy_from_slice(&noise.bytes(4));
        bytes
    };
    let ours = [Kind::Cookie, Kind::Entered, Kind::EchoReply];
    vec![
        attack("knock, token of a session", to, Draws::Less, move |_| setup(Kind::Knock, token, 1, none)),
        attack("the same, longer", to, Draws::Less, longer),
        attack("knock, another token", to, Draws::Nothing, move |noise| {
            setup(Kind::Knock, noise.token(), 1, none)
        }),
        attack("knock, another test", to, Draws::Nothing, move |_| setup(Kind::Knock, token, 9, none)),
        attack("knock, cut short", to, Draws::Nothing, move |noise| {
            setup(Kind::Knock, token, 1, none)[..noise.between(24, 63)].to_vec()
        }),
        attack("enter, a guessed cookie", to, Draws::Nothing, move |noise| {
            setup(Kind::Enter, token, 1, noise.token())
        }),
        attack("enter, the cookie of another address", to, Draws::Nothing, move |_| {
            setup(Kind::Enter, token, 1, stolen)
        }),
        attack("echo request, another address' flow", to, Draws::Nothing, move |noise| {
            kind(Kind::EchoRequest, noise.between(24, 64))
        }),
        attack("echo request, a guessed flow", to, Draws::Nothing, guessed),
        attack("echo request below 24 bytes", to, Draws::Nothing, |noise| {
            let length = noise.between(0, 23);
            noise.bytes(length)
        }),
        attack("data", to, Draws::Nothing, move |noise| kind(Kind::Data, noise.between(24, 1500))),
        attack("end", to, Draws::Nothing, move |_| kind(Kind::End, 24)),
        attack("cookie, entered, echo reply", to, Draws::Nothing, move |noise| {
            kind(ours[noise.between(0, 2)], noise.between(40, 64))
        }),
        attack("a kind that there is not", to, Draws::Nothing, unknown),
        attack("noise", to, Draws::Nothing, |noise| {
            let length = noise.between(24, 1500);
            noise.bytes(length)
        }),
    ]
}

/// Of a data channel that is being opened from 127.0.0.1: both its ends.
fn of_channels<'a>(to: SocketAddr, ours: &'a ChannelEnd, theirs: &'a ChannelEnd) -> Vec<Attack<'a>> {
    let sign = move |_: &mut Noise| signed(ours, theirs);
    let page = attack("STUN with the password, another port of the page's address", to, Draws::Less, sign);
    vec![
        attack("STUN of a channel, without its password", to, Draws::Nothing, move |noise| {
            forged(&ours.ufrag, noise.draw() as u8)
        }),
        attack("STUN of a channel, with its password", to, Draws::Nothing, sign),
        attack("STUN of no channel", to, Draws::Nothing, |noise| forged("nobody", noise.draw() as u8)),
        attack("DTLS hello", to, Draws::Nothing, |_| client_hello()),
        // TCP has proven this address.
        Attack { victims: vec![Victim::at(1)], ..page },
    ]
}

/// A first ClientHello (RFC 6347 §4.2.1), without a cookie.
fn client_hello() -> Vec<u8> {
    let mut body = vec![254, 253];
    body.extend([7; 32]);
    // No session, no cookie, one cipher suite, no compression.
    body.extend([0, 0, 0, 2, 0xc0, 0x2b, 1, 0]);
    let length = body.len() as u8;
    let mut bytes = vec![22, 254, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12 + length];
    bytes.extend([1, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, length]);
    bytes.extend(body);
    bytes
}

fn request(seq: u32, length: usize, key: Option<&Key>) -> Vec<u8> {
    let mut packet = vec![0; length.max(Mode::of(key).base_len())];
    let sent_at = Timestamp(u64::from(seq) << 32);
    Request { seq, sent_at, error: ErrorEstimate::UNKNOWN, ssid: 1 }.emit(&mut packet, key);
    packet.truncate(length);
    packet
}

fn answer(seq: u32, key: Option<&Key>) -> Vec<u8> {
    let mut packet = vec![0; Mode::of(key).base_len()];
    let reply = Reply {
        seq,
        sent_at: Wall(1_700_000_000_000_002_000),
        error: ErrorEstimate::UNKNOWN,
        ssid: 1,
        received_at: Wall(1_700_000_000_000_001_000),
        request_seq: seq,
        request_sent_at: Timestamp(u64::from(seq) << 32),
        request_error: ErrorEstimate::UNKNOWN,
        request_ttl: 64,
    };
    reply.emit(&mut packet, key);
    packet
}

/// Of a reflector without a key.
fn of_stamp(to: SocketAddr) -> Vec<Attack<'static>> {
    let [mut asked, mut answered] = [0; 2];
    vec![
        attack("STAMP request", to, Draws::AsMuch, move |noise| {
            asked += 1;
            request(asked, noise.between(41, 1500), None)
        }),
        attack("STAMP request, recorded", to, Draws::Less, |_| request(5, 44, None)),
        attack("STAMP answer", to, Draws::Nothing, move |_| {
            answered += 1;
            answer(answered, None)
        }),
        attack("STAMP request, cut short", to, Draws::Nothing, |noise| {
            request(5, noise.between(0, 40), None)
        }),
        attack("noise at the STAMP port", to, Draws::AsMuch, |noise| {
            let length = noise.between(41, 1500);
            noise.bytes(length)
        }),
    ]
}

/// Of a reflector with a key.
fn of_stamp_with_a_key<'a>(to: SocketAddr, key: &'a Key, other: &'a Key) -> Vec<Attack<'a>> {
    let [mut proven, mut answered] = [0; 2];
    vec![
        attack("STAMP request, proven", to, Draws::AsMuch, move |noise| {
            proven += 1;
            request(proven, noise.between(112, 1500), Some(key))
        }),
        attack("STAMP request, proven and recorded", to, Draws::Less, move |_| {
            request(1_000_000, 112, Some(key))
        }),
        attack("STAMP request, another key", to, Draws::Nothing, move |noise| {
            request(5, noise.between(112, 1500), Some(other))
        }),
        attack("STAMP request, no proof", to, Draws::Nothing, |noise| {
            request(5, noise.between(44, 1500), None)
        }),
        attack("STAMP answer, proven", to, Draws::Nothing, move |_| {
            answered += 1;
            answer(answered, Some(key))
        }),
    ]
}

#[test]
fn a_victim_whose_address_is_forged_is_sent_no_more_bytes_than_the_forger_sent() {
    let [key, other] = [&b"sesame"[..], &b"mustard"[..]].map(|key| Key::new(key).unwrap());
    let stamps = [free_port(), free_port()];
    let [stamp, keyed_stamp] = stamps.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let responder = Responder::start(Config { stamp: Some(stamps[0]), ..Config::default() });
    let keyed = Config { stamp: Some(stamps[1]), key: Some(key.clone()), ..Config::default() };
    let _keyed = Responder::start(keyed);
    let to = responder.v4();
    let plan = TestPlan::UdpEcho { length: 64, response: None, duration: Span::from_secs(20), dscp: 0 };

    let (mut prober, socket) = (Speaker::open(to), udp(to));
    prober.opened(1, plan.clone());
    prober.opened(2, plan.clone());
    let flow = enter(&socket, prober.token, 2);
    prober.ready(2);
    let (_, cookie) = set_up(&socket, Kind::Knock, prober.token, 1, Token::default());
    let mut page = Speaker::open(to);
    page.opened(1, plan);
    let theirs = Browser::new(to).end();
    let ours = signalled(&mut page, &theirs);

    let mut attacks = of_flows(to, prober.token, flow, cookie.cookie);
    attacks.extend(of_channels(to, &ours, &theirs));
    attacks.extend(of_stamp(stamp));
    attacks.extend(of_stamp_with_a_key(keyed_stamp, &key, &other));
    let mut seq = 0;
    measure(&mut attacks, || {
        seq += 1;
        for speaker in [&mut prober, &mut page] {
            speaker.say(&ClientMessage::Ping { seq });
        }
    });
}

/// Last bytes of the loopback addresses that are forged.
const SOURCES: [u8; 4] = [2, 3, 4, 5];
/// Datagrams of each kind from each of them.
const ROUNDS: usize = 30;

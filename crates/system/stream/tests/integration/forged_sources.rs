//! What somebody who forges sources can make a bound socket of datagrams send to others: every kind
//! of datagram, from addresses that have proven nothing.
//!
//! The victims' own sockets stand for forged sources: the socket cannot tell the two apart. They
//! count what comes and never answer it. SECURITY.md has the table.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_stream::{DatagramOptions, DualDatagram};
use netaware_units::Span;
use netaware_wire::Token;
use netaware_wire::dual::{DatagramBody, DatagramHead, DatagramKind, Join, PROBE_LEN, Probe, Refusal};

/// One kind of datagram, of which the n-th is made by `make`.
struct Attack {
    name: &'static str,
    draws: Draws,
    make: Box<dyn Fn(u64) -> Vec<u8>>,
    /// Beside each: datagrams and bytes that were sent in its name.
    victims: Vec<(UdpSocket, [u64; 2])>,
}

/// What the datagrams of one kind draw, all together.
#[derive(Debug, Clone, Copy)]
enum Draws {
    Nothing,
    /// Something, and no more bytes than they have.
    AsMuch,
}

fn victim(last: u8) -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::new(127, 0, 0, last), 0)).unwrap()
}

fn attack(name: &'static str, draws: Draws, make: impl Fn(u64) -> Vec<u8> + 'static) -> Attack {
    let victims = SOURCES.map(|last| (victim(last), [0; 2])).into();
    Attack { name, draws, make: Box::new(make), victims }
}

/// Datagrams and bytes that a victim was sent.
fn drawn(victim: &UdpSocket) -> [u64; 2] {
    victim.set_nonblocking(true).unwrap();
    let (mut buffer, mut drawn) = (vec![0; 65_536], [0; 2]);
    while let Ok(length) = victim.recv(&mut buffer) {
        drawn = [drawn[0] + 1, drawn[1] + length as u64];
    }
    drawn
}

/// A datagram of the kind of `body`, with something behind it.
fn datagram(body: &DatagramBody, session: u64, behind: usize) -> Vec<u8> {
    let set_up = DatagramHead::set_up(body.kind(), IpVersion::V4, session);
    let head = match body.kind() {
        DatagramKind::Data => DatagramHead { sequence: 1, sent_at: 5, number: 1, ..set_up },
        DatagramKind::Probe | DatagramKind::Bye => DatagramHead { sequence: 1, sent_at: 5, ..set_up },
        _ => set_up,
    };
    let mut out = [0; PROBE_LEN];
    let length = body.emit(head, &mut out);
    let mut bytes = out[..length].to_vec();
    bytes.resize(length + behind, 7);
    bytes
}

fn hello(speaks: (u8, u8), join: Join, cookie: Token) -> DatagramBody {
    DatagramBody::Hello { speaks, join, cookie }
}

/// The cookie for the address of this socket.
fn cookie_of(socket: &UdpSocket, to: SocketAddr, session: u64) -> Token {
    socket.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
    let asks = datagram(&hello((1, 1), Join::New, Token::default()), session, 0);
    socket.send_to(&asks, to).unwrap();
    let mut buffer = [0; 2000];
    let length = socket.recv(&mut buffer).expect("an answer");
    let Ok((_, DatagramBody::Cookie(cookie))) = DatagramHead::parse(&buffer[..length]) else {
        panic!("{:?} is no cookie", &buffer[..length])
    };
    cookie
}

/// All kinds; `known` is a session of somebody else, and `stolen` the cookie of another address for
/// it.
fn attacks(known: u64, stolen: Token) -> Vec<Attack> {
    let none = Token::default();
    let of = |body: DatagramBody| move |n: u64| datagram(&body, n, 0);
    let ours = [
        DatagramBody::Cookie(Token([3; 16])),
        DatagramBody::Welcome { version: 1 },
        DatagramBody::Refused(Refusal::Busy),
        DatagramBody::Unknown,
    ];
    let greets = of(hello((1, 1), Join::New, none));
    let guesses = |n: u64| datagram(&hello((1, 1), Join::Existing, Token([n as u8; 16])), n, 0);
    let steals = move |_: u64| datagram(&hello((1, 1), Join::Existing, stolen), known, 0);
    let data = |n: u64| datagram(&DatagramBody::Data, n, (n % 1400) as usize);
    let joins = move |_: u64| datagram(&DatagramBody::Data, known, 1000);
    let answers = move |n: u64| datagram(&ours[n as usize % ours.len()], n, 0);
    let longer = |n: u64| datagram(&DatagramBody::Bye, n, 1 + n as usize % 1000);
    let noise = |n: u64| -> Vec<u8> { (0..n % 1400).map(|at| (at.wrapping_mul(n) >> 3) as u8).collect() };
    vec![
        attack("libnetaware: hello", Draws::AsMuch, greets),
        attack("libnetaware: hello, a guessed cookie", Draws::AsMuch, guesses),
        attack("libnetaware: hello, the cookie of another address", Draws::AsMuch, steals),
        attack("libnetaware: hello, another version", Draws::AsMuch, of(hello((2, 9), Join::New, none))),
        attack("libnetaware: data of no session", Draws::AsMuch, data),
        attack("libnetaware: data of another address' session", Draws::AsMuch, joins),
        attack("libnetaware: probe", Draws::AsMuch, of(DatagramBody::Probe(Probe::default()))),
        attack("libnetaware: bye", Draws::Nothing, of(DatagramBody::Bye)),
        attack("libnetaware: cookie, welcome, refused, unknown", Draws::Nothing, answers),
        attack("libnetaware: another length", Draws::Nothing, longer),
        attack("libnetaware: noise", Draws::Nothing, noise),
    ]
}

#[test]
fn a_victim_whose_address_is_forged_is_sent_no_more_bytes_than_the_forger_sent() {
    let bound = DualDatagram::bind(0, DatagramOptions::default()).unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, bound.addresses()[0].port()));
    let opener = victim(1);
    let known = 1 << 40;
    let cookie = cookie_of(&opener, to, known);
    opener.send_to(&datagram(&hello((1, 1), Join::New, cookie), known, 0), to).unwrap();
    let mut attacks = attacks(known, cookie);
    for round in 0..ROUNDS {
        for (at, attack) in attacks.iter_mut().enumerate() {
            for (source, (victim, sent)) in attack.victims.iter_mut().enumerate() {
                // No session has such a number.
                let bytes = (attack.make)(1 + round * 1000 + at as u64 * 10 + source as u64);
                victim.send_to(&bytes, to).unwrap();
                *sent = [sent[0] + 1, sent[1] + bytes.len() as u64];
            }
        }
        // The room of the socket's buffer is no part of the claim.
        clock::sleep(Span::from_millis(2));
    }
    clock::sleep(Span::from_secs(3));
    println!(
        "| from an address that has proven nothing | bytes in | bytes out | out : in |\n|---|---|---|---|"
    );
    for Attack { name, draws, victims, .. } in &attacks {
        let (mut came, mut left) = (0, 0);
        for (victim, sent) in victims {
            let [datagrams, bytes] = drawn(victim);
            assert!(datagrams <= sent[0], "{name}: {datagrams} answers for {sent:?}");
            assert!(bytes <= sent[1], "{name}: {bytes} bytes for {sent:?}");
            (came, left) = (came + sent[1], left + bytes);
        }
        println!("| {name} | {came} | {left} | {:.2} |", left as f64 / came as f64);
        let fits = match draws {
            Draws::Nothing => left == 0,
            Draws::AsMuch => (1..=came).contains(&left),
        };
        assert!(fits, "{name}: {left} bytes for {came}, which is not {draws:?}");
    }
    assert_eq!(bound.peers().len(), 1, "a session of somebody who has proven nothing");
}

/// Last bytes of the loopback addresses that are forged.
const SOURCES: [u8; 4] = [2, 3, 4, 5];
/// Datagrams of each kind from each of them. All answers to one host stay below its rate.
const ROUNDS: u64 = 30;

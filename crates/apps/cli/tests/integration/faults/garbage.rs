//! Thousands of random messages over TCP, and over UDP: the responder answers none with more than
//! it got, takes no memory for them, and goes on serving.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};

use netaware_io::clock;
use netaware_testkit::control::{Control, hello};
use netaware_testkit::program::{Responder, run};
use netaware_units::Span;
use netaware_wire::control::{ClientMessage, ServerMessage, TestPlan};
use netaware_wire::datagram::{HEADER_LEN, Header, Kind, Setup};
use netaware_wire::preface::{Preface, Role};
use netaware_wire::{PROTOCOL_VERSION, Token, frame};

use super::{Holdings, settles};

const TCP_MESSAGES: u32 = 5_000;
const UDP_MESSAGES: u32 = 10_000;
/// Allocators keep a little of what they once had.
const FLAT_KIB: u64 = 4096;

#[test]
fn random_tcp_messages_change_nothing() {
    let responder = Responder::start(&[]);
    let mut random = Random(0x5eed);
    let mut open = Vec::new();
    stays_flat(&responder, TCP_MESSAGES, |count| {
        for _ in 0..count {
            let mut stream = TcpStream::connect(responder.address()).unwrap();
            // The responder may hang up on garbage before all of it is written.
            let _ = stream.write_all(&tcp_garbage(&mut random));
            // Some stay open for a while, as careless programs do.
            open.push(stream);
            if open.len() > 20 {
                open.swap_remove(random.below(20));
            }
        }
        open.clear();
    });
}

#[test]
fn random_udp_messages_change_nothing_and_are_not_amplified() {
    let responder = Responder::start(&[]);
    let mut random = Random(0xda7a);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    is_answered_where_it_is_valid(&responder, &socket);
    let (mut sent, mut answered) = (0, 0);
    stays_flat(&responder, UDP_MESSAGES, |count| {
        for _ in 0..count {
            let message = udp_garbage(&mut random);
            sent += send(&socket, &message, responder.address());
            answered += received(&socket);
        }
    });
    assert!(answered <= sent, "{sent} bytes sent, {answered} bytes came back");
}

/// A valid message is answered, and `received` sees the answer.
fn is_answered_where_it_is_valid(responder: &Responder, socket: &UdpSocket) {
    let (mut control, token) = Control::session(responder.address());
    let (test, duration) = (1, Span::from_secs(60));
    let plan = TestPlan::UdpEcho { length: 64, response: None, duration, dscp: 0 };
    control.say(&ClientMessage::Open { test, plan });
    control.wait_for(Span::from_secs(5), |it| matches!(it, ServerMessage::Opened { .. }).then_some(()));
    let setup = Setup { token, test, cookie: Token::default() };
    send(socket, &setup.emit_request(Kind::Knock), responder.address());
    let due = clock::now() + Span::from_secs(5);
    while received(socket) == 0 {
        assert!(clock::now() < due, "a valid message gets no answer");
        clock::sleep(Span::from_millis(5));
    }
}

/// Sends a tenth, then the rest; the rest must not make the process larger. Then it must still
/// serve.
fn stays_flat(responder: &Responder, messages: u32, mut send: impl FnMut(u32)) {
    let port = responder.port();
    let latency = ["latency", "127.0.0.1", "--port", &port, "-t", "300ms"];
    run(&latency, Span::from_secs(10)).exits_with(0);
    settles(responder, None, clock::now() + Span::from_secs(5));
    let idle = Holdings::of(responder);
    send(messages / 10);
    let before = resident_when_quiet(responder, idle);
    send(messages - messages / 10);
    let after = resident_when_quiet(responder, idle);
    assert!(after < before + FLAT_KIB, "{before} KiB grew to {after} KiB");
    run(&latency, Span::from_secs(10)).exits_with(0);
    run(&["tcp", "127.0.0.1", "--port", &port, "-t", "500ms"], Span::from_secs(10)).exits_with(0);
}

/// `VmRSS` once the responder has given up all connections.
fn resident_when_quiet(responder: &Responder, idle: Holdings) -> u64 {
    settles(responder, Some(idle), clock::now() + Span::from_secs(15));
    let status = std::fs::read_to_string(format!("/proc/{}/status", responder.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn tcp_garbage(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    let role = [Role::Control, Role::Control, Role::Data, Role::Echo][random.below(4)];
    let shape = random.below(6);
    if shape > 0 {
        bytes.extend(Preface { version: PROTOCOL_VERSION, role }.emit());
    }
    if shape > 2 {
        bytes.extend(frame::emit(&hello(PROTOCOL_VERSION)).unwrap());
    }
    match shape {
        0..=2 => bytes.extend(random.bytes(300)),
        3 | 4 => {
            let unknown = serde_json::json!({ "type": random.next().to_string() });
            let body = if shape == 3 { unknown.to_string().into_bytes() } else { random.bytes(2000) };
            bytes.extend((body.len() as u32).to_be_bytes());
            bytes.extend(body);
        }
        _ => {
            let mut message = frame::emit(&ClientMessage::Stop { test: random.next() as u32 }).unwrap();
            let at = random.below(message.len());
            message[at] ^= 1 << random.below(8);
            bytes.extend(message);
        }
    }
    bytes
}

fn udp_garbage(random: &mut Random) -> Vec<u8> {
    const KINDS: [Kind; 8] = [
        Kind::Knock,
        Kind::Cookie,
        Kind::Enter,
        Kind::Entered,
        Kind::EchoRequest,
        Kind::EchoReply,
        Kind::Data,
        Kind::End,
    ];
    let mut bytes = random.bytes(1400);
    // Three of four look like ours.
    if random.below(4) > 0 && bytes.len() >= HEADER_LEN {
        let kind = KINDS[random.below(KINDS.len())];
        let flow = random.next() as u32 % 16;
        Header { kind, flow, seq: random.next() % 4, sent_at: random.next() }.emit(&mut bytes);
    }
    bytes
}

fn send(socket: &UdpSocket, message: &[u8], to: SocketAddr) -> usize {
    let due = clock::now() + Span::from_secs(5);
    loop {
        match socket.send_to(message, to) {
            Ok(length) => return length,
            Err(error) => assert!(clock::now() < due, "cannot send for 5 s: {error}"),
        }
        clock::sleep(Span::from_micros(100));
    }
}

fn received(socket: &UdpSocket) -> usize {
    let mut bytes = [0; 2048];
    std::iter::from_fn(|| socket.recv(&mut bytes).ok()).sum()
}

/// `SplitMix64`: the same messages in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Up to `limit - 1` of them.
    fn bytes(&mut self, limit: usize) -> Vec<u8> {
        (0..self.below(limit)).map(|_| self.next() as u8).collect()
    }
}

//! What a session asks of the IP header, in the packets that come back.

use std::net::SocketAddr;

use netaware_io::clock;
use netaware_io::probe_socket::{ProbeSocket, Stamping};
use netaware_server::Config;
use netaware_units::Span;
use netaware_wire::control::{ClientMessage, ErrorCode, ServerMessage, TestPlan};
use netaware_wire::datagram::{Header, Kind};
use netaware_wire::header::HeaderFields;

use super::speaker::{Responder, Speaker, enter, udp};

const TTL: u8 = 9;

fn session(to: SocketAddr, header: Option<HeaderFields>) -> Speaker {
    let mut speaker = Speaker::open(to);
    if let Some(header) = header {
        speaker.say(&ClientMessage::SetHeader { header });
        assert_eq!(speaker.hear(), ServerMessage::HeaderSet);
    }
    let plan = TestPlan::UdpEcho { length: 100, response: None, duration: Span::from_secs(20), dscp: 0 };
    speaker.opened(1, plan);
    speaker
}

/// The TTL of the answer to one request.
fn ttl_of_an_answer(speaker: &mut Speaker, to: SocketAddr) -> Option<u8> {
    let socket = udp(to);
    let flow = enter(&socket, speaker.token, 1);
    speaker.ready(1);
    let socket = ProbeSocket::new(socket, Stamping::Application).unwrap();
    let mut bytes = [0; 100];
    Header { kind: Kind::EchoRequest, flow, seq: 0, sent_at: 0 }.emit(&mut bytes);
    socket.send(&bytes).unwrap();
    let answer = socket.receive(&mut bytes, Some(clock::now() + Span::from_secs(5))).unwrap();
    answer.expect("an answer").ttl
}

#[test]
#[cfg(target_os = "linux")]
fn answers_carry_the_ttl_of_their_own_session() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        let flow_label = to.is_ipv6().then_some(0x1_2345);
        let asked = HeaderFields { dscp: 0, ttl: Some(TTL), flow_label };
        let mut marked = session(to, Some(asked));
        let mut plain = session(to, None);
        assert_eq!(ttl_of_an_answer(&mut marked, to), Some(TTL), "{to}");
        // The same socket answers both; what one asks for is not left over for the other.
        let usual = ttl_of_an_answer(&mut plain, to).unwrap();
        assert!(usual > TTL, "{to}: {usual}");
    }
}

#[test]
fn a_header_that_cannot_be_is_refused_and_the_session_goes_on() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v6());
    let header = HeaderFields { flow_label: Some(1 << 20), ..HeaderFields::default() };
    speaker.say(&ClientMessage::SetHeader { header });
    let ServerMessage::Error { code, message, test: None, .. } = speaker.hear() else { panic!("accepted") };
    assert_eq!(code, ErrorCode::BadMessage);
    assert!(message.starts_with("flow_label is 1048576"), "{message}");
    let label = HeaderFields { flow_label: Some(5), ..HeaderFields::default() };
    speaker.say(&ClientMessage::SetHeader { header: label });
    assert_eq!(speaker.hear(), ServerMessage::HeaderSet);
    let plan = TestPlan::TcpEcho { length: 64, response: None, duration: Span::from_secs(5) };
    speaker.say(&ClientMessage::Open { test: 1, plan });
    let ServerMessage::Error { message, test: Some(1), .. } = speaker.hear() else { panic!("accepted") };
    assert!(message.contains("flow label of a TCP connection"), "{message}");
}

//! The UDP side: who is answered, and who is not.

use std::net::{SocketAddr, UdpSocket};

use netaware_io::clock;
use netaware_server::Config;
use netaware_units::{BitRate, RemoteMono, Span};
use netaware_wire::Token;
use netaware_wire::control::{ClientMessage, EndReport, ErrorCode, ServerMessage, TestPlan};
use netaware_wire::datagram::{ANSWER_LEN, EchoStamps, Header, Kind, SETUP_LEN, Setup};
use netaware_wire::echo::{self, Reply};

use super::speaker::{Responder, Speaker, enter, is_answered, set_up, udp};

fn echo(length: u32) -> TestPlan {
    TestPlan::UdpEcho { length, response: None, duration: Span::from_secs(20), dscp: 0 }
}

fn request(flow: u32, seq: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xaa; length];
    Header { kind: Kind::EchoRequest, flow, seq, sent_at: 77 }.emit(&mut bytes);
    bytes
}

#[test]
fn echoes_come_back_over_both_versions_with_stamps() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        let mut speaker = Speaker::open(to);
        speaker.opened(1, echo(100));
        let socket = udp(to);
        let flow = enter(&socket, speaker.token, 1);
        speaker.ready(1);
        let mut last = RemoteMono(0);
        for seq in 0..100 {
            let sent = request(flow, seq, 100);
            socket.send(&sent).unwrap();
            let mut buf = [0; 200];
            let len = socket.recv(&mut buf).expect("a reply");
            let header = Header::parse(&buf[..len]).unwrap();
            assert_eq!((len, header.kind, header.seq, header.sent_at), (100, Kind::EchoReply, seq, 77));
            let stamps = EchoStamps::parse(&buf[..len]).unwrap();
            assert!(stamps.answered_at >= stamps.received_at && stamps.received_at >= last);
            assert!(!cfg!(target_os = "linux") || (stamps.kernel_stamp && stamps.ttl > 0), "{stamps:?}");
            last = stamps.answered_at;
            assert_eq!(buf[44..100], sent[44..]);
        }
        speaker.say(&ClientMessage::Stop { test: 1 });
        let answered = speaker.hear_until(|message| match message {
            ServerMessage::Finished { report: EndReport::Echo { answered, drops: 0 }, .. } => Some(*answered),
            _ => None,
        });
        assert_eq!(answered, 100);
        socket.send(&request(flow, 100, 100)).unwrap();
        assert!(!is_answered(&socket), "a flow outlived its test");
    }
}

/// Echoes went out at 1.3 Gbit/s under any cap.
#[test]
fn a_flood_of_echoes_gets_no_more_than_the_cap_on_the_rate_and_the_rest_is_counted() {
    let responder = Responder::start(Config { max_rate: Some(BitRate(8_000_000)), ..Config::default() });
    let mut speaker = Speaker::open(responder.v4());
    speaker.opened(1, echo(1000));
    let socket = udp(responder.v4());
    let flow = enter(&socket, speaker.token, 1);
    speaker.ready(1);
    let began = clock::now();
    for seq in 0..3000 {
        socket.send(&request(flow, seq, 1000)).unwrap();
        if seq % 50 == 0 {
            clock::sleep(Span::from_millis(2));
        }
    }
    let said = speaker.hear_until(|message| match message {
        ServerMessage::Error { code: ErrorCode::Cap, message, test: Some(1), .. } => Some(message.clone()),
        _ => None,
    });
    assert!(said.starts_with("the responder's cap for rate is 8.00 Mbit/s for all echoes"), "{said}");
    speaker.say(&ClientMessage::Stop { test: 1 });
    let (answered, drops) = speaker.hear_until(|message| match message {
        ServerMessage::Finished { report: EndReport::Echo { answered, drops }, .. } => {
            Some((*answered, *drops))
        }
        _ => None,
    });
    // An exchange is 2000 bytes of 1 MB/s, and one second's worth may go at once.
    let most = (clock::now() - began + Span::from_secs(1)).nanos() as u64 / 2_000_000;
    assert!((1..=most).contains(&answered), "{answered} of {most}");
    assert!(drops > 0, "they are not the network's losses");
}

#[test]
fn responses_have_the_length_of_the_plan_whatever_the_requests_have() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        for (length, response) in [(1, 1), (1, 64), (8, 24), (24, 1), (64, 1400), (1400, 44), (44, 65_507)] {
            let mut speaker = Speaker::open(to);
            let duration = Span::from_secs(20);
            speaker.opened(1, TestPlan::UdpEcho { length, response: Some(response), duration, dscp: 0 });
            let (length, response) = (length as usize, response as usize);
            let socket = udp(to);
            let flow = enter(&socket, speaker.token, 1);
            speaker.ready(1);
            let mut buf = vec![0; 70_000];
            for seq in 0..20 {
                let mut sent = vec![0; length];
                echo::emit_request(&mut sent, flow, seq, 77);
                socket.send(&sent).unwrap();
                let len = socket.recv(&mut buf).expect("a reply");
                assert_eq!(len, response, "to {length} B");
                let reply = Reply::parse(&buf[..len], length).unwrap();
                let bits = echo::number_bits(length).min(echo::number_bits(response));
                assert_eq!(echo::number_from(reply.seq, bits, seq + 1), Some(seq));
                assert!(reply.flow.is_none_or(|found| found == flow) && echo::is_intact(&buf[..len], seq));
            }
            // Longer than the plan, or short where the plan is not.
            socket.send(&vec![0; length + 1]).unwrap();
            assert!(!is_answered(&socket), "{} B", length + 1);
        }
    }
}

#[test]
fn short_requests_draw_little_and_from_their_own_address_only() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    let duration = Span::from_secs(20);
    speaker.say(&ClientMessage::Open {
        test: 1,
        plan: TestPlan::UdpEcho { length: 8, response: Some(1400), duration, dscp: 0 },
    });
    let ServerMessage::Error { message, .. } = speaker.hear() else { panic!("not refused") };
    assert!(message.contains("response is 1400"), "{message}");
    speaker.opened(2, TestPlan::UdpEcho { length: 8, response: Some(64), duration, dscp: 0 });
    let socket = udp(responder.v4());
    enter(&socket, speaker.token, 2);
    speaker.ready(2);
    let stranger = udp(responder.v4());
    stranger.send(&[1; 8]).unwrap();
    assert!(!is_answered(&stranger), "an address that has not echoed the cookie");
    socket.send(&[1; 8]).unwrap();
    socket.recv(&mut [0; 2048]).expect("an answer");
}

#[test]
fn nothing_is_answered_without_token_or_cookie() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    speaker.opened(1, echo(64));
    let socket = udp(responder.v4());
    let setup = |kind, token, test, cookie| Setup { token, test, cookie }.emit_request(kind).to_vec();
    let none = Token::default();
    let rows = [
        ("an unknown token", setup(Kind::Knock, Token([1; 16]), 1, none)),
        ("an unknown test", setup(Kind::Knock, speaker.token, 2, none)),
        ("no cookie", setup(Kind::Enter, speaker.token, 1, none)),
        ("a guessed flow", request(0, 0, 64)),
        ("a short knock", setup(Kind::Knock, speaker.token, 1, none)[..SETUP_LEN - 1].to_vec()),
        ("nothing", Vec::new()),
        ("noise", vec![0x55; 1000]),
    ];
    for (name, bytes) in rows {
        socket.send(&bytes).unwrap();
        assert!(!is_answered(&socket), "{name}");
    }
    const { assert!(ANSWER_LEN <= SETUP_LEN) };
    enter(&socket, speaker.token, 1);
}

#[test]
fn a_flow_belongs_to_the_address_that_entered() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    speaker.opened(1, echo(64));
    let (mine, theirs) = (udp(responder.v4()), udp(responder.v4()));
    let (_, answer) = set_up(&mine, Kind::Knock, speaker.token, 1, Token::default());
    let stolen = Setup { token: speaker.token, test: 1, cookie: answer.cookie }.emit_request(Kind::Enter);
    theirs.send(&stolen).unwrap();
    assert!(!is_answered(&theirs), "another address entered with the cookie");
    let (header, _) = set_up(&mine, Kind::Enter, speaker.token, 1, answer.cookie);
    theirs.send(&request(header.flow, 0, 64)).unwrap();
    assert!(!is_answered(&theirs), "another address used the flow");
    // A lost answer is asked for again.
    let (again, _) = set_up(&mine, Kind::Enter, speaker.token, 1, answer.cookie);
    assert_eq!((again.kind, again.flow), (Kind::Entered, header.flow));
}

#[test]
#[cfg(target_os = "linux")]
fn answers_leave_from_the_address_that_was_spoken_to() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    speaker.opened(1, echo(64));
    let second: SocketAddr = SocketAddr::new("127.0.0.2".parse().unwrap(), responder.v4().port());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Connected: the kernel drops what comes from another address than this.
    socket.connect(second).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    let flow = enter(&socket, speaker.token, 1);
    socket.send(&request(flow, 0, 64)).unwrap();
    socket.recv(&mut [0; 2048]).expect("an answer");
}

#[test]
fn a_vanished_sessions_flow_dies_with_it() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v6());
    speaker.opened(1, echo(64));
    let socket = udp(responder.v6());
    let flow = enter(&socket, speaker.token, 1);
    drop(speaker);
    // It is seen soon.
    let is_silent = || {
        socket.send(&request(flow, 0, 64)).unwrap();
        !is_answered(&socket)
    };
    assert!((0..1000).any(|_| is_silent()));
    // Then for good, once answers that were late are out of the way.
    while is_answered(&socket) {}
    assert!(is_silent());
}

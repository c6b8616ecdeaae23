//! Tests that move data, from opening to report.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;

use netaware_io::clock;
use netaware_record::{Direction, Outcome};
use netaware_server::Config;
use netaware_units::{BitRate, ByteCount, Span};
use netaware_wire::control::{
    ClientMessage, EndReport, ErrorCode, ServerMessage, TcpPlan, TestPlan, UdpPlan, UdpReceive, UdpSend,
};
use netaware_wire::datagram::{Header, Kind};
use netaware_wire::pattern;
use netaware_wire::preface::{ATTACHED, REFUSED, Role};

use super::speaker::{Responder, Speaker, enter, udp};

pub(crate) fn tcp_plan(direction: Direction, streams: u16, duration: Span) -> TestPlan {
    TestPlan::Tcp(TcpPlan {
        streams,
        length: 64 << 10,
        tick: Span::from_millis(50),
        rate: Some(BitRate(200_000_000)),
        ..TcpPlan::new(direction, duration)
    })
}

fn udp_plan(direction: Direction) -> TestPlan {
    TestPlan::Udp(UdpPlan {
        direction,
        duration: Span::from_millis(500),
        packets: Some(100),
        length: 200,
        gap_ps: Some(1_000_000_000),
        send: UdpSend::Single,
        receive: UdpReceive::Single,
        tick: Span::from_millis(50),
        settle: None,
        round_trip: Span::ZERO,
        window: None,
        dscp: 0,
        burst: 1,
        histogram: None,
        log: false,
    })
}

fn finished(speaker: &mut Speaker, test: u32) -> (Outcome, EndReport) {
    speaker.hear_until(|message| match message {
        ServerMessage::Finished { test: t, outcome, report } if *t == test => {
            Some((*outcome, report.clone()))
        }
        _ => None,
    })
}

fn start(speaker: &mut Speaker, test: u32) {
    speaker.ready(test);
    speaker.say(&ClientMessage::Start { test });
    speaker.hear_until(|message| (*message == ServerMessage::Started { test }).then_some(()));
}

fn swallow(mut stream: TcpStream) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let (mut total, mut buf) = (0, vec![0; 64 << 10]);
        while let Ok(count) = stream.read(&mut buf)
            && count > 0
        {
            total += count as u64;
        }
        total
    })
}

#[test]
fn the_responder_counts_what_the_prober_sends() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        let mut speaker = Speaker::open(to);
        speaker.admitted(None);
        let TestPlan::Tcp(plan) = tcp_plan(Direction::Forward, 3, Span::from_secs(5)) else { panic!() };
        speaker.opened(1, TestPlan::Tcp(TcpPlan { bytes: Some(ByteCount(900_000)), rate: None, ..plan }));
        let mut streams: Vec<TcpStream> = (0..3)
            .map(|index| {
                let (stream, answer) = speaker.attach(Role::Data, 1, index);
                assert_eq!(answer, Some(ATTACHED));
                stream
            })
            .collect();
        start(&mut speaker, 1);
        for stream in &mut streams {
            stream.write_all(&vec![1; 300_000]).unwrap();
        }
        drop(streams);
        let mut ends = Vec::new();
        let (outcome, report) = loop {
            match speaker.hear() {
                ServerMessage::StreamEnds { streams, .. } => ends.extend(streams),
                ServerMessage::Finished { outcome, report, .. } => break (outcome, report),
                ServerMessage::ReceiverTicks { .. } => {}
                other => panic!("{other:?}"),
            }
        };
        let EndReport::TcpReceiver(end) = report else { panic!("{report:?}") };
        assert_eq!((outcome, end.bytes.0), (Outcome::Complete, 900_000));
        assert_eq!(ends.iter().map(|end| end.bytes.0).collect::<Vec<_>>(), [300_000; 3]);
        assert!(end.streams.is_empty() && end.cpu.is_some_and(|cpu| cpu.cores > 0));
    }
}

#[test]
fn both_directions_run_at_once() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    speaker.admitted(None);
    let duration = Span::from_millis(400);
    speaker.opened(1, tcp_plan(Direction::Forward, 1, duration));
    speaker.opened(2, tcp_plan(Direction::Reverse, 1, duration));
    let (mut up, _) = speaker.attach(Role::Data, 1, 0);
    speaker.ready(1);
    let (down, _) = speaker.attach(Role::Data, 2, 0);
    speaker.ready(2);
    speaker.say(&ClientMessage::Start { test: 1 });
    speaker.say(&ClientMessage::Start { test: 2 });
    let down = swallow(down);
    up.write_all(&vec![0; 100_000]).unwrap();
    drop(up);
    let (mut received, mut sent) = (None, None);
    let deadline = clock::now() + Span::from_secs(30);
    while received.is_none() || sent.is_none() {
        assert!(clock::now() < deadline, "{received:?} {sent:?}");
        match speaker.hear() {
            ServerMessage::Finished { report: EndReport::TcpReceiver(end), .. } => received = Some(end),
            ServerMessage::Finished { report: EndReport::TcpSender(end), .. } => sent = Some(end),
            ServerMessage::Error { message, .. } => panic!("{message}"),
            _ => {}
        }
    }
    assert_eq!(received.unwrap().bytes.0, 100_000);
    assert!(sent.unwrap().bytes.0 > 0 && down.join().unwrap() > 0);
}

#[test]
fn streams_that_nobody_wants_are_refused() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    speaker.admitted(None);
    speaker.opened(1, tcp_plan(Direction::Forward, 2, Span::from_secs(1)));
    let _first = speaker.attach(Role::Data, 1, 0);
    for (role, test, stream) in
        [(Role::Data, 1, 0), (Role::Data, 1, 2), (Role::Echo, 1, 1), (Role::Data, 9, 1)]
    {
        assert_eq!(speaker.attach(role, test, stream).1, Some(REFUSED), "{role:?} {test} {stream}");
    }
    assert_eq!(speaker.attach(Role::Data, 1, 1).1, Some(ATTACHED));
    speaker.ready(1);
}

#[test]
fn an_option_that_the_system_refuses_is_an_error_of_the_test() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    speaker.admitted(None);
    let TestPlan::Tcp(plan) = tcp_plan(Direction::Reverse, 1, Span::from_secs(1)) else { panic!() };
    speaker.opened(1, TestPlan::Tcp(TcpPlan { congestion: Some("nonesuch".into()), ..plan }));
    assert_eq!(speaker.attach(Role::Data, 1, 0).1, None);
    let ServerMessage::Error { test: Some(1), message, .. } = speaker.hear() else { panic!("no error") };
    assert!(message.contains("nonesuch"), "{message}");
}

#[test]
fn tcp_requests_are_answered_length_for_length() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        let mut speaker = Speaker::open(to);
        speaker.opened(1, TestPlan::TcpEcho { length: 100, response: None, duration: Span::from_secs(20) });
        let (mut stream, answer) = speaker.attach(Role::Echo, 1, 0);
        assert_eq!(answer, Some(ATTACHED));
        start(&mut speaker, 1);
        for n in 0..50 {
            let mut response = [0; 100];
            stream.write_all(&[n; 60]).unwrap();
            stream.write_all(&[n; 40]).unwrap();
            stream.read_exact(&mut response).unwrap();
            assert_eq!(response, [n; 100]);
        }
        speaker.say(&ClientMessage::Stop { test: 1 });
        let want = (Outcome::Complete, EndReport::Echo { answered: 50, drops: 0 });
        assert_eq!(finished(&mut speaker, 1), want);
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
    }
}

/// Echoes over TCP went out at 12.5 Gbit/s without a reservation, under any cap.
#[test]
fn tcp_echoes_wait_until_the_cap_on_the_rate_allows_them() {
    let responder = Responder::start(Config { max_rate: Some(BitRate(8_000_000)), ..Config::default() });
    let mut speaker = Speaker::open(responder.v6());
    let duration = Span::from_secs(20);
    speaker.opened(1, TestPlan::TcpEcho { length: 65_000, response: None, duration });
    let (mut stream, answer) = speaker.attach(Role::Echo, 1, 0);
    assert_eq!(answer, Some(ATTACHED));
    start(&mut speaker, 1);
    let (sent, mut back) = (vec![7; 65_000], vec![0; 65_000]);
    let began = clock::now();
    for _ in 0..12 {
        stream.write_all(&sent).unwrap();
        stream.read_exact(&mut back).unwrap();
    }
    // 1.56 MB at 1 MB/s, of which a second's worth may go at once.
    assert!(clock::now() - began > Span::from_millis(500));
    let is_cap = |message: &ServerMessage| {
        matches!(message, ServerMessage::Error { code: ErrorCode::Cap, test: Some(1), .. }).then_some(())
    };
    speaker.hear_until(is_cap);
    speaker.say(&ClientMessage::Stop { test: 1 });
    let want = (Outcome::Complete, EndReport::Echo { answered: 12, drops: 0 });
    assert_eq!(finished(&mut speaker, 1), want);
}

#[test]
fn an_echo_test_ends_where_it_has_moved_all_bytes_that_the_owner_allows() {
    let responder = Responder::start(Config { max_bytes: Some(ByteCount(10_000)), ..Config::default() });
    let mut speaker = Speaker::open(responder.v4());
    let duration = Span::from_secs(20);
    speaker.opened(1, TestPlan::TcpEcho { length: 1000, response: None, duration });
    let (mut stream, answer) = speaker.attach(Role::Echo, 1, 0);
    assert_eq!(answer, Some(ATTACHED));
    start(&mut speaker, 1);
    for _ in 0..5 {
        stream.write_all(&[7; 1000]).unwrap();
        stream.read_exact(&mut [0; 1000]).unwrap();
    }
    stream.write_all(&[7; 1000]).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "the connection ends");
    let said = speaker.hear_until(|message| match message {
        ServerMessage::Error { code: ErrorCode::Cap, message, test: Some(1), .. } => Some(message.clone()),
        _ => None,
    });
    assert!(said.starts_with("the responder's cap for bytes is "), "{said}");
    let want = (Outcome::Interrupted, EndReport::Echo { answered: 5, drops: 0 });
    assert_eq!(finished(&mut speaker, 1), want);
}

#[test]
fn tcp_responses_of_their_own_length_are_streamed_and_long_ones_wait_for_their_turn() {
    let responder = Responder::start(Config::default());
    let plan = |length, response| TestPlan::TcpEcho {
        length,
        response: Some(response),
        duration: Span::from_secs(20),
    };
    let mut speaker = Speaker::open(responder.v6());
    speaker.say(&ClientMessage::Open { test: 1, plan: plan(100, 3_000_000) });
    let ServerMessage::Error { code: ErrorCode::State, .. } = speaker.hear() else { panic!("not refused") };
    speaker.admitted(None);
    for (test, length, response) in [(2, 100, 3_000_000), (3, 3_000_000, 1), (4, 1, 1)] {
        speaker.opened(test, plan(length, response));
        let (mut stream, answer) = speaker.attach(Role::Echo, test, 0);
        assert_eq!(answer, Some(ATTACHED));
        start(&mut speaker, test);
        let (asked, mut said) = (vec![7; length as usize], vec![0; response as usize]);
        for exchange in 0..3 {
            stream.write_all(&asked).unwrap();
            stream.read_exact(&mut said).unwrap();
            assert!(pattern::matches(&said, exchange, 0), "{length} B for {response} B");
        }
        speaker.say(&ClientMessage::Stop { test });
        let want = (Outcome::Complete, EndReport::Echo { answered: 3, drops: 0 });
        assert_eq!(finished(&mut speaker, test), want);
    }
}

#[test]
fn a_udp_stream_is_counted_and_its_flow_kept_apart_from_everybody_elses() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        let mut speaker = Speaker::open(to);
        speaker.admitted(None);
        speaker.opened(1, udp_plan(Direction::Forward));
        let socket = udp(to);
        let flow = enter(&socket, speaker.token, 1);
        start(&mut speaker, 1);
        // While the stream's own socket sits on the port, others still get through to the shared
        // one.
        let mut other = Speaker::open(to);
        other.opened(
            1,
            TestPlan::UdpEcho { length: 64, response: None, duration: Span::from_secs(5), dscp: 0 },
        );
        enter(&udp(to), other.token, 1);
        let mut datagram = [0; 200];
        for seq in 0..100 {
            Header { kind: Kind::Data, flow, seq, sent_at: clock::now().0 }.emit(&mut datagram);
            socket.send(&datagram).unwrap();
        }
        Header { kind: Kind::End, flow, seq: 100, sent_at: 0 }.emit(&mut datagram);
        socket.send(&datagram).unwrap();
        let (outcome, report) = finished(&mut speaker, 1);
        let EndReport::UdpReceiver(end) = report else { panic!("{report:?}") };
        assert_eq!((outcome, end.received, end.bytes.0), (Outcome::Complete, 100, 20_000));
    }
}

#[test]
fn a_udp_stream_down_comes_from_the_address_that_was_spoken_to() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        let mut speaker = Speaker::open(to);
        speaker.admitted(None);
        speaker.opened(1, udp_plan(Direction::Reverse));
        let socket = udp(to);
        let flow = enter(&socket, speaker.token, 1);
        start(&mut speaker, 1);
        let mut buf = [0; 2048];
        let mut received = 0;
        let deadline = clock::now() + Span::from_secs(30);
        loop {
            assert!(clock::now() < deadline, "{received} received, and no end");
            let len = socket.recv(&mut buf).expect("data on the connected socket");
            let header = Header::parse(&buf[..len]).unwrap();
            assert_eq!(header.flow, flow);
            match header.kind {
                Kind::Data => received += 1,
                Kind::End => break,
                other => panic!("{other:?}"),
            }
        }
        let (_, report) = finished(&mut speaker, 1);
        let EndReport::UdpSender(end) = report else { panic!("{report:?}") };
        assert_eq!((end.sent + end.not_sent, received), (100, end.sent));
    }
}

#[test]
fn caps_are_named_with_their_value() {
    let responder = Responder::start(Config { max_duration: Some(Span::from_secs(5)), ..Config::default() });
    let mut speaker = Speaker::open(responder.v4());
    speaker.admitted(None);
    speaker.say(&ClientMessage::Open { test: 1, plan: tcp_plan(Direction::Forward, 1, Span::from_secs(6)) });
    let ServerMessage::Error { code: ErrorCode::Cap, message, test: Some(1), .. } = speaker.hear() else {
        panic!("not refused");
    };
    assert_eq!(message, "the responder's cap for duration is 5.00 s");
}

#[test]
fn a_stopping_responder_ends_its_tests_and_says_goodbye() {
    let mut responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    speaker.admitted(None);
    speaker.opened(1, tcp_plan(Direction::Reverse, 1, Span::from_secs(60)));
    let (mut stream, _) = speaker.attach(Role::Data, 1, 0);
    start(&mut speaker, 1);
    stream.read_exact(&mut [0; 1000]).unwrap();
    let reader = swallow(stream);
    let began = clock::now();
    responder.stopper.stop();
    let (outcome, report) = finished(&mut speaker, 1);
    let EndReport::TcpSender(end) = report else { panic!("{report:?}") };
    assert_eq!(outcome, Outcome::Interrupted);
    assert!(end.bytes.0 > 0);
    assert!(matches!(speaker.hear(), ServerMessage::Bye { .. }));
    assert_eq!(speaker.try_hear(), None);
    responder.join();
    assert!(clock::now() - began < Span::from_secs(2));
    reader.join().unwrap();
}

//! Flows in data channels: what is counted, who is answered, and what a stranger can do.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use netaware_io::clock;
use netaware_record::{Direction, Outcome, UdpReceiverEnd, UdpSenderEnd};
use netaware_server::Config;
use netaware_units::Span;
use netaware_wire::control::{
    ChannelEnd, ClientMessage, EndReport, ErrorCode, MAX_CHANNEL_PAYLOAD, ServerMessage, TestPlan, UdpPlan,
    UdpReceive, UdpSend,
};
use netaware_wire::datagram::{EchoStamps, HEADER_LEN, Header, Kind};

use str0m::ice::{StunMessage, TransId};

use super::browser::Browser;
use super::speaker::{Responder, Speaker, is_answered, udp};

fn echo(length: u32) -> TestPlan {
    TestPlan::UdpEcho { length, response: None, duration: Span::from_secs(20), dscp: 0 }
}

fn stream(direction: Direction, length: u32, packets: u64) -> UdpPlan {
    UdpPlan {
        direction,
        duration: Span::from_secs(10),
        packets: Some(packets),
        length,
        gap_ps: Some(2_000_000_000),
        burst: 1,
        send: UdpSend::Single,
        receive: UdpReceive::Single,
        tick: Span::from_millis(100),
        settle: None,
        round_trip: Span::ZERO,
        window: None,
        dscp: 0,
        histogram: None,
        log: false,
    }
}

fn refusal(speaker: &mut Speaker) -> (ErrorCode, String) {
    match speaker.hear() {
        ServerMessage::Error { code, message, .. } => (code, message),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn echoes_come_back_through_a_channel_over_both_versions() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        let mut speaker = Speaker::open(to);
        speaker.opened(1, echo(64));
        let mut browser = Browser::open(&mut speaker, 1, to);
        for seq in 0..50 {
            let mut request = [0xaa; 64];
            Header { kind: Kind::EchoRequest, flow: 1, seq, sent_at: 77 }.emit(&mut request);
            assert!(browser.write(&request));
            assert!(browser.run_until(Span::from_secs(2), |browser| browser.inbox.len() as u64 > seq));
            let reply = browser.inbox.last().unwrap();
            let header = Header::parse(reply).unwrap();
            assert_eq!((header.kind, header.seq, header.sent_at), (Kind::EchoReply, seq, 77));
            let stamps = EchoStamps::parse(reply).unwrap();
            assert!(stamps.answered_at >= stamps.received_at);
            assert!(!cfg!(target_os = "linux") || stamps.kernel_stamp, "{stamps:?}");
            assert_eq!(reply[44..], request[44..]);
        }
        // One byte more than agreed is not answered.
        let mut long = [0xaa; 65];
        Header { kind: Kind::EchoRequest, flow: 1, seq: 50, sent_at: 77 }.emit(&mut long);
        assert!(browser.write(&long));
        assert!(!browser.run_until(Span::from_millis(200), |browser| browser.inbox.len() > 50));
        speaker.say(&ClientMessage::Stop { test: 1 });
        let answered = speaker.hear_until(|message| match message {
            ServerMessage::Finished { report: EndReport::Echo { answered, drops: 0 }, .. } => Some(*answered),
            _ => None,
        });
        assert_eq!(answered, 50);
    }
}

/// Runs a stream down; what the browser received, and what the responder says it sent.
fn down(plan: UdpPlan, lose: u64) -> (Vec<Vec<u8>>, u64, UdpSenderEnd) {
    let responder = Responder::start(Config::default());
    let to = responder.v4();
    let mut speaker = Speaker::open(to);
    speaker.admitted(None);
    speaker.opened(1, TestPlan::Udp(plan));
    let mut browser = Browser::open(&mut speaker, 1, to);
    browser.lose_in = lose;
    speaker.say(&ClientMessage::Start { test: 1 });
    let is_end = |bytes: &Vec<u8>| Header::parse(bytes).is_ok_and(|header| header.kind == Kind::End);
    assert!(browser.run_until(Span::from_secs(12), |browser| browser.inbox.iter().any(is_end)));
    // The channel's own protocol confirms the last of it by a timer.
    browser.run_until(Span::from_millis(300), |_| false);
    let end = speaker.hear_until(|message| match message {
        ServerMessage::Finished { report: EndReport::UdpSender(end), .. } => Some(end.clone()),
        _ => None,
    });
    // What it has sent is here, or was lost on purpose; the end may have overtaken some of it.
    let accounted = |browser: &Browser| {
        let data = browser.inbox.iter().filter(|bytes| !is_end(bytes)).count() as u64;
        data + browser.lost[0] >= end.sent
    };
    browser.run_until(Span::from_secs(5), accounted);
    browser.inbox.retain(|bytes| !is_end(bytes));
    (browser.inbox, browser.lost[0], end)
}

#[test]
fn down_what_the_network_lost_is_exactly_what_is_missing() {
    let (received, lost, end) = down(stream(Direction::Reverse, 1000, 400), 20);
    assert_eq!(end.outcome, Outcome::Complete);
    assert_eq!(end.sent + end.not_sent, 400, "{end:?}");
    assert!(lost > 10, "{lost}");
    assert_eq!(end.sent - received.len() as u64, lost, "{end:?}");
    let mut numbers: Vec<u64> = received.iter().map(|bytes| Header::parse(bytes).unwrap().seq).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), received.len(), "no number came twice");
    assert!(numbers.last().unwrap() < &end.sent);
}

#[test]
fn down_unpaced_everything_leaves_and_comes() {
    let plan = UdpPlan { gap_ps: None, ..stream(Direction::Reverse, 100, 2000) };
    let (received, _, end) = down(plan, 0);
    assert_eq!((end.sent, end.not_sent, received.len()), (2000, 0, 2000), "{end:?}");
    assert_eq!(end.bytes.0, 200_000);
}

/// Runs a stream of `count` datagrams up; how many the network lost, and what the responder
/// counted.
fn up(count: u64, length: usize, lose: u64) -> (u64, UdpReceiverEnd) {
    let responder = Responder::start(Config::default());
    let to = responder.v6();
    let mut speaker = Speaker::open(to);
    speaker.admitted(None);
    speaker.opened(1, TestPlan::Udp(stream(Direction::Forward, length as u32, count)));
    let mut browser = Browser::open(&mut speaker, 1, to);
    browser.lose_out = lose;
    speaker.say(&ClientMessage::Start { test: 1 });
    let mut datagram = vec![0xaa; length];
    for seq in 0..count {
        Header { kind: Kind::Data, flow: 1, seq, sent_at: clock::now().0 }.emit(&mut datagram);
        let deadline = clock::now() + Span::from_secs(10);
        while !browser.write(&datagram) {
            assert!(clock::now() < deadline, "datagram {seq} cannot be written");
            browser.run_until(Span::from_millis(5), |_| false);
        }
        browser.run_until(Span::from_millis(2), |_| false);
    }
    browser.run_until(Span::from_millis(1500), |_| false);
    let mut end = [0; HEADER_LEN];
    Header { kind: Kind::End, flow: 1, seq: count, sent_at: 0 }.emit(&mut end);
    assert!(browser.write(&end));
    browser.run_until(Span::from_millis(500), |_| false);
    let end = speaker.hear_until(|message| match message {
        ServerMessage::Finished { report: EndReport::UdpReceiver(end), .. } => Some(end.clone()),
        _ => None,
    });
    (browser.lost[1], end)
}

#[test]
fn up_what_the_network_lost_is_exactly_what_is_missing() {
    let (lost, end) = up(400, 1000, 25);
    assert_eq!((lost, end.received, end.outcome), (16, 384, Outcome::Complete), "{end:?}");
    assert_eq!(end.loss_runs.iter().map(|(length, times)| length * times).sum::<u64>(), 16);
    assert_eq!((end.bytes.0, end.foreign, end.drops.socket), (384_000, Some(0), Some(0)));
    assert!(end.gaps.is_some() && end.delay_variation.is_some());
}

#[test]
fn what_does_not_fit_is_refused_by_name_and_the_session_goes_on() {
    let responder = Responder::start(Config::default());
    let to = responder.v4();
    let mut speaker = Speaker::open(to);
    let end = Browser::new(to).end();
    let ask = |speaker: &mut Speaker, test, end: &ChannelEnd| {
        speaker.say(&ClientMessage::Channel { test, end: end.clone() });
        refusal(speaker)
    };
    assert_eq!(ask(&mut speaker, 1, &end).0, ErrorCode::State);
    speaker.opened(1, echo(64));
    for bad in [
        ChannelEnd { ufrag: "a:b".repeat(2), ..end.clone() },
        ChannelEnd { pwd: "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\n".into(), ..end.clone() },
        ChannelEnd { fingerprint: "F".repeat(60_000), ..end.clone() },
    ] {
        assert_eq!(ask(&mut speaker, 1, &bad).0, ErrorCode::BadMessage);
    }
    let mut browser = Browser::open(&mut speaker, 1, to);
    assert_eq!(ask(&mut speaker, 1, &end).0, ErrorCode::State, "a second channel");
    speaker.opened(2, echo(MAX_CHANNEL_PAYLOAD as u32 + 1));
    let (code, message) = ask(&mut speaker, 2, &end);
    assert!(code == ErrorCode::BadMessage && message.contains("1024"), "{message}");
    let duration = Span::from_secs(1);
    speaker.opened(3, TestPlan::TcpEcho { length: 64, response: None, duration });
    assert_eq!(ask(&mut speaker, 3, &end).0, ErrorCode::BadMessage);
    // A message longer than any that was agreed on ends its channel, and nothing else.
    assert!(browser.write(&vec![1; 60_000]));
    // It goes out in several round trips, for which the browser needs its turns.
    let (code, message) = std::thread::scope(|scope| {
        let refused = scope.spawn(|| refusal(&mut speaker));
        browser.run_until(Span::from_secs(20), |_| refused.is_finished());
        refused.join().unwrap()
    });
    assert!(code == ErrorCode::Internal && message.contains("data channel"), "{message}");
    speaker.opened(4, echo(64));
    Browser::open(&mut speaker, 4, to);
}

/// A binding request to `name`, with a proof of nonsense.
pub(crate) fn forged(name: &str, tag: u8) -> Vec<u8> {
    let user = format!("{name}:evil");
    let padded = user.len().next_multiple_of(4);
    let length = (4 + padded + 24) as u16;
    let mut bytes = vec![0, 1];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0x21, 0x12, 0xa4, 0x42]);
    bytes.extend([tag; 12]);
    bytes.extend([0, 6]);
    bytes.extend((user.len() as u16).to_be_bytes());
    bytes.extend(user.as_bytes());
    bytes.resize(24 + padded, 0);
    bytes.extend([0, 8, 0, 20]);
    bytes.extend([tag; 20]);
    bytes
}

/// Opens the channel of test 1, and gives the responder's end.
pub(crate) fn signalled(speaker: &mut Speaker, theirs: &ChannelEnd) -> ChannelEnd {
    speaker.say(&ClientMessage::Channel { test: 1, end: theirs.clone() });
    speaker.hear_until(|message| match message {
        ServerMessage::Channel { end, .. } => Some(end.clone()),
        _ => None,
    })
}

/// A binding request as who was told the password signs it, which nominates its source above all
/// others.
pub(crate) fn signed(ours: &ChannelEnd, theirs: &ChannelEnd) -> Vec<u8> {
    let user = format!("{}:{}", ours.ufrag, theirs.ufrag);
    let hmac = str0m::crypto::from_feature_flags().sha1_hmac_provider;
    let mut bytes = vec![0; 1200];
    let request = StunMessage::binding_request(&user, TransId::new(), true, 1, i32::MAX as u32, true);
    let sign = |key: &[u8], parts: &[&[u8]]| hmac.sha1_hmac(key, parts);
    let len = request.to_bytes(Some(ours.pwd.as_bytes()), &mut bytes, sign).unwrap();
    bytes.truncate(len);
    bytes
}

/// Loopback has more addresses than one on Linux alone.
fn another_address() -> Option<IpAddr> {
    cfg!(target_os = "linux").then_some(Ipv4Addr::new(127, 0, 0, 2).into())
}

#[test]
fn a_signed_request_from_a_victims_address_moves_no_stream_there() {
    let responder = Responder::start(Config::default());
    let to = responder.v4();
    let mut speaker = Speaker::open(to);
    speaker.admitted(None);
    speaker.opened(1, TestPlan::Udp(stream(Direction::Reverse, 1000, 400)));
    let mut browser = Browser::new(to);
    let theirs = browser.end();
    let ours = signalled(&mut speaker, &theirs);
    browser.know(&ours);
    assert!(browser.run_until(Span::from_secs(5), |browser| browser.is_open));
    speaker.ready(1);
    speaker.say(&ClientMessage::Start { test: 1 });
    assert!(browser.run_until(Span::from_secs(5), |browser| browser.inbox.len() > 10));
    // The victim's own sockets stand for forged sources: another address, and another port of the
    // page's address, as behind a NAT.
    let addresses = another_address().into_iter().chain([to.ip()]);
    let victims: Vec<UdpSocket> =
        addresses.map(|address| UdpSocket::bind(SocketAddr::new(address, 0)).unwrap()).collect();
    for victim in &victims {
        for _ in 0..10 {
            victim.send_to(&signed(&ours, &theirs), to).unwrap();
        }
    }
    let is_end = |bytes: &Vec<u8>| Header::parse(bytes).is_ok_and(|header| header.kind == Kind::End);
    assert!(browser.run_until(Span::from_secs(12), |browser| browser.inbox.iter().any(is_end)));
    // The channel's own protocol confirms the last of it by a timer.
    browser.run_until(Span::from_millis(300), |_| false);
    let end = speaker.hear_until(|message| match message {
        ServerMessage::Finished { report: EndReport::UdpSender(end), .. } => Some(end.clone()),
        _ => None,
    });
    let has_all =
        |browser: &Browser| browser.inbox.iter().filter(|bytes| !is_end(bytes)).count() as u64 == end.sent;
    assert!(browser.run_until(Span::from_secs(5), has_all), "some of it went elsewhere: {end:?}");
    assert_eq!(end.outcome, Outcome::Complete, "{end:?}");
    for victim in &victims {
        assert!(!is_answered(victim), "{:?} was sent something", victim.local_addr());
    }
}

#[test]
fn a_channel_is_not_opened_to_another_address_than_its_sessions() {
    let Some(elsewhere) = another_address() else { return };
    let responder = Responder::start(Config::default());
    let to = responder.v4();
    let mut speaker = Speaker::open(to);
    speaker.opened(1, echo(64));
    // It knows everything that the session was told, and comes from where no TCP came from.
    let mut browser = Browser::at(elsewhere, to);
    let ours = signalled(&mut speaker, &browser.end());
    browser.know(&ours);
    assert!(!browser.run_until(Span::from_secs(1), |browser| browser.is_open));
    assert!(browser.bytes[1] > 0, "it has asked");
    assert_eq!(browser.bytes[0], 0, "bytes of an answer");
}

#[test]
fn one_hello_gives_at_most_three_times_the_bytes_that_came() {
    let responder = Responder::start(Config::default());
    let to = responder.v4();
    let mut speaker = Speaker::open(to);
    speaker.opened(1, echo(64));
    let mut browser = Browser::new(to);
    let ours = signalled(&mut speaker, &browser.end());
    browser.know(&ours);
    // Then it is as silent as a victim whose address was forged, and DTLS repeats its flight after
    // one second and after three.
    assert!(browser.run_until(Span::from_secs(5), |browser| browser.has_greeted));
    browser.count_for(Span::from_secs(4));
    let [received, sent] = browser.bytes;
    assert!(received > 0 && received <= 3 * sent, "{received} bytes for {sent}");
}

#[test]
fn an_answer_to_a_signed_request_is_shorter_than_the_request() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        let mut speaker = Speaker::open(to);
        speaker.opened(1, echo(64));
        let theirs = Browser::new(to).end();
        let ours = signalled(&mut speaker, &theirs);
        let socket = udp(to);
        let request = signed(&ours, &theirs);
        socket.send(&request).unwrap();
        let answer = socket.recv(&mut [0; 2048]).unwrap();
        assert!(answer < request.len(), "{answer} bytes for {}", request.len());
        assert!(!is_answered(&socket), "a second answer");
    }
}

#[test]
fn nobody_is_answered_who_does_not_know_the_password() {
    let responder = Responder::start(Config::default());
    let to = responder.v4();
    let mut speaker = Speaker::open(to);
    speaker.opened(1, echo(64));
    let mut browser = Browser::new(to);
    let end = signalled(&mut speaker, &browser.end());
    let stranger: UdpSocket = udp(to);
    for tag in 0..=255 {
        for _ in 0..20 {
            stranger.send(&forged(&end.ufrag, tag)).unwrap();
            stranger.send(&forged("nobody", tag)).unwrap();
            stranger.send(&[22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, tag, 1, 2, 3]).unwrap();
        }
    }
    assert!(!is_answered(&stranger), "an answer to a forged request");
    browser.know(&end);
    assert!(browser.run_until(Span::from_secs(5), |browser| browser.is_open), "after the flood");
    assert!(!is_answered(&stranger), "an answer to a forged request");
}

#[test]
fn channels_are_bounded_and_free_again_with_their_session() {
    let responder = Responder::start(Config::default());
    let to = responder.v4();
    let end = Browser::new(to).end();
    let mut speakers: Vec<Speaker> = (0..8).map(|_| Speaker::open(to)).collect();
    let ask = |speaker: &mut Speaker, test| {
        speaker.opened(test, echo(64));
        speaker.say(&ClientMessage::Channel { test, end: end.clone() });
        speaker.hear()
    };
    for speaker in &mut speakers {
        for test in 1..=8 {
            assert!(matches!(ask(speaker, test), ServerMessage::Channel { .. }));
        }
    }
    let mut late = Speaker::open(to);
    let ServerMessage::Error { code: ErrorCode::Busy, message, .. } = ask(&mut late, 1) else {
        panic!("one too many was taken")
    };
    assert!(message.contains("64"), "{message}");
    drop(speakers);
    let until = clock::now() + Span::from_secs(6);
    let mut test = 1;
    while !matches!(ask(&mut late, test), ServerMessage::Channel { .. }) {
        assert!(clock::now() < until, "channels outlived their sessions");
        clock::sleep(Span::from_millis(50));
        test += 1;
    }
}

//! Many latency sessions at once.

use netaware_io::clock;
use netaware_server::Config;
use netaware_testkit::contention::Contention;
use netaware_units::Span;
use netaware_wire::control::{ClientMessage, EndReport, ServerMessage, TestPlan};
use netaware_wire::datagram::{ECHO_LEN, Header, Kind};

use super::speaker::{Responder, Speaker, enter, udp};

const SESSIONS: usize = 100;
const REQUESTS: u64 = 200;

#[test]
fn a_hundred_sessions_at_a_hundred_packets_a_second_lose_nothing_here() {
    let responder = Responder::start(Config::default());
    let mut sessions: Vec<_> = (0..SESSIONS)
        .map(|n| {
            let to = if n % 2 == 0 { responder.v4() } else { responder.v6() };
            let mut speaker = Speaker::open(to);
            let plan =
                TestPlan::UdpEcho { length: 64, response: None, duration: Span::from_secs(30), dscp: 0 };
            speaker.opened(1, plan);
            let socket = udp(to);
            let flow = enter(&socket, speaker.token, 1);
            speaker.ready(1);
            (speaker, socket, flow)
        })
        .collect();
    let contention = Contention::begin(std::process::id());
    let began = clock::now();
    let mut datagram = [0; 64];
    for seq in 0..REQUESTS {
        clock::sleep_until(began + Span::from_millis(10) * seq as i64);
        for (_, socket, flow) in &sessions {
            Header { kind: Kind::EchoRequest, flow: *flow, seq, sent_at: clock::now().0 }.emit(&mut datagram);
            socket.send(&datagram).unwrap();
        }
        if seq % 100 == 0 {
            for (speaker, ..) in &mut sessions {
                speaker.say(&ClientMessage::Ping { seq });
            }
        }
    }
    let mut dropped = 0;
    for (speaker, socket, _) in &mut sessions {
        // If this host stood still, a socket buffer may have overflowed. Those drops are counted;
        // no other request is missing.
        let mut here = 0;
        while here < REQUESTS
            && let Ok(len) = socket.recv(&mut [0; 128])
        {
            assert!(len >= ECHO_LEN);
            here += 1;
        }
        speaker.say(&ClientMessage::Stop { test: 1 });
        let (answered, drops) = speaker.hear_until(|message| match message {
            ServerMessage::Finished { report: EndReport::Echo { answered, drops }, .. } => {
                Some((*answered, *drops))
            }
            _ => None,
        });
        assert_eq!((here, answered + drops), (answered, REQUESTS));
        dropped += drops;
    }
    if dropped > 0 {
        contention.excuses(&format!("{dropped} requests had no room in a socket"));
    }
}

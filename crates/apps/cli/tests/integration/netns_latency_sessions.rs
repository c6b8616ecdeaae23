//! A hundred latency sessions at once. It needs no namespace and no root, but runs with the tests
//! that mostly wait.

mod flow;

use flow::Flow;
use netaware_io::clock;
use netaware_testkit::contention::Contention;
use netaware_testkit::control::Control;
use netaware_testkit::program::Responder;
use netaware_units::Span;
use netaware_wire::control::{ClientMessage, EndReport, ServerMessage, TestPlan};

const SESSIONS: usize = 100;
const PER_SECOND: i64 = 100;
const SECONDS: i64 = 2;

const TEST: u32 = 1;

#[test]
fn a_hundred_latency_sessions_are_answered_and_a_loss_in_the_host_is_counted_as_such() {
    let responder = Responder::start(&[]);
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| Session::open(&responder)).collect();
    let contention = Contention::begin(responder.id());
    exchange(&mut sessions);
    let sent = u64::try_from(PER_SECOND * SECONDS).unwrap();
    let mut dropped = 0;
    for session in sessions {
        let answered_here = session.flow.answered();
        let (answered, drops) = session.end();
        assert_eq!((answered_here, answered + drops), (answered, sent), "{drops} dropped");
        dropped += drops;
    }
    if dropped > 0 {
        contention.excuses(&format!("the responder's sockets dropped {dropped} requests"));
    }
}

/// One request per session every 10 ms, the sessions evenly apart within that.
fn exchange(sessions: &mut [Session]) {
    let gap = Span::from_secs(1) / PER_SECOND / SESSIONS as i64;
    let start = clock::now();
    let mut ping_due = start;
    for n in 0..SESSIONS as i64 * PER_SECOND * SECONDS {
        let due = start + gap * n;
        if clock::now() < due {
            clock::sleep_until(due);
        }
        let turn = n as usize % SESSIONS;
        sessions[turn].flow.request();
        sessions[(turn + SESSIONS / 2) % SESSIONS].flow.drain();
        if clock::now() >= ping_due {
            for session in &mut *sessions {
                session.control.say(&ClientMessage::Ping { seq: 0 });
            }
            ping_due += Span::from_secs(1);
        }
    }
    let due = clock::now() + Span::from_secs(2);
    let is_open = |session: &Session| session.flow.answered() < (PER_SECOND * SECONDS) as u64;
    // Until all is answered; what the host dropped never is.
    while sessions.iter().any(is_open) && clock::now() < due {
        for session in sessions.iter_mut() {
            session.flow.drain();
        }
        clock::sleep(Span::from_millis(1));
    }
}

struct Session {
    control: Control,
    flow: Flow,
}

impl Session {
    fn open(responder: &Responder) -> Self {
        let (mut control, token) = Control::session(responder.address());
        let duration = Span::from_secs(60);
        let plan = TestPlan::UdpEcho { length: Flow::LENGTH, response: None, duration, dscp: 0 };
        control.say(&ClientMessage::Open { test: TEST, plan });
        control.wait_for(Span::from_secs(5), |it| matches!(it, ServerMessage::Opened { .. }).then_some(()));
        let flow = Flow::attach(responder.address(), token, TEST);
        control.wait_for(Span::from_secs(5), |it| matches!(it, ServerMessage::Ready { .. }).then_some(()));
        control.say(&ClientMessage::Start { test: TEST });
        control.wait_for(Span::from_secs(5), |it| matches!(it, ServerMessage::Started { .. }).then_some(()));
        Self { control, flow }
    }

    /// Requests that the responder answered, and what its socket dropped.
    fn end(mut self) -> (u64, u64) {
        self.control.say(&ClientMessage::Stop { test: TEST });
        self.control.wait_for(Span::from_secs(5), |it| match it {
            ServerMessage::Finished { report: EndReport::Echo { answered, drops }, .. } => {
                Some((*answered, *drops))
            }
            _ => None,
        })
    }
}

//! Two probers that say whatever they like in any order, and hosts that fail as they like: the
//! responder's sessions do nothing after they have closed, run and halt no test twice, and leave an
//! empty queue behind.
//!
//! The state machines are private to their crate, so their files are compiled into this target.
#![no_main]

#[path = "../../crates/apps/server/src"]
#[expect(dead_code, reason = "this target drives a part of it")]
mod responder {
    pub(crate) mod admission;
    pub(crate) mod framing;
    pub(crate) mod network;
    pub(crate) mod plan;
    pub(crate) mod session;
    pub(crate) mod together;
}

use std::collections::BTreeMap;

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_pool::Site;
use netaware_record::{Direction, HostInfo, ReceiverTick, TcpEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::{
    ChannelEnd, ClientMessage, EndReport, ErrorCode, Limits, ServerMessage, TcpPlan, TestPlan, UdpPlan,
};
use netaware_wire::proof::{self, Key};
use netaware_wire::{Token, frame};
use responder::admission::{Admission, Notice, SessionId};
use responder::framing::Frames;
use responder::plan::Refusal;
use responder::session::{Action, Rules, Session, WIND_DOWN};
// The files name each other by their place in their own crate.
use responder::{admission, plan, together};

/// Each prober asks from a site of its own.
fn site(who: u8) -> Site {
    Site::of(std::net::IpAddr::from([192, 0, 2, who]))
}

const SECRET: &[u8] = b"secret";

#[derive(Debug, arbitrary::Arbitrary)]
struct Script {
    with_key: bool,
    most_bytes: Option<u32>,
    steps: Vec<(bool, Step)>,
}

#[derive(Debug, arbitrary::Arbitrary)]
enum Step {
    Wait(u16),
    Bytes(Vec<u8>),
    Hello(u16),
    Authenticate { rightly: bool },
    Reserve { expected: i64, join: bool },
    Release,
    Open { test: u8, plan: Plan },
    Channel { test: u8, rightly: bool },
    ChannelLost(u8),
    Start(u8),
    StopTest(u8),
    Ping,
    Bye,
    Attach { test: u8, stream: u8 },
    Tick { test: u8, bytes: u64, end: i64 },
    Ended(u8),
    Fails(u8),
    Lost,
    Stop,
}

#[derive(Debug, arbitrary::Arbitrary)]
enum Plan {
    UdpEcho { length: u16, response: Option<u32>, duration_ms: u16 },
    TcpEcho { length: u16, response: Option<u32>, duration_ms: u16 },
    Tcp { streams: u16, duration_ms: u16, length: u32, reverse: bool },
    Udp { length: u32, duration_ms: i32, gap_ps: Option<u64> },
}

fuzz_target!(|script: Script| {
    let rules = Rules {
        key: script.with_key.then(|| Key::new(SECRET).unwrap()),
        limits: Limits { bytes: script.most_bytes.map(|most| ByteCount(most.into())), ..Limits::default() },
        software: "netaware fuzz".into(),
    };
    let mut owner = Owner {
        now: Mono(1_000_000_000),
        queue: Admission::new(1, Span::from_secs(7200)),
        reservation: Token::default(),
        lines: [0, 1].map(|number| Line::new(&rules, number)),
    };
    owner.carry_out_all();
    for (second, step) in &script.steps {
        owner.take(usize::from(*second), step);
        owner.carry_out_all();
    }
    owner.everybody_vanishes();
});

/// A responder without its sockets and threads.
struct Owner<'a> {
    now: Mono,
    queue: Admission,
    /// The last one given out, for whoever joins.
    reservation: Token,
    lines: [Line<'a>; 2],
}

/// One control connection.
struct Line<'a> {
    id: SessionId,
    session: Session<'a>,
    frames: Frames,
    nonce: Token,
    challenge: Token,
    tests: BTreeMap<u32, Life>,
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Life {
    Prepared,
    Running,
    Halting,
}

impl<'a> Line<'a> {
    fn new(rules: &'a Rules, number: u8) -> Self {
        let token = Token([number; 16]);
        Self {
            id: SessionId(number.into()),
            session: Session::new(rules, Mono(1_000_000_000), token, Token([number + 10; 16])),
            frames: Frames::default(),
            nonce: Token([number + 20; 16]),
            challenge: Token::default(),
            tests: BTreeMap::new(),
            closed: false,
        }
    }

    fn end(&mut self, test: u32) {
        if self.tests.remove(&test).is_some() {
            self.session.ended(test, EndReport::TcpReceiver(TcpEnd::default()));
        }
    }
}

impl Owner<'_> {
    fn take(&mut self, who: usize, step: &Step) {
        let (now, reservation) = (self.now, self.reservation);
        let line = &mut self.lines[who];
        if let Some(message) = message(step, line, reservation) {
            return line.session.received(now, Ok(message));
        }
        match step {
            Step::Wait(ms) => self.pass(Span::from_millis((*ms).into())),
            Step::Bytes(bytes) => {
                line.frames.push(bytes);
                // A frame over the limit stays in place: the connection is closed then.
                for _ in 0..100 {
                    let Some(message) = line.frames.pop() else { break };
                    line.session.received(now, message);
                }
            }
            Step::Attach { test, stream } if line.session.wants_stream((*test).into(), (*stream).into()) => {
                line.session.attached(now, (*test).into(), (*stream).into());
            }
            Step::Tick { test, bytes, end } => {
                let tick = ReceiverTick { bytes: ByteCount(*bytes), end: Span(*end), ..ReceiverTick::default() };
                line.session.receiver_tick(now, (*test).into(), tick);
            }
            Step::Ended(test) => {
                let over = line.tests.get(&(*test).into()).is_some_and(|life| *life != Life::Prepared);
                if over {
                    line.end((*test).into());
                }
            }
            Step::Fails(test) => {
                line.tests.remove(&(*test).into());
                let why = Refusal { code: ErrorCode::Internal, message: "it broke".into() };
                line.session.cannot_run((*test).into(), &why);
            }
            Step::ChannelLost(test) => line.session.channel_lost((*test).into(), "it broke"),
            Step::Lost => line.session.lost(now),
            Step::Stop => line.session.stop(now),
            _ => {}
        }
    }

    fn pass(&mut self, time: Span) {
        self.now += time;
        for line in &mut self.lines {
            if line.session.deadline().is_some_and(|due| due <= self.now) {
                line.session.wake(self.now);
            }
            self.queue.look(self.now, line.id, !line.tests.is_empty(), line.session.may_idle(self.now));
        }
    }

    /// Until nobody has anything left to do.
    fn carry_out_all(&mut self) {
        for _ in 0..10_000 {
            let Some((who, action)) = self.next_action() else {
                if self.tell_notices() { continue } else { return }
            };
            self.carry_out(who, action);
        }
        panic!("the sessions never come to rest");
    }

    fn next_action(&mut self) -> Option<(usize, Action)> {
        (0..2).find_map(|who| Some((who, self.lines[who].session.next_action()?)))
    }

    fn tell_notices(&mut self) -> bool {
        let notices = self.queue.notices();
        let some = !notices.is_empty();
        for (id, notice) in notices {
            if let Notice::Admitted { reservation, .. } = notice {
                self.reservation = reservation;
            }
            self.lines[id.0 as usize].session.noticed(self.now, notice);
        }
        some
    }

    fn carry_out(&mut self, who: usize, action: Action) {
        let (now, line) = (self.now, &mut self.lines[who]);
        assert!(!line.closed, "{action:?} after the end");
        match action {
            Action::Send(message) => {
                frame::emit(&*message).unwrap();
                if let ServerMessage::Challenge { nonce } = *message {
                    line.challenge = nonce;
                }
            }
            Action::Enrol => line.session.enrolled(now, Ok(HostInfo::default())),
            Action::Reserve { join: Some(token), .. } => self.queue.join(now, line.id, token),
            Action::Reserve { expected, join: None } => {
                self.queue.reserve(now, line.id, site(who as u8), expected, Token([who as u8 + 100; 16]));
            }
            Action::Leave => self.queue.leave(now, line.id),
            Action::Prepare { test, .. } => {
                assert!(line.tests.insert(test, Life::Prepared).is_none(), "test {test} prepared twice");
                line.session.prepared(now, test, Ok(()));
            }
            Action::OpenChannel { test, end } => {
                assert_eq!(end.fault(), None);
                assert_eq!(line.tests.get(&test), Some(&Life::Prepared), "a channel of test {test}");
                line.session.channel_prepared(test, Ok(end));
            }
            Action::Run { test } => {
                assert_eq!(line.tests.insert(test, Life::Running), Some(Life::Prepared), "test {test}");
                line.session.started(test);
            }
            Action::Ask { test, .. } => {
                assert_eq!(line.tests.get(&test), Some(&Life::Running), "a volley of test {test}");
            }
            Action::Halt { test } => {
                let before = line.tests.insert(test, Life::Halting);
                assert!(matches!(before, Some(Life::Prepared | Life::Running)), "{before:?} halted");
            }
            Action::Close => line.closed = true,
        }
    }

    /// Connections break, threads end or hang, and after the wind-down nothing may be left.
    fn everybody_vanishes(&mut self) {
        let now = self.now;
        self.lines.iter_mut().for_each(|line| line.session.lost(now));
        self.carry_out_all();
        // The first prober's tests end in time, the second's hang.
        let running: Vec<u32> = self.lines[0].tests.keys().copied().collect();
        running.iter().for_each(|test| self.lines[0].end(*test));
        self.carry_out_all();
        self.pass(WIND_DOWN);
        self.carry_out_all();
        assert!(self.lines.iter().all(|line| line.closed), "still open after the wind-down");
        self.queue.reserve(self.now, SessionId(7), site(7), Span::from_secs(1), Token([7; 16]));
        let told = self.queue.notices();
        assert!(matches!(told[..], [(SessionId(7), Notice::Admitted { .. })]), "a place is still taken: {told:?}");
    }
}

/// What a step says on the control connection.
fn message(step: &Step, line: &Line<'_>, reservation: Token) -> Option<ClientMessage> {
    Some(match step {
        Step::Hello(version) => {
            ClientMessage::Hello { version: *version, software: "fuzz".into(), nonce: line.nonce }
        }
        Step::Authenticate { rightly } => {
            let key = if *rightly { SECRET } else { b"guess" };
            ClientMessage::Authenticate { proof: proof::client(key, line.challenge, line.nonce) }
        }
        Step::Reserve { expected, join } => {
            ClientMessage::Reserve { expected: Span(*expected), join: join.then_some(reservation) }
        }
        Step::Release => ClientMessage::Release,
        Step::Open { test, plan } => ClientMessage::Open { test: (*test).into(), plan: test_plan(plan) },
        Step::Channel { test, rightly } => {
            let pwd = if *rightly { "p".repeat(22) } else { "v=0\r\n".into() };
            let fingerprint = ChannelEnd::fingerprint(&[7; 32]);
            ClientMessage::Channel { test: (*test).into(), end: ChannelEnd { ufrag: "user".into(), pwd, fingerprint } }
        }
        Step::Start(test) => ClientMessage::Start { test: (*test).into() },
        Step::StopTest(test) => ClientMessage::Stop { test: (*test).into() },
        Step::Ping => ClientMessage::Ping { seq: 1 },
        Step::Bye => ClientMessage::Bye,
        _ => return None,
    })
}

fn test_plan(plan: &Plan) -> TestPlan {
    let ms = |ms: i64| Span::from_millis(ms);
    match *plan {
        Plan::UdpEcho { length, response, duration_ms } => {
            TestPlan::UdpEcho { length: length.into(), response, duration: ms(duration_ms.into()), dscp: 0 }
        }
        Plan::TcpEcho { length, response, duration_ms } => {
            TestPlan::TcpEcho { length: length.into(), response, duration: ms(duration_ms.into()) }
        }
        Plan::Tcp { streams, duration_ms, length, reverse } => {
            let direction = if reverse { Direction::Reverse } else { Direction::Forward };
            TestPlan::Tcp(TcpPlan { streams, length, ..TcpPlan::new(direction, ms(duration_ms.into())) })
        }
        Plan::Udp { length, duration_ms, gap_ps } => {
            let fields = serde_json::json!({ "direction": "forward", "duration": 0, "length": length, "tick": 100_000_000 });
            let plan: UdpPlan = serde_json::from_value(fields).unwrap();
            TestPlan::Udp(UdpPlan { duration: ms(duration_ms.into()), gap_ps, ..plan })
        }
    }
}

use netaware_record::{Direction, ReceiverTick, SenderTick, TcpEnd};
use netaware_units::{BitRate, ByteCount};
use netaware_wire::control::{EndReport, TcpPlan};

use super::*;
use crate::admission::Notice;
use crate::plan::Cap;

const T0: Mono = Mono(1_000_000_000_000);
const TOKEN: Token = Token([1; 16]);
const NONCE: Token = Token([2; 16]);
const PROBER_NONCE: Token = Token([3; 16]);

fn ms(milliseconds: i64) -> Mono {
    T0 + Span::from_millis(milliseconds)
}

fn rules(key: Option<&str>) -> Rules {
    let key = key.map(|key| Key::new(key.as_bytes()).unwrap());
    Rules { key, limits: Limits::default(), software: "netaware test".into() }
}

/// Something that ends a reservation or a session.
type Cause = fn(&mut Session<'_>);

/// What it does, in words short enough for a table.
fn deeds(session: &mut Session<'_>) -> Vec<String> {
    std::iter::from_fn(|| session.next_action()).map(|action| describe(&action)).collect()
}

fn describe(action: &Action) -> String {
    match action {
        Action::Send(message) => match &**message {
            ServerMessage::Error { code, test, .. } => match test {
                Some(test) => format!("error {code:?} {test}"),
                None => format!("error {code:?}"),
            },
            ServerMessage::Finished { test, outcome, .. } => format!("finished {test} {outcome:?}"),
            ServerMessage::Queued { place, .. } => format!("queued {place}"),
            other => {
                let value =
                    String::from_utf8(netaware_wire::frame::emit(other).unwrap()[4..].to_vec()).unwrap();
                let kind = value.split('"').nth(3).unwrap().to_owned();
                let test =
                    value.split("\"test\":").nth(1).map(|rest| rest.trim_matches(|c: char| !c.is_numeric()));
                test.map_or(kind.clone(), |test| format!("{kind} {}", test.split(',').next().unwrap()))
            }
        },
        Action::Enrol => "enrol".into(),
        Action::Reserve { join, .. } => if join.is_some() { "join" } else { "reserve" }.into(),
        Action::Leave => "leave".into(),
        Action::Prepare { test, .. } => format!("prepare {test}"),
        Action::OpenChannel { test, .. } => format!("open channel of {test}"),
        Action::Run { test } => format!("run {test}"),
        Action::Ask { test, volley } => format!("ask {test} for volley {}", volley.number),
        Action::Halt { test } => format!("halt {test}"),
        Action::Close => "close".into(),
    }
}

fn hello() -> ClientMessage {
    ClientMessage::Hello { version: 1, software: "t\u{7}est".into(), nonce: PROBER_NONCE }
}

fn tcp(streams: u16) -> TestPlan {
    TestPlan::Tcp(TcpPlan { streams, length: 1024, ..TcpPlan::new(Direction::Forward, Span::from_secs(10)) })
}

fn echo() -> TestPlan {
    TestPlan::UdpEcho { length: 64, response: None, duration: Span::from_secs(30), dscp: 0 }
}

fn open_session(rules: &Rules) -> Session<'_> {
    let mut session = Session::new(rules, T0, TOKEN, NONCE);
    session.received(T0, Ok(hello()));
    assert_eq!(deeds(&mut session), ["enrol"]);
    session.enrolled(T0, Ok(HostInfo::default()));
    assert_eq!(deeds(&mut session), ["welcome"]);
    session
}

fn tell(session: &mut Session<'_>, at: Mono, message: ClientMessage) -> Vec<String> {
    session.received(at, Ok(message));
    deeds(session)
}

fn admit(session: &mut Session<'_>, lease: Span) {
    let expected = Span::from_secs(10);
    assert_eq!(tell(session, T0, ClientMessage::Reserve { expected, join: None }), ["reserve"]);
    session.noticed(T0, Notice::Admitted { reservation: TOKEN, lease });
    assert_eq!(deeds(session), ["admitted"]);
}

/// Opens test 1 with one stream and starts it.
fn run_one(session: &mut Session<'_>) {
    assert_eq!(tell(session, T0, ClientMessage::Open { test: 1, plan: tcp(1) }), ["prepare 1"]);
    session.prepared(T0, 1, Ok(()));
    session.attached(T0, 1, 0);
    assert_eq!(deeds(session), ["opened 1", "ready 1"]);
    assert_eq!(tell(session, T0, ClientMessage::Start { test: 1 }), ["run 1"]);
    session.started(1);
    assert_eq!(deeds(session), ["started 1"]);
}

fn received(bytes: u64) -> EndReport {
    EndReport::TcpReceiver(TcpEnd { bytes: ByteCount(bytes), ..TcpEnd::default() })
}

#[test]
fn a_session_whose_pings_wait_behind_the_data_of_another_one_of_its_prober_is_not_given_up() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    for second in 1..=20 {
        session.noticed(ms(second * 1000), Notice::ProberLives);
        session.wake(ms(second * 1000));
    }
    assert_eq!(deeds(&mut session), Vec::<String>::new());
    // Then nothing comes over the other one, either.
    session.wake(ms(29_000));
    assert!(deeds(&mut session).contains(&"close".to_owned()));
}

#[test]
fn every_state_has_a_timeout() {
    let (free, keyed) = (rules(None), rules(Some("k")));
    let mut session = Session::new(&free, T0, TOKEN, NONCE);
    assert_eq!(session.deadline(), Some(ms(6000)));
    session.wake(ms(5999));
    assert_eq!(deeds(&mut session), [""; 0]);
    session.wake(ms(6000));
    assert_eq!(deeds(&mut session), ["error Timeout", "close"]);

    let mut session = Session::new(&keyed, T0, TOKEN, NONCE);
    assert_eq!(tell(&mut session, ms(1000), hello()), ["challenge"]);
    assert_eq!(session.deadline(), Some(ms(16_000)));
    session.wake(ms(16_000));
    assert_eq!(deeds(&mut session), ["close"]);

    let mut session = open_session(&free);
    session.heard(ms(2000));
    assert_eq!(session.deadline(), Some(ms(6000)));
    session.wake(ms(6000));
    assert_eq!(deeds(&mut session), ["error Timeout", "close"]);
    assert_eq!(session.summary().ending, Some(Ending::Silence));
}

#[test]
fn with_a_key_only_who_knows_it_comes_in() {
    let rules = rules(Some("sesame"));
    let proof = |key: &[u8]| proof::client(key, NONCE, PROBER_NONCE);
    let answers = [
        (proof(b"sesame"), "enrol"),
        (proof(b"Sesame"), "error Key, close"),
        (proof::server(b"sesame", NONCE, PROBER_NONCE), "error Key, close"),
        (String::new(), "error Key, close"),
    ];
    for (proof, want) in answers {
        let mut session = Session::new(&rules, T0, TOKEN, NONCE);
        assert_eq!(tell(&mut session, T0, hello()), ["challenge"]);
        assert_eq!(tell(&mut session, T0, ClientMessage::Authenticate { proof }).join(", "), want);
    }
}

#[test]
fn the_responder_proves_itself_too() {
    let rules = rules(Some("sesame"));
    let mut session = Session::new(&rules, T0, TOKEN, NONCE);
    session.received(T0, Ok(hello()));
    let proof = proof::client(b"sesame", NONCE, PROBER_NONCE);
    session.received(T0, Ok(ClientMessage::Authenticate { proof }));
    deeds(&mut session);
    session.enrolled(T0, Ok(HostInfo::default()));
    let Some(Action::Send(message)) = session.next_action() else { panic!("no welcome") };
    let ServerMessage::Welcome { proof, .. } = *message else { panic!("{message:?}") };
    assert_eq!(proof, Some(proof::server(b"sesame", NONCE, PROBER_NONCE)));
}

/// The token of a session, which goes over the network in the clear, opened the owner's view.
#[test]
fn the_owners_token_is_told_only_to_who_proved_the_key_over_tls() {
    let (keyed, free) = (rules(Some("sesame")), rules(None));
    let owner = OwnerToken([9; 32]);
    for (rules, over_tls, told) in
        [(&keyed, Some(owner), Some(owner)), (&keyed, None, None), (&free, Some(owner), None)]
    {
        let mut session = Session::new(rules, T0, TOKEN, NONCE).for_owner(over_tls);
        session.received(T0, Ok(hello()));
        if rules.key.is_some() {
            let proof = proof::client(b"sesame", NONCE, PROBER_NONCE);
            session.received(T0, Ok(ClientMessage::Authenticate { proof }));
        }
        deeds(&mut session);
        session.enrolled(T0, Ok(HostInfo::default()));
        let Some(Action::Send(message)) = session.next_action() else { panic!("no welcome") };
        let ServerMessage::Welcome { owner, .. } = *message else { panic!("{message:?}") };
        assert_eq!((owner, session.owner()), (told, told));
    }
}

#[test]
fn a_stranger_to_the_key_learns_nothing_from_mistakes() {
    let rules = rules(Some("k"));
    let mistakes = [
        Ok(ClientMessage::Ping { seq: 1 }),
        Ok(ClientMessage::Release),
        Err(FrameError::NotJson("x".into())),
        Err(FrameError::UnknownType("x".into())),
        Err(FrameError::TooLong(u32::MAX)),
    ];
    for mistake in mistakes {
        let mut session = Session::new(&rules, T0, TOKEN, NONCE);
        session.received(T0, mistake);
        assert_eq!(deeds(&mut session), ["close"]);
    }
}

#[test]
fn a_stranger_to_the_key_that_is_evicted_learns_nothing_and_a_session_hears_why_it_ends() {
    for (key, greets, deeds_of_it) in [
        (Some("k"), false, &["close"][..]),
        (Some("k"), true, &["close"][..]),
        (None, false, &["error Busy", "close"][..]),
        (None, true, &["error Busy", "close"][..]),
    ] {
        let rules = rules(key);
        let mut session = Session::new(&rules, T0, TOKEN, NONCE);
        if greets {
            session.received(T0, Ok(hello()));
            deeds(&mut session);
            session.enrolled(T0, Ok(HostInfo::default()));
            deeds(&mut session);
        }
        session.evicted(T0);
        assert_eq!(deeds(&mut session), deeds_of_it, "key {key:?}, greets {greets}");
    }
    let rules = rules(None);
    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(100));
    run_one(&mut session);
    session.evicted(ms(10));
    assert_eq!(deeds(&mut session), ["error Busy", "halt 1"]);
    session.ended(1, received(5));
    assert_eq!(deeds(&mut session), ["finished 1 Interrupted", "leave", "close"]);
}

#[test]
fn mistakes_of_an_open_session_are_answered_and_only_so_many() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    session.received(T0, Err(FrameError::UnknownType("teleport".into())));
    session.received(T0, Err(FrameError::BadFields("x".into())));
    assert_eq!(deeds(&mut session), ["error UnknownMessage", "error BadMessage"]);
    assert_eq!(tell(&mut session, T0, hello()), ["error State"]);
    for _ in 0..100 {
        session.received(T0, Err(FrameError::NotJson("x".into())));
    }
    let deeds = deeds(&mut session);
    assert_eq!((deeds.len(), deeds.last().unwrap().as_str()), (32, "close"));
}

#[test]
fn a_frame_over_the_limit_ends_the_session() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    session.received(T0, Err(FrameError::TooLong(70_000)));
    assert_eq!(deeds(&mut session), ["error BadMessage", "close"]);
}

#[test]
fn a_full_house_says_so() {
    let rules = rules(None);
    let mut session = Session::new(&rules, T0, TOKEN, NONCE);
    session.received(T0, Ok(hello()));
    deeds(&mut session);
    session.enrolled(T0, Err(Refusal { code: ErrorCode::Busy, message: "full".into() }));
    assert_eq!(deeds(&mut session), ["error Busy", "close"]);
}

#[test]
fn a_throughput_test_runs_from_reservation_to_release() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(20));
    assert_eq!(tell(&mut session, T0, ClientMessage::Open { test: 7, plan: tcp(2) }), ["prepare 7"]);
    session.prepared(T0, 7, Ok(()));
    assert_eq!(deeds(&mut session), ["opened 7"]);
    assert!(session.wants_stream(7, 1) && !session.wants_stream(7, 2) && !session.wants_stream(8, 0));
    session.attached(T0, 7, 1);
    assert!(!session.wants_stream(7, 1));
    assert_eq!(tell(&mut session, T0, ClientMessage::Start { test: 7 }), ["error State 7"]);
    session.attached(T0, 7, 0);
    assert_eq!(deeds(&mut session), ["ready 7"]);
    assert_eq!(tell(&mut session, T0, ClientMessage::Start { test: 7 }), ["run 7"]);
    session.started(7);
    session.receiver_tick(ms(3000), 7, ReceiverTick { bytes: ByteCount(20_000), ..ReceiverTick::default() });
    assert_eq!(deeds(&mut session), ["started 7", "receiver_ticks 7"]);
    session.ended(7, received(5));
    assert_eq!(deeds(&mut session), ["finished 7 Complete"]);
    assert_eq!(tell(&mut session, ms(3000), ClientMessage::Release), ["leave"]);
    assert_eq!(tell(&mut session, ms(3000), ClientMessage::Bye), ["close"]);
    let summary = session.summary();
    assert_eq!((summary.tests, summary.bytes, summary.ending), (1, 5, Some(Ending::Bye)));
    assert_eq!(summary.software, "t\u{fffd}est");
}

#[test]
fn throughput_needs_a_reservation_and_latency_does_not() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    assert_eq!(tell(&mut session, T0, ClientMessage::Open { test: 1, plan: tcp(1) }), ["error State 1"]);
    assert_eq!(tell(&mut session, T0, ClientMessage::Open { test: 1, plan: echo() }), ["prepare 1"]);
    assert_eq!(tell(&mut session, T0, ClientMessage::Open { test: 1, plan: echo() }), ["error State 1"]);
    assert_eq!(tell(&mut session, T0, ClientMessage::Release), [""; 0]);
    assert_eq!(tell(&mut session, T0, ClientMessage::Stop { test: 5 }), [""; 0]);
    assert_eq!(tell(&mut session, T0, ClientMessage::Start { test: 5 }), ["error State 5"]);
    for test in 2..=8 {
        tell(&mut session, T0, ClientMessage::Open { test, plan: echo() });
    }
    assert_eq!(tell(&mut session, T0, ClientMessage::Open { test: 9, plan: echo() }), ["error State 9"]);
}

#[test]
fn an_echo_test_lasts_until_it_is_stopped_or_its_time_is_over() {
    let rules = rules(None);
    for stopped in [true, false] {
        let mut session = open_session(&rules);
        tell(&mut session, T0, ClientMessage::Open { test: 1, plan: echo() });
        session.prepared(T0, 1, Ok(()));
        session.attached(T0, 1, 0);
        assert_eq!(deeds(&mut session), ["opened 1", "ready 1"]);
        assert_eq!(tell(&mut session, T0, ClientMessage::Start { test: 1 }), ["started 1"]);
        session.heard(ms(29_999));
        if stopped {
            session.received(ms(29_999), Ok(ClientMessage::Stop { test: 1 }));
        } else {
            session.wake(ms(30_000));
        }
        assert_eq!(deeds(&mut session), ["halt 1"]);
        session.ended(1, EndReport::Echo { answered: 3, drops: 0 });
        assert_eq!(deeds(&mut session), ["finished 1 Complete"]);
    }
}

#[test]
fn the_place_is_free_only_when_the_last_test_has_ended() {
    let rules = rules(None);
    let causes: [(Cause, &[&str], &[&str]); 5] = [
        (
            |session| session.received(ms(10), Ok(ClientMessage::Release)),
            &["halt 1"],
            &["finished 1 Interrupted", "leave"],
        ),
        (|session| session.received(ms(10), Ok(ClientMessage::Bye)), &["halt 1"], &["leave", "close"]),
        (|session| session.lost(ms(10)), &["halt 1"], &["leave", "close"]),
        (|session| session.stop(ms(10)), &["halt 1"], &["finished 1 Interrupted", "bye", "leave", "close"]),
        (
            |session| {
                session.heard(ms(4900));
                session.wake(ms(5000));
            },
            &["error Lease", "halt 1"],
            &["finished 1 Interrupted", "leave"],
        ),
    ];
    for (n, (cause, at_once, afterwards)) in causes.into_iter().enumerate() {
        let mut session = open_session(&rules);
        admit(&mut session, Span::from_secs(5));
        run_one(&mut session);
        cause(&mut session);
        assert_eq!(deeds(&mut session), at_once, "row {n}");
        session.ended(1, received(1));
        assert_eq!(deeds(&mut session), afterwards, "row {n}");
    }
}

#[test]
fn a_test_that_does_not_end_cannot_hold_a_vanished_clients_place() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(100));
    run_one(&mut session);
    session.wake(ms(4000));
    assert_eq!(deeds(&mut session), ["error Timeout", "halt 1"]);
    session.wake(session.deadline().unwrap());
    assert_eq!(deeds(&mut session), ["leave", "close"]);
    assert!(SILENCE_LIMIT + WIND_DOWN < Span::from_secs(5));
}

#[test]
fn a_prober_behind_a_slow_path_is_not_taken_for_a_dead_one() {
    let rules = rules(None);
    let silence = |pings: &[i64], acked: &[i64]| {
        let mut session = open_session(&rules);
        if !acked.is_empty() {
            admit(&mut session, Span::from_secs(100));
            run_one(&mut session);
        }
        for at in pings {
            session.received(ms(*at), Ok(ClientMessage::Ping { seq: 1 }));
        }
        for at in acked {
            let tick = SenderTick { acked: Some(ByteCount(1448)), ..SenderTick::default() };
            session.sender_tick(ms(*at), 1, tick);
        }
        let heard = pings.iter().chain(acked).max().copied().unwrap_or(0);
        let is_over = |after: &i64| session.deadline().is_some_and(|deadline| deadline <= ms(heard + after));
        (4000..=15_000).step_by(500).find(is_over)
    };
    // Round trips of a few milliseconds: the limit that is promised.
    assert_eq!(silence(&[1000, 2000, 3010], &[]), Some(4000));
    // A round trip of 1.2 s, or a ping that was lost and came again.
    assert_eq!(silence(&[2200, 3200], &[]), Some(7000));
    assert_eq!(silence(&[1000, 2000, 5500, 5600], &[]), Some(10_500));
    assert_eq!(silence(&[1000, 9000], &[]), Some(15_000), "and no longer than this");
    // Pings wait behind the data that this end sends; what is acknowledged is a sign of life.
    assert_eq!(silence(&[1000], &[2000, 3000, 4000, 5000]), Some(4000));
}

/// A place was held for 7 to 13 s, long after a blip of 2 to 4 s, when its prober vanished.
#[test]
fn an_outage_that_is_over_does_not_hold_the_place_of_a_prober_that_vanishes_later() {
    let rules = rules(None);
    let given_up = |round_trip: i64, pings: &[i64]| {
        let mut session = open_session(&rules).over(Span::from_millis(round_trip));
        for at in pings {
            session.received(ms(*at), Ok(ClientMessage::Ping { seq: 1 }));
        }
        session.deadline().zip(pings.last()).map(|(deadline, last)| deadline - ms(*last))
    };
    for outage in [2200, 4000] {
        // Right behind it nobody knows whether the path has become a slow one.
        let over_at = 2000 + outage;
        let before = [1000, 2000, over_at];
        assert_eq!(given_up(20, &before), Some(Span::from_millis(outage * 3)));
        let later = |seconds: i64| -> Vec<i64> {
            before.into_iter().chain((1..=seconds).map(|n| over_at + n * 1000)).collect()
        };
        // A path of many losses is not taken for one without any between two of them.
        assert_eq!(given_up(20, &later(20)), Some(Span::from_millis(outage * 3)));
        assert_eq!(given_up(20, &later(40)), Some(SILENCE_LIMIT), "{outage} ms");
    }
    // What the first gap says about a path of which the kernel says nothing stays known.
    let pings: Vec<i64> = (0..=20).map(|n| 2200 + n * 1000).collect();
    assert_eq!(given_up(0, &pings), Some(Span::from_millis(6600)));
}

#[test]
fn a_prober_on_a_lossy_path_of_300_ms_is_not_given_up_after_two_time_outs() {
    let rules = rules(None);
    let given_up = |round_trip: i64| {
        let mut session = open_session(&rules).over(Span::from_millis(round_trip));
        session.received(ms(round_trip), Ok(ClientMessage::Ping { seq: 1 }));
        session.received(ms(round_trip + 1000), Ok(ClientMessage::Ping { seq: 2 }));
        session.deadline().map(|deadline| deadline - ms(round_trip + 1000))
    };
    // Four time-outs of 0.5 s that double, and half a round trip each way.
    assert_eq!(given_up(300), Some(Span::from_millis(7800)));
    // The promise on a quick path is kept.
    assert_eq!(given_up(20), Some(SILENCE_LIMIT));
    assert_eq!(given_up(60), Some(SILENCE_LIMIT));
    assert_eq!(given_up(3000), Some(Span::from_secs(30)), "and no longer than this");
}

#[test]
fn a_ping_lost_in_another_sessions_queue_does_not_end_this_one() {
    // 20 kbit/s with 3 s of queue, which the session of the other IP version fills: all pings came
    // in time, and then one is lost, sent again after a time-out, and waits.
    let rules = rules(None);
    let patience = |round_trip: i64, loaded: Option<i64>| {
        let mut session = open_session(&rules).over(Span::from_millis(round_trip));
        admit(&mut session, Span::from_secs(100));
        run_one(&mut session);
        let rtt = loaded.map(Span::from_millis);
        session.sender_tick(ms(500), 1, SenderTick { rtt, ..SenderTick::default() });
        for at in [1000, 2000, 3000] {
            session.received(ms(at), Ok(ClientMessage::Ping { seq: 1 }));
        }
        session.patience(ms(3000))
    };
    assert_eq!(patience(1090, None), Span::from_millis(20_440), "four time-outs that double");
    // 8 kbit/s: both sessions of a test were given up after 15 s behind what it had sent itself.
    assert_eq!(patience(1200, Some(5000)), Span::from_secs(30), "and no longer than this");
    assert_eq!(patience(20, Some(1090)), Span::from_millis(12_810), "what the sender of a test knows");
    assert_eq!([patience(20, None), patience(60, Some(110))], [SILENCE_LIMIT; 2]);
}

/// Sends in test 1, of 2 s, in slices of 100 ms of which `acked` came through, and tells when the
/// prober is given up that is not heard again. `sent` has left this host.
fn given_up_after_sending(session: &mut Session<'_>, acked: &[u64], sent: u64) -> Option<Span> {
    let plan = TcpPlan::new(Direction::Reverse, Span::from_secs(2));
    tell(session, T0, ClientMessage::Open { test: 1, plan: TestPlan::Tcp(plan) });
    session.prepared(T0, 1, Ok(()));
    session.attached(T0, 1, 0);
    tell(session, T0, ClientMessage::Start { test: 1 });
    session.started(1);
    let length = Span::from_millis(100);
    for (n, bytes) in (1..).zip(acked) {
        let (end, acked) = (length * n, Some(ByteCount(*bytes)));
        session.sender_tick(ms(100 * n), 1, SenderTick { end, length, acked, ..SenderTick::default() });
    }
    let stream = netaware_record::StreamEnd { bytes_sent: Some(ByteCount(sent)), ..Default::default() };
    let end = TcpEnd {
        acknowledged: Some(length * acked.len() as i64),
        acknowledged_bytes: Some(ByteCount(acked.iter().sum())),
        streams: vec![netaware_record::StreamEnd { bytes_resent: Some(ByteCount(0)), ..stream }],
        ..TcpEnd::default()
    };
    session.ended(1, EndReport::TcpSender(end));
    deeds(session);
    session.deadline().map(|deadline| deadline - T0)
}

#[test]
fn a_flow_that_vanished_after_its_first_segments_is_no_queue_that_drains() {
    let rules = rules(None);
    let open = || {
        let mut session = open_session(&rules).over(Span::from_millis(20));
        admit(&mut session, Span::from_secs(100));
        session
    };
    // Two segments of ten came through in the first slice, and nothing more in 1.9 s.
    let vanished: Vec<u64> = std::iter::once(2856).chain([0; 19]).collect();
    let until = given_up_after_sending(&mut open(), &vanished, 14_280).unwrap();
    assert!(until < Span::from_millis(100) + Span::from_secs(5), "{until}");
    // A queue that goes on giving has its time: 13 kB at 8 kB/s, from the last of it on.
    let mut session = open();
    let until = given_up_after_sending(&mut session, &[800; 20], 29_000).unwrap();
    assert_eq!(until, Span::from_millis(2000 + 1625) + SILENCE_LIMIT);
    // And once it has drained, a silence is one as before.
    session.received(ms(9000), Ok(ClientMessage::Ping { seq: 1 }));
    session.received(ms(9100), Ok(ClientMessage::Ping { seq: 2 }));
    let patience = session.patience(ms(9100));
    assert_eq!(session.deadline(), Some(ms(9100) + patience));
}

#[test]
fn a_prober_that_vanishes_after_a_deep_queue_does_not_hold_the_place_for_a_minute() {
    let rules = rules(None);
    let open = || {
        let mut session = open_session(&rules).over(Span::from_millis(20));
        admit(&mut session, Span::from_secs(100));
        session.received(ms(0), Ok(ClientMessage::Ping { seq: 1 }));
        session.loaded.observe(ms(1900), Span::from_secs(2));
        session
    };
    // 15 s of queue, and the round trip was 2 s: until it has drained, and a ping lost once.
    let until = given_up_after_sending(&mut open(), &[800; 20], 16_000 + 15 * 8000).unwrap();
    assert_eq!(until, Span::from_secs(2 + 15 + 1 + 6));
    // Nothing in the queue: the patience with a path that had one, of three such pings.
    let until = given_up_after_sending(&mut open(), &[800; 20], 16_000).unwrap();
    assert_eq!(until, Span::from_secs(2 + 3 * (1 + 6)));
    // Ten seconds later that queue is of no account.
    let mut session = open();
    given_up_after_sending(&mut session, &[800; 20], 16_000);
    for second in 1..=12 {
        session.heard(ms(1000 * second));
    }
    assert_eq!(session.deadline(), Some(ms(12_000) + SILENCE_LIMIT));
    // What is shorter by then is not hidden by what was long before.
    session.loaded.observe(ms(12_000), Span::from_secs(1));
    assert_eq!(session.deadline(), Some(ms(12_000 + 12_000)));
}

#[test]
fn a_place_that_is_asked_for_while_a_test_winds_down_is_not_refused() {
    let rules = rules(None);
    let expected = Span::from_secs(10);
    let reserve = || ClientMessage::Reserve { expected, join: None };
    let winding_down = || {
        let mut session = open_session(&rules);
        admit(&mut session, Span::from_secs(100));
        run_one(&mut session);
        assert_eq!(tell(&mut session, ms(10), ClientMessage::Release), ["halt 1"]);
        assert_eq!(tell(&mut session, ms(10), reserve()), [""; 0]);
        session
    };
    let mut session = winding_down();
    assert_eq!(tell(&mut session, ms(10), reserve()), ["error State"], "one is enough");
    session.ended(1, received(1));
    assert_eq!(deeds(&mut session), ["finished 1 Interrupted", "leave", "reserve"]);
    session.noticed(ms(20), Notice::Admitted { reservation: TOKEN, lease: expected });
    assert_eq!(deeds(&mut session), ["admitted"]);
    // Whoever goes away meanwhile, or gives it back, wants none.
    let mut session = winding_down();
    session.lost(ms(20));
    session.ended(1, received(1));
    assert_eq!(deeds(&mut session), ["leave", "close"]);
    let mut session = winding_down();
    assert_eq!(tell(&mut session, ms(20), ClientMessage::Release), [""; 0]);
    session.ended(1, received(1));
    assert_eq!(deeds(&mut session), ["finished 1 Interrupted", "leave"]);
}

#[test]
fn a_session_over_a_round_trip_of_ten_seconds_is_not_ended_for_silence() {
    let rules = rules(None);
    for round_trip in [3000, 5000, 9900] {
        let mut session = open_session(&rules).over(Span::from_millis(round_trip));
        assert!(session.deadline() > Some(ms(round_trip)), "{round_trip} ms");
        session.wake(ms(round_trip - 1));
        session.received(ms(round_trip), Ok(ClientMessage::Ping { seq: 1 }));
        assert_eq!(deeds(&mut session), ["pong"], "{round_trip} ms");
        // Opened, connected to and attached: two round trips and a half.
        session.received(ms(round_trip), Ok(ClientMessage::Open { test: 1, plan: echo() }));
        session.prepared(ms(round_trip), 1, Ok(()));
        assert_eq!(deeds(&mut session), ["prepare 1", "opened 1"]);
        session.received(ms(round_trip * 2), Ok(ClientMessage::Ping { seq: 2 }));
        session.wake(ms(round_trip * 3));
        session.received(ms(round_trip * 3), Ok(ClientMessage::Ping { seq: 3 }));
        session.attached(ms(round_trip * 7 / 2), 1, 0);
        assert_eq!(deeds(&mut session), ["pong", "pong", "ready 1"], "{round_trip} ms");
    }
}

/// Short tests came and went between two looks, and so the reservation looked idle.
#[test]
fn a_test_that_was_over_before_anybody_looked_is_a_use_of_the_reservation() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(100));
    assert!(!session.takes_use(T0));
    run_one(&mut session);
    assert!(session.takes_use(ms(10)));
    session.ended(1, received(5));
    deeds(&mut session);
    assert!(!session.takes_use(ms(20)), "its use was told already");
    run_one(&mut session);
    session.ended(1, received(5));
    deeds(&mut session);
    assert!(session.takes_use(ms(30)));
    assert!(!session.takes_use(ms(40)));
}

/// A prober waits for what a sender has left in the path's queues, and opens no test meanwhile.
#[test]
fn a_reservation_is_used_while_the_queues_of_its_last_test_drain() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(100));
    session.note_drain(Span::from_secs(20));
    assert!(session.takes_use(ms(19_999)));
    assert!(!session.takes_use(ms(20_000)));
}

#[test]
fn an_idle_reservation_is_taken_back_unless_a_test_was_opened_meanwhile() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(100));
    run_one(&mut session);
    session.noticed(ms(11_000), Notice::Idle);
    assert_eq!(deeds(&mut session), [""; 0], "the notice was on its way");
    session.ended(1, received(5));
    assert_eq!(deeds(&mut session), ["finished 1 Complete"]);
    session.noticed(ms(22_000), Notice::Idle);
    assert_eq!(deeds(&mut session), ["error Lease", "leave"]);
    session.noticed(ms(22_000), Notice::Idle);
    assert_eq!(deeds(&mut session), [""; 0], "once is enough");
    assert_eq!(tell(&mut session, ms(22_500), ClientMessage::Release), [""; 0]);
    let expected = Span::from_secs(10);
    let again = ClientMessage::Reserve { expected, join: None };
    assert_eq!(tell(&mut session, ms(22_500), again), ["reserve"], "another one may be asked for");
}

#[test]
fn whoever_leaves_while_waiting_leaves_the_queue() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    let expected = Span::from_secs(10);
    let reserve = |join| ClientMessage::Reserve { expected, join };
    assert_eq!(tell(&mut session, T0, reserve(Some(TOKEN))), ["join"]);
    session.noticed(T0, Notice::NothingToJoin);
    assert_eq!(deeds(&mut session), ["error Lease"]);
    assert_eq!(tell(&mut session, T0, reserve(None)), ["reserve"]);
    assert_eq!(tell(&mut session, T0, reserve(None)), ["error State"]);
    session.noticed(T0, Notice::Queued { place: 1, expected_wait: expected });
    assert_eq!(deeds(&mut session), ["queued 1"]);
    session.lost(T0);
    assert_eq!(deeds(&mut session), ["leave", "close"]);
}

#[test]
fn tests_that_nobody_attaches_or_starts_are_forgotten() {
    let rules = rules(None);
    for attach in [false, true] {
        let mut session = open_session(&rules);
        admit(&mut session, Span::from_secs(100));
        tell(&mut session, T0, ClientMessage::Open { test: 1, plan: tcp(1) });
        session.prepared(T0, 1, Ok(()));
        if attach {
            session.attached(T0, 1, 0);
        }
        deeds(&mut session);
        session.heard(ms(9999));
        session.wake(ms(10_000));
        assert_eq!(deeds(&mut session), ["error Timeout 1", "halt 1"]);
        session.ended(1, received(0));
        assert_eq!(deeds(&mut session), [""; 0]);
    }
}

/// A round trip rose from 40 ms to 3 s, and a flow that was on its way "did not attach in time".
#[test]
fn a_path_that_has_become_slow_or_loses_pings_has_longer_to_attach() {
    let rules = rules(None);
    let patience = |pings: [i64; 3], loaded: i64| {
        let mut session = open_session(&rules).over(Span::from_millis(40));
        for at in pings {
            session.received(ms(at), Ok(ClientMessage::Ping { seq: 1 }));
        }
        let now = ms(pings[2]);
        session.loaded.observe(now, Span::from_millis(loaded));
        session.received(now, Ok(ClientMessage::Open { test: 1, plan: echo() }));
        session.prepared(now, 1, Ok(()));
        session.tests[&1].deadline().map(|until| until - now)
    };
    assert_eq!(patience([40, 1040, 2040], 300), Some(Span::from_secs(10)));
    assert_eq!(patience([40, 1040, 3540], 300), Some(Span::from_secs(13)));
    assert_eq!(patience([40, 1040, 2040], 3000), Some(Span::from_secs(12)));
    // Whoever sends his pings as late as he likes does not hold what is everybody's for long.
    assert_eq!(patience([40, 1040, 20_040], 9000), Some(Span::from_secs(30)));
}

#[test]
fn a_test_over_the_owners_cap_is_stopped() {
    let limits = Limits { rate: Some(BitRate(8_000_000)), ..Limits::default() };
    let rules = Rules { limits, ..rules(None) };
    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(100));
    let TestPlan::Tcp(plan) = tcp(1) else { panic!() };
    let plan = TestPlan::Tcp(TcpPlan { rate: Some(BitRate(8_000_000)), ..plan });
    tell(&mut session, T0, ClientMessage::Open { test: 1, plan });
    session.prepared(T0, 1, Ok(()));
    session.attached(T0, 1, 0);
    tell(&mut session, T0, ClientMessage::Start { test: 1 });
    let end = Span::from_millis(100);
    session.receiver_tick(
        T0,
        1,
        ReceiverTick { bytes: ByteCount(9_000_000), end, ..ReceiverTick::default() },
    );
    assert_eq!(deeds(&mut session), ["error Cap 1", "halt 1", "receiver_ticks 1"]);
    session.ended(1, received(9_000_000));
    assert_eq!(deeds(&mut session), ["finished 1 Interrupted"]);
}

fn at_rate(rate: u64, direction: Direction) -> TestPlan {
    let plan = TcpPlan { streams: 1, length: 1024, ..TcpPlan::new(direction, Span::from_secs(10)) };
    TestPlan::Tcp(TcpPlan { rate: Some(BitRate(rate)), ..plan })
}

/// 128 tests of one reservation, in 16 sessions, had the cap each.
#[test]
fn parallel_tests_of_one_reservation_have_the_cap_together() {
    let limits = Limits { rate: Some(BitRate(8_000_000)), ..Limits::default() };
    let rules = Rules { limits, ..rules(None) };
    let together = Arc::default();
    let mut sessions: Vec<_> = (0..16)
        .map(|_| {
            let mut session = open_session(&rules);
            session.share(Arc::clone(&together));
            admit(&mut session, Span::from_secs(100));
            session
        })
        .collect();
    let mut open = |n: usize, test, direction| {
        tell(&mut sessions[n], T0, ClientMessage::Open { test, plan: at_rate(8_000_000, direction) })
    };
    assert_eq!(open(0, 1, Direction::Forward), ["prepare 1"]);
    for n in 0..16 {
        assert_eq!(open(n, 7, Direction::Forward), ["error Cap 7"], "session {n}");
    }
    // Both ways at once each have it.
    assert_eq!(open(1, 1, Direction::Reverse), ["prepare 1"]);
    assert_eq!(open(0, 2, Direction::Reverse), ["error Cap 2"]);
    // The next turn is another session's.
    assert_eq!(tell(&mut sessions[0], T0, ClientMessage::Stop { test: 1 }), ["halt 1"]);
    let next = ClientMessage::Open { test: 2, plan: at_rate(8_000_000, Direction::Forward) };
    assert_eq!(tell(&mut sessions[2], T0, next), ["prepare 2"]);
}

#[test]
fn what_parallel_tests_move_is_held_against_the_cap_in_all() {
    let limits = Limits { rate: Some(BitRate(8_000_000)), ..Limits::default() };
    let rules = Rules { limits, ..rules(None) };
    let together = Arc::default();
    let mut sessions: Vec<_> = (0..2)
        .map(|_| {
            let mut session = open_session(&rules);
            session.share(Arc::clone(&together));
            admit(&mut session, Span::from_secs(100));
            let plan = at_rate(4_000_000, Direction::Forward);
            tell(&mut session, T0, ClientMessage::Open { test: 1, plan });
            session.prepared(T0, 1, Ok(()));
            session.attached(T0, 1, 0);
            tell(&mut session, T0, ClientMessage::Start { test: 1 });
            session
        })
        .collect();
    // Each keeps to the cap and exceeds its plan, by the other end's doing.
    let stopped = (1..=100).find_map(|second| {
        let (now, end) = (ms(second * 1000), Span::from_secs(second));
        let tick = ReceiverTick { bytes: ByteCount(1_000_000), end, ..ReceiverTick::default() };
        sessions.iter_mut().find_map(|session| {
            session.receiver_tick(now, 1, tick);
            deeds(session).contains(&"error Cap 1".to_owned()).then_some(second)
        })
    });
    assert_eq!(stopped, Some(2));
}

#[test]
fn an_echo_test_goes_on_at_the_cap_on_the_rate_and_ends_at_the_one_on_bytes() {
    let limits =
        Limits { rate: Some(BitRate(8_000_000)), bytes: Some(ByteCount(1_000_000)), ..Limits::default() };
    let rules = Rules { limits, ..rules(None) };
    let mut session = open_session(&rules);
    tell(&mut session, T0, ClientMessage::Open { test: 1, plan: echo() });
    session.prepared(T0, 1, Ok(()));
    session.attached(T0, 1, 0);
    tell(&mut session, T0, ClientMessage::Start { test: 1 });
    session.cap_reached(1, Cap::Rate);
    assert_eq!(deeds(&mut session), ["error Cap 1"]);
    session.cap_reached(1, Cap::Bytes);
    assert_eq!(deeds(&mut session), ["error Cap 1", "halt 1"]);
    session.cap_reached(1, Cap::Rate);
    assert_eq!(deeds(&mut session), [""; 0]);
    session.ended(1, EndReport::Echo { answered: 3, drops: 9 });
    assert_eq!(deeds(&mut session), ["finished 1 Interrupted"]);
}

#[test]
fn arriving_payload_is_a_sign_of_life() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(100));
    run_one(&mut session);
    session.receiver_tick(ms(3000), 1, ReceiverTick { bytes: ByteCount(1), ..ReceiverTick::default() });
    session.receiver_tick(ms(3900), 1, ReceiverTick::default());
    assert_eq!(session.deadline(), Some(ms(7000)));
}

#[test]
fn a_quiet_sender_tells_its_slices_in_the_end_and_a_loud_one_at_once() {
    for quiet in [false, true] {
        let rules = rules(None);
        let mut session = open_session(&rules);
        admit(&mut session, Span::from_secs(100));
        let TestPlan::Tcp(plan) = tcp(1) else { panic!() };
        let plan = TestPlan::Tcp(TcpPlan { direction: Direction::Reverse, quiet, ..plan });
        tell(&mut session, T0, ClientMessage::Open { test: 1, plan });
        session.prepared(T0, 1, Ok(()));
        session.attached(T0, 1, 0);
        tell(&mut session, T0, ClientMessage::Start { test: 1 });
        deeds(&mut session);
        let tick = SenderTick { acked: Some(ByteCount(20_000)), ..SenderTick::default() };
        (0..70).for_each(|_| session.sender_tick(T0, 1, tick));
        let told = deeds(&mut session);
        assert_eq!(told.len(), if quiet { 0 } else { 70 }, "{told:?}");
        session.ended(1, EndReport::TcpSender(TcpEnd::default()));
        let told = deeds(&mut session);
        let ticks = told.iter().filter(|deed| *deed == "sender_ticks 1").count();
        assert_eq!(ticks, if quiet { 2 } else { 0 }, "{told:?}");
        assert!(told.last().is_some_and(|last| last.starts_with("finished 1")), "{told:?}");
    }
}

#[test]
fn a_slow_path_is_not_filled_with_messages_about_it() {
    for direction in [Direction::Forward, Direction::Reverse] {
        let rules = rules(None);
        let mut session = open_session(&rules);
        admit(&mut session, Span::from_secs(100));
        let TestPlan::Tcp(plan) = tcp(1) else { panic!() };
        tell(
            &mut session,
            T0,
            ClientMessage::Open { test: 1, plan: TestPlan::Tcp(TcpPlan { direction, ..plan }) },
        );
        session.prepared(T0, 1, Ok(()));
        session.attached(T0, 1, 0);
        tell(&mut session, T0, ClientMessage::Start { test: 1 });
        deeds(&mut session);
        // 64 kbit/s for 10 s, in slices of 100 ms.
        let (bytes, length) = (ByteCount(800), Span::from_millis(100));
        for n in 1..=100 {
            let end = length * n;
            if direction == Direction::Forward {
                session.receiver_tick(
                    ms(100 * n),
                    1,
                    ReceiverTick { end, length, bytes, ..ReceiverTick::default() },
                );
            } else {
                session.sender_tick(
                    ms(100 * n),
                    1,
                    SenderTick { end, length, bytes, acked: Some(bytes), ..SenderTick::default() },
                );
            }
        }
        session.ended(1, EndReport::TcpSender(TcpEnd::default()));
        let told: Vec<(ByteCount, Span)> = std::iter::from_fn(|| session.next_action())
            .filter_map(|action| match action {
                Action::Send(message) => Some(*message),
                _ => None,
            })
            .flat_map(|message| match message {
                ServerMessage::ReceiverTicks { ticks, .. } => {
                    ticks.iter().map(|t| (t.bytes, t.end)).collect()
                }
                ServerMessage::SenderTicks { ticks, .. } => ticks.iter().map(|t| (t.bytes, t.end)).collect(),
                _ => Vec::new(),
            })
            .collect();
        assert!((5..=10).contains(&told.len()), "{direction:?}: {told:?}");
        assert_eq!(
            told.iter().map(|(bytes, _)| *bytes).sum::<ByteCount>(),
            ByteCount(80_000),
            "none is lost"
        );
        assert_eq!(told.last().map(|(_, end)| *end), Some(Span::from_secs(10)));
    }
}

#[test]
fn what_is_left_in_the_queue_of_the_path_is_awaited_within_bounds() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(1000));
    run_one(&mut session);
    // 10 s by the plan, and 4 s beyond it: then it is halted, if nothing comes.
    let mut now = 13_900;
    let tick = ReceiverTick { bytes: ByteCount(20_000), ..ReceiverTick::default() };
    let halted_at = loop {
        session.receiver_tick(ms(now), 1, tick);
        session.wake(ms(now));
        if deeds(&mut session).contains(&"halt 1".to_owned()) {
            break now;
        }
        now += 1000;
    };
    // It is 20 s at most, although data still come.
    assert!((34_000..35_000).contains(&halted_at), "{halted_at}");
}

#[test]
fn a_receiver_that_waits_for_three_long_round_trips_is_not_halted_before() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    session.round_trip = Some(Span::from_secs(2));
    admit(&mut session, Span::from_secs(1000));
    run_one(&mut session);
    let tick = ReceiverTick { bytes: ByteCount(20_000), ..ReceiverTick::default() };
    session.receiver_tick(ms(15_000), 1, tick);
    // Its grace is 6 s.
    let is_halted_by = |session: &mut Session<'_>, now| {
        session.heard(ms(now));
        session.wake(ms(now));
        deeds(session).contains(&"halt 1".to_owned())
    };
    assert!(!is_halted_by(&mut session, 22_900));
    assert!(is_halted_by(&mut session, 23_000));
}

#[test]
fn a_preparation_that_fails_is_told_and_forgotten() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    tell(&mut session, T0, ClientMessage::Open { test: 1, plan: echo() });
    session.prepared(T0, 1, Err(Refusal { code: ErrorCode::Busy, message: "full".into() }));
    assert_eq!(deeds(&mut session), ["error Busy 1"]);
    assert_eq!(tell(&mut session, T0, ClientMessage::Open { test: 1, plan: echo() }), ["prepare 1"]);
}

#[test]
fn the_header_is_settled_before_the_first_test_and_bounded() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    let good = HeaderFields { dscp: 46, ttl: Some(9), flow_label: Some(5) };
    assert_eq!(tell(&mut session, T0, ClientMessage::SetHeader { header: good }), ["header_set"]);
    let wrong = HeaderFields { ttl: Some(0), ..good };
    assert_eq!(tell(&mut session, T0, ClientMessage::SetHeader { header: wrong }), ["error BadMessage"]);
    assert_eq!(session.header(), good);
    admit(&mut session, Span::from_secs(60));
    let TestPlan::Tcp(plan) = tcp(1) else { panic!() };
    let reverse = TestPlan::Tcp(TcpPlan { direction: Direction::Reverse, ..plan });
    assert_eq!(
        tell(&mut session, T0, ClientMessage::Open { test: 1, plan: reverse }),
        ["error BadMessage 1"]
    );
    assert_eq!(tell(&mut session, T0, ClientMessage::Open { test: 1, plan: tcp(1) }), ["prepare 1"]);
    assert_eq!(tell(&mut session, T0, ClientMessage::SetHeader { header: good }), ["error State"]);
}

fn channel_end() -> ChannelEnd {
    ChannelEnd { ufrag: "user".into(), pwd: "p".repeat(22), fingerprint: ChannelEnd::fingerprint(&[7; 32]) }
}

#[test]
fn a_flow_comes_in_a_channel_only_while_its_test_waits_for_it() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    let ask =
        |session: &mut Session<'_>| tell(session, T0, ClientMessage::Channel { test: 1, end: channel_end() });
    assert_eq!(ask(&mut session), ["error State 1"]);
    assert_eq!(tell(&mut session, T0, ClientMessage::Open { test: 1, plan: echo() }), ["prepare 1"]);
    assert_eq!(ask(&mut session), ["error State 1"], "it is not prepared yet");
    session.prepared(T0, 1, Ok(()));
    assert_eq!(deeds(&mut session), ["opened 1"]);
    let bad = ChannelEnd { ufrag: String::new(), ..channel_end() };
    assert_eq!(tell(&mut session, T0, ClientMessage::Channel { test: 1, end: bad }), ["error BadMessage 1"]);
    assert_eq!(ask(&mut session), ["open channel of 1"]);
    assert_eq!(ask(&mut session), ["error State 1"], "one is enough");
    session.channel_prepared(1, Ok(channel_end()));
    assert_eq!(deeds(&mut session), ["channel 1"]);
    session.attached(T0, 1, 0);
    assert_eq!(deeds(&mut session), ["ready 1"]);
    session.channel_lost(1, "it broke");
    assert_eq!(deeds(&mut session), ["error Internal 1", "halt 1"]);
    session.ended(1, EndReport::Echo { answered: 0, drops: 0 });
    assert_eq!(deeds(&mut session), [""; 0]);
}

#[test]
fn a_channel_over_a_long_path_has_the_time_that_its_round_trips_take() {
    let rules = rules(None);
    let round_trip = 2500;
    let mut session = open_session(&rules).over(Span::from_millis(round_trip));
    let open = ClientMessage::Open { test: 1, plan: echo() };
    assert_eq!(tell(&mut session, ms(round_trip), open), ["prepare 1"]);
    session.prepared(ms(round_trip), 1, Ok(()));
    assert_eq!(deeds(&mut session), ["opened 1"]);
    let ask = ClientMessage::Channel { test: 1, end: channel_end() };
    assert_eq!(tell(&mut session, ms(round_trip * 2), ask), ["open channel of 1"]);
    for round in 3..=11 {
        let now = ms(round_trip * round);
        session.wake(now);
        assert_eq!(tell(&mut session, now, ClientMessage::Ping { seq: 1 }), ["pong"], "round {round}");
    }
    session.attached(ms(round_trip * 11), 1, 0);
    assert_eq!(deeds(&mut session), ["ready 1"]);
}

#[test]
fn a_channel_that_cannot_be_opened_ends_its_test_and_one_that_is_not_asked_for_ends_none() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    for test in [1, 2] {
        tell(&mut session, T0, ClientMessage::Open { test, plan: echo() });
        session.prepared(T0, test, Ok(()));
        deeds(&mut session);
    }
    assert_eq!(
        tell(&mut session, T0, ClientMessage::Channel { test: 1, end: channel_end() }),
        ["open channel of 1"]
    );
    let busy = Refusal { code: ErrorCode::Busy, message: "full".into() };
    session.channel_prepared(1, Err(busy));
    assert_eq!(deeds(&mut session), ["error Busy 1"]);
    session.channel_lost(2, "whose?");
    session.channel_lost(9, "whose?");
    assert_eq!(deeds(&mut session), [""; 0]);
}

#[test]
fn a_responder_that_was_stopped_says_so_with_its_next_pong() {
    let rules = rules(None);
    let mut session = open_session(&rules);
    let mut told = |seq, in_all: i64| {
        session.note_standing_still(ms(1000), Span::from_millis(in_all));
        session.received(ms(1000), Ok(ClientMessage::Ping { seq }));
        let Some(Action::Send(message)) = session.next_action() else { panic!("no pong") };
        let ServerMessage::Pong { stood_still, .. } = *message else { panic!("{message:?}") };
        stood_still
    };
    assert_eq!([told(1, 0), told(2, 2500)], [None, Some(Span::from_millis(2500))]);
    assert_eq!(told(3, 2500), Some(Span::from_millis(2500)), "what it said before may have been lost");
}

/// A responder that ran again found its own timer before the pings in its socket: "not a byte for
/// too long".
#[test]
fn a_responder_that_was_stopped_takes_its_own_absence_for_nobodys_silence() {
    let rules = rules(None);
    let away = |session: &mut Session<'_>, back_at: i64, in_all: i64| {
        session.note_standing_still(ms(back_at), Span::from_millis(in_all));
        session.wake(ms(back_at));
        deeds(session)
    };
    let mut session = open_session(&rules);
    assert_eq!(tell(&mut session, ms(1000), ClientMessage::Ping { seq: 1 }), ["pong"]);
    assert_eq!(away(&mut session, 5100, 4000), [""; 0]);
    assert_eq!(tell(&mut session, ms(5100), ClientMessage::Ping { seq: 2 }), ["pong"]);
    // Nor does it become a path that delays pings.
    assert_eq!(session.deadline(), Some(ms(5100) + SILENCE_LIMIT));
    // It has not been away again.
    assert_eq!(away(&mut session, 9100, 4000), ["error Timeout", "close"]);

    let mut session = Session::new(&rules, T0, TOKEN, NONCE);
    assert_eq!(away(&mut session, 6500, 6000), [""; 0]);
    assert_eq!(tell(&mut session, ms(6500), hello()), ["enrol"]);

    let mut session = open_session(&rules);
    admit(&mut session, Span::from_secs(100));
    assert_eq!(tell(&mut session, T0, ClientMessage::Open { test: 1, plan: tcp(1) }), ["prepare 1"]);
    session.prepared(T0, 1, Ok(()));
    assert_eq!(deeds(&mut session), ["opened 1"]);
    session.heard(ms(9000));
    assert_eq!(away(&mut session, 12_000, 3000), [""; 0]);
    assert_eq!(session.deadline(), Some(ms(15_000)), "as long as it was away");
    session.attached(ms(12_000), 1, 0);
    assert_eq!(deeds(&mut session), ["ready 1"]);
}

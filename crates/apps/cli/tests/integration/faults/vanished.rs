//! A prober disappears in the middle of something, or stops moving: its place must not stay taken.

use netaware_io::clock;
use netaware_testkit::control::{Control, Heard};
use netaware_testkit::program::{Program, Responder, netaware, run, signal};
use netaware_units::Span;
use netaware_wire::control::{ClientMessage, ServerMessage};

use super::{Holdings, settles, side_by_side, until_it_measures, until_it_says};

/// What the design promises.
const FREED_WITHIN: Span = Span::from_secs(8);

#[test]
fn killed_tcp_prober_frees_its_place() {
    for (options, when) in [
        (&["-t", "20s"][..], When::After(Span::from_millis(50))),
        (&["-t", "20s"], When::Measuring),
        (&["-t", "20s", "-R", "-P", "4"], When::Measuring),
    ] {
        place_is_freed("KILL", "tcp", options, when);
    }
}

#[test]
fn killed_udp_prober_frees_its_place() {
    for options in [&["-t", "20s", "-b", "20Mbit/s"][..], &["-t", "20s", "-b", "20Mbit/s", "-R"]] {
        place_is_freed("KILL", "udp", options, When::Measuring);
    }
}

#[test]
fn killed_latency_prober_is_forgotten() {
    place_is_freed("KILL", "latency", &["-t", "20s"], When::Measuring);
}

#[test]
fn prober_killed_in_any_phase_of_the_main_job_frees_its_place() {
    let waited: usize = [100, 400, 900, 1400, 1900, 2400]
        .map(|delay| place_is_freed("KILL", "test", &["-t", "3s"], When::After(Span::from_millis(delay))))
        .into_iter()
        .map(usize::from)
        .sum();
    assert!(waited > 0, "the main job held its place in none of its phases");
}

#[test]
fn prober_that_stops_moving_is_given_up() {
    let rate = ["-t", "20s", "-b", "20Mbit/s"];
    let cases = [
        ("tcp", &rate[..]),
        ("udp", &rate),
        ("latency", &rate[..2]),
        ("udp", &["-t", "20s", "-R", "-b", "20Mbit/s"]),
    ];
    side_by_side(cases, |(command, options)| {
        place_is_freed("STOP", command, options, When::Measuring);
    });
}

/// When a prober is taken away.
enum When {
    /// So long after its start, whatever it does then.
    After(Span),
    /// As soon as it has measured something.
    Measuring,
}

/// Starts a prober, lets a second one wait behind it, takes the first away, and sees the second
/// admitted and everything that the first had used given back. Returns whether the second had to
/// wait: the main job may not have asked for its place yet, and latency never needs one.
fn place_is_freed(by: &str, command: &str, options: &[&str], when: When) -> bool {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let fixed = ["127.0.0.1", "--port", &port];
    run(&[&["latency"], &fixed[..], &["-t", "200ms"]].concat(), Span::from_secs(10)).exits_with(0);
    settles(&responder, None, clock::now() + FREED_WITHIN);
    let idle = Holdings::of(&responder);

    let ndjson = ["--format", "ndjson"];
    let victim = Program::start(netaware(&[&[command], &fixed[..], options, &ndjson].concat()));
    match when {
        When::After(delay) => clock::sleep(delay),
        When::Measuring => until_it_measures(&victim, command),
    }
    let (mut waiting, _) = Control::session(responder.address());
    waiting.say(&ClientMessage::Reserve { expected: Span::from_secs(1), join: None });
    let first = waiting.wait_for(Span::from_secs(2), |message| place(message).or(admitted(message)));
    match (command, when) {
        ("tcp" | "udp", When::Measuring) => {
            assert_eq!(first, 1, "{command} holds the only place: {}", victim.complained());
        }
        ("latency", _) => assert_eq!(first, 0, "latency takes no place"),
        _ => {}
    }
    signal(by, victim.id());
    let freed_by = clock::now() + FREED_WITHIN;
    if first != 0 {
        waiting.wait_for(FREED_WITHIN, admitted);
    }
    drop(waiting);
    settles(&responder, Some(idle), freed_by);
    first != 0
}

#[test]
fn waiting_probers_are_told_their_place_and_move_up() {
    let responder = Responder::start(&[]);
    let expected = Span::from_secs(10);
    let mut sessions: Vec<Control> = (0..4).map(|_| Control::session(responder.address()).0).collect();
    for (index, session) in sessions.iter_mut().enumerate() {
        session.say(&ClientMessage::Reserve { expected, join: None });
        let told = session.wait_for(Span::from_secs(2), |message| place(message).or(admitted(message)));
        assert_eq!(told as usize, index);
    }
    drop(sessions.remove(1));
    for (index, session) in sessions.iter_mut().enumerate().skip(1) {
        session.wait_for(Span::from_secs(2), |message| (place(message)? as usize == index).then_some(()));
    }
    sessions[0].say(&ClientMessage::Release);
    sessions[1].wait_for(Span::from_secs(2), admitted);
    // The one behind it has moved up, and goes on waiting.
    sessions[2].wait_for(Span::from_secs(2), |message| (place(message)? == 1).then_some(()));
    let due = clock::now() + Span::from_millis(300);
    loop {
        match sessions[2].hear_until(due) {
            Heard::Nothing => break,
            Heard::Message(message) => assert_eq!(place(&message), Some(1), "{message:?}"),
            Heard::End => panic!("the responder closed the connection of a prober that waits"),
        }
    }
}

#[test]
fn expected_wait_covers_those_in_front() {
    let responder = Responder::start(&[]);
    let expected = Span::from_secs(7);
    let mut sessions: Vec<Control> = (0..3).map(|_| Control::session(responder.address()).0).collect();
    let told: Vec<Span> = sessions
        .iter_mut()
        .map(|session| {
            session.say(&ClientMessage::Reserve { expected, join: None });
            session.wait_for(Span::from_secs(2), |message| match message {
                ServerMessage::Queued { expected_wait, .. } => Some(*expected_wait),
                ServerMessage::Admitted { .. } => Some(Span::ZERO),
                _ => None,
            })
        })
        .collect();
    assert!(told[1] > Span::from_secs(5) && told[1] <= Span::from_secs(10), "{told:?}");
    assert!(told[2] > told[1] + Span::from_secs(5), "{told:?}");
}

#[test]
fn second_prober_says_that_it_waits_and_is_served_in_turn() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let command = ["tcp", "127.0.0.1", "--port", &port, "-b", "20Mbit/s", "-t"];
    let first = Program::start(netaware(&[&command[..], &["3s", "--format", "ndjson"]].concat()));
    until_it_measures(&first, "tcp");
    let second = Program::start(netaware(&[&command[..], &["1s"]].concat()));
    until_it_says(&second, "waiting for another measurement: place 1, ");
    first.finish_within(Span::from_secs(10)).exits_with(0);
    second.finish_within(Span::from_secs(10)).exits_with(0);
}

fn place(message: &ServerMessage) -> Option<u32> {
    match message {
        ServerMessage::Queued { place, .. } => Some(*place),
        _ => None,
    }
}

/// As place 0.
fn admitted(message: &ServerMessage) -> Option<u32> {
    matches!(message, ServerMessage::Admitted { .. }).then_some(0)
}

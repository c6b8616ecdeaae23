//! A prober disappears in the middle of something, or stops moving: its place must not stay taken.

use netaware_io::clock;
use netaware_testkit::control::{Control, Heard};
use netaware_testkit::program::{Program, Responder, netaware, run, signal};
use netaware_units::{Mono, Span};
use netaware_wire::control::{ClientMessage, ServerMessage};

/// What the design promises.
const FREED_WITHIN: Span = Span::from_secs(5);

#[test]
fn killed_tcp_prober_frees_its_place() {
    for (options, delay) in
        [(&["-t", "20s"][..], 50), (&["-t", "20s"], 1000), (&["-t", "20s", "-R", "-P", "4"], 1000)]
    {
        place_is_freed("KILL", "tcp", options, Span::from_millis(delay));
    }
}

#[test]
fn killed_udp_prober_frees_its_place() {
    for options in [&["-t", "20s", "-b", "20Mbit/s"][..], &["-t", "20s", "-b", "20Mbit/s", "-R"]] {
        place_is_freed("KILL", "udp", options, Span::from_secs(1));
    }
}

#[test]
fn killed_latency_prober_is_forgotten() {
    place_is_freed("KILL", "latency", &["-t", "20s"], Span::from_secs(1));
}

#[test]
fn prober_killed_in_any_phase_of_the_main_job_frees_its_place() {
    for delay in [300, 1000, 2000, 3000, 4000, 5000] {
        place_is_freed("KILL", "test", &["-t", "6s"], Span::from_millis(delay));
    }
}

#[test]
fn prober_that_stops_moving_is_given_up() {
    let rate = ["-t", "20s", "-b", "20Mbit/s"];
    for (command, options) in [
        ("tcp", &rate[..]),
        ("udp", &rate),
        ("latency", &rate[..2]),
        ("udp", &["-t", "20s", "-R", "-b", "20Mbit/s"]),
    ] {
        place_is_freed("STOP", command, options, Span::from_secs(1));
    }
}

/// Starts a prober, lets a second one wait behind it, takes the first away, and sees the second admitted and everything
/// that the first had used given back.
fn place_is_freed(by: &str, command: &str, options: &[&str], delay: Span) {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let fixed = ["127.0.0.1", "--port", &port];
    run(&[&["latency"], &fixed[..], &["-t", "200ms"]].concat(), Span::from_secs(10)).exits_with(0);
    settles(&responder, None, clock::now() + FREED_WITHIN);
    let idle = Holdings::of(&responder);

    let victim = Program::start(netaware(&[&[command], &fixed[..], options].concat()));
    clock::sleep(delay);
    let (mut waiting, _) = Control::session(responder.address());
    waiting.say(&ClientMessage::Reserve { expected: Span::from_secs(1), join: None });
    // The main job may not have asked for its place yet, or hold it later; latency never needs one.
    let first = waiting.wait_for(Span::from_secs(2), |message| place(message).or(admitted(message)));
    if delay >= Span::from_secs(1) && matches!(command, "tcp" | "udp") {
        assert_eq!(
            first,
            1,
            "{command} holds the only place, so the next one waits: {}",
            victim.complained()
        );
    }
    signal(by, victim.id());
    let freed_by = clock::now() + FREED_WITHIN;
    if first != 0 {
        waiting.wait_for(FREED_WITHIN, admitted);
    }
    drop(waiting);
    settles(&responder, Some(idle), freed_by);
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
    assert!(matches!(sessions[1].hear_until(clock::now()), Heard::Nothing));
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
    let command = |time| netaware(&["tcp", "127.0.0.1", "--port", &port, "-b", "20Mbit/s", "-t", time]);
    let first = Program::start(command("4s"));
    clock::sleep(Span::from_millis(1500));
    let second = Program::start(command("1s"));
    clock::sleep(Span::from_secs(1));
    let told = second.complained().to_lowercase();
    assert!(told.contains("wait") || told.contains("queue") || told.contains("place"), "{told}");
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

/// What a process holds of the system.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Holdings {
    files: usize,
    threads: usize,
}

impl Holdings {
    fn of(responder: &Responder) -> Self {
        let count =
            |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", responder.id())).unwrap().count();
        Self { files: count("fd"), threads: count("task") }
    }

    fn within(self, other: Self) -> bool {
        self.files <= other.files && self.threads <= other.threads
    }
}

/// Waits until the responder holds no more than `idle`; without it, until what it holds has been the same for 300 ms.
fn settles(responder: &Responder, idle: Option<Holdings>, due: Mono) {
    let (mut last, mut since) = (Holdings::of(responder), clock::now());
    loop {
        let held = Holdings::of(responder);
        if held != last {
            (last, since) = (held, clock::now());
        }
        match idle {
            Some(idle) if held.within(idle) => return,
            None if clock::now() - since > Span::from_millis(300) => return,
            _ => assert!(clock::now() < due, "still holds {held:?}, idle it held {idle:?}"),
        }
        clock::sleep(Span::from_millis(20));
    }
}

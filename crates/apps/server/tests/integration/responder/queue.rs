//! The admission queue, seen by those who wait in it.

use std::io::Read;

use netaware_io::clock;
use netaware_record::Outcome;
use netaware_server::Config;
use netaware_units::Span;
use netaware_wire::control::{ClientMessage, ErrorCode, ServerMessage};
use netaware_wire::preface::Role;

use super::speaker::{Responder, Speaker};
use super::transfers::tcp_plan;

fn reserve() -> ClientMessage {
    ClientMessage::Reserve { expected: Span::from_secs(30), join: None }
}

fn place(speaker: &mut Speaker) -> u32 {
    match speaker.hear() {
        ServerMessage::Queued { place, .. } => place,
        other => panic!("{other:?}"),
    }
}

fn is_admitted(speaker: &mut Speaker) -> bool {
    matches!(speaker.hear(), ServerMessage::Admitted { .. })
}

#[test]
fn the_queue_moves_on_when_its_holder_is_gone() {
    let responder = Responder::start(Config::default());
    let mut holder = Speaker::open(responder.v4());
    holder.admitted(None);
    let (mut second, mut third) = (Speaker::open(responder.v4()), Speaker::open(responder.v6()));
    second.say(&reserve());
    assert_eq!(place(&mut second), 1);
    third.say(&reserve());
    assert_eq!(place(&mut third), 1, "the holder's address has had its turn");
    assert_eq!(place(&mut second), 2);
    let began = clock::now();
    drop(holder);
    assert!(is_admitted(&mut third));
    assert_eq!(place(&mut second), 1);
    third.say(&ClientMessage::Release);
    assert!(is_admitted(&mut second));
    assert!(clock::now() - began < Span::from_secs(2));
}

#[test]
fn who_waits_is_told_the_wait() {
    let responder = Responder::start(Config::default());
    let mut holder = Speaker::open(responder.v4());
    holder.admitted(None);
    let mut waiting = Speaker::open(responder.v4());
    waiting.say(&reserve());
    let ServerMessage::Queued { expected_wait, .. } = waiting.hear() else { panic!("not queued") };
    assert!(expected_wait > Span::from_secs(3) && expected_wait <= Span::from_secs(5), "{expected_wait}");
}

#[test]
fn a_silent_holder_is_forgotten_within_five_seconds() {
    let responder = Responder::start(Config::default());
    let mut holder = Speaker::open(responder.v4());
    holder.admitted(None);
    let began = clock::now();
    let mut next = Speaker::open(responder.v4());
    next.say(&reserve());
    assert_eq!(place(&mut next), 1);
    for seq in 0..3 {
        clock::sleep(Span::from_secs(1));
        next.say(&ClientMessage::Ping { seq });
        assert_eq!(next.hear(), ServerMessage::Pong { seq, stood_still: None });
    }
    assert!(is_admitted(&mut next));
    assert!(clock::now() - began < Span::from_secs(5));
    drop(holder);
}

#[test]
fn a_client_killed_while_its_test_runs_frees_its_place() {
    let responder = Responder::start(Config::default());
    let mut holder = Speaker::open(responder.v4());
    holder.admitted(None);
    holder.opened(1, tcp_plan(netaware_record::Direction::Reverse, 2, Span::from_secs(60)));
    let mut streams = [holder.attach(Role::Data, 1, 0).0, holder.attach(Role::Data, 1, 1).0];
    holder.ready(1);
    holder.say(&ClientMessage::Start { test: 1 });
    streams[0].read_exact(&mut [0; 10_000]).unwrap();
    let mut next = Speaker::open(responder.v4());
    next.say(&reserve());
    assert_eq!(place(&mut next), 1);
    let began = clock::now();
    drop((holder, streams));
    assert!(is_admitted(&mut next));
    assert!(clock::now() - began < Span::from_secs(2));
}

#[test]
fn one_prober_over_two_ip_versions_holds_one_place() {
    let responder = Responder::start(Config::default());
    let (mut v4, mut v6) = (Speaker::open(responder.v4()), Speaker::open(responder.v6()));
    let reservation = v4.admitted(None);
    assert_eq!(v6.admitted(Some(reservation)), reservation);
    let mut next = Speaker::open(responder.v4());
    next.say(&reserve());
    assert_eq!(place(&mut next), 1);
    drop(v4);
    next.say(&ClientMessage::Ping { seq: 1 });
    assert_eq!(next.hear(), ServerMessage::Pong { seq: 1, stood_still: None });
    drop(v6);
    assert!(is_admitted(&mut next));
}

#[test]
fn a_lease_that_is_over_ends_its_tests_with_what_they_have() {
    let responder = Responder::start(Config { max_reservation: Span::from_secs(1), ..Config::default() });
    let mut holder = Speaker::open(responder.v4());
    holder.admitted(None);
    holder.opened(1, tcp_plan(netaware_record::Direction::Reverse, 1, Span::from_secs(60)));
    let (mut stream, _) = holder.attach(Role::Data, 1, 0);
    holder.ready(1);
    holder.say(&ClientMessage::Start { test: 1 });
    let reader = std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()).is_ok());
    let lease = |message: &ServerMessage| {
        matches!(message, ServerMessage::Error { code: ErrorCode::Lease, .. }).then_some(())
    };
    holder.hear_until(lease);
    let outcome = holder.hear_until(|message| match message {
        ServerMessage::Finished { test: 1, outcome, .. } => Some(*outcome),
        _ => None,
    });
    assert_eq!(outcome, Outcome::Interrupted);
    // Whether its stream ends or breaks is not what this test is about; that it does not panic is.
    reader.join().unwrap();
}

//! How connections begin, and how those end that should not have begun.

use std::io::Write;

use netaware_io::clock;
use netaware_server::{Config, Key};
use netaware_units::Span;
use netaware_wire::control::{ClientMessage, ErrorCode, ServerMessage};
use netaware_wire::preface::{PREFACE_LEN, Preface, Role};
use netaware_wire::{Token, frame, proof};

use super::speaker::{PROBER_NONCE, Responder, Speaker, connect, hello, read_to_end};

fn with_key() -> Responder {
    Responder::start(Config { key: Some(Key::new(*b"sesame").unwrap()), ..Config::default() })
}

/// The error in `preface, error` that a refused connection is answered with.
fn refusal(bytes: &[u8]) -> ServerMessage {
    let preface: [u8; PREFACE_LEN] = *bytes.first_chunk().expect("a preface");
    assert_eq!(Preface::parse(&preface), Ok(Preface::new(Role::Control)));
    frame::parse(&bytes[PREFACE_LEN + 4..]).expect("an error after the preface")
}

#[test]
fn a_hello_is_welcomed_over_both_ip_versions() {
    let responder = Responder::start(Config::default());
    for to in [responder.v4(), responder.v6()] {
        let mut speaker = Speaker::greet(to);
        speaker.say(&hello());
        let ServerMessage::Welcome { version, software, proof, limits, host, .. } = speaker.hear() else {
            panic!("not welcome");
        };
        assert_eq!((version, proof, limits.duration), (1, None, Some(Span::from_secs(3600))));
        assert!(software.starts_with("netaware "));
        assert!(host.cores > 0);
        let stamps = host.stamps.expect("measured on loopback");
        assert!(stamps.send_gap > Span::ZERO && stamps.error < Span::from_millis(100), "{stamps:?}");
        speaker.say(&ClientMessage::Ping { seq: 9 });
        assert_eq!(speaker.hear(), ServerMessage::Pong { seq: 9, stood_still: None });
        speaker.say(&ClientMessage::Bye);
        assert_eq!(speaker.try_hear(), None);
    }
}

#[test]
fn a_version_from_the_future_is_told_which_one_is_spoken() {
    for responder in [Responder::start(Config::default()), with_key()] {
        for version in [0, 2, u16::MAX] {
            for role in [Role::Control, Role::Data, Role::Echo] {
                let mut stream = connect(responder.v4());
                stream.write_all(&Preface { version, role }.emit()).unwrap();
                stream.write_all(&frame::emit(&hello()).unwrap()).unwrap();
                let answer = refusal(&read_to_end(&mut stream));
                let ServerMessage::Error { code: ErrorCode::Version, versions, .. } = answer else {
                    panic!("{answer:?}");
                };
                assert_eq!(versions, [1]);
            }
        }
    }
}

#[test]
fn the_right_key_opens_and_is_answered_with_a_proof() {
    let responder = with_key();
    let mut speaker = Speaker::greet(responder.v6());
    speaker.say(&hello());
    let ServerMessage::Challenge { nonce } = speaker.hear() else { panic!("not challenged") };
    speaker.say(&ClientMessage::Authenticate { proof: proof::client(b"sesame", nonce, PROBER_NONCE) });
    let ServerMessage::Welcome { proof, .. } = speaker.hear() else { panic!("not welcome") };
    assert_eq!(proof, Some(proof::server(b"sesame", nonce, PROBER_NONCE)));
}

#[test]
fn a_wrong_key_is_refused_and_a_missing_one_gets_nothing_but_the_challenge() {
    let responder = with_key();
    let mut speaker = Speaker::greet(responder.v4());
    speaker.say(&hello());
    let ServerMessage::Challenge { nonce } = speaker.hear() else { panic!("not challenged") };
    speaker.say(&ClientMessage::Authenticate { proof: proof::client(b"sesamE", nonce, PROBER_NONCE) });
    assert!(matches!(speaker.hear(), ServerMessage::Error { code: ErrorCode::Key, .. }));
    assert_eq!(speaker.try_hear(), None);

    let mut speaker = Speaker::greet(responder.v4());
    speaker.say(&hello());
    assert!(matches!(speaker.hear(), ServerMessage::Challenge { .. }));
    speaker.say(&ClientMessage::Reserve { expected: Span::from_secs(1), join: None });
    assert_eq!(speaker.try_hear(), None);

    let mut browser = connect(responder.v4());
    browser.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!(read_to_end(&mut browser), b"");
}

#[test]
fn a_browser_gets_the_page_however_its_question_is_cut() {
    let responder = Responder::start(Config::default());
    let mut stream = connect(responder.v4());
    for part in ["GE", "T / HTTP/1.1\r\nHost: localhost\r\nConnection: cl", "ose\r\n", "\r\n"] {
        stream.write_all(part.as_bytes()).unwrap();
    }
    let answer = String::from_utf8(read_to_end(&mut stream)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("<!doctype html>"), "{answer}");
}

#[test]
fn other_protocols_are_closed_without_waiting() {
    let responder = Responder::start(Config::default());
    for noise in [&b"SSH-2.0-OpenSSH\r\n"[..], b"\x16\x03\x01\x02\x00\x01\x00", b"NETAWARF", b"\0"] {
        let began = clock::now();
        let mut stream = connect(responder.v4());
        stream.write_all(noise).unwrap();
        assert_eq!(read_to_end(&mut stream), b"");
        assert!(clock::now() - began < Span::from_secs(2), "waited for more of {noise:?}");
    }
}

#[test]
fn unknown_messages_are_answered_and_the_session_goes_on() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    let unknown = br#"{"type":"teleport","to":"home"}"#;
    speaker.stream.write_all(&(unknown.len() as u32).to_be_bytes()).unwrap();
    speaker.stream.write_all(unknown).unwrap();
    let ServerMessage::Error { code: ErrorCode::UnknownMessage, message, .. } = speaker.hear() else {
        panic!("not refused");
    };
    assert!(message.contains("teleport"), "{message}");
    speaker.say(&ClientMessage::Start { test: 3 });
    assert!(matches!(speaker.hear(), ServerMessage::Error { code: ErrorCode::State, test: Some(3), .. }));
    speaker.say(&ClientMessage::Ping { seq: 1 });
    assert_eq!(speaker.hear(), ServerMessage::Pong { seq: 1, stood_still: None });
}

#[test]
fn a_frame_over_the_limit_closes_the_session() {
    let responder = Responder::start(Config::default());
    let mut speaker = Speaker::open(responder.v4());
    speaker.stream.write_all(&[0, 1, 0, 1]).unwrap();
    assert!(matches!(speaker.hear(), ServerMessage::Error { code: ErrorCode::BadMessage, .. }));
    assert_eq!(speaker.try_hear(), None);
}

#[test]
fn dripping_connections_are_cut() {
    let responder = Responder::start(Config::default());
    let preface = Preface::new(Role::Control).emit();
    let mut hello = preface.to_vec();
    hello.extend(frame::emit(&self::hello()).unwrap());
    // Bytes sent at once, and how long the rest may drip before it is over.
    let rows = [("preface", 1, 8), ("hello", PREFACE_LEN, 8), ("a message", hello.len(), 7)];
    let mut bytes = hello.clone();
    bytes.extend(frame::emit(&ClientMessage::Authenticate { proof: "x".repeat(5000) }).unwrap());
    std::thread::scope(|scope| {
        for (name, at_once, limit) in rows {
            let (bytes, to) = (&bytes, responder.v4());
            scope.spawn(move || {
                let began = clock::now();
                let mut stream = connect(to);
                stream.write_all(&bytes[..at_once]).unwrap();
                let cut = bytes[at_once..].iter().take(100).any(|byte| {
                    clock::sleep(Span::from_millis(100));
                    stream.write_all(&[*byte]).is_err()
                });
                let lasted = clock::now() - began;
                assert!(cut && lasted < Span::from_secs(limit), "{name}: {lasted}");
            });
        }
    });
}

#[test]
fn a_silent_session_is_over_after_the_silence_limit() {
    let responder = Responder::start(Config::default());
    let began = clock::now();
    let mut speaker = Speaker::open(responder.v4());
    assert!(matches!(speaker.hear(), ServerMessage::Error { code: ErrorCode::Timeout, .. }));
    assert_eq!(speaker.try_hear(), None);
    let lasted = clock::now() - began;
    assert!(lasted >= Span::from_secs(4) && lasted < Span::from_secs(6), "{lasted}");
}

#[test]
fn addresses_outside_the_allowed_networks_are_told_so() {
    let allow = vec!["192.0.2.0/24".parse().unwrap(), "::1".parse().unwrap()];
    let responder = Responder::start(Config { allow, ..Config::default() });
    let mut stream = connect(responder.v4());
    stream.write_all(&Preface::new(Role::Control).emit()).unwrap();
    let answer = refusal(&read_to_end(&mut stream));
    assert!(matches!(answer, ServerMessage::Error { code: ErrorCode::Network, .. }), "{answer:?}");
    Speaker::open(responder.v6());
}

#[test]
fn sessions_are_bounded_in_all_and_by_address() {
    let responder =
        Responder::start(Config { max_sessions: 3, max_sessions_per_address: 2, ..Config::default() });
    let _both = [Speaker::open(responder.v4()), Speaker::open(responder.v4())];
    let busy = |to| {
        let mut speaker = Speaker::greet(to);
        speaker.say(&hello());
        match speaker.hear() {
            ServerMessage::Error { code: ErrorCode::Busy, message, .. } => message,
            other => panic!("{other:?}"),
        }
    };
    assert!(busy(responder.v4()).contains("per address is 2"));
    let _third = Speaker::open(responder.v6());
    assert!(busy(responder.v6()).ends_with("sessions is 3"));
}

#[test]
fn data_connections_without_a_session_are_refused_and_with_a_key_ignored() {
    let rows = [(Responder::start(Config::default()), Some(0x15)), (with_key(), None)];
    for (responder, want) in rows {
        let mut stranger = Speaker::greet(responder.v4());
        stranger.token = Token([9; 16]);
        assert_eq!(stranger.attach(Role::Data, 1, 0).1, want);
    }
}

//! The other end speaks a version that does not exist yet.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use netaware_io::clock;
use netaware_testkit::control::{Control, Heard, hello};
use netaware_testkit::program::{Responder, run};
use netaware_units::Span;
use netaware_wire::control::{ErrorCode, ServerMessage};
use netaware_wire::preface::{PREFACE_LEN, Preface, Role};
use netaware_wire::{PROTOCOL_VERSION, frame};

const FUTURE: u16 = 99;

#[test]
fn responder_from_the_future_is_told_with_both_versions() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || listener.incoming().for_each(|stream| refuse_version(&mut stream.unwrap())));
    for command in ["test", "tcp", "udp", "latency"] {
        let failed = run(&[command, "127.0.0.1", "--port", &port], Span::from_secs(10)).exits_with(2);
        assert_eq!(failed.stderr.trim().lines().count(), 1, "{failed:#?}");
        for word in ["version", &FUTURE.to_string(), &PROTOCOL_VERSION.to_string(), "127.0.0.1"] {
            assert!(failed.stderr.contains(word), "'{word}' is missing: {failed:#?}");
        }
    }
}

/// What a responder that speaks no version below 99 does.
fn refuse_version(stream: &mut TcpStream) {
    let refusal = ServerMessage::Error {
        code: ErrorCode::Version,
        message: "version 1 is no longer spoken here".into(),
        test: None,
        versions: vec![FUTURE],
    };
    let mut preface = [0; PREFACE_LEN];
    if stream.read_exact(&mut preface).is_ok() {
        let _ = stream.write_all(&Preface { version: FUTURE, role: Role::Control }.emit());
        let _ = stream.write_all(&frame::emit(&refusal).unwrap());
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

#[test]
fn prober_from_the_future_is_told_which_versions_are_spoken() {
    let responder = Responder::start(&[]);
    let (mut control, theirs) = Control::open(responder.address(), FUTURE);
    assert_eq!(theirs, PROTOCOL_VERSION);
    control.say(&hello(FUTURE));
    let heard = control.hear_until(clock::now() + Span::from_secs(5));
    let Heard::Message(message) = heard else { panic!("{heard:?}") };
    let ServerMessage::Error { code, versions, .. } = *message else { panic!("{message:?}") };
    assert_eq!((code, versions), (ErrorCode::Version, vec![PROTOCOL_VERSION]));
    run(&["latency", "127.0.0.1", "--port", &responder.port(), "-t", "300ms"], Span::from_secs(10))
        .exits_with(0);
}

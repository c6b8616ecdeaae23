//! A shared key: who has it is served, who does not learns nothing.

use std::path::PathBuf;

use netaware_io::clock;
use netaware_testkit::control::{Control, Heard, hello};
use netaware_testkit::program::{Finished, Responder, run};
use netaware_units::Span;
use netaware_wire::PROTOCOL_VERSION;
use netaware_wire::control::{ClientMessage, ErrorCode, ServerMessage};
use tempfile::TempDir;

#[test]
fn only_the_right_key_measures() {
    let keys = tempfile::tempdir().unwrap();
    let (right, wrong) = (key(&keys, "right"), key(&keys, "wrong"));
    let responder = Responder::start(&["--key-file", right.to_str().unwrap()]);

    latency(&responder, &["--key-file", right.to_str().unwrap()]).exits_with(0);
    for options in [&[][..], &["--key-file", wrong.to_str().unwrap()]] {
        let refused = latency(&responder, options).exits_with(2);
        assert_eq!(refused.stderr.trim().lines().count(), 1, "{refused:#?}");
        assert!(refused.stderr.contains("key"), "{refused:#?}");
        for secret in ["the right secret", "the wrong secret"] {
            assert!(!refused.stderr.contains(secret), "{refused:#?}");
        }
    }
    latency(&responder, &["--key-file", right.to_str().unwrap()]).exits_with(0);
}

#[test]
fn without_the_key_nothing_but_the_challenge_is_answered() {
    let keys = tempfile::tempdir().unwrap();
    let responder = Responder::start(&["--key-file", key(&keys, "right").to_str().unwrap()]);
    for next in [
        ClientMessage::Reserve { expected: Span::from_secs(1), join: None },
        ClientMessage::Authenticate { proof: "0".repeat(64) },
        ClientMessage::Authenticate { proof: String::new() },
        ClientMessage::Ping { seq: 1 },
    ] {
        let (mut control, _) = Control::open(responder.address(), PROTOCOL_VERSION);
        control.say(&hello(PROTOCOL_VERSION));
        control.wait_for(Span::from_secs(5), |message| {
            matches!(message, ServerMessage::Challenge { .. }).then_some(())
        });
        control.say(&next);
        assert_only_refused(&mut control);
    }
}

/// Refused with the reason at most, and hung up on.
fn assert_only_refused(control: &mut Control) {
    let due = clock::now() + Span::from_secs(6);
    loop {
        match control.hear_until(due) {
            Heard::End => return,
            Heard::Nothing => panic!("a stranger without the key is still connected"),
            Heard::Message(message) => {
                let refused = matches!(*message, ServerMessage::Error { code, .. }
                    if matches!(code, ErrorCode::Key | ErrorCode::State | ErrorCode::Timeout));
                assert!(refused, "{message:?}");
            }
        }
    }
}

fn key(folder: &TempDir, name: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.path().join(name);
    std::fs::write(&path, format!("the {name} secret, long enough\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn latency(responder: &Responder, options: &[&str]) -> Finished {
    let port = responder.port();
    let fixed = ["latency", "127.0.0.1", "--port", &port, "-t", "300ms"];
    run(&[&fixed[..], options].concat(), Span::from_secs(10))
}

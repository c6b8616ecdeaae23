//! Keys and encryption: who may send, and to whom.

use std::path::Path;

use netaware_transfer::{Broken, Encryption, Identity, SendReport, SendRequest};
use netaware_wire::proof::Key;
use netaware_wire::transfer::Digest;

use super::ends::{Ends, noise, sent};

fn key(text: &str) -> Key {
    Key::new(text.as_bytes()).unwrap()
}

fn send(ends: &Ends, file: &Path, change: impl Fn(&mut SendRequest)) -> SendReport {
    let mut request = ends.request(&[file]);
    change(&mut request);
    sent(&request).unwrap()
}

fn why(report: SendReport) -> String {
    assert_eq!(report.written + report.present, 0, "{report:?}");
    report.ended.expect("it ends early").to_string()
}

#[test]
fn only_who_knows_the_key_can_send_and_only_to_who_knows_it() {
    let ends = Ends::with(|config| config.key = Some(key("sesame")));
    let file = ends.put("file", b"x");
    let right = send(&ends, &file, |request| request.key = Some(key("sesame")));
    assert!(right.is_complete(), "{right:?}");
    assert!(why(send(&ends, &file, |request| request.key = Some(key("Sesame")))).contains("does not fit"));
    assert!(why(send(&ends, &file, |_| {})).contains("wants a key"));
    let open = Ends::new();
    let file = open.put("file", b"x");
    let report = send(&open, &file, |request| request.key = Some(key("sesame")));
    assert!(matches!(report.ended, Some(Broken::FalseReceiver)), "{report:?}");
    assert!(!open.target.path().join("file").exists());
}

fn encrypted(secret: Option<&str>) -> (Ends, Digest) {
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity::kept(&folder.path().join("identity.pem")).unwrap();
    let ends = Ends::with(|config| {
        config.identity = Some(identity.clone());
        config.key = secret.map(key);
    });
    (ends, identity.fingerprint())
}

#[test]
fn an_encrypted_receiver_is_known_by_its_fingerprint() {
    let (ends, fingerprint) = encrypted(None);
    let content = noise(6, 20 << 20);
    let file = ends.put("file", &content);
    let wrong = Encryption::Pinned(Digest([7; 32]));
    assert!(why(send(&ends, &file, |request| request.encryption = wrong)).starts_with("TLS"));
    let right = send(&ends, &file, |request| request.encryption = Encryption::Pinned(fingerprint));
    assert!(right.is_complete(), "{right:?}");
    assert!(ends.got("file") == content);
}

#[test]
fn a_key_is_enough_to_know_an_encrypted_receiver_by() {
    let (ends, _) = encrypted(Some("sesame"));
    let file = ends.put("file", b"x");
    let by_key = |secret: &'static str| {
        send(&ends, &file, |request| {
            (request.encryption, request.key) = (Encryption::ByKey, Some(key(secret)));
        })
    };
    assert!(why(by_key("Sesame")).contains("does not fit"));
    let right = by_key("sesame");
    assert!(right.is_complete(), "{right:?}");
}

#[test]
fn one_end_that_encrypts_alone_is_told_and_does_not_try_again() {
    let (ends, _) = encrypted(None);
    let file = ends.put("file", b"x");
    let plain = send(&ends, &file, |_| {});
    let open = Ends::new();
    let file = open.put("file", b"x");
    let alone = send(&open, &file, |request| request.encryption = Encryption::Pinned(Digest([1; 32])));
    for report in [plain, alone] {
        assert_eq!(report.reconnects, 0, "{report:?}");
        assert!(why(report).starts_with("TLS"));
    }
}

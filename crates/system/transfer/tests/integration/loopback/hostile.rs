//! A sender that wants to write where it must not, or says what cannot be said.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;

use netaware_io::stop::StopFlag;
use netaware_stream::{DualStream, Options};
use netaware_transfer::{Broken, Progress, SendRequest};
use netaware_wire::proof::Key;
use netaware_wire::transfer::{Digest, Done, Head, ReceiverMessage, RefusalCode, SenderMessage};
use netaware_wire::{Token, frame};

use super::ends::{Ends, sent, sent_with};

struct Sender(DualStream);

impl Sender {
    /// Let in.
    fn new(ends: &Ends) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ends.port));
        let mut sender = Self(DualStream::connect_to("here", &[address], Options::default()).unwrap());
        sender.say(&SenderMessage::Hello { version: 1, software: "x".into(), nonce: Token::default() });
        assert!(matches!(sender.hear(), ReceiverMessage::Welcome { .. }));
        sender
    }

    fn say(&mut self, message: &SenderMessage) {
        self.0.write_all(&frame::emit(message).unwrap()).unwrap();
    }

    /// What no sender of ours would say.
    fn say_text(&mut self, json: &str) {
        self.0.write_all(&Head::Message(json.len()).emit()).unwrap();
        self.0.write_all(json.as_bytes()).unwrap();
    }

    fn chunk(&mut self, bytes: &[u8]) {
        self.0.write_all(&Head::Chunk(bytes.len()).emit()).unwrap();
        self.0.write_all(bytes).unwrap();
    }

    fn hear(&mut self) -> ReceiverMessage {
        let mut head = [0; 4];
        self.0.read_exact(&mut head).unwrap();
        let mut body = vec![0; frame::body_len(head).unwrap()];
        self.0.read_exact(&mut body).unwrap();
        ReceiverMessage::parse(&body).unwrap()
    }

    fn file(&mut self, path: &str, bytes: u64) {
        let file = format!(
            "{{\"type\":\"file\",\"entry\":0,\"path\":{},\"bytes\":{bytes},\"mode\":420,\"mtime\":[0,0]}}",
            serde_json::to_string(path).unwrap()
        );
        self.say_text(&file);
    }
}

fn assert_turned_away(ends: &Ends, mut sender: Sender) {
    assert!(matches!(sender.hear(), ReceiverMessage::Error { code: RefusalCode::Protocol, .. }));
    let [report] = &ends.reports(1)[..] else { panic!("one") };
    assert!(matches!(report.ended, Some(Broken::Protocol(_))), "{report:?}");
}

#[test]
fn names_that_lead_out_of_the_folder_end_the_transfer() {
    let ends = Ends::new();
    let outside = ends.target.path().parent().unwrap().join("netaware-evil");
    for path in ["../netaware-evil", "/tmp/netaware-evil", "a/../../netaware-evil", "", "a\0b", ".."] {
        let mut sender = Sender::new(&ends);
        sender.file(path, 1);
        assert_turned_away(&ends, sender);
    }
    assert!(!outside.exists());
    assert_eq!(std::fs::read_dir(ends.target.path()).unwrap().count(), 0);
}

#[test]
fn who_comes_when_there_are_enough_is_told_and_let_in_when_one_has_gone() {
    let ends = Ends::with(|config| config.max_transfers = 1);
    let file = ends.put("file", b"x");
    let mut holder = Some(Sender::new(&ends));
    let mut notes = Vec::new();
    let report = sent_with(&ends.request(&[&file]), &StopFlag::new(), |progress| {
        if let Progress::Note(note) = progress {
            notes.push(note);
            holder = None;
        }
    });
    assert!(report.is_complete() && report.reconnects > 0, "{report:?}");
    assert!(notes[0].contains("--max-transfers"), "{notes:?}");
}

#[test]
fn silent_connections_do_not_keep_out_who_has_the_key() {
    let key = Key::new(&b"sesame"[..]).unwrap();
    let ends = Ends::with(|config| {
        config.max_transfers = 1;
        config.key = Some(key.clone());
    });
    let file = ends.put("file", b"x");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ends.port));
    // More than a host may hold at a time, and than there are seats.
    let silent: Vec<_> =
        (0..40).map(|_| DualStream::connect_to("here", &[address], Options::default()).unwrap()).collect();
    let report = sent(&SendRequest { key: Some(key.clone()), ..ends.request(&[&file]) }).unwrap();
    assert_eq!((report.is_complete(), report.reconnects), (true, 0), "{report:?}");
    drop(silent);
}

#[test]
fn a_senders_words_do_not_open_the_owners_folder() {
    let ends = Ends::new();
    let private = ends.target.path().join("private");
    std::fs::create_dir(&private).unwrap();
    std::fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    let mut sender = Sender::new(&ends);
    sender.say_text("{\"type\":\"directory\",\"entry\":0,\"path\":\"private\"}");
    sender.say_text("{\"type\":\"seal\",\"entry\":1,\"path\":\"private\",\"mode\":511,\"mtime\":[0,0]}");
    for _ in 0..2 {
        assert!(matches!(sender.hear(), ReceiverMessage::Done { how: Done::Present, .. }));
    }
    assert_eq!(std::fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn links_in_the_folder_are_not_followed() {
    let ends = Ends::new();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), ends.target.path().join("way")).unwrap();
    let mut sender = Sender::new(&ends);
    sender.file("way/evil", 4);
    let ReceiverMessage::Refused { code, .. } = sender.hear() else { panic!("refused") };
    assert_eq!(code, RefusalCode::NotAFolder);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn bytes_that_belong_nowhere_end_the_transfer() {
    type Says = fn(&mut Sender);
    let says: [Says; 6] = [
        |sender| sender.chunk(b"x"),
        |sender| {
            sender.file("a", 1);
            sender.say(&SenderMessage::Begin { entry: 0, from: 0 });
            assert!(matches!(sender.hear(), ReceiverMessage::Ready { .. }));
            sender.chunk(b"xx");
        },
        |sender| {
            sender.file("a", 5);
            sender.say(&SenderMessage::Begin { entry: 0, from: 3 });
            assert!(matches!(sender.hear(), ReceiverMessage::Ready { .. }));
        },
        |sender| sender.say(&SenderMessage::End { entry: 0, digest: Digest([0; 32]) }),
        |sender| sender.say_text("{\"type\":\"teleport\"}"),
        |sender| sender.0.write_all(b"GET / HTTP/1.1\r\n").unwrap(),
    ];
    let ends = Ends::new();
    for say in says {
        let mut sender = Sender::new(&ends);
        say(&mut sender);
        assert_turned_away(&ends, sender);
    }
    assert!(!ends.target.path().join("a").exists());
}

#[test]
fn bytes_that_are_not_those_of_the_digest_do_not_become_a_file() {
    let ends = Ends::new();
    let mut sender = Sender::new(&ends);
    sender.file("a", 4);
    sender.say(&SenderMessage::Begin { entry: 0, from: 0 });
    sender.chunk(b"evil");
    sender.say(&SenderMessage::End { entry: 0, digest: Digest(blake3::hash(b"good").into()) });
    assert!(matches!(sender.hear(), ReceiverMessage::Ready { .. }));
    assert!(matches!(sender.hear(), ReceiverMessage::Refused { code: RefusalCode::Digest, .. }));
    assert_eq!(std::fs::read_dir(ends.target.path()).unwrap().count(), 0);
}

#[test]
fn a_sender_that_went_silent_does_not_hold_its_file() {
    let ends = Ends::new();
    let file = ends.put("a", b"0123456789");
    let mut silent = Sender::new(&ends);
    silent.file("a", 10);
    silent.say(&SenderMessage::Begin { entry: 0, from: 0 });
    silent.chunk(b"01234");
    assert!(matches!(silent.hear(), ReceiverMessage::Ready { .. }));
    // The file is locked only when its bytes come, which is after the receiver's answer.
    ends.until_it_holds("a", 5);
    let report = ends.send(&[&file]);
    assert_eq!((report.is_complete(), report.reconnects, report.resumed), (true, 0, 5), "{report:?}");
    assert_eq!(ends.got("a"), b"0123456789");
}

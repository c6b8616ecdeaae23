//! A peer of a file transfer that says anything: nothing panics, what parses comes back as it was,
//! and no name that is taken leads out of a folder.
#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use netaware_wire::frame;
use netaware_wire::transfer::{EntryPath, HEAD_LEN, Head, ReceiverMessage, SenderMessage};

fn check(path: &EntryPath) {
    let parts = Path::new(path.as_str()).components();
    assert!(parts.clone().all(|part| matches!(part, Component::Normal(_))));
    assert_eq!(parts.count(), path.folders().count() + 1);
    let partial = path.partial_name();
    assert!(partial.len() <= 255 && EntryPath::new(partial).is_err());
}

fuzz_target!(|data: &[u8]| {
    if let Some((head, body)) = data.split_first_chunk::<HEAD_LEN>() {
        if let Ok(head) = Head::parse(*head) {
            assert_eq!(Head::parse(head.emit()), Ok(head));
        }
        if let Ok(message) = SenderMessage::parse(body) {
            if let SenderMessage::File { path, .. }
            | SenderMessage::Directory { path, .. }
            | SenderMessage::Seal { path, .. } = &message
            {
                check(path);
            }
            // Text may grow by its escapes.
            if let Ok(bytes) = frame::emit(&message) {
                assert_eq!(SenderMessage::parse(&bytes[4..]), Ok(message));
            }
        }
        if let Ok(message) = ReceiverMessage::parse(body) {
            if let Ok(bytes) = frame::emit(&message) {
                assert_eq!(ReceiverMessage::parse(&bytes[4..]), Ok(message));
            }
        }
    }
    if let Ok(text) = str::from_utf8(data) {
        if let Ok(path) = EntryPath::new(text) {
            check(&path);
        }
    }
});

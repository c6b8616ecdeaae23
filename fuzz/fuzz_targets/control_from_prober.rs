//! A stream of control messages from a prober: cut into frames, given meaning, written back and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::control::ClientMessage;
use netaware_wire::frame::{self, FrameError, MAX_FRAME};

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Some((header, after)) = rest.split_first_chunk::<4>() {
        let Ok(length) = frame::body_len(*header) else { return };
        assert!(length <= MAX_FRAME);
        let body = &after[..length.min(after.len())];
        rest = &after[body.len()..];
        read(body);
    }
    // Few random lengths fit, so the same bytes are a body, too.
    read(bytes);
});

fn read(body: &[u8]) {
    match frame::parse::<ClientMessage>(body, ClientMessage::TYPES) {
        Ok(message) => again(&message),
        Err(error) => assert!(error.to_string().len() < 1000),
    }
}

fn again(message: &ClientMessage) {
    match frame::emit(message) {
        Ok(bytes) => assert_eq!(frame::parse(&bytes[4..], ClientMessage::TYPES).as_ref(), Ok(message)),
        Err(error) => assert!(matches!(error, FrameError::TooLong(_)), "{error}"),
    }
}

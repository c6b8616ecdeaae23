//! A stream of control messages from a responder: cut into frames, given meaning, written back and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::control::ServerMessage;
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
    match frame::parse::<ServerMessage>(body, ServerMessage::TYPES) {
        Ok(message) => again(&message),
        Err(error) => assert!(error.to_string().len() < 1000),
    }
}

fn again(message: &ServerMessage) {
    match frame::emit(message) {
        // Not compared: fractions may be rounded on their way through text.
        Ok(bytes) => drop(frame::parse::<ServerMessage>(&bytes[4..], ServerMessage::TYPES).unwrap()),
        Err(error) => assert!(matches!(error, FrameError::TooLong(_)), "{error}"),
    }
}

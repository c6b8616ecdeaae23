//! A stream of bytes, however it is cut: the same messages come out, and an announced length is
//! never believed beyond the limit.
#![no_main]

#[path = "../../crates/apps/server/src/framing.rs"]
mod framing;

use framing::Frames;
use libfuzzer_sys::fuzz_target;
use netaware_wire::control::ClientMessage;
use netaware_wire::frame::FrameError;

fuzz_target!(|input: (Vec<Vec<u8>>, Vec<u16>)| {
    let (bodies, cuts) = input;
    let mut bytes = Vec::new();
    for body in bodies {
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
    }
    let whole = read(&[&bytes]);
    let mut parts = Vec::new();
    let mut rest = &bytes[..];
    for cut in cuts {
        let (part, after) = rest.split_at(usize::from(cut).min(rest.len()));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    assert_eq!(read(&parts), whole);
});

fn read(parts: &[&[u8]]) -> Vec<Result<ClientMessage, FrameError>> {
    let mut frames = Frames::default();
    let mut messages = Vec::new();
    for part in parts {
        frames.push(part);
        while let Some(message) = frames.pop() {
            let endless = matches!(message, Err(FrameError::TooLong(_)));
            messages.push(message);
            if endless {
                return messages;
            }
        }
    }
    assert!(frames.is_partial() || messages.len() <= parts.iter().map(|part| part.len()).sum::<usize>() / 4);
    messages
}

//! Frames of a browser: however they are cut, the same payload is counted, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::websocket::{FrameWalk, FrameWalkError, Walked};

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = walk(bytes, bytes.len().max(1));
    let pieces = walk(bytes, usize::from(size).max(1));
    assert_eq!(whole, pieces);
    if let Ok(walked) = whole {
        assert!(walked.payload <= bytes.len() as u64);
    }
});

fn walk(bytes: &[u8], size: usize) -> Result<Walked, FrameWalkError> {
    let mut walk = FrameWalk::default();
    let mut sum = Walked::default();
    for piece in bytes.chunks(size) {
        let walked = walk.walk(piece)?;
        sum.payload += walked.payload;
        sum.messages += walked.messages;
        if walked.closed {
            sum.closed = true;
            break;
        }
    }
    Ok(sum)
}

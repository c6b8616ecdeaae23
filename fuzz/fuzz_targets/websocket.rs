//! Frames of a browser: however they are cut, the same payload is counted, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::websocket::Walked;

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = Walked::of([bytes]);
    let pieces = Walked::of(bytes.chunks(usize::from(size).max(1)));
    assert_eq!(whole, pieces);
    if let Ok(walked) = whole {
        assert!(walked.payload <= bytes.len() as u64);
    }
});

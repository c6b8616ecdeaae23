//! Datagrams of WebRTC: whatever comes, nothing panics, and who is asked stands in the datagram.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::webrtc::{Guest, asked};

fuzz_target!(|bytes: &[u8]| {
    if let Some(name) = asked(bytes) {
        assert_eq!(Guest::of(bytes), Some(Guest::Stun));
        assert!(bytes.windows(name.len() + 1).any(|window| window == [name.as_bytes(), b":"].concat()));
    }
});

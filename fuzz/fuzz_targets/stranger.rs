//! Whoever answers instead of netaware has a name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::stranger::{Stranger, identify};

fuzz_target!(|bytes: &[u8]| {
    let stranger = identify(bytes);
    assert_eq!(stranger == Stranger::Silent, bytes.is_empty());
    assert!(!stranger.name().is_empty());
});

//! Whoever can send to a host's daemons' ports can answer in their place: no answer of chronyd,
//! ntpd or ptp4l breaks us.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_host::clock::{chrony, ntpd, ptp};

fuzz_target!(|pieces: Vec<Vec<u8>>| {
    let mut variables = ntpd::Variables::default();
    for bytes in &pieces {
        // The number that the answer itself claims to answer, so that what comes behind is reached.
        let at = |place: usize| bytes.get(place).copied().unwrap_or(0);
        let sequence = u32::from_be_bytes([at(16), at(17), at(18), at(19)]);
        if let Ok(tracking) = chrony::Tracking::parse(bytes, sequence) {
            assert!(tracking.state().bound.is_none_or(|bound| bound.0 >= 0));
        }
        if let Ok(piece) = ntpd::Piece::parse(bytes, u16::from_be_bytes([at(2), at(3)])) {
            assert!(piece.text.len() + 12 <= bytes.len());
            variables.add(piece);
        }
        let _ = ptp::Told::parse(bytes, u16::from_be_bytes([at(30), at(31)]));
    }
    assert!(variables.state().bound.is_none_or(|bound| bound.0 >= 0));
});

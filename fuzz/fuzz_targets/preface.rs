//! What opens a TCP connection: whatever is understood is written back byte for byte, where bytes
//! have a meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::preface::{ATTACH_LEN, Attach, PREFACE_LEN, Preface};

fuzz_target!(|bytes: &[u8]| {
    let Some(opening) = bytes.first_chunk::<PREFACE_LEN>() else {
        Preface::may_start_with(bytes);
        return;
    };
    if let Ok(preface) = Preface::parse(opening) {
        assert!((0..=bytes.len()).all(|cut| Preface::may_start_with(&bytes[..cut])));
        assert_eq!(preface.emit()[..11], opening[..11]);
    }
    if let Some(rest) = bytes[PREFACE_LEN..].first_chunk::<ATTACH_LEN>() {
        assert_eq!(Attach::parse(rest).emit()[..22], rest[..22]);
    }
});

//! STAMP packets of anybody: as a reflector and as a sender take them, with and without a key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::proof::Key;
use netaware_wire::stamp::tlv::{Facts, reflect, told};
use netaware_wire::stamp::{Mode, Reply, Request};

fuzz_target!(|input: (bool, Vec<u8>)| {
    let (proven, bytes) = input;
    let key = proven.then(|| Key::new(*b"sesame").expect("short enough"));
    let key = key.as_ref();
    let _ = Reply::parse(&bytes, key);
    if let Ok(request) = Request::parse(&bytes, key) {
        let mut again = vec![0; Mode::of(key).base_len()];
        request.emit(&mut again, key);
        assert_eq!(Request::parse(&again, key), Ok(request));
        let _ = request.sent_at.at(request.error.format);
    }
    let facts = Facts { run_of_kernel: Some(b"run"), highest_dscp: 63, ..Facts::default() };
    let mut area = bytes.clone();
    reflect(&mut area, &facts, key, (1, 2));
    assert_eq!(area.len(), bytes.len());
    let _ = told(&area, key, 2);
});

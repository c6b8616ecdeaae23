//! Capture files come from strangers: none breaks the reader, and memory stays bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::packet::{LinkType, parse};
use netaware_wire::pcap::{LONGEST, Reader};

fuzz_target!(|file: &[u8]| {
    let Ok(mut reader) = Reader::new(file) else { return };
    let mut bytes = 0;
    while let Ok(Some(record)) = reader.next() {
        bytes += record.bytes.len();
        assert!(bytes <= file.len() && record.bytes.len() <= LONGEST as usize);
        assert!(record.bytes.len() as u64 <= u64::from(record.wire_length));
        if let Some(link) = LinkType::of_number(record.link) {
            let _ = parse(link, record.bytes, record.wire_length);
        }
    }
    let _ = reader.lost();
});

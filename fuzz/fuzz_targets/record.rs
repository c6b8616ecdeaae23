//! A record from a file: read, written, read again.
#![no_main]

mod edited;

use libfuzzer_sys::fuzz_target;
use netaware_record::Record;

const SAMPLES: &[&str] = &[
    include_str!("../samples/latency.json"),
    include_str!("../samples/tcp.json"),
    include_str!("../samples/udp.json"),
];

fuzz_target!(|text: edited::Text| {
    if let Ok(record) = serde_json::from_slice::<Record>(&text.bytes(SAMPLES)) {
        let text = serde_json::to_string(&record).unwrap();
        // Not compared: fractions may be rounded on their way through text.
        let _: Record = serde_json::from_str(&text).unwrap();
    }
});

//! A record from a file: read, written, read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_record::Record;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = serde_json::from_slice::<Record>(bytes) {
        let text = serde_json::to_string(&record).unwrap();
        // Not compared: fractions may be rounded on their way through text.
        let _: Record = serde_json::from_str(&text).unwrap();
    }
});

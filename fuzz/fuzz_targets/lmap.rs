//! What probes and collectors say: nothing panics, and what is within bounds is so when it is said
//! again. (Shares may come back one unit in the last place off, so messages are not compared.)
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::frame;
use netaware_wire::lmap::{FromCollector, FromProbe};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = FromProbe::parse(bytes)
        && let Ok(again) = frame::emit(&message)
    {
        assert!(FromProbe::parse(&again[4..]).is_ok());
    }
    if let Ok(message) = FromCollector::parse(bytes) {
        if let FromCollector::Instruction(instruction) = &message {
            let _ = instruction.faults();
        }
        if let Ok(again) = frame::emit(&message) {
            assert!(FromCollector::parse(&again[4..]).is_ok());
        }
    }
});

//! What probes and collectors say: nothing panics, and what is within bounds is so when it is said
//! again. (Shares may come back one unit in the last place off, so messages are not compared.)
#![no_main]

mod edited;

use libfuzzer_sys::fuzz_target;
use netaware_wire::frame;
use netaware_wire::lmap::{FromCollector, FromProbe, MAX_LIST, MAX_TASKS};

const SAMPLES: &[&str] = &[
    r#"{"type":"hello","probe":"bern-1","nonce":"00000000000000000000000000000000",
    "proof":"0000000000000000000000000000000000000000000000000000000000000000","software":"0.1.0",
    "abilities":["digest"],"interfaces":["eth0"],"addresses":["192.0.2.1"],"instruction":1,
    "incarnation":"00000000000000000000000000000000"}"#,
    r#"{"type":"batch","sequence":7,"ipfix":100,"report":20,"selections":{"delay":1}}"#,
    r#"{"type":"status","waiting_batches":1,"waiting_bytes":2,"given_up":0,"missed":0,"running":["flow"],
    "memory":1000,"cpu_ns":5}"#,
    r#"{"type":"instruction","number":7,"seed":"00000000000000000000000000000000","period_ms":1000,"tasks":{
    "count":{"kind":"volume","by":["source"],"prefix":[24,64],"keys":100,"filter":"udp","interface":"eth0"},
    "rate":{"kind":"traffic","slice_ms":10,"top":3},"delay":{"kind":"digest","share":0.5,"payload":40},
    "marks":{"kind":"marking","colour_bit":0,"block_ms":100},
    "flow":{"kind":"stamp","target":"192.0.2.2","interval_ns":1000000,"length":44,
    "schedule":{"every_ms":1000,"spread_ms":5,"from":1,"until":9}},
    "speed":{"kind":"measure","command":"tcp","target":"192.0.2.2","options":{"streams":"4"},
    "schedule":{"every_ms":60000}}},"suppression":{"tasks":["flow"],"passive":true,"until":5}}"#,
    r#"{"type":"welcome","proof":"0000000000000000000000000000000000000000000000000000000000000000","taken":3}"#,
    r#"{"type":"refusal","why":"another probe has this name","again_after":10}"#,
];

fuzz_target!(|text: edited::Text| {
    let bytes = &text.bytes(SAMPLES)[..];
    if let Ok(message) = FromProbe::parse(bytes) {
        if let FromProbe::Hello { abilities, interfaces, addresses, .. } = &message {
            assert!(abilities.len().max(interfaces.len()).max(addresses.len()) <= MAX_LIST);
        }
        if let Ok(again) = frame::emit(&message) {
            assert!(FromProbe::parse(&again[4..]).is_ok());
        }
    }
    if let Ok(message) = FromCollector::parse(bytes) {
        if let FromCollector::Instruction(instruction) = &message {
            assert!(instruction.faults().len() <= instruction.tasks.len());
            assert!(instruction.tasks.len() <= MAX_TASKS);
        }
        if let Ok(again) = frame::emit(&message) {
            assert!(FromCollector::parse(&again[4..]).is_ok());
        }
    }
});

//! Control messages from a prober: cut into frames, given meaning, written back and read again.
#![no_main]

mod edited;

use libfuzzer_sys::fuzz_target;
use netaware_wire::control::ClientMessage;
use netaware_wire::frame::{self, FrameError};

const SAMPLES: &[&str] = &[
    r#"{"type":"hello","version":1,"software":"netaware 0.1.0","nonce":"000102030405060708090a0b0c0d0e0f"}"#,
    r#"{"type":"authenticate","proof":"00"}"#,
    r#"{"type":"reserve","expected":1000,"join":"000102030405060708090a0b0c0d0e0f"}"#,
    r#"{"type":"open","test":1,"plan":{"kind":"udp_echo","length":64,"duration":1000000000,"dscp":46}}"#,
    r#"{"type":"open","test":2,"plan":{"kind":"tcp","direction":"forward","streams":4,"duration":1000000000,"length":65536,"tick":100000000,"rate":1000000,"mss":1400,"congestion":"cubic"}}"#,
    r#"{"type":"open","test":3,"plan":{"kind":"udp","direction":"reverse","duration":1000000000,"length":1472,"gap_ps":1000,"tick":100000000,"send":"gso","receive":"gro"}}"#,
    r#"{"type":"open","test":4,"plan":{"kind":"trains","direction":"forward","duration":1000000000,"length":1472}}"#,
    r#"{"type":"volley","test":4,"volley":{"number":0,"first":0,"trains":[{"packets":2,"length":1000,"gaps_ps":[5],"rest":7}],"patience":1000}}"#,
    r#"{"type":"start","test":1}"#,
    r#"{"type":"ping","seq":18446744073709551615}"#,
];

fuzz_target!(|text: edited::Text| {
    let body = text.bytes(SAMPLES);
    match frame::parse::<ClientMessage>(&body) {
        Ok(message) => again(&message),
        Err(error) => assert!(error.to_string().len() < 1000),
    }
});

fn again(message: &ClientMessage) {
    match frame::emit(message) {
        Ok(bytes) => assert_eq!(frame::parse(&bytes[4..]).as_ref(), Ok(message)),
        Err(error) => assert!(matches!(error, FrameError::TooLong(_)), "{error}"),
    }
}

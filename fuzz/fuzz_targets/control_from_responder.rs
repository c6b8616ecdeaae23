//! Control messages from a responder: given meaning, written back and read again.
#![no_main]

mod edited;

use libfuzzer_sys::fuzz_target;
use netaware_wire::control::ServerMessage;
use netaware_wire::frame::{self, FrameError};

const SAMPLES: &[&str] = &[
    r#"{"type":"challenge","nonce":"000102030405060708090a0b0c0d0e0f"}"#,
    r#"{"type":"welcome","version":1,"software":"x","token":"000102030405060708090a0b0c0d0e0f","host":{"name":"h","kernel":"","cpu":"","cores":2,"software":"","nics":[{"name":"lo","mtu":65536}]},"limits":{"duration":1}}"#,
    r#"{"type":"queued","place":1,"expected_wait":1000}"#,
    r#"{"type":"receiver_ticks","test":1,"ticks":[{"end":1,"length":1,"bytes":1,"lost":-1}]}"#,
    r#"{"type":"sender_ticks","test":1,"ticks":[{"end":1,"length":1,"bytes":1,"retransmits":0,"rtt":5,"cwnd":1}]}"#,
    r#"{"type":"volley_times","test":4,"volley":0,"times":[[0,1000],[1,2000]],"last":true}"#,
    r#"{"type":"finished","test":1,"outcome":"complete","report":{"as":"echo","answered":1,"drops":0}}"#,
    r#"{"type":"finished","test":1,"outcome":"failed","report":{"as":"tcp_sender","outcome":"complete","elapsed":1,"bytes":1,"cpu":{"process_user":0.5,"process_system":0.5,"busiest_thread":1,"busiest_core":null,"host":null,"softirq":null,"steal":null,"cores":2}}}"#,
    r#"{"type":"error","code":"version","message":"m","versions":[1,2]}"#,
    r#"{"type":"bye","reason":"r"}"#,
];

fuzz_target!(|text: edited::Text| {
    let body = text.bytes(SAMPLES);
    match frame::parse::<ServerMessage>(&body) {
        Ok(message) => again(&message),
        Err(error) => assert!(error.to_string().len() < 1000),
    }
});

fn again(message: &ServerMessage) {
    match frame::emit(message) {
        // Not compared: fractions may be rounded on their way through text.
        Ok(bytes) => drop(frame::parse::<ServerMessage>(&bytes[4..]).unwrap()),
        Err(error) => assert!(matches!(error, FrameError::TooLong(_)), "{error}"),
    }
}

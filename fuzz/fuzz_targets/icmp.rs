//! Anybody on a path may send ICMP: no message breaks the parser, and a quote lies within the message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_record::IpVersion;
use netaware_wire::icmp::{HEADER_LEN, Message, behind_ipv4, quoted_echo};

fuzz_target!(|bytes: &[u8]| {
    for version in [IpVersion::V4, IpVersion::V6] {
        if let Ok(Message::Error { quote, .. }) = Message::parse(version, bytes) {
            assert!(quote.rest.len() + HEADER_LEN + 20 <= bytes.len());
            let _ = quoted_echo(quote.rest);
        }
    }
    if let Some(rest) = behind_ipv4(bytes) {
        let _ = Message::parse(IpVersion::V4, rest);
    }
});

//! Anybody on a path may send ICMP: no message breaks the parser, and a quote lies within the
//! message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_record::IpVersion;
use netaware_wire::icmp::{HEADER_LEN, Message, TIMESTAMP_LEN, behind_ipv4, quoted_echo};

fuzz_target!(|bytes: &[u8]| {
    for version in [IpVersion::V4, IpVersion::V6] {
        match Message::parse(version, bytes) {
            Ok(Message::Error { quote, .. }) => {
                assert!(quote.rest.len() + HEADER_LEN + 20 <= bytes.len());
                let _ = quoted_echo(quote.rest);
            }
            Ok(Message::TimestampReply(..)) => {
                assert!(version == IpVersion::V4 && bytes.len() >= TIMESTAMP_LEN);
            }
            Ok(Message::EchoReply(_)) | Err(_) => {}
        }
    }
    if let Some(rest) = behind_ipv4(bytes) {
        let _ = Message::parse(IpVersion::V4, rest);
    }
});

//! Anybody sends packets: no frame breaks the reader, and all that it says lies within the frame.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::packet::{LinkType, Tunnels, parse_with};

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (kind, missing, frame) = input;
    let link = LinkType::ALL[usize::from(kind) % LinkType::ALL.len()];
    let rules = Tunnels { gre: true, ip_in_ip: true, vxlan: Some(4789), gtp: true };
    let Ok(packet) = parse_with(rules, link, frame, frame.len() as u32 + u32::from(missing)) else { return };
    assert!(packet.bytes.len() as u64 <= u64::from(packet.length));
    assert!(packet.length <= packet.frame_length && packet.transport as u64 <= u64::from(packet.length));
    if let Some(tcp) = packet.tcp() {
        let _ = tcp.timestamps();
        assert!(tcp.payload.len() as u64 <= u64::from(tcp.payload_length));
    }
    let _ = (packet.ports(), packet.udp(), packet.icmp().and_then(|icmp| icmp.echo()));
});

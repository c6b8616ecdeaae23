//! What a middlebox says to both ends of a TCP connection that it ends: a reset each, made of the
//! packet that it swallowed (RFC 9293 §3.10.7.1).

use std::net::IpAddr;

use crate::packet::{self, Header, TCP};

/// Writes a whole packet that resets the connection of `about` into `out`: as if from its sender,
/// to its addressee (`onward`), or as if from there, to its sender. False for what is not TCP, or a
/// reset itself.
pub(crate) fn emit(header: &Header, about: &[u8], onward: bool, out: &mut Vec<u8>) -> bool {
    let body = header.payload(about);
    let (Some(ports), Some(numbers), Some(flags)) = (body.get(..4), body.get(4..12), body.get(13)) else {
        return false;
    };
    if header.protocol != TCP || header.later_fragment || flags & RST != 0 {
        return false;
    }
    let number = |at: usize| numbers[at..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
    let length = body.len().saturating_sub(usize::from(body[12] >> 4) * 4) as u32;
    let phantom = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
    let (from, to, ports, sequence, acknowledged) = if onward {
        let ports = [ports[0], ports[1], ports[2], ports[3]];
        (header.source, header.destination, ports, number(0), number(4))
    } else {
        let ports = [ports[2], ports[3], ports[0], ports[1]];
        (header.destination, header.source, ports, number(4), number(0).wrapping_add(length + phantom))
    };
    let mut segment = [0; 20];
    segment[..4].copy_from_slice(&ports);
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    segment[8..12].copy_from_slice(&acknowledged.to_be_bytes());
    segment[12..14].copy_from_slice(&[5 << 4, RST | ACK]);
    let sum = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            packet::checksum(&[&from.octets(), &to.octets(), &[0, TCP, 0, 20], &segment])
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            packet::checksum(&[&from.octets(), &to.octets(), &[0, 0, 0, 20, 0, 0, 0, TCP], &segment])
        }
        _ => return false,
    };
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    packet::emit(from, to, TCP, &segment, out);
    true
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = packet::TCP_RST;
const ACK: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::made;

    #[test]
    fn both_ends_are_reset_with_numbers_that_they_expect() {
        for (a, b) in [("10.77.0.1", "10.77.0.2"), ("fd77::1", "fd77::2")] {
            let (a, b): (IpAddr, IpAddr) = (a.parse().unwrap(), b.parse().unwrap());
            let mut segment =
                vec![0x03, 0xe8, 0x07, 0xd0, 0, 0, 0, 100, 0, 0, 0, 200, 5 << 4, 0x18, 0, 9, 0, 0, 0, 0];
            segment.extend([7; 50]);
            let about = made::ip(a, b, TCP, 9, &segment);
            let header = Header::parse(&about).unwrap();
            for (onward, from, ports, numbers) in
                [(true, a, [1000, 2000], [100, 200]), (false, b, [2000, 1000], [200, 150])]
            {
                let mut out = Vec::new();
                assert!(emit(&header, &about, onward, &mut out));
                let reset = Header::parse(&out).unwrap();
                assert_eq!((reset.source, reset.ports, reset.protocol), (from, ports, TCP));
                let body = reset.payload(&out);
                assert_eq!((body[7], body[11]), (numbers[0], numbers[1]));
                assert_eq!(body[13], RST | ACK);
                assert!(!emit(&reset, &out, onward, &mut Vec::new()), "a reset is not answered");
            }
        }
    }
}

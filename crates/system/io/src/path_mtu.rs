//! What the kernel knows of a path's MTU, and how it comes to know it.
//!
//! A kernel takes the MTU of its own interface for that of the path until a router says that a
//! packet was too big (RFC 1191, RFC 8201). The packet that brings that answer is lost. So one
//! datagram of full size is sent ahead of a measurement whose own packets are not to be the first.

use std::net::SocketAddr;

use netaware_units::Span;

use crate::clock;
use crate::options::{SocketOptions, connect_udp};
use crate::probe_socket::{DontFragment, ProbeSocket, Stamping, is_too_big};

/// The MTU that the kernel has learned of the path to an address, or that of the interface;
/// `None` where the system does not tell.
pub fn known(to: SocketAddr, options: &SocketOptions) -> Option<u32> {
    open(to, options)?.path_mtu()
}

/// Sends a datagram of zeros, as long as the kernel believes that the path takes but no longer than
/// `longest` bytes with its IP header, and waits so long for a router to say that it was too big;
/// then again with the size that is known since. A router that says nothing teaches nothing, nor
/// does an answer that is lost.
pub fn learn(to: SocketAddr, options: &SocketOptions, longest: u32, patience: Span) {
    let Some(socket) = open(to, options) else { return };
    if socket.set_dont_fragment(DontFragment::Kernel).is_err() {
        return;
    }
    let headers = if to.is_ipv6() { IPV6_AND_UDP } else { IPV4_AND_UDP };
    let mut answer = [0; 64];
    for _ in 0..MAX_NARROWINGS {
        let Some(mtu) = socket.path_mtu() else { return };
        let datagram = vec![0; mtu.min(longest).saturating_sub(headers) as usize];
        let sent = socket.send(&datagram);
        if sent.as_ref().is_err_and(is_too_big) {
            // The answer to the datagram before has come meanwhile.
            continue;
        }
        let heard = sent.and_then(|()| socket.receive(&mut answer, Some(clock::now() + patience)));
        match heard {
            Err(error) if is_too_big(&error) => {}
            // No one says that it was too big, or no one listens there.
            Ok(_) | Err(_) => return,
        }
    }
}

fn open(to: SocketAddr, options: &SocketOptions) -> Option<ProbeSocket> {
    ProbeSocket::new(connect_udp(to, options).ok()?, Stamping::Application).ok()
}

/// Links on a path each of which takes shorter packets than the one before.
const MAX_NARROWINGS: u32 = 4;
/// Bytes of both headers.
const IPV4_AND_UDP: u32 = 28;
const IPV6_AND_UDP: u32 = 48;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn one_datagram_of_full_size_is_sent_and_no_more_where_nobody_says_that_it_was_too_big() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let there = UdpSocket::bind(address).unwrap();
            there.set_nonblocking(true).unwrap();
            let to = there.local_addr().unwrap();
            learn(to, &SocketOptions::default(), 1500, Span::from_millis(1));
            let mut buf = [0; 2000];
            let headers = if to.is_ipv6() { IPV6_AND_UDP } else { IPV4_AND_UDP };
            assert_eq!(there.recv(&mut buf).unwrap() as u32, 1500 - headers);
            assert!(there.recv(&mut buf).is_err(), "a second one came");
            assert!(known(to, &SocketOptions::default()).is_some_and(|mtu| mtu >= 1500));
        }
    }
}

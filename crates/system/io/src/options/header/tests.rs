use std::mem::zeroed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use netaware_units::Span;

use super::*;
use crate::options::{Reuse, bind_udp, connect_tcp, connect_udp, listen_tcp, prepare_tcp};

/// What a packet's IP header carried on arrival.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    class: Option<u8>,
    ttl: Option<u8>,
    label: Option<u32>,
}

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// A UDP socket that is told of the header fields of what arrives.
fn witness(ip: IpAddr) -> (UdpSocket, SocketAddr) {
    let socket = bind_udp(SocketAddr::new(ip, 0), &SocketOptions::default(), Reuse::No).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let on: libc::c_int = 1;
    let options: &[(libc::c_int, libc::c_int)] = if ip.is_ipv6() {
        &[
            (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT),
            (libc::IPPROTO_IPV6, IPV6_FLOWINFO),
        ]
    } else {
        &[(libc::IPPROTO_IP, libc::IP_RECVTOS), (libc::IPPROTO_IP, libc::IP_RECVTTL)]
    };
    for (level, option) in options {
        // SAFETY: the options take an int.
        let status = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                *level,
                *option,
                (&raw const on).cast(),
                size_of_val(&on) as u32,
            )
        };
        assert_eq!(status, 0, "{}", io::Error::last_os_error());
    }
    let at = socket.local_addr().unwrap();
    (socket, at)
}

/// Receives one datagram and reads its ancillary data.
fn seen(socket: &UdpSocket) -> Seen {
    let (mut bytes, mut control) = ([0_u8; 64], [0_u64; 32]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: an all-zero header is a valid empty one.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: all that `message` points at lives until the call returns.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    assert!(got >= 0, "{}", io::Error::last_os_error());
    let mut found = Seen::default();
    // SAFETY: the kernel has filled `message` and its control buffer, which outlive the walk.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: `header` points into the control buffer; each of these messages carries at least
        // the bytes read.
        unsafe {
            let data = libc::CMSG_DATA(header);
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_TOS) => found.class = Some(*data),
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    found.ttl = u8::try_from(data.cast::<libc::c_int>().read_unaligned()).ok();
                }
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    found.class = u8::try_from(data.cast::<libc::c_int>().read_unaligned()).ok();
                }
                (libc::IPPROTO_IPV6, IPV6_FLOWINFO) => {
                    found.label = Some(u32::from_be(data.cast::<u32>().read_unaligned()) & 0xf_ffff);
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    found
}

fn marked() -> SocketOptions {
    SocketOptions { dscp: 46, ttl: Some(17), flow_label: Some(0x1_2345), ..SocketOptions::default() }
}

#[test]
fn what_is_asked_for_is_in_the_packets_of_both_versions() {
    for (ip, label) in [(V4, None), (V6, Some(0x1_2345))] {
        let (witness, at) = witness(ip);
        connect_udp(at, &marked()).unwrap().send(b"x").unwrap();
        assert_eq!(seen(&witness), Seen { class: Some(46 << 2), ttl: Some(17), label }, "{ip}");
    }
}

#[test]
fn a_socket_that_talks_to_many_labels_each_datagram_for_itself() {
    let (witness, at) = witness(V6);
    let shared = bind_udp(SocketAddr::new(V6, 0), &SocketOptions::default(), Reuse::No).unwrap();
    use_labels(&SockRef::from(&shared)).unwrap();
    shared.send_to(b"x", address_with_label(at, 0xa_bcde)).unwrap();
    assert_eq!(seen(&witness).label, Some(0xa_bcde));
    shared.send_to(b"x", address_with_label(at, 1)).unwrap();
    assert_eq!(seen(&witness).label, Some(1));
    let plain = SockRef::from(&shared);
    let before = default_ttl(&plain, true).unwrap();
    set_ttl(&plain, true, 3).unwrap();
    shared.send_to(b"x", at).unwrap();
    assert_eq!(seen(&witness).ttl, Some(3));
    assert!(before > 3);
}

#[test]
fn both_ends_of_a_tcp_connection_take_the_fields() {
    for ip in [V4, V6] {
        let listener = listen_tcp(SocketAddr::new(ip, 0), 1).unwrap();
        let out = connect_tcp(listener.local_addr().unwrap(), &marked(), Span::from_secs(2)).unwrap();
        let (into, _) = listener.accept().unwrap();
        prepare_tcp(&into, &SocketOptions { flow_label: None, ..marked() }).unwrap();
        for stream in [&out, &into] {
            let socket = SockRef::from(stream);
            assert_eq!(default_ttl(&socket, ip.is_ipv6()).unwrap(), 17);
            let class = if ip.is_ipv6() { socket.tclass_v6() } else { socket.tos_v4() };
            assert_eq!(class.unwrap() & 0xfc, 46 << 2);
        }
        // The kernel tells the label that a connection was opened with in its peer's address.
        if let SocketAddr::V6(peer) = out.peer_addr().unwrap() {
            assert_eq!(u32::from_be(peer.flowinfo()), 0x1_2345);
        }
    }
}

#[test]
fn a_label_that_cannot_be_is_refused_by_name() {
    let (_witness, at) = witness(V6);
    let options = SocketOptions { flow_label: Some(0x10_0000), ..SocketOptions::default() };
    let error = connect_udp(at, &options).unwrap_err().to_string();
    assert!(error.contains("flow label 0x100000 refused"), "{error}");
}

/// linux/in6.h; as an option it asks for the field, as ancillary data it carries it.
const IPV6_FLOWINFO: libc::c_int = 11;

//! Which queueing discipline stands behind a socket, and whether it releases datagrams at times
//! given with them.
//!
//! `fq` does (`SO_TXTIME` on `CLOCK_MONOTONIC`, since Linux 4.20). `etf` does too, but drops what
//! comes too late for its time, and the drops of our own queue would look like the network's; it is
//! not used. All others ignore the time.

#![expect(unsafe_code, reason = "netlink and getifaddrs have no safe wrapper in the standard library")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::zone::ZonedIp;

/// The kinds of an interface's queueing disciplines, the root first, each as often as it stands
/// there.
///
/// # Errors
/// There is no such interface, or the system does not answer.
pub fn queueing_disciplines(interface: &str) -> io::Result<Vec<String>> {
    let name = std::ffi::CString::new(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: a terminated text that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => kinds_of(index),
    }
}

/// `Ok` if every datagram of this connected socket passes an `fq`; else what stands there instead.
pub(super) fn releases_at_given_times(socket: &UdpSocket) -> Result<(), String> {
    let local = ZonedIp::of(socket.local_addr().map_err(|error| error.to_string())?);
    let index = interface_of(local).ok_or_else(|| format!("no interface has the address {local}"))?;
    let kinds = kinds_of(index).map_err(|error| format!("asking for queueing disciplines: {error}"))?;
    judge(&kinds)
}

/// A root that only spreads over the card's queues is as good as what stands behind it.
fn judge(kinds: &[String]) -> Result<(), String> {
    let mut working = kinds.iter().filter(|kind| *kind != "mq").peekable();
    if working.peek().is_none() {
        return Err("the interface has no queueing discipline".to_owned());
    }
    match working.find(|kind| *kind != "fq") {
        None => Ok(()),
        Some(other) => Err(format!("the queueing discipline is {other}, not fq")),
    }
}

/// A link-local address may be that of several interfaces, so its zone is the answer.
fn interface_of(address: ZonedIp) -> Option<u32> {
    address.zone().or_else(|| owner_of(address.ip()))
}

fn owner_of(address: IpAddr) -> Option<u32> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is writable; the list is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return None;
    }
    let mut next = first;
    let mut found = None;
    while found.is_none() && !next.is_null() {
        // SAFETY: an entry of the list that getifaddrs built and nobody has freed.
        let entry = unsafe { &*next };
        // SAFETY: the entry's address and name are valid as long as the list.
        found = unsafe { address_of(entry) == Some(address) }
            .then(|| unsafe { libc::if_nametoindex(entry.ifa_name) });
        next = entry.ifa_next;
    }
    // SAFETY: what getifaddrs gave, once.
    unsafe { libc::freeifaddrs(first) };
    found.filter(|index| *index > 0)
}

/// # Safety
/// `ifa_addr` is null or points at an address as long as its family says.
unsafe fn address_of(entry: &libc::ifaddrs) -> Option<IpAddr> {
    if entry.ifa_addr.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe {
        match i32::from((*entry.ifa_addr).sa_family) {
            libc::AF_INET => {
                let ip = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned().sin_addr.s_addr;
                Some(Ipv4Addr::from(u32::from_be(ip)).into())
            }
            libc::AF_INET6 => {
                let ip = entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned().sin6_addr.s6_addr;
                Some(Ipv6Addr::from(ip).into())
            }
            _ => None,
        }
    }
}

/// The kinds of all disciplines of an interface.
fn kinds_of(index: u32) -> io::Result<Vec<String>> {
    let socket = open()?;
    let request = Request::new(index);
    // SAFETY: the request is readable for its size.
    let sent = unsafe {
        libc::send(socket.as_raw_fd(), (&raw const request).cast(), size_of::<Request>(), libc::MSG_NOSIGNAL)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut kinds = Vec::new();
    let mut buf = vec![0; 32 << 10];
    for _ in 0..MOST_ANSWERS {
        // SAFETY: the buffer is writable for its length.
        let len = unsafe { libc::recv(socket.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len(), 0) };
        let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
        if read_dump(&buf[..len], index, &mut kinds) == Dump::Done {
            return Ok(kinds);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn open() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd =
        unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, owned by nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let patience = libc::timeval { tv_sec: 1, tv_usec: 0 };
    // SAFETY: the value is readable for its size. Without a timeout we would wait as long as the
    // kernel does.
    unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const patience).cast(),
            size_of::<libc::timeval>() as libc::socklen_t,
        );
    }
    Ok(socket)
}

/// `RTM_GETQDISC` as a dump (rtnetlink(7)).
#[repr(C)]
struct Request {
    header: libc::nlmsghdr,
    body: TcMessage,
}

/// `struct tcmsg` of linux/rtnetlink.h.
#[repr(C)]
struct TcMessage {
    family: u8,
    padding: [u8; 3],
    index: i32,
    handle: u32,
    parent: u32,
    info: u32,
}

impl Request {
    fn new(index: u32) -> Self {
        Self {
            header: libc::nlmsghdr {
                nlmsg_len: size_of::<Self>() as u32,
                nlmsg_type: libc::RTM_GETQDISC,
                nlmsg_flags: (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16,
                nlmsg_seq: 1,
                nlmsg_pid: 0,
            },
            body: TcMessage {
                family: 0,
                padding: [0; 3],
                index: index.cast_signed(),
                handle: 0,
                parent: 0,
                info: 0,
            },
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Dump {
    More,
    Done,
}

/// Collects the kinds from one answer. What is cut short is left out.
fn read_dump(mut bytes: &[u8], index: u32, kinds: &mut Vec<String>) -> Dump {
    while let Some((length, kind)) = u32_at(bytes, 0).zip(u16_at(bytes, 4)) {
        let length = length as usize;
        if i32::from(kind) == libc::NLMSG_DONE || i32::from(kind) == libc::NLMSG_ERROR {
            return Dump::Done;
        }
        let Some(message) = bytes.get(HEADER..length) else { return Dump::Done };
        if u32_at(message, 4) == Some(index) && kinds.len() < MOST_KINDS {
            kinds.extend(message.get(size_of::<TcMessage>()..).and_then(kind_attribute));
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Dump::More
}

/// The text of `TCA_KIND`.
fn kind_attribute(mut attributes: &[u8]) -> Option<String> {
    while let Some((length, kind)) = u16_at(attributes, 0).zip(u16_at(attributes, 2)) {
        let value = attributes.get(4..usize::from(length))?;
        if kind == libc::TCA_KIND {
            let text = value.split(|byte| *byte == 0).next()?;
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        attributes = attributes.get(usize::from(length).next_multiple_of(4)..)?;
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

const HEADER: usize = size_of::<libc::nlmsghdr>();
/// A card with some thousands of queues answers in a few hundred parts.
const MOST_ANSWERS: usize = 1000;
const MOST_KINDS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, index: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![0; size_of::<TcMessage>()];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        for (name, value) in attributes {
            body.extend(((value.len() + 4) as u16).to_ne_bytes());
            body.extend(name.to_ne_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut bytes = ((body.len() + HEADER) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn kinds_are_read_from_a_dump_and_others_interfaces_are_not_ours() {
        let new = 36;
        let mut bytes = message(new, 3, &[(libc::TCA_KIND, b"mq\0"), (2, &[1; 7])]);
        bytes.extend(message(new, 3, &[(2, &[1; 7]), (libc::TCA_KIND, b"fq\0")]));
        bytes.extend(message(new, 4, &[(libc::TCA_KIND, b"tbf\0")]));
        let mut kinds = Vec::new();
        assert_eq!(read_dump(&bytes, 3, &mut kinds), Dump::More);
        assert_eq!(kinds, ["mq", "fq"]);
        assert_eq!(read_dump(&message(3, 0, &[]), 3, &mut kinds), Dump::Done);
    }

    #[test]
    fn an_answer_that_is_cut_short_anywhere_is_survived() {
        let bytes = message(36, 3, &[(2, &[1; 7]), (libc::TCA_KIND, b"fq\0")]);
        for length in 0..bytes.len() {
            let mut kinds = Vec::new();
            read_dump(&bytes[..length], 3, &mut kinds);
            assert!(kinds.is_empty(), "{length}");
        }
        let mut kinds = Vec::new();
        assert_eq!(read_dump(&[0; 64], 3, &mut kinds), Dump::Done, "a length of zero would never end");
    }

    #[test]
    fn only_fq_everywhere_releases_at_given_times() {
        let judge = |kinds: &[&str]| judge(&kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>());
        assert_eq!(judge(&["fq"]), Ok(()));
        assert_eq!(judge(&["mq", "fq", "fq"]), Ok(()));
        assert!(judge(&["mq", "fq", "fq_codel"]).unwrap_err().contains("fq_codel"));
        assert!(judge(&["noqueue"]).is_err() && judge(&[]).is_err() && judge(&["mq"]).is_err());
    }

    #[test]
    fn an_interface_is_asked_by_its_name() {
        assert_eq!(queueing_disciplines("lo").unwrap(), ["noqueue"]);
        assert!(queueing_disciplines("no such").is_err() && queueing_disciplines("a\0b").is_err());
    }

    #[test]
    fn a_link_local_address_of_several_links_is_asked_on_the_link_of_its_zone() {
        let on = |zone| {
            let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
            interface_of(ZonedIp::from(ip).within(Some(zone)))
        };
        assert_eq!((on(7), on(8)), (Some(7), Some(8)));
        assert!(interface_of(Ipv4Addr::LOCALHOST.into()).is_some());
    }

    #[test]
    fn loopback_has_no_queue_that_could() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let why = releases_at_given_times(&socket).unwrap_err();
        assert!(why.contains("queueing discipline"), "{why}");
    }
}

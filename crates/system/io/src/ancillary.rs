//! What the kernel tells beside the payload of a datagram: arrival stamp, TTL, the address it was
//! sent to, the size of merged segments, and the reports of the error queue.
//!
//! Parsing reads only what the kernel wrote into our own buffer; nothing here comes from the
//! network unchecked. An absent or short field is `None`, never a guess.

mod real_time;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::{c_int, cmsghdr, msghdr};
use netaware_units::Wall;
pub(crate) use real_time::{ClockPair, RealTime};

/// Room for control messages. What we ask for needs about 200 bytes: three stamps, TTL, packet
/// info, an error report.
#[repr(C, align(8))]
pub(crate) struct Control(pub(crate) [u8; CONTROL_BYTES]);

/// See [`Control`].
pub(crate) const CONTROL_BYTES: usize = 320;

impl Control {
    /// Empty.
    pub(crate) const fn new() -> Self {
        Self([0; CONTROL_BYTES])
    }
}

/// One message's control data, as far as we asked for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ancillary {
    /// The kernel's software stamp, on the real-time clock.
    pub(crate) stamp: Option<Wall>,
    /// TTL or hop limit.
    pub(crate) ttl: Option<u8>,
    /// DSCP and ECN: the TOS or traffic class byte.
    pub(crate) traffic_class: Option<u8>,
    /// Local address that the datagram was sent to; an answer leaves from it.
    pub(crate) to: Option<IpAddr>,
    /// Bytes of each datagram when the kernel merged several (`UDP_GRO`).
    pub(crate) segment: Option<u16>,
    /// What a message of the error queue is about.
    pub(crate) report: Option<Report>,
    /// The ICMP error in it, if it is one.
    pub(crate) icmp: Option<IcmpError>,
}

/// An ICMP or ICMPv6 error that the kernel has matched to a socket, or a refusal of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IcmpError {
    /// This host itself says so, not the network.
    pub(crate) is_local: bool,
    /// ICMP type.
    pub(crate) kind: u8,
    /// ICMP code.
    pub(crate) code: u8,
    /// The next-hop MTU, for a packet that is too big.
    pub(crate) info: u32,
    /// Who sent the error.
    pub(crate) from: Option<IpAddr>,
}

/// A message of the error queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// A transmit stamp; the kernel numbers stamped sends from 0.
    Sent {
        /// The kernel's number.
        id: u32,
    },
    /// An ICMP answer, or a refusal by this host, to an earlier datagram.
    Refused {
        /// errno.
        errno: i32,
    },
}

impl Ancillary {
    /// Reads the control messages that `recvmsg` has written.
    ///
    /// # Safety
    /// `message` must be as `recvmsg` left it: `msg_control` valid for `msg_controllen` bytes.
    pub(crate) unsafe fn parse(message: &msghdr) -> Self {
        let mut found = Self::default();
        // SAFETY: promised by the caller; the CMSG functions stay inside `msg_controllen`.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
        while !header.is_null() {
            // SAFETY: not null, thus inside the control buffer.
            unsafe {
                found.take(header);
                header = libc::CMSG_NXTHDR(message, header);
            }
        }
        found
    }

    /// # Safety
    /// `header` points at a control message that lies wholly inside its buffer.
    unsafe fn take(&mut self, header: *const cmsghdr) {
        // SAFETY: promised by the caller.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        // SAFETY: `value` checks the length; the kernel's layouts are plain old data.
        unsafe {
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => {
                    self.stamp = value::<[libc::timespec; 3]>(header).and_then(|stamps| wall(stamps[0]));
                }
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    self.ttl = value::<c_int>(header).and_then(|ttl| u8::try_from(ttl).ok());
                }
                // One byte over IPv4, an int over IPv6.
                (libc::IPPROTO_IP, libc::IP_TOS) => self.traffic_class = value::<u8>(header),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    self.traffic_class = value::<c_int>(header).and_then(|class| u8::try_from(class).ok());
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    self.to = value::<libc::in_pktinfo>(header)
                        .map(|info| Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr)).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    self.to = value::<libc::in6_pktinfo>(header)
                        .map(|info| Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    self.segment = value::<c_int>(header).and_then(|size| u16::try_from(size).ok());
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    self.report = value::<libc::sock_extended_err>(header).map(Report::from);
                    self.icmp = icmp_error(header);
                }
                _ => {}
            }
        }
    }
}

impl From<libc::sock_extended_err> for Report {
    fn from(error: libc::sock_extended_err) -> Self {
        if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
            Self::Sent { id: error.ee_data }
        } else {
            Self::Refused { errno: error.ee_errno.cast_signed() }
        }
    }
}

/// What follows an extended error: the sender's address (`SO_EE_OFFENDER`).
#[derive(Clone, Copy)]
#[repr(C)]
struct WithOffender<A: Copy> {
    error: libc::sock_extended_err,
    offender: A,
}

/// # Safety
/// As [`value`].
unsafe fn icmp_error(header: *const cmsghdr) -> Option<IcmpError> {
    // SAFETY: promised by the caller; `value` checks each length.
    let (error, v4, v6) = unsafe {
        (
            value::<libc::sock_extended_err>(header)?,
            value::<WithOffender<libc::sockaddr_in>>(header),
            value::<WithOffender<libc::sockaddr_in6>>(header),
        )
    };
    let is_local = match error.ee_origin {
        libc::SO_EE_ORIGIN_LOCAL => true,
        libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6 => false,
        _ => return None,
    };
    let v4 = v4.map(|it| it.offender).filter(|at| c_int::from(at.sin_family) == libc::AF_INET);
    let v6 = v6.map(|it| it.offender).filter(|at| c_int::from(at.sin6_family) == libc::AF_INET6);
    let v4 = v4.map(|at| IpAddr::from(Ipv4Addr::from(u32::from_be(at.sin_addr.s_addr))));
    let v6 = v6.map(|at| IpAddr::from(Ipv6Addr::from(at.sin6_addr.s6_addr)));
    Some(IcmpError {
        is_local,
        kind: error.ee_type,
        code: error.ee_code,
        info: error.ee_info,
        from: v4.or(v6),
    })
}

/// The payload of a control message, if it is long enough to be a `T`.
///
/// # Safety
/// `header` lies inside its buffer with all of its `cmsg_len`; every bit pattern is a valid `T`.
unsafe fn value<T: Copy>(header: *const cmsghdr) -> Option<T> {
    // SAFETY: promised by the caller; CMSG_LEN only computes.
    let (have, need): (usize, usize) =
        unsafe { ((*header).cmsg_len as _, libc::CMSG_LEN(size_of::<T>() as u32) as _) };
    // SAFETY: the payload holds at least a `T`; it may be less aligned than one.
    (have >= need).then(|| unsafe { libc::CMSG_DATA(header).cast::<T>().read_unaligned() })
}

/// A stamp of zero means that the kernel took none.
fn wall(at: libc::timespec) -> Option<Wall> {
    // Narrower on 32-bit systems.
    let (seconds, nanos): (i64, i64) = (at.tv_sec as _, at.tv_nsec as _);
    let nanos = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    (nanos != 0).then_some(Wall(nanos))
}

/// Writes the control message that makes a datagram leave from `from`, and returns its length.
pub(crate) fn emit_source(control: &mut Control, from: IpAddr) -> usize {
    match from {
        IpAddr::V4(from) => {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from(from).to_be() },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            emit(control, libc::IPPROTO_IP, libc::IP_PKTINFO, info)
        }
        IpAddr::V6(from) => {
            let addr = libc::in6_addr { s6_addr: from.octets() };
            let info = libc::in6_pktinfo { ipi6_addr: addr, ipi6_ifindex: 0 };
            emit(control, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info)
        }
    }
}

/// Writes the control message that gives one datagram its TTL or hop limit, and returns its length.
pub(crate) fn emit_ttl(control: &mut Control, is_v6: bool, ttl: u8) -> usize {
    let value = c_int::from(ttl);
    if is_v6 {
        emit(control, libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, value)
    } else {
        emit(control, libc::IPPROTO_IP, libc::IP_TTL, value)
    }
}

fn emit<T: Copy>(control: &mut Control, level: c_int, kind: c_int, value: T) -> usize {
    let size = size_of::<T>() as u32;
    // SAFETY: CMSG_LEN and CMSG_SPACE only compute.
    let (len, space) = unsafe { (libc::CMSG_LEN(size) as usize, libc::CMSG_SPACE(size) as usize) };
    debug_assert!(space <= CONTROL_BYTES, "a packet info has at most 20 bytes");
    let header = (&raw mut *control).cast::<cmsghdr>();
    // SAFETY: `Control` is aligned for a header and longer than `space`.
    unsafe {
        (*header).cmsg_len = len as _;
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
    space
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(control: &mut Control, len: usize) -> Ancillary {
        // SAFETY: an all-zero header is valid: no name, no data.
        let mut message: msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = (&raw mut control.0).cast();
        message.msg_controllen = len as _;
        // SAFETY: `len` bytes of the buffer are initialised.
        unsafe { Ancillary::parse(&message) }
    }

    #[test]
    fn a_source_address_survives_the_round_trip() {
        let mut control = Control::new();
        let len = emit_source(&mut control, "::1".parse().unwrap());
        assert_eq!(parse(&mut control, len).to, Some("::1".parse().unwrap()));
        let len = emit_source(&mut control, "127.0.0.2".parse().unwrap());
        assert_eq!(parse(&mut control, len).to, Some("127.0.0.2".parse().unwrap()));
    }

    #[test]
    fn a_short_field_is_absent() {
        let mut control = Control::new();
        let len = emit(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, [1_u8; 8]);
        assert_eq!(parse(&mut control, len), Ancillary::default());
        let len = emit(&mut control, libc::IPPROTO_IP, libc::IP_TTL, 4096_i32);
        assert_eq!(parse(&mut control, len).ttl, None);
    }

    #[test]
    fn a_stamp_of_zero_is_no_stamp() {
        let mut control = Control::new();
        let mut stamps = [libc::timespec { tv_sec: 0, tv_nsec: 0 }; 3];
        let len = emit(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, stamps);
        assert_eq!(parse(&mut control, len).stamp, None);
        stamps[0] = libc::timespec { tv_sec: 2, tv_nsec: 5 };
        let len = emit(&mut control, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, stamps);
        assert_eq!(parse(&mut control, len).stamp, Some(Wall(2_000_000_005)));
    }
}

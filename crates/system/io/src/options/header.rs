//! Fields of the IP header that a socket writes: DSCP, TTL or hop limit, and the flow label of
//! IPv6.
//!
//! A flow label belongs to a destination: it travels in the address that a socket is connected to,
//! so only the end that connects can choose the label of a TCP connection; the other end's TCP
//! labels its segments as its system does.

use std::io;
use std::net::SocketAddr;

use socket2::SockRef;

use super::{OptionError, SocketOptions, refused};

/// Sets DSCP, and TTL or hop limit, where asked for.
pub(super) fn set(socket: &SockRef<'_>, is_v6: bool, options: &SocketOptions) -> Result<(), OptionError> {
    if options.dscp != 0 {
        set_dscp(socket, is_v6, options.dscp).map_err(refused("DSCP", options.dscp))?;
    }
    if let Some(ttl) = options.ttl {
        set_ttl(socket, is_v6, ttl).map_err(refused("TTL", ttl))?;
    }
    Ok(())
}

/// Sets the DSCP, 0..=63, of what a socket sends from now on.
pub fn set_dscp(socket: &SockRef<'_>, is_v6: bool, dscp: u8) -> io::Result<()> {
    let class = u32::from(dscp.min(63)) << 2;
    if is_v6 { set_class_v6(socket, class) } else { socket.set_tos_v4(class) }
}

/// Sets TTL or hop limit, 1..=255, of what a socket sends from now on.
pub fn set_ttl(socket: &SockRef<'_>, is_v6: bool, ttl: u8) -> io::Result<()> {
    if is_v6 { socket.set_unicast_hops_v6(ttl.into()) } else { socket.set_ttl_v4(ttl.into()) }
}

/// What a new socket of this system sends with.
pub fn default_ttl(socket: &SockRef<'_>, is_v6: bool) -> io::Result<u8> {
    let ttl = if is_v6 { socket.unicast_hops_v6() } else { socket.ttl_v4() }?;
    u8::try_from(ttl).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The address with the flow label in it, and the socket ready to use it. IPv4 has no flow label:
/// there it is `to`.
///
/// # Errors
/// The system has no flow labels, or refuses this one.
pub fn labelled(
    socket: &SockRef<'_>,
    to: SocketAddr,
    flow_label: Option<u32>,
) -> Result<SocketAddr, OptionError> {
    let (SocketAddr::V6(mut to), Some(label)) = (to, flow_label) else { return Ok(to) };
    lease_label(socket, &to, label)
        .and_then(|()| use_labels(socket))
        .map_err(refused("flow label", format_args!("{label:#x}")))?;
    to.set_flowinfo(label.to_be());
    Ok(to.into())
}

/// Makes a socket that talks to many send each datagram with the flow label of its address (see
/// [`address_with_label`]); Linux since 5.3 asks for nothing else.
#[cfg(target_os = "linux")]
pub fn use_labels(socket: &SockRef<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_v6(socket, IPV6_FLOWINFO_SEND, &on)
}

/// Other systems have no such option.
#[cfg(not(target_os = "linux"))]
pub fn use_labels(_: &SockRef<'_>) -> io::Result<()> {
    Err(super::unsupported())
}

/// The address with a flow label in it; IPv4 has none.
pub fn address_with_label(to: SocketAddr, label: u32) -> SocketAddr {
    match to {
        SocketAddr::V6(mut to) => {
            to.set_flowinfo(label.to_be());
            to.into()
        }
        SocketAddr::V4(_) => to,
    }
}

/// Takes a share of the label for this destination. Kernels before 5.3 send no label without it;
/// later ones only when somebody on the host holds a label for themselves alone.
#[cfg(target_os = "linux")]
fn lease_label(socket: &SockRef<'_>, to: &std::net::SocketAddrV6, label: u32) -> io::Result<()> {
    let request = FlowLabelRequest {
        destination: to.ip().octets(),
        label: label.to_be(),
        action: FL_A_GET,
        share: FL_S_ANY,
        flags: FL_F_CREATE,
        expires: 0,
        linger: 0,
        padding: 0,
    };
    set_v6(socket, IPV6_FLOWLABEL_MGR, &request)
}

#[cfg(not(target_os = "linux"))]
fn lease_label(_: &SockRef<'_>, _: &std::net::SocketAddrV6, _: u32) -> io::Result<()> {
    Err(super::unsupported())
}

/// `struct in6_flowlabel_req` of linux/in6.h.
#[cfg(target_os = "linux")]
#[repr(C)]
struct FlowLabelRequest {
    destination: [u8; 16],
    label: u32,
    action: u8,
    share: u8,
    flags: u16,
    expires: u16,
    linger: u16,
    padding: u32,
}

#[cfg(target_os = "linux")]
fn set_v6<T>(socket: &SockRef<'_>, option: libc::c_int, value: &T) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: `value` is plain data of the size told; the kernel only reads it.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IPV6,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(unix)]
fn set_class_v6(socket: &SockRef<'_>, class: u32) -> io::Result<()> {
    socket.set_tclass_v6(class)
}

#[cfg(not(unix))]
fn set_class_v6(_: &SockRef<'_>, _: u32) -> io::Result<()> {
    Err(super::unsupported())
}

// linux/in6.h
#[cfg(target_os = "linux")]
const IPV6_FLOWLABEL_MGR: libc::c_int = 32;
#[cfg(target_os = "linux")]
const IPV6_FLOWINFO_SEND: libc::c_int = 33;
#[cfg(target_os = "linux")]
const FL_A_GET: u8 = 0;
#[cfg(target_os = "linux")]
const FL_F_CREATE: u16 = 1;
#[cfg(target_os = "linux")]
const FL_S_ANY: u8 = 255;

#[cfg(all(test, target_os = "linux"))]
mod tests;

//! Addresses as C has them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use libc::{sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// Room for either.
#[derive(Clone, Copy)]
pub(crate) struct Raw {
    bytes: Aligned,
    length: socklen_t,
}

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Aligned([u8; V6_LEN]);

const V4_LEN: usize = size_of::<sockaddr_in>();
const V6_LEN: usize = size_of::<sockaddr_in6>();

impl Raw {
    pub(crate) fn empty() -> Self {
        Self { bytes: Aligned([0; V6_LEN]), length: V6_LEN as socklen_t }
    }

    /// For a socket of this domain: IPv4 is written into IPv6 where the socket is of that (RFC 4291
    /// §2.5.5.2).
    pub(crate) fn new(address: SocketAddr, domain: i32) -> Self {
        let mut raw = Self::empty();
        let address = match (address.ip(), domain) {
            (IpAddr::V4(v4), libc::AF_INET6) => SocketAddr::new(v4.to_ipv6_mapped().into(), address.port()),
            _ => address,
        };
        let bytes = &mut raw.bytes.0;
        match address {
            SocketAddr::V4(v4) => {
                bytes[..2].copy_from_slice(&(libc::AF_INET as sa_family_t).to_ne_bytes());
                bytes[2..4].copy_from_slice(&v4.port().to_be_bytes());
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                raw.length = V4_LEN as socklen_t;
            }
            SocketAddr::V6(v6) => {
                bytes[..2].copy_from_slice(&(libc::AF_INET6 as sa_family_t).to_ne_bytes());
                bytes[2..4].copy_from_slice(&v6.port().to_be_bytes());
                bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
            }
        }
        raw
    }

    pub(crate) fn pointer(&self) -> *const u8 {
        self.bytes.0.as_ptr()
    }

    pub(crate) fn pointer_mut(&mut self) -> *mut u8 {
        self.bytes.0.as_mut_ptr()
    }

    pub(crate) fn length(&self) -> socklen_t {
        self.length
    }

    /// What stands there, of which so many bytes are meant.
    pub(crate) fn parse(&self, length: socklen_t) -> Option<SocketAddr> {
        parse(&self.bytes.0[..(length as usize).min(V6_LEN)])
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes.0[..self.length as usize]
    }
}

/// An address of a program.
///
/// # Safety
/// So many bytes can be read there, or the pointer is null.
pub(crate) unsafe fn read(address: *const sockaddr, length: socklen_t) -> Option<SocketAddr> {
    if address.is_null() {
        return None;
    }
    let length = (length as usize).min(V6_LEN);
    // SAFETY: the caller's word.
    parse(unsafe { std::slice::from_raw_parts(address.cast::<u8>(), length) })
}

fn parse(bytes: &[u8]) -> Option<SocketAddr> {
    let family = sa_family_t::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match i32::from(family) {
        libc::AF_INET if bytes.len() >= V4_LEN => {
            let ip: [u8; 4] = bytes[4..8].try_into().ok()?;
            Some(SocketAddrV4::new(Ipv4Addr::from(ip), port).into())
        }
        libc::AF_INET6 if bytes.len() >= V6_LEN => {
            let flow = u32::from_be_bytes(bytes[4..8].try_into().ok()?);
            let ip: [u8; 16] = bytes[8..24].try_into().ok()?;
            let scope = u32::from_ne_bytes(bytes[24..28].try_into().ok()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (text, domain, want) in [
            ("192.0.2.1:80", libc::AF_INET, "192.0.2.1:80"),
            ("192.0.2.1:80", libc::AF_INET6, "[::ffff:192.0.2.1]:80"),
            ("[2001:db8::1]:443", libc::AF_INET6, "[2001:db8::1]:443"),
            ("[fe80::1%3]:443", libc::AF_INET6, "[fe80::1%3]:443"),
        ] {
            let raw = Raw::new(text.parse().unwrap(), domain);
            assert_eq!(raw.parse(raw.length()), Some(want.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_is_cut_off_is_no_address() {
        let raw = Raw::new("[2001:db8::1]:443".parse().unwrap(), libc::AF_INET6);
        assert_eq!(raw.parse(27), None);
        assert_eq!(Raw::empty().parse(28), None);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read(std::ptr::null(), 16) }, None);
    }
}

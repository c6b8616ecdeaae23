//! Who is at the other end.

use std::ffi::{c_char, c_int};
use std::net::SocketAddr;

use netaware_record::IpVersion;
use netaware_stream::PeerId;

use crate::calls::{NA_IPV4, NA_IPV6, guarded, invalid};
use crate::error::Failure;
use crate::status::number;
use crate::table::{self, Carries, datagrams_of, lock, stream_of};

/// na_peer: room for any address as a text.
pub const NA_ADDRESS_LENGTH: usize = 64;

/// Writes the address of the other end as a text that ends with a null byte, and its port unless
/// `port` is NULL: over NA_IPV4 or NA_IPV6, the connection there is or was last; or with 0 over the
/// version in use. Behind a translator the address may be of the other version. NA_IPV4 or NA_IPV6,
/// whichever it told of; or -1.
///
/// # Safety
/// `address` has room for `length` bytes; NA_ADDRESS_LENGTH is enough. `port` is NULL or has room
/// for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_peer(
    stream: c_int,
    version: c_int,
    address: *mut c_char,
    length: usize,
    port: *mut u16,
) -> c_int {
    guarded(|| {
        let wanted = wanted(version)?;
        let entry = table::entry(stream)?;
        let carries = lock(&entry).carries;
        let (ip, found) = match carries {
            Carries::Bytes => {
                let stream = stream_of(&entry)?;
                let ip = wanted.or_else(|| stream.status().current).ok_or_else(none)?;
                (ip, stream.peer_address(ip))
            }
            Carries::Datagrams => of_session(&entry, PeerId::CONNECTED, wanted)?,
        };
        // SAFETY: the caller's promise.
        unsafe { tell(found.ok_or_else(none)?, address, length, port) }?;
        Ok(number(ip))
    })
}

/// As na_peer, of a peer of a socket of datagrams as na_recvfrom names it.
///
/// # Safety
/// As na_peer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_peer_of(
    socket: c_int,
    peer: u64,
    version: c_int,
    address: *mut c_char,
    length: usize,
    port: *mut u16,
) -> c_int {
    guarded(|| {
        let wanted = wanted(version)?;
        let entry = table::entry(socket)?;
        let (ip, found) = of_session(&entry, PeerId(peer), wanted)?;
        // SAFETY: the caller's promise.
        unsafe { tell(found.ok_or_else(none)?, address, length, port) }?;
        Ok(number(ip))
    })
}

fn wanted(version: c_int) -> Result<Option<IpVersion>, Failure> {
    match version {
        0 => Ok(None),
        NA_IPV4 => Ok(Some(IpVersion::V4)),
        NA_IPV6 => Ok(Some(IpVersion::V6)),
        _ => Err(invalid("neither NA_IPV4, NA_IPV6 nor 0")),
    }
}

fn of_session(
    entry: &std::sync::Mutex<table::Entry>,
    peer: PeerId,
    wanted: Option<IpVersion>,
) -> Result<(IpVersion, Option<SocketAddr>), Failure> {
    let socket = datagrams_of(entry)?;
    let current = || socket.status(peer).and_then(|status| status.current);
    let ip = wanted.or_else(current).ok_or_else(none)?;
    Ok((ip, socket.address(peer, ip)))
}

fn none() -> Failure {
    Failure::new(libc::ENOTCONN, "there has been no connection of that IP version")
}

/// # Safety
/// As na_peer.
unsafe fn tell(
    found: SocketAddr,
    address: *mut c_char,
    length: usize,
    port: *mut u16,
) -> Result<(), Failure> {
    if address.is_null() {
        return Err(Failure::new(libc::EFAULT, "nowhere to put the address"));
    }
    let text = text(found);
    if text.len() >= length {
        return Err(Failure::new(libc::ERANGE, format!("the address needs {} bytes", text.len() + 1)));
    }
    // SAFETY: the caller's promise, and there is room for the text and its end.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), address.cast::<u8>(), text.len());
        address.add(text.len()).write(0);
        if !port.is_null() {
            port.write(found.port());
        }
    }
    Ok(())
}

/// As na_connect takes it: a link's own address with the link.
fn text(found: SocketAddr) -> String {
    match found {
        SocketAddr::V6(found) if found.scope_id() != 0 => format!("{}%{}", found.ip(), found.scope_id()),
        _ => found.ip().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, SocketAddrV6};

    use super::*;

    #[test]
    fn the_longest_address_fits_and_a_link_is_named() {
        let longest = SocketAddrV6::new(Ipv6Addr::from([0xfe; 16]), 65_535, 0, u32::MAX);
        let told = text(longest.into());
        assert!(told.ends_with("%4294967295") && told.len() < NA_ADDRESS_LENGTH, "{told}");
        assert_eq!(text("192.0.2.1:5".parse().unwrap()), "192.0.2.1");
    }
}

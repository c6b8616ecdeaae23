//! The functions that stand before the C library's. Each does the least and leaves.
#![cfg_attr(test, expect(dead_code, reason = "a test's own connections are not to be raced"))]

use std::ffi::{CStr, c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{addrinfo, epoll_event, hostent, sockaddr, socklen_t};
use netaware_record::IpVersion;

use crate::address::{self, Raw};
use crate::disguise::{self, End};
use crate::guard::guarded;
use crate::system::{self, set_errno};
use crate::{begin, claims, order};

const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// connect(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    let raced = guarded(|| {
        // SAFETY: the program's word, as for the system.
        let to = unsafe { address::read(address, length) }?;
        begin::connect(fd, to, look_up)
    });
    match raced {
        Some(Ok(())) => 0,
        Some(Err(errno)) => {
            set_errno(errno);
            -1
        }
        // SAFETY: the program's own arguments.
        None => unsafe { system::connect(fd, address, length) },
    }
}

/// close(2): nothing of ours comes under a number that is let go.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if claims::any() {
        guarded(|| {
            claims::closing(fd);
            Some(())
        });
    }
    // SAFETY: the program's own argument.
    unsafe { system::close(fd) }
}

/// epoll_ctl(2): what is watched has to be watched after a move.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn epoll_ctl(
    epoll: c_int,
    what: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: the program's own arguments.
    let tell = || unsafe { system::epoll_ctl(epoll, what, fd, event) };
    if order::present().is_none() {
        return tell();
    }
    // SAFETY: as for the system: null, or an event.
    let copy = unsafe { event.as_ref() }.copied();
    claims::watch(epoll, what, fd, copy, tell)
}

/// getpeername(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe { named(fd, End::Peer, address, length, system::getpeername) }
}

/// getsockname(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe { named(fd, End::Own, address, length, system::getsockname) }
}

/// # Safety
/// As for getsockname(2).
unsafe fn named(
    fd: c_int,
    end: End,
    address: *mut sockaddr,
    length: *mut socklen_t,
    ask: unsafe fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int,
) -> c_int {
    let mut truth = Raw::empty();
    let mut known = truth.length();
    let told = disguise::any().then(|| {
        guarded(|| {
            // SAFETY: room for the longest address, and its length.
            let done = unsafe { ask(fd, truth.pointer_mut().cast(), &raw mut known) };
            let truth = truth.parse(known).filter(|_| done == 0)?;
            disguise::of(fd, end, truth)
        })
    });
    match told.flatten() {
        Some(told) if !address.is_null() && !length.is_null() => {
            let told = Raw::new(told, libc::AF_INET);
            // SAFETY: the program has room for so many bytes, as it told the system.
            unsafe {
                let room = (*length as usize).min(told.bytes().len());
                std::ptr::copy_nonoverlapping(told.pointer(), address.cast::<u8>(), room);
                *length = told.length();
            }
            0
        }
        // SAFETY: the program's own arguments.
        _ => unsafe { ask(fd, address, length) },
    }
}

/// getaddrinfo(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    found: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the program's own arguments.
    let done = unsafe { system::getaddrinfo(node, service, hints, found) };
    if done == 0 && !node.is_null() && !found.is_null() {
        guarded(|| {
            // SAFETY: the call has succeeded with them.
            let (name, list, hints) = unsafe { (CStr::from_ptr(node), *found, hints.as_ref()) };
            let asked: &[IpVersion] = match hints.map_or(libc::AF_UNSPEC, |hints| hints.ai_family) {
                libc::AF_INET => &BOTH[..1],
                libc::AF_INET6 => &BOTH[1..],
                _ => &BOTH,
            };
            // SAFETY: a list that getaddrinfo(3) made.
            begin::record(name.to_str().ok()?, asked, &unsafe { addresses(list) });
            Some(())
        });
    }
    done
}

/// For the race: addresses of one version, kept in the book.
fn look_up(name: &str, ip: IpVersion) -> Vec<IpAddr> {
    let Ok(node) = std::ffi::CString::new(name) else { return Vec::new() };
    // SAFETY: all zeros are valid hints.
    let mut hints: addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_family = if ip == IpVersion::V4 { libc::AF_INET } else { libc::AF_INET6 };
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut list = std::ptr::null_mut();
    // SAFETY: all of them live until the call returns.
    let done =
        unsafe { system::getaddrinfo(node.as_ptr(), std::ptr::null(), &raw const hints, &raw mut list) };
    if done != 0 {
        return Vec::new();
    }
    // SAFETY: the list is getaddrinfo(3)'s, and freed once.
    let found = unsafe {
        let found = addresses(list);
        libc::freeaddrinfo(list);
        found
    };
    begin::record(name, &[ip], &found);
    found
}

/// # Safety
/// A list of getaddrinfo(3), or null.
unsafe fn addresses(mut list: *const addrinfo) -> Vec<IpAddr> {
    let mut found = Vec::new();
    // SAFETY: the caller's word; the list ends with null.
    while let Some(one) = unsafe { list.as_ref() }
        && found.len() < LONGEST_LIST
    {
        // SAFETY: as it says of itself.
        let address = unsafe { address::read(one.ai_addr, one.ai_addrlen) };
        let unscoped = |it: &SocketAddr| !matches!(it, SocketAddr::V6(v6) if v6.scope_id() != 0);
        found.extend(address.filter(unscoped).as_ref().map(SocketAddr::ip));
        list = one.ai_next;
    }
    found
}

/// gethostbyname(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn gethostbyname(name: *const c_char) -> *mut hostent {
    // SAFETY: the program's own argument.
    let entry = unsafe { system::gethostbyname(name) };
    // SAFETY: what it returned.
    unsafe { keep(name, entry) };
    entry
}

/// gethostbyname2(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn gethostbyname2(name: *const c_char, family: c_int) -> *mut hostent {
    // SAFETY: the program's own arguments.
    let entry = unsafe { system::gethostbyname2(name, family) };
    // SAFETY: what it returned.
    unsafe { keep(name, entry) };
    entry
}

/// gethostbyname_r(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn gethostbyname_r(
    name: *const c_char,
    entry: *mut hostent,
    buffer: *mut c_char,
    size: usize,
    found: *mut *mut hostent,
    error: *mut c_int,
) -> c_int {
    // SAFETY: the program's own arguments.
    let done = unsafe { system::gethostbyname_r(name, entry, buffer, size, found, error) };
    if done == 0 && !found.is_null() {
        // SAFETY: what it returned.
        unsafe { keep(name, *found) };
    }
    done
}

/// gethostbyname2_r(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn gethostbyname2_r(
    name: *const c_char,
    family: c_int,
    entry: *mut hostent,
    buffer: *mut c_char,
    size: usize,
    found: *mut *mut hostent,
    error: *mut c_int,
) -> c_int {
    // SAFETY: the program's own arguments.
    let done = unsafe { system::gethostbyname2_r(name, family, entry, buffer, size, found, error) };
    if done == 0 && !found.is_null() {
        // SAFETY: what it returned.
        unsafe { keep(name, *found) };
    }
    done
}

/// # Safety
/// A name that was looked up, and the entry that was found, or null.
unsafe fn keep(name: *const c_char, entry: *const hostent) {
    guarded(|| {
        // SAFETY: the caller's word.
        let entry =
            unsafe { entry.as_ref() }.filter(|entry| !entry.h_addr_list.is_null() && !name.is_null())?;
        let (ip, length) = match entry.h_addrtype {
            libc::AF_INET => (IpVersion::V4, 4),
            libc::AF_INET6 => (IpVersion::V6, 16),
            _ => return None,
        };
        let mut found = Vec::new();
        for at in 0..LONGEST_LIST {
            // SAFETY: the list ends with null, where the loop ends.
            let address = unsafe { *entry.h_addr_list.add(at) };
            if address.is_null() || entry.h_length != length {
                break;
            }
            // SAFETY: an address of that type has so many bytes.
            let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), length as usize) };
            found.push(match ip {
                IpVersion::V4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
                IpVersion::V6 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
            });
        }
        // SAFETY: the lookup has succeeded with it.
        begin::record(unsafe { CStr::from_ptr(name) }.to_str().ok()?, &[ip], &found);
        Some(())
    });
}

/// Of addresses that are looked at.
const LONGEST_LIST: usize = 64;

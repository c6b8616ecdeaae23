//! The calls that only datagrams have.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use netaware_stream::PeerId;

use crate::calls::{NA_DONTWAIT, deadline, guarded, invalid, to_read, to_write};
use crate::error::Failure;
use crate::table::{self, Entry, datagrams_of, lock};

/// Sends one datagram to a peer, as na_recvfrom names it. How many bytes, or -1. That it was sent
/// does not mean that it came.
///
/// # Safety
/// `bytes` has `length` bytes to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_sendto(
    socket: c_int,
    bytes: *const c_void,
    length: usize,
    flags: c_int,
    peer: u64,
) -> isize {
    guarded(|| {
        let entry = table::entry(socket)?;
        // SAFETY: the caller's promise.
        unsafe { send(&entry, bytes, length, flags, PeerId(peer)) }
    })
}

/// Receives one datagram and cuts off what does not fit; `peer`, where it is not NULL, becomes the
/// number of who sent it. How many bytes, which may be none, or -1.
///
/// # Safety
/// `out` has `length` bytes to write, `peer` is NULL or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_recvfrom(
    socket: c_int,
    out: *mut c_void,
    length: usize,
    flags: c_int,
    peer: *mut u64,
) -> isize {
    guarded(|| {
        let entry = table::entry(socket)?;
        // SAFETY: the caller's promise.
        let (count, from) = unsafe { receive(&entry, out, length, flags) }?;
        if !peer.is_null() {
            // SAFETY: the caller's promise.
            unsafe { peer.write(from.0) };
        }
        Ok(count)
    })
}

/// # Safety
/// `bytes` has `length` bytes to read.
pub(crate) unsafe fn send(
    entry: &Mutex<Entry>,
    bytes: *const c_void,
    length: usize,
    flags: c_int,
    peer: PeerId,
) -> Result<isize, Failure> {
    if flags & !NA_DONTWAIT != 0 {
        return Err(invalid("a flag that datagrams do not know"));
    }
    let bytes = if length == 0 {
        &[]
    } else {
        // SAFETY: the caller's promise.
        unsafe { to_read(bytes, length) }?
    };
    let socket = datagrams_of(entry)?;
    let deadline = {
        let entry = lock(entry);
        deadline(&entry, flags, entry.send_patience)
    };
    if bytes.len() > netaware_stream::MAX_DATAGRAM {
        return Err(Failure::new(
            libc::EMSGSIZE,
            format!("{} bytes are the most", netaware_stream::MAX_DATAGRAM),
        ));
    }
    socket.send_to_until(bytes, peer, deadline)?;
    Ok(bytes.len() as isize)
}

/// # Safety
/// `out` has `length` bytes to write.
pub(crate) unsafe fn receive(
    entry: &Mutex<Entry>,
    out: *mut c_void,
    length: usize,
    flags: c_int,
) -> Result<(isize, PeerId), Failure> {
    if flags & !NA_DONTWAIT != 0 {
        return Err(invalid("a flag that datagrams do not know"));
    }
    let out = if length == 0 {
        &mut []
    } else {
        // SAFETY: the caller's promise.
        unsafe { to_write(out, length) }?
    };
    let socket = datagrams_of(entry)?;
    let deadline = {
        let entry = lock(entry);
        deadline(&entry, flags, entry.receive_patience)
    };
    let (count, peer) = socket.recv_from_until(out, deadline)?;
    Ok((count as isize, peer))
}

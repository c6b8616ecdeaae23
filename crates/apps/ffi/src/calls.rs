//! The calls that are those of sockets.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use libc::iovec;
use netaware_io::clock;
use netaware_io::signals::NoPipeSignal;
use netaware_io::zone::{self, AddressError};
use netaware_record::IpVersion;
use netaware_stream::{
    CannotSwitch, ConnectError, DatagramOptions, DualDatagram, DualListener, DualStream, Options, PeerId,
    Wanted,
};
use netaware_units::{Mono, Span};

use crate::datagrams;
use crate::ending;
use crate::error::{self, Failure};
use crate::table::{self, Carries, Entry, What, datagrams_of, lock, stream_of};

/// na_socket: a connection of each IP version.
pub const NA_DUAL: c_int = 0;
/// na_socket: one connection, of whichever version comes up first.
pub const NA_FIRST: c_int = 1;
/// na_socket, na_switch: IPv4 alone.
pub const NA_IPV4: c_int = 4;
/// na_socket, na_switch: IPv6 alone.
pub const NA_IPV6: c_int = 6;

/// na_socket, beside one of those: datagrams instead of a stream.
pub const NA_DGRAM: c_int = 16;

/// na_send, na_recv and their kin: do not wait; EAGAIN where it would have to.
pub const NA_DONTWAIT: c_int = 1;
/// na_send, na_recv: leave this call out of switching: while it runs the stream is held, see
/// na_hold. Of streams alone.
pub const NA_MSG_HOLD: c_int = 2;

/// na_shutdown: no more is sent. Of streams alone.
pub const NA_SHUT_WR: c_int = 1;
/// na_shutdown: the stream is given up; a socket of datagrams ends its sessions.
pub const NA_SHUT_RDWR: c_int = 2;

/// na_setsockopt: bytes kept until they are acknowledged, and taken until they are read; of
/// datagrams the latter alone. Before connecting or listening.
pub const NA_WINDOW: c_int = 1;
/// na_setsockopt: milliseconds that na_send may wait; 0 for no end.
pub const NA_SNDTIMEO: c_int = 2;
/// na_setsockopt: milliseconds that na_recv and na_accept may wait; 0 for no end.
pub const NA_RCVTIMEO: c_int = 3;
/// na_setsockopt: other than 0 for calls that do not wait.
pub const NA_NONBLOCK: c_int = 4;
/// na_getsockopt: how many holds there are, those of calls with NA_MSG_HOLD included. na_hold makes
/// them.
pub const NA_HOLD: c_int = 5;

/// errno of every call in a child of fork whose parent has opened a stream: the streams are the
/// parent's, and nothing of them has been touched. No error of the system has this number.
pub const NA_EFORK: c_int = 5000;

/// As writev(2) has it on Linux.
const MOST_PARTS: usize = 1024;

/// Runs a call: no panic and no SIGPIPE leaves it, and in a child of fork it does nothing but fail.
pub(crate) fn guarded<T: From<i8>>(work: impl FnOnce() -> Result<T, Failure>) -> T {
    let _quiet = NoPipeSignal::begin();
    let done = catch_unwind(AssertUnwindSafe(|| {
        ending::check_process()?;
        work()
    }));
    match done.unwrap_or_else(|_| Err(Failure::new(libc::EIO, "an error inside libnetaware"))) {
        Ok(value) => value,
        Err(failure) => {
            failure.leave();
            T::from(-1)
        }
    }
}

pub(crate) fn invalid(words: &str) -> Failure {
    Failure::new(libc::EINVAL, words)
}

/// # Safety
/// `text` is null or ends with a null byte.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::new(libc::EFAULT, "a text is missing"));
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| invalid("a text that is not UTF-8"))
}

/// A new stream, not connected yet: NA_DUAL, NA_FIRST, NA_IPV4 or NA_IPV6; with NA_DGRAM a socket
/// of datagrams. Its number, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn na_socket(kind: c_int) -> c_int {
    guarded(|| {
        let wanted = match kind & !NA_DGRAM {
            NA_DUAL => Wanted::Each,
            NA_FIRST => Wanted::First,
            NA_IPV4 => Wanted::Only(IpVersion::V4),
            NA_IPV6 => Wanted::Only(IpVersion::V6),
            _ => return Err(invalid("neither NA_DUAL, NA_FIRST, NA_IPV4 nor NA_IPV6")),
        };
        ending::arrange();
        let options = Options { wanted, ..Options::default() };
        if kind & NA_DGRAM == 0 {
            return insert(What::Fresh, options, Carries::Bytes);
        }
        insert(
            What::Fresh,
            Options { window: DatagramOptions::default().inbox, ..options },
            Carries::Datagrams,
        )
    })
}

fn insert(what: What, options: Options, carries: Carries) -> Result<c_int, Failure> {
    let entry = Entry {
        options,
        carries,
        callback: None,
        holds: 0,
        nonblocking: false,
        send_patience: None,
        receive_patience: None,
        what,
        descriptor: None,
    };
    table::insert(entry)
}

/// Says where na_listen listens: an address, a link-local one with its interface (fe80::1%eth0), or
/// NULL for all addresses of the IP versions of na_socket; port 0 for any. 0, or -1.
///
/// # Safety
/// `address` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_bind(stream: c_int, address: *const c_char, port: u16) -> c_int {
    guarded(|| {
        let entry = table::entry(stream)?;
        let mut entry = lock(&entry);
        if !matches!(entry.what, What::Fresh | What::Bound(_)) {
            return Err(invalid("connected or listening already"));
        }
        let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
        let addresses: Vec<SocketAddr> = if address.is_null() {
            let wanted = |ip: &IpAddr| match entry.options.wanted {
                Wanted::Only(only) => IpVersion::of(*ip) == only,
                Wanted::First | Wanted::Each => true,
            };
            any.into_iter().filter(wanted).map(|ip| SocketAddr::new(ip, port)).collect()
        } else {
            // SAFETY: the caller's promise.
            let address = unsafe { text(address) }?;
            vec![place(address, port)?]
        };
        entry.what = What::Bound(addresses);
        Ok(0)
    })
}

/// A port of an address, a link-local one with its interface.
fn place(address: &str, port: u16) -> Result<SocketAddr, Failure> {
    match zone::parse_ip(address) {
        Ok(ip) => Ok(ip.at(port)),
        Err(AddressError::NotAnAddress(_)) => Err(invalid("no address of IPv4 or IPv6")),
        Err(error) => Err(invalid(&error.to_string())),
    }
}

/// Begins to take streams, or datagrams of all who connect. `backlog` is there as in listen(2); the
/// library's own limit is 128, of datagrams 1024 sessions. The port, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn na_listen(stream: c_int, backlog: c_int) -> c_int {
    let _ = backlog;
    guarded(|| {
        let entry = table::entry(stream)?;
        let mut entry = lock(&entry);
        let What::Bound(addresses) = &entry.what else { return Err(invalid("na_bind comes first")) };
        let all = addresses.len() == 2;
        if entry.carries == Carries::Datagrams {
            let options = entry.datagram_options();
            let socket = match addresses.first() {
                Some(first) if all => DualDatagram::bind(first.port(), options),
                _ => DualDatagram::bind_to(addresses, options),
            }?;
            socket.set_policy_callback(entry.callback.clone());
            let port = socket.addresses().first().map_or(0, SocketAddr::port);
            entry.what = What::Datagrams(socket);
            return Ok(c_int::from(port));
        }
        let listener = match addresses.first() {
            Some(first) if all => DualListener::bind(first.port(), entry.options),
            _ => DualListener::bind_to(addresses, entry.options),
        }?;
        listener.set_policy_callback(entry.callback.clone());
        let port = listener.addresses().first().map_or(0, SocketAddr::port);
        entry.what = What::Listener(Arc::new(listener));
        Ok(c_int::from(port))
    })
}

/// Waits for the next stream of a listening one. Its number, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn na_accept(stream: c_int) -> c_int {
    guarded(|| {
        let entry = table::entry(stream)?;
        let (listener, deadline, options) = {
            let entry = lock(&entry);
            let What::Listener(listener) = &entry.what else {
                return Err(invalid("it does not listen for streams"));
            };
            (listener.clone(), deadline(&entry, 0, entry.receive_patience), entry.options)
        };
        let (accepted, _) = listener.accept_until(deadline)?;
        insert(What::Stream(accepted), options, Carries::Bytes)
    })
}

/// Connects to a host which listens with na_listen: a name or address, or several of one host with
/// commas between. 0, or -1.
///
/// # Safety
/// `host` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_connect(stream: c_int, host: *const c_char, port: u16) -> c_int {
    guarded(|| {
        let entry = table::entry(stream)?;
        // SAFETY: the caller's promise.
        let host = unsafe { text(host) }?.to_owned();
        let (carries, options, of_datagrams) = {
            let entry = lock(&entry);
            if !matches!(entry.what, What::Fresh) {
                return Err(Failure::new(libc::EISCONN, "connected or bound already"));
            }
            (entry.carries, entry.options, entry.datagram_options())
        };
        let what = match carries {
            Carries::Bytes => What::Stream(DualStream::connect(&host, port, options).map_err(not_connected)?),
            Carries::Datagrams => {
                What::Datagrams(DualDatagram::connect(&host, port, of_datagrams).map_err(not_connected)?)
            }
        };
        let mut entry = lock(&entry);
        entry.what = what;
        entry.apply_policy()?;
        Ok(0)
    })
}

fn not_connected(why: ConnectError) -> Failure {
    let words = why.to_string();
    let errno = match why {
        ConnectError::NoAddress { .. } | ConnectError::Resolve { .. } => libc::EADDRNOTAVAIL,
        ConnectError::Refused { .. } => libc::ECONNREFUSED,
        ConnectError::Failed { source, .. } | ConnectError::Host(source) => {
            source.raw_os_error().unwrap_or(libc::ECONNABORTED)
        }
    };
    Failure::new(errno, words)
}

/// When a call has to end.
pub(crate) fn deadline(entry: &Entry, flags: c_int, patience: Option<Span>) -> Option<Mono> {
    let now = clock::now();
    if entry.nonblocking || flags & NA_DONTWAIT != 0 {
        Some(now)
    } else {
        patience.map(|patience| now + patience)
    }
}

/// Sends bytes. Without NA_DONTWAIT all of them, as far as no error or time-out comes in between;
/// of datagrams they are one. How many, or -1.
///
/// # Safety
/// `bytes` has `length` bytes to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_send(stream: c_int, bytes: *const c_void, length: usize, flags: c_int) -> isize {
    guarded(|| {
        let entry = table::entry(stream)?;
        if lock(&entry).carries == Carries::Datagrams {
            // SAFETY: the caller's promise.
            return unsafe { datagrams::send(&entry, bytes, length, flags, PeerId::CONNECTED) };
        }
        // SAFETY: the caller's promise.
        let bytes = if length == 0 { &[] } else { unsafe { to_read(bytes, length) }? };
        send_to_stream(&entry, &mut [IoSlice::new(bytes)], flags)
    })
}

/// As na_send, of bytes that lie in `count` places, at most 1024, behind each other: a head and
/// what follows need no buffer to be put together in. Of datagrams they are one. How many, or -1.
///
/// # Safety
/// `parts` has `count` of them, and each has as many bytes to read as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_writev(stream: c_int, parts: *const iovec, count: c_int, flags: c_int) -> isize {
    guarded(|| {
        let entry = table::entry(stream)?;
        // SAFETY: the caller's promise.
        let mut parts = unsafe { to_read_parts(parts, count) }?;
        if lock(&entry).carries == Carries::Datagrams {
            // One byte more than there can be is refused as too long.
            let all = parts.iter().flat_map(|part| part.iter().copied());
            let bytes: Vec<u8> = all.take(netaware_stream::MAX_DATAGRAM + 1).collect();
            let first = bytes.as_ptr().cast();
            // SAFETY: a vector.
            return unsafe { datagrams::send(&entry, first, bytes.len(), flags, PeerId::CONNECTED) };
        }
        send_to_stream(&entry, &mut parts, flags)
    })
}

/// # Safety
/// `parts` is null or has `count` of them, each of them as many bytes to read as it says or null.
unsafe fn to_read_parts<'a>(parts: *const iovec, count: c_int) -> Result<Vec<IoSlice<'a>>, Failure> {
    let count = usize::try_from(count).ok().filter(|count| *count <= MOST_PARTS);
    let count = count.ok_or_else(|| invalid("0 to 1024 parts"))?;
    if count == 0 {
        return Ok(Vec::new());
    }
    if parts.is_null() {
        return Err(Failure::new(libc::EFAULT, "no parts to send"));
    }
    let mut left = isize::MAX as usize;
    let mut read = Vec::with_capacity(count);
    for at in 0..count {
        // SAFETY: the caller's promise.
        let part = unsafe { parts.add(at).read() };
        left = left.checked_sub(part.iov_len).ok_or_else(|| invalid("more bytes than there is memory"))?;
        // SAFETY: the caller's promise.
        let bytes = if part.iov_len == 0 { &[] } else { unsafe { to_read(part.iov_base, part.iov_len) }? };
        read.push(IoSlice::new(bytes));
    }
    Ok(read)
}

fn send_to_stream(entry: &Mutex<Entry>, parts: &mut [IoSlice<'_>], flags: c_int) -> Result<isize, Failure> {
    if flags & !(NA_DONTWAIT | NA_MSG_HOLD) != 0 {
        return Err(invalid("a flag that na_send does not know"));
    }
    if parts.iter().all(|part| part.is_empty()) {
        return Ok(0);
    }
    let stream = stream_of(entry)?;
    let deadline = {
        let entry = lock(entry);
        deadline(&entry, flags, entry.send_patience)
    };
    let _held = (flags & NA_MSG_HOLD != 0).then(|| Held::begin(&stream));
    send_all(&stream, parts, deadline)
}

/// A call that is left out of switching, however it ends.
struct Held<'a>(&'a DualStream);

impl<'a> Held<'a> {
    fn begin(stream: &'a DualStream) -> Self {
        stream.hold();
        Self(stream)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

fn send_all(
    stream: &DualStream,
    mut parts: &mut [IoSlice<'_>],
    deadline: Option<Mono>,
) -> Result<isize, Failure> {
    let mut sent = 0;
    // That leaves out empty ones, too.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match stream.send_vectored_until(parts, deadline) {
            Ok(count) => {
                sent += count;
                IoSlice::advance_slices(&mut parts, count);
            }
            Err(error) if sent == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(sent as isize)
}

/// Reads what has come, at most `length` bytes; of datagrams one, whose rest is dropped. How many,
/// 0 at the end of the peer's direction, or -1.
///
/// # Safety
/// `out` has `length` bytes to write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_recv(stream: c_int, out: *mut c_void, length: usize, flags: c_int) -> isize {
    guarded(|| {
        let entry = table::entry(stream)?;
        if lock(&entry).carries == Carries::Datagrams {
            // SAFETY: the caller's promise.
            return Ok(unsafe { datagrams::receive(&entry, out, length, flags) }?.0);
        }
        if flags & !(NA_DONTWAIT | NA_MSG_HOLD) != 0 {
            return Err(invalid("a flag that na_recv does not know"));
        }
        if length == 0 {
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        let out = unsafe { to_write(out, length) }?;
        let stream = stream_of(&entry)?;
        let deadline = {
            let entry = lock(&entry);
            deadline(&entry, flags, entry.receive_patience)
        };
        let _held = (flags & NA_MSG_HOLD != 0).then(|| Held::begin(&stream));
        Ok(stream.recv_until(out, deadline)? as isize)
    })
}

/// # Safety
/// `bytes` is null or has `length` bytes to read.
pub(crate) unsafe fn to_read<'a>(bytes: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    if bytes.is_null() || isize::try_from(length).is_err() {
        return Err(Failure::new(libc::EFAULT, "no bytes to send"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) })
}

/// # Safety
/// `out` is null or has `length` bytes to write.
pub(crate) unsafe fn to_write<'a>(out: *mut c_void, length: usize) -> Result<&'a mut [u8], Failure> {
    if out.is_null() {
        return Err(Failure::new(libc::EFAULT, "nowhere to put the bytes"));
    }
    let length = length.min(isize::MAX as usize);
    // SAFETY: the caller's promise; zeroed, so that it may be seen as bytes.
    unsafe {
        std::ptr::write_bytes(out.cast::<u8>(), 0, length);
        Ok(std::slice::from_raw_parts_mut(out.cast::<u8>(), length))
    }
}

/// Ends this direction (NA_SHUT_WR) or gives up the stream (NA_SHUT_RDWR). 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn na_shutdown(stream: c_int, how: c_int) -> c_int {
    guarded(|| {
        let how = match how {
            NA_SHUT_WR => Shutdown::Write,
            NA_SHUT_RDWR => Shutdown::Both,
            _ => return Err(invalid("neither NA_SHUT_WR nor NA_SHUT_RDWR")),
        };
        let entry = table::entry(stream)?;
        if lock(&entry).carries == Carries::Datagrams {
            if how == Shutdown::Write {
                return Err(invalid("datagrams have no end that could be told alone: NA_SHUT_RDWR"));
            }
            let socket = datagrams_of(&entry)?;
            socket.peers().into_iter().for_each(|peer| socket.close(peer));
            return Ok(0);
        }
        stream_of(&entry)?.shutdown(how);
        Ok(0)
    })
}

/// Lets go of a stream: what was sent still goes on its way. A callback of its policy is not called
/// any more when this returns, unless it is the caller. 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn na_close(stream: c_int) -> c_int {
    guarded(|| {
        let entry = table::remove(stream)?;
        // Not while it is locked: a callback that is running may want it.
        let what = lock(&entry).what.clone();
        what.set_callback(None);
        Ok(0)
    })
}

/// Asks for both directions to go over this IP version, NA_IPV4 or NA_IPV6; of datagrams with all
/// peers. 0, or -1 where it cannot be had now.
#[unsafe(no_mangle)]
pub extern "C" fn na_switch(stream: c_int, version: c_int) -> c_int {
    guarded(|| {
        let to = match version {
            NA_IPV4 => IpVersion::V4,
            NA_IPV6 => IpVersion::V6,
            _ => return Err(invalid("neither NA_IPV4 nor NA_IPV6")),
        };
        table::switch(&*table::entry(stream)?, to).map_err(|why| {
            let errno = match why {
                CannotSwitch::Down => libc::ENETUNREACH,
                CannotSwitch::Held => libc::EBUSY,
                CannotSwitch::Over => libc::ENOTCONN,
            };
            Failure::new(errno, why.to_string())
        })?;
        Ok(0)
    })
}

/// Other than 0: from now on wishes of the peer are refused and there are none of this end; what
/// was wished for before waits. A lost connection is left all the same. 0: takes back one such
/// call; the last one ends the hold. 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn na_hold(stream: c_int, on: c_int) -> c_int {
    guarded(|| {
        let entry = table::entry(stream)?;
        let mut entry = lock(&entry);
        // Counted apart from the holds of calls under way, which are not the program's to take
        // back.
        let holds = match on {
            0 => entry.holds.checked_sub(1).ok_or_else(|| invalid("na_hold has not been called before"))?,
            _ => entry.holds.checked_add(1).ok_or_else(|| invalid("held too often"))?,
        };
        match (&entry.what, on) {
            (What::Stream(stream), 0) => _ = stream.release(),
            (What::Stream(stream), _) => stream.hold(),
            (What::Datagrams(socket), 0) => _ = socket.release(),
            (What::Datagrams(socket), _) => socket.hold(),
            (What::Fresh | What::Bound(_) | What::Listener(_), _) => {
                return Err(Failure::new(libc::ENOTCONN, "not connected"));
            }
        }
        entry.holds = holds;
        Ok(0)
    })
}

/// A descriptor for poll(2) and its kin: readable where na_recv or na_accept would not wait,
/// writable where na_send would not, which of datagrams is always. It is the library's until
/// na_close, and not to be read, written or closed. -1 where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn na_poll_fd(stream: c_int) -> c_int {
    guarded(|| {
        let entry = table::entry(stream)?;
        let mut entry = lock(&entry);
        if entry.descriptor.is_none() {
            let descriptor = match &entry.what {
                What::Stream(stream) => stream.descriptor()?,
                What::Listener(listener) => listener.descriptor()?,
                What::Datagrams(socket) => socket.descriptor()?,
                What::Fresh | What::Bound(_) => return Err(Failure::new(libc::ENOTCONN, "not connected")),
            };
            entry.descriptor = Some(Arc::new(descriptor));
        }
        let descriptor = entry.descriptor.as_ref().map(AsRawFd::as_raw_fd);
        descriptor.ok_or_else(|| Failure::new(libc::ENOTCONN, "not connected"))
    })
}

/// Sets an option: NA_WINDOW, NA_SNDTIMEO, NA_RCVTIMEO or NA_NONBLOCK. 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn na_setsockopt(stream: c_int, option: c_int, value: i64) -> c_int {
    guarded(|| {
        let entry = table::entry(stream)?;
        let mut entry = lock(&entry);
        let patience = || match value {
            0 => Ok(None),
            1..=86_400_000 => Ok(Some(Span::from_millis(value))),
            _ => Err(invalid("a time-out is 0 to 86400000 ms")),
        };
        match option {
            NA_WINDOW => {
                let window = u32::try_from(value).ok().filter(|window| (4096..=1 << 30).contains(window));
                if !matches!(entry.what, What::Fresh | What::Bound(_)) {
                    return Err(Failure::new(libc::EISCONN, "the window is set before connecting"));
                }
                entry.options.window =
                    window.ok_or_else(|| invalid("a window is 4096 to 1073741824 bytes"))?;
            }
            NA_SNDTIMEO => entry.send_patience = patience()?,
            NA_RCVTIMEO => entry.receive_patience = patience()?,
            NA_NONBLOCK => entry.nonblocking = value != 0,
            NA_HOLD => return Err(Failure::new(libc::ENOPROTOOPT, "NA_HOLD can be read; na_hold sets it")),
            _ => return Err(Failure::new(libc::ENOPROTOOPT, "no such option")),
        }
        Ok(0)
    })
}

/// The value of an option, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn na_getsockopt(stream: c_int, option: c_int) -> i64 {
    guarded(|| {
        let entry = table::entry(stream)?;
        let entry = lock(&entry);
        let millis = |patience: Option<Span>| patience.map_or(0, |patience| patience.nanos() / 1_000_000);
        Ok(match option {
            NA_WINDOW => i64::from(entry.options.window),
            NA_SNDTIMEO => millis(entry.send_patience),
            NA_RCVTIMEO => millis(entry.receive_patience),
            NA_NONBLOCK => i64::from(entry.nonblocking),
            NA_HOLD => match &entry.what {
                What::Stream(stream) => stream.holds().into(),
                What::Datagrams(socket) => socket.holds().into(),
                What::Fresh | What::Bound(_) | What::Listener(_) => 0,
            },
            _ => return Err(Failure::new(libc::ENOPROTOOPT, "no such option")),
        })
    })
}

/// Why the last call of this thread that failed did so, in words; valid until the next one that
/// does.
#[unsafe(no_mangle)]
pub extern "C" fn na_strerror() -> *const c_char {
    error::last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_is_bound_on_its_interface_and_on_no_other() {
        let lo = zone::index("lo").unwrap();
        let SocketAddr::V6(bound) = place("fe80::1%lo", 7).unwrap() else { panic!("not IPv6") };
        assert_eq!((bound.scope_id(), bound.port()), (lo, 7));
        assert!(place("fe80::1", 7).is_err() && place("nowhere", 7).is_err());
        assert_eq!(place("192.0.2.1", 7).unwrap(), SocketAddr::from(([192, 0, 2, 1], 7)));
    }
}

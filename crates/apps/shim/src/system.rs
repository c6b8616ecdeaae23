//! The functions that ours stand before, and system calls as such.
//!
//! Calls of our own go past the C library: its functions of the same name are ours, and some of
//! them are points at which a thread may be cancelled, which must not happen in the middle of our
//! work.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{addrinfo, epoll_event, hostent, sockaddr, socklen_t};

/// The next definition of a function, looked up once.
struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn get(&self) -> *mut c_void {
        let known = self.found.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name ends with a zero; RTLD_NEXT looks behind this library.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Release);
        found
    }
}

/// One function of the C library that we have taken the place of; `$absent` is what it is without
/// it.
macro_rules! next {
    ($name:ident ( $($argument:ident : $kind:ty),* ) -> $result:ty, $absent:expr) => {
        /// The C library's.
        ///
        /// # Safety
        /// As it says itself.
        pub(crate) unsafe fn $name($($argument: $kind),*) -> $result {
            type Function = unsafe extern "C-unwind" fn($($kind),*) -> $result;
            static NEXT: Next = Next::new(
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                },
            );
            let found = NEXT.get();
            if found.is_null() {
                return $absent;
            }
            // SAFETY: the C library's function of that name has this type; the caller keeps to its
            // contract.
            unsafe { std::mem::transmute::<*mut c_void, Function>(found)($($argument),*) }
        }
    };
}

/// Without one the system call is the same thing.
macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: the caller has said what it relies on; the kernel checks the rest.
        unsafe { libc::syscall(libc::$number $(, $argument as c_long)*) as c_int }
    };
}

next!(connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int,
    call!(SYS_connect, fd, address, length));
next!(close(fd: c_int) -> c_int, call!(SYS_close, fd));
next!(getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int,
    call!(SYS_getpeername, fd, address, length));
next!(getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int,
    call!(SYS_getsockname, fd, address, length));
next!(epoll_ctl(epoll: c_int, what: c_int, fd: c_int, event: *mut epoll_event) -> c_int,
    call!(SYS_epoll_ctl, epoll, what, fd, event));
next!(getaddrinfo(node: *const c_char, service: *const c_char, hints: *const addrinfo, found: *mut *mut addrinfo) -> c_int,
    libc::EAI_FAIL);
next!(gethostbyname(name: *const c_char) -> *mut hostent, std::ptr::null_mut());
next!(gethostbyname2(name: *const c_char, family: c_int) -> *mut hostent, std::ptr::null_mut());
next!(gethostbyname_r(name: *const c_char, entry: *mut hostent, buffer: *mut c_char, size: usize,
    found: *mut *mut hostent, error: *mut c_int) -> c_int, libc::ENOSYS);
next!(gethostbyname2_r(name: *const c_char, family: c_int, entry: *mut hostent, buffer: *mut c_char, size: usize,
    found: *mut *mut hostent, error: *mut c_int) -> c_int, libc::ENOSYS);

pub(crate) fn errno() -> c_int {
    // SAFETY: every thread has one.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: every thread has one.
    unsafe { *libc::__errno_location() = errno }
}

fn checked(done: c_int) -> Result<c_int, c_int> {
    if done < 0 { Err(errno()) } else { Ok(done) }
}

pub(crate) fn begin_connect(fd: c_int, address: &crate::address::Raw) -> Result<(), c_int> {
    checked(call!(SYS_connect, fd, address.pointer(), address.length())).map(drop)
}

pub(crate) fn close_own(fd: c_int) {
    call!(SYS_close, fd);
}

pub(crate) fn socket(domain: c_int) -> Result<c_int, c_int> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    checked(call!(SYS_socket, domain, kind, libc::IPPROTO_TCP))
}

pub(crate) fn shut(fd: c_int) {
    call!(SYS_shutdown, fd, libc::SHUT_RDWR);
}

pub(crate) fn fcntl(fd: c_int, what: c_int, value: c_int) -> Result<c_int, c_int> {
    checked(call!(SYS_fcntl, fd, what, value))
}

/// `from` in the place of `to`.
pub(crate) fn take_place(from: c_int, to: c_int, close_on_exec: bool) -> Result<(), c_int> {
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    checked(call!(SYS_dup3, from, to, flags)).map(drop)
}

pub(crate) fn epoll_change(epoll: c_int, what: c_int, fd: c_int, event: &mut epoll_event) {
    call!(SYS_epoll_ctl, epoll, what, fd, std::ptr::from_mut(event));
}

/// Which file a number stands for; zero is none.
pub(crate) fn inode(fd: c_int) -> u64 {
    // SAFETY: all zeros are a valid stat.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    let done = call!(SYS_fstat, fd, std::ptr::from_mut(&mut stat));
    if done < 0 { 0 } else { stat.st_ino }
}

/// Some bytes of an option; how many.
pub(crate) fn option(fd: c_int, level: c_int, name: c_int, value: &mut [u8]) -> Result<usize, c_int> {
    let mut length = value.len() as socklen_t;
    checked(call!(SYS_getsockopt, fd, level, name, value.as_mut_ptr(), std::ptr::from_mut(&mut length)))?;
    Ok(length as usize)
}

pub(crate) fn int_option(fd: c_int, level: c_int, name: c_int) -> Result<c_int, c_int> {
    let mut value = [0; 4];
    option(fd, level, name, &mut value)?;
    Ok(c_int::from_ne_bytes(value))
}

pub(crate) fn set_option(fd: c_int, level: c_int, name: c_int, value: &[u8]) -> Result<(), c_int> {
    checked(call!(SYS_setsockopt, fd, level, name, value.as_ptr(), value.len())).map(drop)
}

/// The local address.
pub(crate) fn local_address(fd: c_int) -> Option<std::net::SocketAddr> {
    let mut raw = crate::address::Raw::empty();
    let mut length = raw.length();
    checked(call!(SYS_getsockname, fd, raw.pointer_mut(), std::ptr::from_mut(&mut length))).ok()?;
    raw.parse(length)
}

/// Waits until one of these can be written to or has failed; which. `Err(EINTR)` where a signal
/// came.
pub(crate) fn wait_to_write(polled: &mut [libc::pollfd], nanos: Option<i64>) -> Result<(), c_int> {
    let span = nanos.map(|nanos| libc::timespec {
        tv_sec: nanos.max(0) / 1_000_000_000,
        tv_nsec: nanos.max(0) % 1_000_000_000,
    });
    let span = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    checked(call!(SYS_ppoll, polled.as_mut_ptr(), polled.len(), span, 0, 8)).map(drop)
}

pub(crate) fn write_to_stderr(line: &str) {
    call!(SYS_write, 2, line.as_ptr(), line.len());
}

pub(crate) fn process() -> c_int {
    call!(SYS_getpid)
}

pub(crate) fn yield_now() {
    call!(SYS_sched_yield);
}

/// Whether some signal's handler wants system calls to end: it was installed without `SA_RESTART`.
pub(crate) fn a_handler_interrupts() -> bool {
    (1..=libc::SIGRTMAX()).any(|signal| {
        // SAFETY: all zeros are a valid sigaction to fill; nothing is changed.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let done = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
        let handled = action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
        done == 0 && handled && action.sa_flags & libc::SA_RESTART == 0
    })
}

//! The system calls that nobody wraps for us: all `unsafe` of this crate.
#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use netaware_units::{Span, Wall};

/// Moves the calling thread into a network namespace for good; other threads stay where they are.
pub(crate) fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call; only the calling thread is concerned.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// Makes a TUN device in the network namespace of the calling thread. It lives as long as the file; reads do not block.
pub(crate) fn open_tun(name: &str) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero and ends the name.
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which is valid for the whole call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    Ok(file)
}

/// A packet socket in the network namespace of the calling thread that hears what is given to a device to send, with the kernel's stamps.
/// The device has to be up. Reads do not block.
pub(crate) fn hear_sent(device: &str) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers. Protocol 0: it hears nothing before it is bound.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    check(fd)?;
    // SAFETY: the call has just given us this descriptor, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // What we hand to the host ourselves passes the same device.
    let is_sent = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned();
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, is_sent),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, u32::from(libc::PACKET_OUTGOING)),
        step(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
        step(libc::BPF_RET | libc::BPF_K, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    set(&socket, libc::SO_ATTACH_FILTER, &program)?;
    set(&socket, libc::SO_TIMESTAMPNS, &1)?;
    set(&socket, libc::SO_RCVBUFFORCE, &HEARD_BYTES)?;
    let name = std::ffi::CString::new(device)?;
    // SAFETY: a string that ends with zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all-zero is a valid value of this plain structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: a link-layer address of the size given.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) })?;
    Ok(socket)
}

/// As much as the device's own queue holds.
const HEARD_BYTES: libc::c_int = 64 << 20;

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let data = std::ptr::from_ref(value).cast();
    // SAFETY: `data` is valid for `size` bytes during the call; an option that takes another size refuses it.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, data, size) })
}

/// The next packet of [`hear_sent`]: how many bytes of it fit, and its stamp; `None` if there is none.
pub(crate) fn receive_stamped(socket: &OwnedFd, start: &mut [u8]) -> Option<(usize, Wall)> {
    let mut part = libc::iovec { iov_base: start.as_mut_ptr().cast(), iov_len: start.len() };
    let mut control = [0_u64; 8];
    // SAFETY: all-zero is a valid message without anything in it.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
    // SAFETY: both buffers are valid for writing as many bytes as the message says.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let length = usize::try_from(length).ok()?;
    // SAFETY: the kernel has set `msg_controllen` to what it wrote; the macro gives an entry within that or none.
    let entry = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() }?;
    let kind = (entry.cmsg_level, entry.cmsg_type);
    if kind != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    // SAFETY: an entry of that kind holds a timespec, which may not be aligned.
    let stamp = unsafe { libc::CMSG_DATA(entry).cast::<libc::timespec>().read_unaligned() };
    Some((length, Wall(stamp.tv_sec * 1_000_000_000 + stamp.tv_nsec)))
}

/// Sleeps until one of the files can be read, or for `patience`; true if one can.
pub(crate) fn await_readable(files: [RawFd; 2], patience: Span) -> bool {
    let mut polled = files.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let nanos = patience.or_zero().0;
    let timeout = libc::timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 };
    // SAFETY: two valid entries, a valid timeout, and no signal mask.
    unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &raw const timeout, std::ptr::null()) > 0 }
}

/// Makes this process the leader of a session of its own, without a terminal.
pub fn new_session() -> io::Result<()> {
    // SAFETY: takes nothing and touches no memory.
    check(unsafe { libc::setsid() })
}

/// Has a child killed as soon as this thread ends, by whatever. Who comes after a killed process to clear away what it made
/// finds nobody who is still making something.
pub(crate) fn die_with_us(command: &mut Command) {
    let parent = std::process::id();
    let ask = move || {
        // SAFETY: both calls take or give numbers only.
        let (asked, above) = unsafe {
            let asked = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
            (asked, libc::getppid())
        };
        check(asked)?;
        // It may have ended before it could be asked for.
        if above.cast_unsigned() == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between fork and exec it makes two system calls, and neither allocates nor locks.
    unsafe { command.pre_exec(ask) };
}

/// Has a child, and all that it starts, run on other cores than this one, if there are others. Beside a program that is
/// measured the emulator would be late.
pub(crate) fn keep_off(command: &mut Command, core: usize) {
    if core >= libc::CPU_SETSIZE as usize {
        return;
    }
    let move_away = move || {
        // SAFETY: an all-zero set is the empty one, `core` is within it, both calls take its size; 0 is the caller.
        unsafe {
            let mut cores: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, size_of_val(&cores), &raw mut cores) < 0 {
                return Ok(());
            }
            libc::CPU_CLR(core, &mut cores);
            if libc::CPU_COUNT(&cores) > 0 {
                // A program that has to share the core still runs.
                let _ = libc::sched_setaffinity(0, size_of_val(&cores), &raw const cores);
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec it makes two system calls, and neither allocates nor locks.
    unsafe { command.pre_exec(move_away) };
}

/// A process, held so that its number cannot come to mean another one.
#[derive(Debug)]
pub(crate) struct Process(OwnedFd);

impl Process {
    /// Takes hold of a living process. Whether it is the right one has to be asked *after* this.
    pub(crate) fn hold(pid: u32) -> io::Result<Self> {
        // SAFETY: takes two numbers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        let fd = RawFd::try_from(fd).unwrap_or(-1);
        check(fd)?;
        // SAFETY: the call has just given us this descriptor, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sends a signal; the process may be gone, which is no error.
    pub(crate) fn signal(&self, signal: Signal) {
        let number = match signal {
            Signal::End => libc::SIGTERM,
            Signal::Kill => libc::SIGKILL,
        };
        // SAFETY: the descriptor is a valid pidfd; no siginfo is given.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                number,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
    }

    /// Waits until it has ended, at most for `patience`; true if it has.
    pub(crate) fn await_end(&self, patience: Span) -> bool {
        await_readable([self.0.as_raw_fd(), -1], patience)
    }
}

/// What a process is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    End,
    Kill,
}

fn check(status: libc::c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_is_to_die_with_us_does() {
        let begun = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("100");
            die_with_us(&mut command);
            command.spawn().unwrap()
        });
        let mut child = begun.join().unwrap();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_child_is_kept_off_a_core_but_not_off_the_last_one() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for core in [cores - 1, 100_000] {
            let mut command = Command::new("nproc");
            keep_off(&mut command, core);
            let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
            let left = if core < cores { cores.saturating_sub(1).max(1) } else { cores };
            assert_eq!(said.trim(), left.to_string());
        }
    }

    #[test]
    fn a_held_process_ends_when_told() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let process = Process::hold(child.id()).unwrap();
        assert!(!process.await_end(Span::ZERO));
        process.signal(Signal::End);
        assert!(process.await_end(Span::from_secs(10)));
        child.wait().unwrap();
        process.signal(Signal::Kill);
        assert!(Process::hold(u32::MAX >> 1).is_err());
    }
}

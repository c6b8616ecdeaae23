//! The system calls that nobody wraps for us: all `unsafe` of this crate.
#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use netaware_units::Span;

/// Moves the calling thread into a network namespace for good; other threads stay where they are.
pub(crate) fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call; only the calling thread is concerned.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// Makes a TUN device in the network namespace of the calling thread. It lives as long as the file;
/// reads do not block.
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

/// Has a child killed as soon as this thread ends, by whatever. Who comes after a killed process to
/// clear away what it made finds nobody who is still making something.
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

/// Has a child, and all that it starts, run on other cores than this one, if there are others.
/// Beside a program that is measured the emulator would be late.
pub(crate) fn keep_off(command: &mut Command, core: usize) {
    if core >= libc::CPU_SETSIZE as usize {
        return;
    }
    let move_away = move || {
        // SAFETY: an all-zero set is the empty one, `core` is within it, both calls take its size;
        // 0 is the caller.
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

//! Calls back a thread that waits for sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Readable from a ring on until it is silenced.
#[derive(Debug)]
pub(crate) struct Bell(Pair);

/// One descriptor that counts, where the system has such.
#[cfg(target_os = "linux")]
type Pair = std::os::fd::OwnedFd;
/// Where it waits, and where it is rung.
#[cfg(not(target_os = "linux"))]
type Pair = [std::os::unix::net::UnixStream; 2];

#[cfg(target_os = "linux")]
impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};

        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// From any thread; never waits.
    pub(crate) fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Until the next ring.
    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }

    fn waits(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(not(target_os = "linux"))]
impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        let (waits, rings) = std::os::unix::net::UnixStream::pair()?;
        waits.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        Ok(Self([waits, rings]))
    }

    /// From any thread; never waits: what does not fit has been rung before.
    pub(crate) fn ring(&self) {
        let _ = rustix::io::write(&self.0[1], &[1]);
    }

    /// Until the next ring.
    pub(crate) fn silence(&self) {
        while rustix::io::read(&self.0[0], &mut [0; 256]).is_ok_and(|count| count == 256) {}
    }

    fn waits(&self) -> BorrowedFd<'_> {
        self.0[0].as_fd()
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waits()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn rings_are_heard_once_however_many_there_were() {
        let bell = Bell::new().unwrap();
        let heard = || {
            let mut polled = [PollFd::new(&bell, PollFlags::IN)];
            poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
        };
        assert!(!heard());
        for rings in [1, 3, 10_000] {
            (0..rings).for_each(|_| bell.ring());
            assert!(heard());
            bell.silence();
            assert!(!heard(), "after {rings}");
        }
    }
}

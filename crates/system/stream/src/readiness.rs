//! A descriptor for event loops that is readable and writable as the stream is.
//!
//! It is one end of a pair of Unix sockets: a byte from the other end makes it readable, and it is
//! not writable while its own buffer is full. Nobody reads or writes it but this module.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

#[derive(Debug)]
pub(crate) struct Readiness {
    /// Lent to the event loop.
    lent: UnixStream,
    own: UnixStream,
    readable: bool,
    writable: bool,
}

impl Readiness {
    /// Not readable, writable.
    pub(crate) fn new() -> io::Result<Self> {
        let (lent, own) = UnixStream::pair()?;
        for socket in [&lent, &own] {
            socket.set_nonblocking(true)?;
            socket2::SockRef::from(socket).set_send_buffer_size(1)?;
        }
        Ok(Self { lent, own, readable: false, writable: true })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.lent.as_fd()
    }

    /// What it shows from now on.
    pub(crate) fn show(&mut self, readable: bool, writable: bool) {
        if readable != self.readable {
            let shown = if readable { (&self.own).write(&[1]).map(drop) } else { drain(&self.lent) };
            self.readable = if shown.is_ok() { readable } else { self.readable };
        }
        if writable != self.writable {
            let shown = if writable { drain(&self.own) } else { fill(&self.lent) };
            self.writable = if shown.is_ok() { writable } else { self.writable };
        }
    }
}

fn drain(mut from: &UnixStream) -> io::Result<()> {
    let mut dropped = [0; 4096];
    loop {
        match from.read(&mut dropped) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn fill(mut into: &UnixStream) -> io::Result<()> {
    loop {
        match into.write(&[0; 1024]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn shown(readiness: &Readiness) -> (bool, bool) {
        let descriptor = readiness.descriptor();
        let mut polled = [PollFd::new(&descriptor, PollFlags::IN | PollFlags::OUT)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        let flags = polled[0].revents();
        (flags.contains(PollFlags::IN), flags.contains(PollFlags::OUT))
    }

    #[test]
    fn it_shows_every_combination_again_and_again() {
        let mut readiness = Readiness::new().unwrap();
        assert_eq!(shown(&readiness), (false, true));
        for turn in 0..20 {
            let (readable, writable) = (turn % 2 == 0, turn / 2 % 2 == 0);
            readiness.show(readable, writable);
            assert_eq!(shown(&readiness), (readable, writable), "turn {turn}");
        }
    }
}

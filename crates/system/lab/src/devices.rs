//! The real world: two TUN devices, the monotonic clock, and a wait that is exact without keeping
//! the core for ever.
//!
//! A packet that wakes the loop is seen late, by a wake-up of 5 to 50 us of which its lateness
//! would not tell, nor would, without [`Stamps`], anything else. So on a core of its own the loop
//! stays awake while packets move and for [`STAYS_AWAKE`] after the last one came or went. Without
//! one it sleeps whenever it can.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd, RawFd};

use netaware_io::{clock, pacer};
use netaware_netmodel::Side;
use netaware_units::{Mono, Span};

use crate::stamps::Stamps;
use crate::system;
use crate::world::{Idled, World};

/// Both hosts' devices. To be made on the thread that uses it, after that has its core and
/// priority.
pub(crate) struct Devices {
    tuns: [File; 2],
    descriptors: [RawFd; 2],
    stamps: [Option<Stamps>; 2],
    margin: Span,
    stays_awake: Span,
    /// Something was read or written since the last look at the clock.
    moved: bool,
    busy_at: Mono,
    _precise: pacer::PreciseSleep,
}

impl Devices {
    /// `has_core`: nobody else needs the core that this thread runs on.
    pub(crate) fn new(tuns: [File; 2], stamps: [Option<Stamps>; 2], has_core: bool) -> Self {
        let descriptors = tuns.each_ref().map(AsRawFd::as_raw_fd);
        let precise = pacer::precise_sleep();
        let margin = pacer::margin();
        let stays_awake = if has_core { STAYS_AWAKE } else { Span::ZERO };
        Self {
            tuns,
            descriptors,
            stamps,
            margin,
            stays_awake,
            moved: false,
            busy_at: clock::now(),
            _precise: precise,
        }
    }
}

fn index(side: Side) -> usize {
    match side {
        Side::A => 0,
        Side::B => 1,
    }
}

impl World for Devices {
    #[inline]
    fn now(&self) -> Mono {
        clock::now()
    }

    #[inline]
    fn read(&mut self, side: Side, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.tuns[index(side)].read(buffer) {
            Ok(length) => {
                self.moved = true;
                Ok(Some(length))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn entered(&mut self, side: Side, packet: &[u8], at: Mono) -> Option<Mono> {
        self.stamps[index(side)].as_mut()?.entered(packet, at)
    }

    #[inline]
    fn write(&mut self, side: Side, bytes: &[u8]) -> bool {
        // Who got it may answer at once.
        self.moved = true;
        self.tuns[index(side)].write(bytes).is_ok_and(|written| written == bytes.len())
    }

    fn idle(&mut self, until: Mono) -> Idled {
        let now = clock::now();
        if std::mem::take(&mut self.moved) {
            self.busy_at = now;
        }
        let due = until - self.margin;
        if due < now + SHORTEST_SLEEP {
            return Idled::Awake;
        }
        if now - self.busy_at < self.stays_awake {
            return Idled::Awake;
        }
        if system::await_readable(self.descriptors, due - now) {
            Idled::Woken
        } else {
            Idled::Overslept { due }
        }
    }
}

/// After a packet came or went: longer than most pauses of estimators that send a pair ten times a
/// second, and whose first packet must not be stamped later than their second. Ping once a second
/// then costs half of the core, and a steady stream all of it.
const STAYS_AWAKE: Span = Span::from_millis(500);
/// Below this a sleep costs as much as it lasts.
const SHORTEST_SLEEP: Span = Span::from_micros(15);

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// Sockets instead of TUN devices, and their other ends.
    fn made(has_core: bool) -> (Devices, [UnixDatagram; 2]) {
        let [(a, far_a), (b, far_b)] = [(); 2].map(|()| UnixDatagram::pair().unwrap());
        let tuns = [a, b].map(|near| {
            near.set_nonblocking(true).unwrap();
            File::from(OwnedFd::from(near))
        });
        (Devices::new(tuns, [None, None], has_core), [far_a, far_b])
    }

    #[test]
    fn who_has_a_core_stays_awake_after_a_packet_and_who_has_none_sleeps() {
        for has_core in [true, false] {
            let (mut devices, [far, _other]) = made(has_core);
            far.send(&[7; 3]).unwrap();
            assert_eq!(devices.read(Side::A, &mut [0; 9]).unwrap(), Some(3));
            assert_eq!(devices.read(Side::A, &mut [0; 9]).unwrap(), None);
            let idled = devices.idle(devices.now() + Span::from_millis(2));
            assert_eq!(idled == Idled::Awake, has_core, "{idled:?}");
        }
    }

    #[test]
    fn a_packet_ends_a_sleep() {
        let (mut devices, [_other, far]) = made(false);
        far.send(&[7; 3]).unwrap();
        assert_eq!(devices.idle(devices.now() + Span::from_secs(100)), Idled::Woken);
    }
}

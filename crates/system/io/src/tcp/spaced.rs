//! Sends one block each so often to the streams in turn, from one thread that waits for no single
//! stream.
//!
//! Measured: how long it takes to give each block to the stack, and how well the times were kept. A
//! block goes to the next stream in turn that can take it. A stream whose buffer took only a part
//! of its block keeps the rest for itself and gets it as its buffer empties, while the others go
//! on; a stream whose receiver does not read costs its own data and nobody else's time. Only when
//! no stream at all can take a block does the sender wait.
//!
//! The times are absolute: a block that begins late does not put off the next ones, unless the
//! sender is behind by more than one spacing. Then it goes on from there (`slipped`) instead of
//! catching up in a burst, so that with a spacing below what a block takes the time per block is
//! what a block takes. Published: R. Hughes-Jones's tcpmon waits after each block in the same way
//! but from the block before, so that it drifts by what each one is late.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;

use netaware_record::SpacedBlocks;
use netaware_units::{Mono, Span};

use super::meter::Lane;
use super::sender::{Progress, Sender};
use super::{Ended, Ending, LOOK_UP};
use crate::{clock, pacer};

/// One stream's place in the round.
struct Seat<'a> {
    stream: &'a TcpStream,
    progress: Progress<'a>,
    /// Bytes of its last block that its buffer has not taken yet.
    rest: usize,
    broken: Option<io::Error>,
}

impl Seat<'_> {
    fn is_free(&self) -> bool {
        self.rest == 0 && self.broken.is_none()
    }

    /// What the stream takes of `bytes`; nothing when its buffer is full or it breaks.
    fn write(&mut self, bytes: &[u8]) -> usize {
        self.progress.begins_at(clock::now());
        let mut stream = self.stream;
        match stream.write(bytes) {
            Ok(written) => {
                self.progress.count(written);
                self.progress.returned_by(clock::now());
                written
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(error) => {
                self.broken = Some(error);
                0
            }
        }
    }
}

/// When blocks are due.
#[derive(Debug)]
struct Timetable {
    next: Mono,
    spacing: Span,
    slipped: Span,
}

impl Timetable {
    /// A block has begun; says how late it was.
    fn begun(&mut self, at: Mono) -> Span {
        let late = (at - self.next).or_zero();
        let beyond = (late - self.spacing).or_zero();
        self.slipped += beyond;
        self.next += beyond + self.spacing;
        late
    }
}

struct Round<'a> {
    sender: &'a Sender<'a>,
    seats: Vec<Seat<'a>>,
    /// Whose turn it is.
    turn: usize,
    timetable: Timetable,
    blocks: SpacedBlocks,
    /// Since then the block that is due has found no stream to take it.
    waiting_since: Option<Mono>,
}

/// Sends everything and returns what became of each stream, and of the times.
pub(super) fn run(
    sender: &Sender<'_>,
    spacing: Span,
    streams: &[TcpStream],
    lanes: &[Lane],
) -> (Vec<Ended>, SpacedBlocks) {
    // Before the first time: the first call takes some milliseconds to measure.
    pacer::margin();
    let _precise = pacer::precise_sleep();
    let seats = streams.iter().zip(lanes).enumerate().map(|(index, (stream, lane))| Seat {
        stream,
        progress: sender.progress(index, lane),
        rest: 0,
        broken: stream.set_nonblocking(true).err(),
    });
    let round = Round {
        sender,
        seats: seats.collect(),
        turn: 0,
        timetable: Timetable { next: clock::now(), spacing, slipped: Span::ZERO },
        blocks: SpacedBlocks::default(),
        waiting_since: None,
    };
    round.run()
}

impl Round<'_> {
    fn run(mut self) -> (Vec<Ended>, SpacedBlocks) {
        let how = self.send();
        self.blocks.slipped = self.timetable.slipped;
        let finished = how == Ending::Planned && self.sender.is_all_sent();
        for seat in &mut self.seats {
            // From here on each stream may be waited for: the rest is only to be told how it ended.
            let _ = seat.stream.set_nonblocking(false);
            if finished && let Err(error) = seat.progress.say_it_is_all(seat.stream) {
                seat.broken.get_or_insert(error);
            }
        }
        let sender = self.sender;
        let ends = self.seats.into_iter().enumerate().map(|(index, seat)| {
            let result = seat.broken.map_or(Ok(how), Err);
            sender.conclude(index as u16, seat.stream, seat.progress, result)
        });
        (ends.collect(), self.blocks)
    }

    fn send(&mut self) -> Ending {
        loop {
            let now = clock::now();
            if self.sender.is_stopped() {
                return Ending::Stopped;
            }
            if now >= self.sender.end() || self.seats.iter().all(|seat| seat.broken.is_some()) {
                return Ending::Planned;
            }
            let has_rests = self.seats.iter().any(|seat| seat.rest > 0 && seat.broken.is_none());
            if self.sender.is_all_sent() && !has_rests {
                return Ending::Planned;
            }
            if self.timetable.next > now {
                let until = self.timetable.next.min(self.sender.end());
                self.wait(until, now, has_rests);
                continue;
            }
            let claimed = self.sender.claim();
            if claimed == 0 {
                self.wait_for_rests(now + LOOK_UP);
                self.give_rests();
            } else if !self.give(claimed, now) {
                self.sender.give_back(claimed);
                self.wait_for_room(now + LOOK_UP);
                self.give_rests();
            }
        }
    }

    /// Gives a block to the next stream that takes at least a part of it; `false` when none does.
    fn give(&mut self, length: usize, now: Mono) -> bool {
        for step in 0..self.seats.len() {
            let index = (self.turn + step) % self.seats.len();
            let seat = &mut self.seats[index];
            if !seat.is_free() || !self.sender.may_send(index, now) {
                continue;
            }
            let written = seat.write(self.sender.block(length));
            if written == 0 {
                continue;
            }
            seat.rest = length - written;
            let late = self.timetable.begun(now);
            self.blocks.written += u64::from(seat.rest == 0);
            self.blocks.late += u64::from(late > LATE);
            self.blocks.worst_lateness = self.blocks.worst_lateness.max(late);
            self.turn = index + 1;
            if let Some(since) = self.waiting_since.take() {
                self.blocks.waited += now - since;
            }
            return true;
        }
        // Counted once for each block that has to wait.
        self.blocks.waits += u64::from(self.waiting_since.is_none());
        self.waiting_since.get_or_insert(now);
        false
    }

    /// Gives each stream with a rest what its buffer takes.
    fn give_rests(&mut self) {
        for seat in self.seats.iter_mut().filter(|seat| seat.rest > 0) {
            if seat.broken.is_none() {
                seat.rest -= seat.write(self.sender.block(seat.rest));
                self.blocks.written += u64::from(seat.rest == 0);
            }
            if seat.broken.is_some() {
                // Somebody else may send what this one cannot.
                self.sender.give_back(std::mem::take(&mut seat.rest));
            }
        }
    }

    /// Waits for the next time, exactly; gives rests meanwhile, while there is time for a sleep.
    fn wait(&mut self, until: Mono, now: Mono, has_rests: bool) {
        let latest = until.min(now + LOOK_UP);
        let wake = latest - pacer::margin();
        if !has_rests || wake <= now {
            pacer::wait_until(latest);
            return;
        }
        self.wait_for_rests(wake);
        self.give_rests();
    }

    /// Until a stream with a rest has room, or the time has come.
    fn wait_for_rests(&self, until: Mono) {
        wait_writable(self.seats.iter().filter(|seat| seat.rest > 0 && seat.broken.is_none()), until);
    }

    /// Until any stream has room, or the time has come.
    fn wait_for_room(&self, until: Mono) {
        let now = clock::now();
        let open = self.seats.iter().enumerate().filter(|(index, seat)| {
            seat.broken.is_none() && (seat.rest > 0 || self.sender.may_send(*index, now))
        });
        wait_writable(open.map(|(_, seat)| seat), until.min(self.sender.end()));
    }
}

#[cfg(unix)]
fn wait_writable<'s, 'a: 's>(seats: impl Iterator<Item = &'s Seat<'a>>, until: Mono) {
    use std::os::fd::AsRawFd;
    let watch =
        |seat: &Seat<'_>| libc::pollfd { fd: seat.stream.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    let mut watched: Vec<libc::pollfd> = seats.map(watch).collect();
    let left = (until - clock::now()).or_zero().nanos();
    let left = libc::timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ };
    // SAFETY: as many valid pollfds as told, a valid timespec, no signal mask. Whoever is ready is
    // found by writing.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::ppoll(watched.as_mut_ptr(), watched.len() as _, &raw const left, std::ptr::null());
    }
    // SAFETY: as many valid pollfds as told.
    #[cfg(not(target_os = "linux"))]
    unsafe {
        libc::poll(watched.as_mut_ptr(), watched.len() as _, (left.tv_nsec / 1_000_000) as libc::c_int);
    }
}

#[cfg(not(unix))]
fn wait_writable<'s, 'a: 's>(_: impl Iterator<Item = &'s Seat<'a>>, until: Mono) {
    clock::sleep_until(until.min(clock::now() + Span::from_millis(1)));
}

/// As for datagrams: below it is the host's usual unrest.
const LATE: Span = Span::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: i64) -> Span {
        Span::from_micros(n)
    }

    #[test]
    fn a_late_block_does_not_put_off_the_next_but_a_long_hole_is_forgiven() {
        let start = Mono(1_000_000);
        let mut times = Timetable { next: start, spacing: us(10), slipped: Span::ZERO };
        assert_eq!(times.begun(start + us(4)), us(4));
        assert_eq!(times.next, start + us(10));
        assert_eq!(times.begun(start + us(9)), Span::ZERO, "early is not late");
        assert_eq!((times.next, times.slipped), (start + us(20), Span::ZERO));
        assert_eq!(times.begun(start + us(1020)), us(1000));
        assert_eq!((times.next, times.slipped), (start + us(1020), us(990)));
    }

    #[test]
    fn blocks_that_take_longer_than_the_spacing_follow_each_other_at_once() {
        let start = Mono(0);
        let mut times = Timetable { next: start, spacing: us(10), slipped: Span::ZERO };
        let mut now = start;
        for _ in 0..1000 {
            now = now.max(times.next);
            times.begun(now);
            now += us(11);
        }
        assert_eq!(now, start + us(11_000));
    }
}

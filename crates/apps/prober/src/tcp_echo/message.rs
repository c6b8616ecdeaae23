//! Messages of any length over a stream, in pieces, with an eye on silence.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_io::timeout::is_timeout;
use netaware_units::{Mono, Span};
use netaware_wire::pattern;

/// Why a message did not get through.
#[derive(Debug)]
pub(super) enum Broken {
    /// Nothing moved for as long as patience lasts.
    Silent,
    /// Nobody wants the rest.
    Stopped,
    /// The system's answer.
    Failed(io::Error),
}

/// Asked whenever nothing has moved since an instant for a tick; an answer ends the waiting.
pub(super) type Waiting<'a> = dyn Fn(Mono) -> Option<Broken> + 'a;

/// The usual one: until the stop flag is raised or patience has ended.
pub(super) fn silence(patience: Span, stop: &StopFlag) -> impl Fn(Mono) -> Option<Broken> + '_ {
    move |since| {
        if stop.is_raised() {
            Some(Broken::Stopped)
        } else {
            (clock::now().since(since) >= patience).then_some(Broken::Silent)
        }
    }
}

/// Lets reads and writes that do not move return so often that patience and stop flag are seen to.
pub(super) fn set_ticks(stream: &TcpStream, patience: Span) -> io::Result<()> {
    let tick = Some(patience.clamp(SHORTEST_TICK, LONGEST_TICK).to_std());
    stream.set_read_timeout(tick)?;
    stream.set_write_timeout(tick)
}

/// Messages of one length, written or read.
pub(super) struct Messages<'a> {
    stream: &'a TcpStream,
    length: u64,
    buf: Vec<u8>,
    /// Of the message under way.
    moved: u64,
    watch: Watch,
}

/// Whether the program runs: a call that waits returns at each tick.
struct Watch {
    /// When it was last seen to.
    ran_at: Mono,
    /// The last time in which it did not.
    away: Option<(Mono, Mono)>,
}

impl Watch {
    /// It runs, and was to run again no later than `at_most` after it last did. Returns whether it
    /// did not.
    fn look(&mut self, at_most: Span) -> bool {
        self.look_at(clock::now(), at_most)
    }

    fn look_at(&mut self, now: Mono, at_most: Span) -> bool {
        let was_away = now - self.ran_at > at_most + NOTICEABLE;
        if was_away {
            self.away = Some((self.ran_at, now));
        }
        self.ran_at = now;
        was_away
    }
}

impl<'a> Messages<'a> {
    pub(super) fn new(stream: &'a TcpStream, length: u32) -> Self {
        let watch = Watch { ran_at: clock::now(), away: None };
        Self { stream, length: length.into(), buf: vec![0; (length as usize).min(PIECE)], moved: 0, watch }
    }

    /// The program waited for something else, which came at `since`, and goes on now.
    pub(super) fn go_on(&mut self, since: Mono) {
        self.watch.ran_at = self.watch.ran_at.max(since);
        self.watch.look(Span::ZERO);
    }

    /// Whether the program did not run for a while between then and now: when a message came
    /// meanwhile nobody saw.
    pub(super) fn was_away_since(&self, at: Mono) -> bool {
        self.watch.away.is_some_and(|(_, until)| at < until)
    }

    /// How much of the last message is missing.
    pub(super) fn missing(&self) -> u64 {
        self.length - self.moved
    }

    pub(super) fn write(&mut self, exchange: u64, waiting: &Waiting<'_>) -> Result<(), Broken> {
        self.moved = 0;
        while self.moved < self.length {
            let piece = self.piece();
            pattern::fill(&mut self.buf[..piece], exchange, self.moved);
            let mut done = 0;
            while done < piece {
                let mut stream = self.stream;
                let (buf, moved) = (&self.buf[done..piece], (&mut self.moved, &mut self.watch));
                done += moving(moved, waiting, || stream.write(buf))?;
            }
        }
        Ok(())
    }

    /// Whether the message was what it should be.
    pub(super) fn read(&mut self, exchange: u64, waiting: &Waiting<'_>) -> Result<bool, Broken> {
        let mut is_intact = true;
        self.moved = 0;
        while self.moved < self.length {
            let (piece, at) = (self.piece(), self.moved);
            let mut stream = self.stream;
            let (buf, moved) = (&mut self.buf[..piece], (&mut self.moved, &mut self.watch));
            let read = moving(moved, waiting, || stream.read(buf))?;
            is_intact &= pattern::matches(&self.buf[..read], exchange, at);
        }
        Ok(is_intact)
    }

    /// Reads so many bytes without a look at them.
    pub(super) fn skip(&mut self, bytes: u64, waiting: &Waiting<'_>) -> Result<(), Broken> {
        let (mut stream, mut skipped) = (self.stream, 0);
        while skipped < bytes {
            let piece = usize::try_from(bytes - skipped).unwrap_or(usize::MAX).min(self.buf.len());
            let buf = &mut self.buf[..piece];
            moving((&mut skipped, &mut self.watch), waiting, || stream.read(buf))?;
        }
        Ok(())
    }

    fn piece(&self) -> usize {
        usize::try_from(self.length - self.moved).unwrap_or(usize::MAX).min(self.buf.len())
    }
}

/// Repeats a system call until it moves something.
fn moving(
    (moved, watch): (&mut u64, &mut Watch),
    waiting: &Waiting<'_>,
    mut call: impl FnMut() -> io::Result<usize>,
) -> Result<usize, Broken> {
    let mut since = None;
    loop {
        let called = call();
        if watch.look(LONGEST_TICK) {
            // Nobody waited meanwhile: what came is read before anything is given up.
            since = None;
        }
        match called {
            Ok(0) => return Err(Broken::Failed(ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                *moved += count as u64;
                return Ok(count);
            }
            Err(e) if is_timeout(&e) => {
                // The call itself has waited for a tick; the clock is only read when nothing moves.
                let since = *since.get_or_insert_with(|| clock::now() - SHORTEST_TICK);
                if let Some(broken) = waiting(since) {
                    return Err(broken);
                }
            }
            Err(e) => return Err(Broken::Failed(e)),
        }
    }
}

/// What is written and read at a time, and all the memory that a message takes.
const PIECE: usize = 64 << 10;
const SHORTEST_TICK: Span = Span::from_millis(1);
const LONGEST_TICK: Span = Span::from_millis(50);
/// A thread of a busy host hardly waits so long for a core. Where it does, nobody saw either when
/// an answer came.
const NOTICEABLE: Span = Span::from_millis(300);

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// A stop of 0.7 to 1 s was a round trip of 1.01 s, and one request lost that came late.
    #[test]
    fn a_stop_of_less_than_a_second_is_noticed_and_a_tick_or_a_busy_host_is_not() {
        let at = |ms: i64| Mono(1_000_000_000) + Span::from_millis(ms);
        let mut watch = Watch { ran_at: at(0), away: None };
        assert!(!watch.look_at(at(50), LONGEST_TICK) && !watch.look_at(at(400), LONGEST_TICK));
        assert!(watch.look_at(at(1100), LONGEST_TICK));
        assert_eq!(watch.away, Some((at(400), at(1100))));
        assert!(!watch.look_at(at(1150), LONGEST_TICK), "it is noticed once");
    }

    /// A program that was stopped for 8 s found an answer that had come after 20 ms: a round trip
    /// of 8.01 s.
    #[test]
    fn when_a_message_came_while_the_program_was_stopped_is_not_known() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        let stop = StopFlag::new();
        let waiting = silence(Span::from_secs(60), &stop);
        set_ticks(&near, Span::from_secs(60)).unwrap();
        let (mut sender, mut reader) = (Messages::new(&far, 10), Messages::new(&near, 10));
        let asked_at = clock::now();
        sender.write(0, &waiting).unwrap();
        // It waited for the answer when it was stopped.
        reader.watch.ran_at = clock::now() - Span::from_secs(8);
        assert!(reader.read(0, &waiting).unwrap());
        assert!(reader.was_away_since(asked_at) && !reader.was_away_since(clock::now()));
        // It waited for the next request, which was asked when it ran again.
        let asked_at = clock::now();
        sender.write(1, &waiting).unwrap();
        reader.watch.ran_at = asked_at - Span::from_secs(8);
        reader.go_on(asked_at);
        assert!(reader.read(1, &waiting).unwrap());
        assert!(!reader.was_away_since(asked_at));
    }
}

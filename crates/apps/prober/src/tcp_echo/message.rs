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
}

impl<'a> Messages<'a> {
    pub(super) fn new(stream: &'a TcpStream, length: u32) -> Self {
        Self { stream, length: length.into(), buf: vec![0; (length as usize).min(PIECE)], moved: 0 }
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
                let (buf, moved) = (&self.buf[done..piece], &mut self.moved);
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
            let (buf, moved) = (&mut self.buf[..piece], &mut self.moved);
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
            moving(&mut skipped, waiting, || stream.read(buf))?;
        }
        Ok(())
    }

    fn piece(&self) -> usize {
        usize::try_from(self.length - self.moved).unwrap_or(usize::MAX).min(self.buf.len())
    }
}

/// Repeats a system call until it moves something.
fn moving(
    moved: &mut u64,
    waiting: &Waiting<'_>,
    mut call: impl FnMut() -> io::Result<usize>,
) -> Result<usize, Broken> {
    let mut since = None;
    loop {
        match call() {
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

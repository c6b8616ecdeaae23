//! SIGUSR1 and SIGUSR2, for programs that want to be told from outside where to go.
//!
//! The handler writes a byte into a pipe that a thread reads: what a handler may do is little.
//! `signal-hook` would do, but for one thing: it never gives a signal back, and [`na_signals`]
//! does, to what the program had for it before.

use std::ffi::c_int;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use libc::{SIGUSR1, SIGUSR2, sigaction};
use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_record::IpVersion;
use netaware_units::Span;

use crate::calls::guarded;
use crate::table;

static LISTENING: Mutex<Option<Listening>> = Mutex::new(None);
/// Where the handler writes; it is never closed, as a handler may still be about to write when its
/// signal has been given back.
static WRITES_TO: AtomicI32 = AtomicI32::new(-1);
/// A child of `fork` has the handler and the pipe, but its signals are not for the streams of its
/// parent.
static PROCESS: AtomicI32 = AtomicI32::new(-1);
static PIPE: Mutex<Option<(PipeReader, PipeWriter)>> = Mutex::new(None);

struct Listening {
    /// What the program had.
    before: [(c_int, sigaction); 2],
    writer: PipeWriter,
    thread: JoinHandle<()>,
}

impl Listening {
    fn begin() -> io::Result<Self> {
        let (mut reader, writer) = pipe()?;
        PROCESS.store(own_process(), Ordering::SeqCst);
        let thread = quiet_thread("dual-signals", move || {
            let mut byte = [0];
            while reader.read_exact(&mut byte).is_ok() && byte[0] != END {
                let to = if byte[0] == TO_V4 { IpVersion::V4 } else { IpVersion::V6 };
                for entry in table::all() {
                    let _ = table::switch(&entry, to);
                }
            }
        })?;
        // Of two signals that the system has, neither can be refused.
        Ok(Self { before: [install(SIGUSR1)?, install(SIGUSR2)?], writer, thread })
    }

    fn give_back(&self) {
        for (signal, before) in &self.before {
            // SAFETY: what the system gave for this signal.
            unsafe { sigaction(*signal, before, null_mut()) };
        }
    }

    fn end(mut self) {
        // Full of signals for a moment at most: the thread reads them.
        while self.writer.write(&[END]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            clock::sleep(Span::from_millis(1));
        }
        let _ = self.thread.join();
    }
}

/// With `on` other than 0: from now on SIGUSR1 moves all streams and datagrams to IPv4 and SIGUSR2
/// to IPv6. With 0 they do again what they did before. A stream without a connection of that
/// version stays. 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn na_signals(on: c_int) -> c_int {
    guarded(|| {
        let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
        match (on != 0, listening.take()) {
            (true, Some(already)) => *listening = Some(already),
            (true, None) => *listening = Some(Listening::begin()?),
            (false, Some(already)) => {
                already.give_back();
                already.end();
            }
            (false, None) => {}
        }
        Ok(0)
    })
}

/// At the program's end. Signals stay here: one that comes now and was fatal before must not kill a
/// program that is ending well.
pub(crate) fn stop() {
    if let Some(listening) = LISTENING.lock().unwrap_or_else(PoisonError::into_inner).take() {
        listening.end();
    }
}

/// The one of this process. Its end that is written to never makes a handler wait.
fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let mut pipe = PIPE.lock().unwrap_or_else(PoisonError::into_inner);
    if pipe.is_none() {
        let made = io::pipe()?;
        // SAFETY: a descriptor of ours, and a flag.
        if unsafe { libc::fcntl(made.1.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        *pipe = Some(made);
    }
    let (reader, writer) = pipe.as_ref().ok_or(io::ErrorKind::NotFound)?;
    // The handler writes to the original, which stays.
    WRITES_TO.store(writer.as_raw_fd(), Ordering::SeqCst);
    Ok((reader.try_clone()?, writer.try_clone()?))
}

fn own_process() -> c_int {
    // SAFETY: it cannot fail.
    unsafe { libc::getpid() }
}

/// With what there was before.
fn install(signal: c_int) -> io::Result<(c_int, sigaction)> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: all zero is a disposition without flags and with an empty mask; the handler does only
    // what one may, and where the call succeeds it has written what was before.
    unsafe {
        let mut wanted: sigaction = MaybeUninit::zeroed().assume_init();
        wanted.sa_sigaction = handle as extern "C" fn(c_int) as usize;
        wanted.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut wanted.sa_mask);
        if sigaction(signal, &raw const wanted, before.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((signal, before.assume_init()))
    }
}

/// Does only what a handler may (signal-safety(7)): reads numbers, and calls getpid and write.
extern "C" fn handle(signal: c_int) {
    if own_process() != PROCESS.load(Ordering::SeqCst) {
        return;
    }
    let errno = errno::errno();
    let byte = if signal == SIGUSR1 { TO_V4 } else { TO_V6 };
    // SAFETY: one byte. Where the pipe is full there are signals enough in it.
    unsafe { libc::write(WRITES_TO.load(Ordering::SeqCst), (&raw const byte).cast(), 1) };
    errno::set_errno(errno);
}

const END: u8 = 0;
const TO_V4: u8 = 4;
const TO_V6: u8 = 6;

//! The threads that work for streams, and how a program ends after them.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_units::{Mono, Span};

use crate::draining::Draining;
use crate::link::Link;
use crate::shared::Shared;

/// Those that may still run.
static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());
static ENDING: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Running {
    thread: JoinHandle<()>,
    /// The stream that it keeps, where it is a keeper.
    keeps: Option<Weak<Shared>>,
}

/// Starts a thread that blocks all signals.
pub(crate) fn start(
    name: &str,
    keeps: Option<Weak<Shared>>,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let mut running = running();
    running.retain(|one| !one.thread.is_finished());
    let thread = quiet_thread(name, work)?;
    running.push(Running { thread, keeps });
    Ok(())
}

/// Whether the program is about to end: a keeper then goes as soon as the peer has everything.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Acquire)
}

/// For a program that is about to end, once it has let go of its streams: waits until their peers
/// have everything, and for the threads behind them. It waits no longer for a stream whose peer has
/// acknowledged nothing more for `patience` and four of its round trips, and for no stream longer
/// than a minute in all: a peer must not decide when a program ends. What a kernel does for plain
/// sockets after their process, nobody does for these. Streams made afterwards are let go as soon
/// as their peers have everything.
///
/// Whether all threads have ended. Connections that are being tried are waited for a tenth of a
/// second at most.
pub fn settle(patience: Span) -> bool {
    ENDING.store(true, Ordering::Release);
    let mut look_at = clock::now();
    let tried_until = look_at + patience.min(TRIED);
    let awaited = |running| Awaited { running, draining: Draining::new(look_at, 0, ANY) };
    let mut all: Vec<_> = std::mem::take(&mut *running()).into_iter().map(awaited).collect();
    all.iter().filter_map(Awaited::keeps).for_each(|shared| shared.call_back());
    loop {
        let now = clock::now();
        let (ended, mut left): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| one.running.thread.is_finished());
        for one in ended {
            let _ = one.running.thread.join();
        }
        if now >= look_at {
            look_at = now + LOOK_EVERY;
            for one in &mut left {
                one.look(now);
            }
        }
        let waits = |one: &Awaited| match one.running.keeps {
            Some(_) => !one.draining.has_had_its_time(now, patience),
            None => now < tried_until,
        };
        if !left.iter().any(waits) {
            return left.is_empty();
        }
        all = left;
        clock::sleep_until(now + Span::from_millis(1));
    }
}

/// A thread that is waited for at the end of the program.
struct Awaited {
    running: Running,
    draining: Draining,
}

impl Awaited {
    fn keeps(&self) -> Option<Arc<Shared>> {
        self.running.keeps.as_ref()?.upgrade()
    }

    /// Looks at what the peer has acknowledged. The thread that ended the program may hold the
    /// lock, so the lock is not waited for.
    fn look(&mut self, now: Mono) {
        let Some(shared) = self.keeps() else { return };
        let Some(state) = shared.try_lock() else { return };
        // A stream that a thread still holds may be given more bytes without end.
        if state.released {
            for info in state.links.iter().flatten().filter_map(Link::info) {
                self.draining.takes(info.rtt);
            }
            self.draining.look(now, state.stream.acked(), state.kept.len());
        }
    }
}

fn running() -> MutexGuard<'static, Vec<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

const TRIED: Span = Span::from_millis(100);
/// Each byte is progress where the time in all has a bound: slow paths need no less patience.
const ANY: u64 = 1;
/// Between looks at what peers have acknowledged.
const LOOK_EVERY: Span = Span::from_millis(20);

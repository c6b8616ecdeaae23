//! The threads that work for streams, and how a program ends after them.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_units::{Mono, Span};

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
/// have everything, or until then, and for the threads behind them. What a kernel does for plain
/// sockets after their process, nobody does for these. Streams made afterwards are let go as soon
/// as their peers have everything.
///
/// Whether all threads have ended. Connections that are being tried are waited for a tenth of a
/// second at most.
pub fn settle(until: Mono) -> bool {
    ENDING.store(true, Ordering::Release);
    let tried_until = until.min(clock::now() + TRIED);
    let mut all = std::mem::take(&mut *running());
    all.iter().filter_map(|one| one.keeps.as_ref()?.upgrade()).for_each(|shared| shared.call_back());
    loop {
        let now = clock::now();
        let (ended, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.thread.is_finished());
        for one in ended {
            let _ = one.thread.join();
        }
        let waits = left.iter().any(|one| now < if one.keeps.is_some() { until } else { tried_until });
        if !waits {
            return left.is_empty();
        }
        all = left;
        clock::sleep_until(now + Span::from_millis(1));
    }
}

fn running() -> MutexGuard<'static, Vec<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

const TRIED: Span = Span::from_millis(100);

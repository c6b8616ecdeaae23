//! Ctrl-C, SIGTERM or SIGHUP once ends what runs with what there is, twice ends the program;
//! SIGUSR1 asks how it stands.
//!
//! SIGQUIT is left alone: it ends the program at once, without a result.

use std::fmt;
use std::sync::mpsc::{Sender, channel};

use anyhow::Context;
use netaware_io::signals::is_ignored;
use netaware_io::stop::StopFlag;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

/// Exit code of a measurement that was cut off twice: nothing was measured.
const ABANDONED: i32 = 2;

/// Raises `stop` at the first signal that ends and exits at the second. `told` runs in a thread of
/// its own, at the first with [`Event::Stopping`], and at each SIGUSR1 with [`Event::Asked`].
///
/// # Errors
/// The system refuses a handler.
pub(crate) fn listen(stop: &StopFlag, told: impl Fn(Event) + Send + 'static) -> anyhow::Result<()> {
    let stop = stop.clone();
    listen_and(move |_| stop.raise(), told)
}

/// Like [`listen`], and calls `end` at the first signal that ends instead of raising a flag.
///
/// # Errors
/// The system refuses a handler or a thread.
pub(crate) fn listen_and(
    end: impl Fn(By) + Send + 'static,
    told: impl Fn(Event) + Send + 'static,
) -> anyhow::Result<()> {
    listen_to_each(end, || std::process::exit(ABANDONED), told)
}

/// Like [`listen_and`], and calls `at_once` at the second signal that ends; only the third exits.
/// For what must not be left behind.
///
/// # Errors
/// As [`listen_and`].
pub(crate) fn listen_to_each(
    end: impl Fn(By) + Send + 'static,
    at_once: impl Fn() + Send + 'static,
    told: impl Fn(Event) + Send + 'static,
) -> anyhow::Result<()> {
    let heard = ending().into_iter().chain([SIGUSR1]);
    let mut signals = Signals::new(heard).context("cannot listen for signals")?;
    let told = in_its_own_thread(told)?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            if hear(signals.forever(), end, at_once, &told) == Heard::ThreeTimes {
                std::process::exit(ABANDONED);
            }
        })
        .context("cannot start a thread for signals")?;
    Ok(())
}

/// What `told` has to say may be stuck in a pipe that nobody reads, or fail. The thread that hears
/// signals must survive both: without it the program could only be killed.
fn in_its_own_thread(told: impl Fn(Event) + Send + 'static) -> anyhow::Result<Sender<Event>> {
    let (sender, events) = channel();
    std::thread::Builder::new()
        .name("told".into())
        .spawn(move || events.iter().for_each(told))
        .context("cannot start a thread for signals")?;
    Ok(sender)
}

/// How hearing ended.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// A signal that ends came a third time.
    ThreeTimes,
    /// There are no more signals.
    NoMore,
}

fn hear(
    signals: impl Iterator<Item = i32>,
    end: impl Fn(By),
    at_once: impl Fn(),
    told: &Sender<Event>,
) -> Heard {
    let mut times = 0;
    for signal in signals {
        if signal == SIGUSR1 {
            // A thread that has failed to say it changes nothing of what is to be done.
            let _ = told.send(Event::Asked);
            continue;
        }
        times += 1;
        match times {
            1 => {
                end(By(signal));
                let _ = told.send(Event::Stopping(By(signal)));
            }
            2 => at_once(),
            _ => return Heard::ThreeTimes,
        }
    }
    Heard::NoMore
}

/// The signals that end what runs. SIGHUP is not among them if the program was started with it
/// ignored, as `nohup` does: then it is to outlive its terminal.
pub(crate) fn ending() -> Vec<i32> {
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hang_up).collect()
}

/// What a person asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Where does it stand?
    Asked,
    /// End early.
    Stopping(By),
}

/// The signal that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct By(pub(crate) i32);

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SIGHUP => f.write_str("SIGHUP"),
            SIGINT => f.write_str("SIGINT"),
            SIGTERM => f.write_str("SIGTERM"),
            other => write!(f, "signal {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn signals_are_heard_whatever_becomes_of_who_speaks_about_them() {
        let (never_spoken, spoken) = channel::<()>();
        // One that is stuck in a pipe that nobody reads, one that panics, one that has gone.
        let stuck = in_its_own_thread(move |_| {
            let _ = spoken.recv();
        })
        .unwrap();
        // It unwinds as a panic does, without the message that would count as somebody's fault.
        let failing = in_its_own_thread(|_| std::panic::resume_unwind(Box::new("on purpose"))).unwrap();
        let (gone, _) = channel();
        for told in [stuck, failing, gone] {
            let (ended, hurried) = (Cell::new(None), Cell::new(false));
            let hear = |signals: &[i32]| {
                let end = |by| ended.set(Some(by));
                hear(signals.iter().copied(), end, || hurried.set(true), &told)
            };
            assert_eq!(hear(&[SIGUSR1, SIGTERM]), Heard::NoMore);
            assert_eq!((ended.get(), hurried.get()), (Some(By(SIGTERM)), false));
            assert_eq!(hear(&[SIGUSR1, SIGHUP, SIGUSR1, SIGINT]), Heard::NoMore);
            assert_eq!((ended.get(), hurried.get()), (Some(By(SIGHUP)), true));
            assert_eq!(hear(&[SIGINT, SIGINT, SIGUSR1, SIGINT]), Heard::ThreeTimes);
        }
        drop(never_spoken);
    }
}

//! Ctrl-C, SIGTERM or SIGHUP once ends what runs with what there is, twice ends the program;
//! SIGUSR1 asks how it stands.
//!
//! SIGQUIT is left alone: it ends the program at once, without a result.

use std::fmt;

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
    let heard = ending().into_iter().chain([SIGUSR1]);
    let mut signals = Signals::new(heard).context("cannot listen for signals")?;
    let stop = stop.clone();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let mut is_ending = false;
            for signal in signals.forever() {
                match signal {
                    SIGUSR1 => told(Event::Asked),
                    _ if !is_ending => {
                        is_ending = true;
                        stop.raise();
                        told(Event::Stopping(By(signal)));
                    }
                    _ => std::process::exit(ABANDONED),
                }
            }
        })
        .context("cannot start a thread for signals")?;
    Ok(())
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

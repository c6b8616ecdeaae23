//! Ctrl-C once ends a measurement with what there is, twice ends the program; SIGUSR1 asks how it
//! stands.

use anyhow::Context;
use netaware_io::stop::StopFlag;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

/// Exit code of a measurement that was cut off twice: nothing was measured.
const ABANDONED: i32 = 2;

/// Raises `stop` at the first SIGINT or SIGTERM and exits at the second. `told` runs in a thread of
/// its own, at the first with [`Event::Stopping`], and at each SIGUSR1 with [`Event::Asked`].
///
/// # Errors
/// The system refuses a handler.
pub(crate) fn listen(stop: &StopFlag, told: impl Fn(Event) + Send + 'static) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1]).context("cannot listen for signals")?;
    let stop = stop.clone();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGUSR1 => told(Event::Asked),
                    _ if !stop.is_raised() => {
                        stop.raise();
                        told(Event::Stopping);
                    }
                    _ => std::process::exit(ABANDONED),
                }
            }
        })
        .context("cannot start a thread for signals")?;
    Ok(())
}

/// What a person asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Where does it stand?
    Asked,
    /// End early.
    Stopping,
}

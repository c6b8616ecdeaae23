//! What the emulator sees of the world: two hosts and a clock.

use std::io;

use netaware_netmodel::{Side, Truth};
use netaware_units::{Mono, Span};

use crate::emulator::Subject;
use crate::tally::Tally;

/// The hosts at both ends, and time. A virtual one runs the emulator in tests; `real::Devices` is
/// the real one.
pub(crate) trait World {
    /// Never runs backwards.
    fn now(&self) -> Mono;
    /// The next packet that `side` has sent, if there is one; `None` at once if not.
    ///
    /// # Errors
    /// The host is gone: the emulator ends.
    fn read(&mut self, side: Side, buffer: &mut [u8]) -> io::Result<Option<usize>>;
    /// When a packet that `side` has sent, and that was read at `at`, was given to that host's
    /// device; `None` where nobody knows.
    fn entered(&mut self, side: Side, packet: &[u8], at: Mono) -> Option<Mono>;
    /// Hands a packet to `side`; false if that host did not take it.
    fn write(&mut self, side: Side, bytes: &[u8]) -> bool;
    /// Nothing to do before `until` unless a packet comes. May return at any time before, never
    /// much later.
    fn idle(&mut self, until: Mono) -> Idled;
}

/// What became of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idled {
    /// The core was kept.
    Awake,
    /// Slept until a packet came.
    Woken,
    /// Slept, and nothing came; the sleep should have ended by `due`.
    Overslept { due: Mono },
}

/// Who is told what happens, from within the loop: must not block.
pub(crate) trait Witness {
    /// One packet left the path or was lost in it. `late` is how late it was handed over.
    /// `of` is absent for a packet whose bytes are gone.
    fn fate(&mut self, fate: &netaware_netmodel::Fate, late: Span, of: Option<Subject>);
    /// Called in every round; looks for itself whether there is something new.
    fn round(&mut self, now: Mono, truth: &Truth, tally: &mut Tally);
}

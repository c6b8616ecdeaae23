//! The only reader of clocks among the tasks. It times builds and lets servers settle; no figure of
//! a benchmark comes from here, those are the tools' own or a capture's.
#![expect(
    clippy::disallowed_methods,
    reason = "builds are timed and servers settle; nothing that is measured depends on it"
)]

use std::time::{Duration, Instant};

/// Counts from its creation.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Counts from now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// How long it has counted.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Waits.
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

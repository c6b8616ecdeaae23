//! The state of this host's wall clock, report by report.

use netaware_host::clock::{self as host, StepWatch};
use netaware_io::clock;
use netaware_record::passive::ClockState;
use netaware_units::{Mono, Span};

/// Asking a daemon costs a system call or two and may take a timeout.
const ASK_EVERY: Span = Span::from_secs(10);

/// Watches the clock for jumps, and asks what disciplines it from time to time.
#[derive(Debug)]
pub struct ClockWatch {
    steps: StepWatch,
    asked: Option<(Mono, ClockState)>,
}

impl ClockWatch {
    /// From now on.
    #[expect(clippy::new_without_default, reason = "it begins to watch")]
    pub fn new() -> Self {
        Self { steps: StepWatch::new(), asked: None }
    }

    /// The state now, and the largest jump since the last call. To be called each period: a jump is
    /// seen between two calls.
    pub fn state(&mut self) -> ClockState {
        let before = clock::now();
        let wall = clock::wall();
        self.steps.observe(before, wall, clock::now());
        let now = clock::now();
        let fresh =
            self.asked.as_ref().filter(|(at, _)| now - *at < ASK_EVERY).map(|(_, state)| state.clone());
        let stepped = self.steps.take_largest();
        let state = match fresh {
            Some(state) if stepped.is_none() => state,
            _ => {
                let state = host::read();
                self.asked = Some((now, state.clone()));
                state
            }
        };
        ClockState { stepped, ..state }
    }
}

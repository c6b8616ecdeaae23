//! What this host costs as an instrument: its clock, its waits, its calls, its stack without a
//! network.
//!
//! Everything is measured on loopback and in this process, needs no privilege and reaches nobody
//! else. **Biased**: whatever else the host does meanwhile makes costs higher and maxima lower, so
//! medians stand for costs, and a busy host reads worse than it is, never better. A send over
//! loopback holds what the stack does to deliver it, which on a card's path is the other host's
//! work: sending reads slow by that.

mod calls;
mod loopback;
mod samples;
mod stamps;
mod steering;
mod waits;

use netaware_record::{ClockTiming, Effort};
use netaware_units::Span;

use crate::clock;
use crate::thread::allowed_cores;

pub use calls::{PAYLOADS, calls};
pub use loopback::loopback;
pub use stamps::{receive_room, stamps};
pub use steering::{clock_steering, hardware_clocks};
pub use waits::waits;

/// Cost and resolution of the monotonic clock. Takes a millisecond or so.
pub fn clock_timing() -> ClockTiming {
    let mut costs: Vec<f64> = (0..BLOCKS).map(|_| block_cost()).collect();
    let smallest = (0..BLOCKS * READINGS).map(|_| smallest_step()).min();
    ClockTiming {
        read_ns: samples::median(&mut costs),
        resolution: smallest.unwrap_or(Span::ZERO),
        claimed: clock::claimed_resolution(),
    }
}

/// ns of one of many readings one after the other.
fn block_cost() -> f64 {
    let began_at = clock::now();
    for _ in 0..READINGS {
        std::hint::black_box(clock::now());
    }
    (clock::now() - began_at).nanos() as f64 / (READINGS + 1) as f64
}

/// From one reading to the next that differs.
fn smallest_step() -> Span {
    let first = clock::now();
    loop {
        let next = clock::now();
        if next > first {
            return next - first;
        }
    }
}

/// How often something is tried.
fn times(effort: Effort, quick: usize, full: usize) -> usize {
    match effort {
        Effort::Quick => quick,
        Effort::Full => full,
    }
}

const BLOCKS: usize = 100;
const READINGS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_costs_something_and_tells_times_apart_that_it_takes_to_read() {
        let clock = clock_timing();
        assert!(clock.read_ns > 0.0 && clock.read_ns < 100_000.0, "{clock:?}");
        assert!(clock.resolution > Span::ZERO && clock.resolution >= clock.claimed, "{clock:?}");
    }
}

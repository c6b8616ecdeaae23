//! What copying memory costs on this host: a part of the price of every byte that passes through
//! its network stack.
//!
//! **Measures** copies of 16 MiB, more than most caches hold, by the caller's clock, and gives the
//! fastest, because everything that disturbs a copy makes it slower. **Biased**: a packet just
//! taken from a card or a cache may copy faster than this says, a first touch slower; on a virtual
//! machine the neighbours share the memory's bandwidth.

use std::hint::black_box;

use netaware_units::Mono;

/// Nanoseconds per byte of the fastest of several copies; `None` if the clock did not move. Takes
/// some 50 ms and 32 MiB.
pub fn memory_copy_ns_per_byte(now: impl Fn() -> Mono) -> Option<f64> {
    let from = vec![0x5a_u8; BYTES];
    // Written once, so that no copy pays for pages that do not exist yet.
    let mut to = vec![0xa5_u8; BYTES];
    let mut copy = || {
        let began_at = now();
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        now().since(began_at)
    };
    let fastest = (0..COPIES).map(|_| copy()).min()?;
    (fastest.nanos() > 0).then(|| fastest.nanos() as f64 / BYTES as f64)
}

/// How often it is tried.
const COPIES: usize = 5;
const BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_fastest_copy_counts() {
        // Each look at the clock is later by as much as the row says; two looks make a copy.
        let steps = [0, 90, 0, 30, 0, 70, 0, 40, 0, 50].map(|millis: u64| millis * 1_000_000);
        let (at, looks) = (Cell::new(0), Cell::new(0));
        let clock = || {
            at.set(at.get() + steps[looks.get()]);
            looks.set(looks.get() + 1);
            Mono(at.get())
        };
        let found = memory_copy_ns_per_byte(clock).unwrap();
        assert!((found - 30e6 / BYTES as f64).abs() < 1e-12, "{found}");
        assert_eq!(looks.get(), 2 * COPIES);
    }

    #[test]
    fn a_clock_that_stands_still_gives_no_figure() {
        assert_eq!(memory_copy_ns_per_byte(|| Mono(7)), None);
    }
}

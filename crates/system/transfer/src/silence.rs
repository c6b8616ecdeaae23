//! How long the other end has given no sign of life, from the sender's side.
//!
//! While the last bytes of a file drain the receiver has nothing to say: what it acknowledges shows
//! that it is there. A host acknowledges for a receiver that hangs, too, so acknowledgements of
//! "wait" show nothing. Only what was said before the waiting counts.

use netaware_units::{Mono, Span};

#[derive(Debug)]
pub(crate) struct Silence {
    since: Mono,
    acknowledged: u64,
    /// Where in the stream the last thing ends that is not "wait"; unknown since one was said.
    spoken: Option<u64>,
}

impl Silence {
    pub(crate) fn new(now: Mono) -> Self {
        Self { since: now, acknowledged: 0, spoken: None }
    }

    /// The other end has given a sign of life.
    pub(crate) fn heard(&mut self, now: Mono) {
        self.since = now;
    }

    /// This end has said something else than "wait".
    pub(crate) fn spoke(&mut self) {
        self.spoken = None;
    }

    /// Returns how long it has lasted, while nothing is left to be said but "wait". The stream was
    /// `given` so many bytes, and the other end has `acknowledged` so many of them.
    pub(crate) fn lasts(&mut self, now: Mono, acknowledged: u64, given: u64) -> Span {
        let spoken = *self.spoken.get_or_insert(given);
        if acknowledged > self.acknowledged && self.acknowledged < spoken {
            self.since = now;
        }
        self.acknowledged = acknowledged;
        now - self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Mono {
        Mono(0) + Span::from_secs(seconds)
    }

    fn secs(seconds: i64) -> Span {
        Span::from_secs(seconds)
    }

    /// 16 MB at 3 Mbit/s, as the last of a file.
    #[test]
    fn a_window_that_drains_for_longer_than_the_patience_is_no_silence() {
        let mut silence = Silence::new(at(0));
        silence.spoke();
        for second in 0..=42_u32 {
            let acknowledged = 375_000 * u64::from(second);
            let lasted = silence.lasts(at(i64::from(second)), acknowledged, 16_000_000);
            assert_eq!(lasted, Span::ZERO, "after {second} s");
        }
        assert_eq!(silence.lasts(at(43), 16_000_000, 16_000_000), Span::ZERO);
        assert_eq!(silence.lasts(at(53), 16_000_000, 16_000_000), secs(10));
        silence.heard(at(60));
        assert_eq!(silence.lasts(at(61), 16_000_000, 16_000_000), secs(1));
    }

    #[test]
    fn a_receiver_that_hangs_is_silent_though_its_host_acknowledges_each_wait() {
        let mut silence = Silence::new(at(0));
        silence.spoke();
        assert_eq!(silence.lasts(at(1), 1000, 1000), Span::ZERO);
        for second in 2..32_i64 {
            // Each "wait" is acknowledged before the next one is said.
            let given = 1000 + 20 * second.unsigned_abs();
            assert_eq!(silence.lasts(at(second), given, given), secs(second - 1));
        }
        // What is said then is an answer again.
        silence.spoke();
        assert_eq!(silence.lasts(at(32), 1620, 5000), secs(31));
        assert_eq!(silence.lasts(at(33), 2000, 5000), Span::ZERO);
    }
}

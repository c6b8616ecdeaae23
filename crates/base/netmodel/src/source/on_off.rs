//! Superposed sources with Pareto times of sending and of silence, which add up to self-similar
//! traffic.
//!
//! Published: Willinger, Taqqu, Sherman, Wilson, "Self-similarity through high-variability",
//! IEEE/ACM Trans. Networking 5(1), 1997: with 1 < alpha < 2 the sum has a Hurst parameter of (3 -
//! alpha) / 2. With such tails the mean rate of a short run may lie far from the configured one,
//! and usually below.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use netaware_stats::rng::SplitMix64;
use netaware_units::{BitRate, Span};

use crate::network::draw::pareto;
use crate::network::pace::{SECOND, ps};

#[derive(Debug, Clone)]
pub(super) struct OnOff {
    alpha: f64,
    on: f64,
    off: f64,
    /// Picoseconds per byte of one source while it sends.
    per_byte: f64,
    /// Until when each source goes on sending, its own time.
    until: Vec<u64>,
    next: BinaryHeap<Reverse<(u64, u32)>>,
}

impl OnOff {
    pub(super) fn new(
        rate: BitRate,
        sources: u32,
        alpha: f64,
        on: Span,
        off: Span,
        rng: &mut SplitMix64,
    ) -> Self {
        let (on, off) = (ps(on) as f64, ps(off) as f64);
        let peak = rate.0 as f64 / f64::from(sources) * (on + off) / on;
        let per_byte = 8.0 * SECOND as f64 / peak;
        let mut source =
            Self { alpha, on, off, per_byte, until: vec![0; sources as usize], next: BinaryHeap::new() };
        for number in 0..sources {
            source.begin(number, rng);
        }
        source
    }

    /// Somewhere inside a time of silence or of sending. (The stationary rest of a Pareto time has
    /// no mean; an even share of a fresh one stands in for it, which starts the correlation a
    /// little too weak.)
    fn begin(&mut self, number: u32, rng: &mut SplitMix64) {
        let sends = rng.unit() < self.on / (self.on + self.off);
        let from = if sends { 0.0 } else { pareto(rng, self.alpha) * self.off * rng.unit() };
        let lasts = pareto(rng, self.alpha) * self.on * if sends { rng.unit() } else { 1.0 };
        self.until[number as usize] = (from + lasts) as u64;
        // The first packet comes at a random phase, or the sources would send in step.
        self.schedule(number, from as u64, self.per_byte * 1500.0 * rng.unit(), rng);
    }

    pub(super) fn next_at(&self) -> u64 {
        self.next.peek().map_or(u64::MAX, |Reverse((at, _))| *at)
    }

    /// Who sends at `next_at`; works out when it sends again.
    pub(super) fn emit(&mut self, length: u32, rng: &mut SplitMix64) -> u32 {
        let Some(Reverse((at, number))) = self.next.peek().copied() else { return 0 };
        let next = self.after(number, at, self.per_byte * f64::from(length), rng);
        if let Some(mut head) = self.next.peek_mut() {
            *head = Reverse((next, number));
            // Sifts once, where pop and push would do it twice.
            drop::<PeekMut<'_, _>>(head);
        }
        number
    }

    fn schedule(&mut self, number: u32, at: u64, gap: f64, rng: &mut SplitMix64) {
        let next = self.after(number, at, gap, rng);
        self.next.push(Reverse((next, number)));
    }

    /// `gap` of sending time after `at`. What the end of a sending time cuts off is carried into
    /// the next one, so that no rate is lost.
    fn after(&mut self, number: u32, at: u64, gap: f64, rng: &mut SplitMix64) -> u64 {
        let until = &mut self.until[number as usize];
        let mut next = at.saturating_add(gap as u64);
        while next > *until {
            let rest = next - *until;
            let begin = until.saturating_add((pareto(rng, self.alpha) * self.off) as u64);
            *until = begin.saturating_add((pareto(rng, self.alpha) * self.on) as u64);
            next = begin.saturating_add(rest);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;
    /// Tails so light that every time is as long as its mean.
    const LIGHT: f64 = 1e12;

    /// Each sends a byte in 250 ns for 10 ms, and then nothing for 30 ms.
    fn sources(count: u32, rng: &mut SplitMix64) -> OnOff {
        let rate = BitRate(8_000_000 * u64::from(count));
        OnOff::new(rate, count, LIGHT, Span::from_millis(10), Span::from_millis(30), rng)
    }

    #[test]
    fn sources_begin_anywhere_in_their_times() {
        let source = sources(40_000, &mut SplitMix64::new(1));
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let until: Vec<f64> = source.until.iter().map(|until| *until as f64 / MS as f64).collect();
        // A quarter sends; one in fifty of those has too little time left for its first packet.
        let sending = until.iter().filter(|until| **until < 9.999_999).count() as f64 / 40_000.0;
        assert!((sending - 0.245).abs() < 0.012, "{sending}");
        // On average 5 ms are left of a time of sending, or 15 ms of one of silence and 10 ms of
        // sending.
        assert!((mean(&until) - 20.19).abs() < 0.3, "{}", mean(&until));
        // First packets come at any phase of the 375 us that a packet of 1500 bytes takes.
        let first = source.next.iter().map(|Reverse((at, number))| (*at, source.until[*number as usize]));
        let silent = first.filter(|(_, until)| *until > 10 * MS + 1000);
        let phases: Vec<f64> =
            silent.map(|(at, until)| ((at + 10 * MS) as f64 - until as f64) / 1e6).collect();
        assert!((mean(&phases) - 187.5).abs() < 5.0, "{} us", mean(&phases));
    }

    #[test]
    fn with_times_that_are_all_alike_each_source_repeats_itself_every_period() {
        let mut rng = SplitMix64::new(1);
        let mut source = sources(3, &mut rng);
        let mut sent: [Vec<u64>; 3] = Default::default();
        for _ in 0..600 {
            let at = source.next_at();
            sent[source.emit(1000, &mut rng) as usize].push(at);
        }
        for times in sent {
            assert!(times.len() > 100, "{times:?}");
            // 40 packets of 250 us in 10 ms, and 30 ms of silence; times are cut to picoseconds.
            assert!(times.windows(41).all(|it| (it[40] - it[0]).abs_diff(40 * MS) < 1000), "{times:?}");
            let is_gap = |gap: u64| [MS / 4, 30 * MS + MS / 4].iter().any(|it| gap.abs_diff(*it) < 1000);
            assert!(times.windows(2).all(|it| is_gap(it[1] - it[0])), "{times:?}");
        }
    }
}

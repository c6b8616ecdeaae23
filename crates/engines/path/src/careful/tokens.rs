//! What may be sent when: a token bucket at the sender.
//!
//! Tokens come at [`FILL`] of the rate that the path was seen to carry; [`DEPTH`] of what it
//! carries in a [window](Tokens::window) can be saved up. So within one window no more than 1.25
//! times what the path carries is sent.

use netaware_units::{Mono, Span};

use crate::{Gaps, Instrument, Train};

/// The bucket.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    rtt: Span,
    /// Bytes of the largest packet.
    packet: f64,
    /// Bytes that are missing from the full bucket at `at`.
    missing: f64,
    at: Option<Mono>,
    /// Bytes that the path's queue holds at once, as far as one has overflowed.
    fits: f64,
}

impl Tokens {
    pub(super) fn new(instrument: &Instrument) -> Self {
        let packet = f64::from(instrument.largest.max(1));
        Self { rtt: instrument.rtt.or_zero(), packet, missing: 0.0, at: None, fits: f64::INFINITY }
    }

    /// The time over which the path's rate is an average, s: a second, a round trip, or ten
    /// packets.
    fn window(&self, rate: f64) -> f64 {
        let packets = PACKETS * self.packet * 8.0 / rate;
        self.rtt.secs_f64().max(1.0).max(packets)
    }

    /// Bytes that can be saved up; endless while nothing is known.
    pub(super) fn depth(&self, rate: Option<f64>) -> f64 {
        self.of_window(rate).min(self.fits)
    }

    /// Bytes that could be saved up if the path's queue held any number of them.
    pub(super) fn of_window(&self, rate: Option<f64>) -> f64 {
        rate.map_or(f64::INFINITY, |rate| DEPTH * rate / 8.0 * self.window(rate))
    }

    /// No more than so many bytes fit the path's queue.
    pub(super) fn fit(&mut self, bytes: f64) {
        self.fits = bytes;
    }

    fn missing_at(&self, at: Mono, rate: f64) -> f64 {
        let since = self.at.map_or(0.0, |then| at.since(then).or_zero().secs_f64());
        (self.missing - FILL * rate / 8.0 * since).max(0.0)
    }

    /// Packets of `train` that a full bucket has tokens for; one at least.
    pub(super) fn cut(&self, train: &Train, rate: Option<f64>, fastest: f64) -> u32 {
        let Some(rate) = rate else { return train.packets };
        let bits = f64::from(train.length) * 8.0;
        // bit/s at which the train leaves.
        let leaves = match &train.gaps {
            Gaps::Even(ps) if *ps > 0 => (bits * 1e12 / *ps as f64).min(fastest),
            Gaps::Each(gaps) if !gaps.is_empty() => {
                let ps: f64 = gaps.iter().map(|ps| *ps as f64).sum();
                bits * gaps.len() as f64 * 1e12 / ps.max(1.0)
            }
            _ => fastest,
        };
        let kept = 1.0 - FILL * rate / leaves.max(1.0);
        if kept <= 0.0 {
            return train.packets;
        }
        let most = self.depth(Some(rate)) * 1.001 / kept / f64::from(train.length);
        train.packets.min(most.min(1e9) as u32).max(1)
    }

    /// How long a train that would begin `at` and lasts so long has to wait for its tokens.
    pub(super) fn wait(&self, at: Mono, train: &Train, lasts: Span, rate: Option<f64>) -> Span {
        let Some(rate) = rate else { return Span::ZERO };
        let bytes = f64::from(train.packets) * f64::from(train.length);
        let comes = FILL * rate / 8.0;
        let room = self.depth(Some(rate)) - (bytes - comes * lasts.secs_f64()).max(0.0);
        let over = (self.missing_at(at, rate) - room.max(0.0)).max(0.0);
        Span::from_secs_f64(over / comes)
    }

    /// Takes the tokens of a train.
    pub(super) fn spend(&mut self, at: Mono, train: &Train, lasts: Span, rate: Option<f64>) {
        let bytes = f64::from(train.packets) * f64::from(train.length);
        let Some(rate) = rate else { return };
        let missing = self.missing_at(at, rate);
        let ends = at + lasts;
        self.missing = (missing + bytes - FILL * rate / 8.0 * lasts.secs_f64()).max(0.0);
        self.at = Some(self.at.map_or(ends, |then| then.max(ends)));
    }
}

/// Share of what the path carries at which tokens come, and of a window that can be saved up.
/// Together 1.25.
pub(super) const FILL: f64 = 0.95;
const DEPTH: f64 = 0.3;
/// Packets of the shortest window.
const PACKETS: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::available::fifo::instrument;

    const RATE: f64 = 1e6;

    fn burst(packets: u32) -> Train {
        Train { packets, length: 1500, gaps: Gaps::BackToBack, rest: Span::ZERO }
    }

    #[test]
    fn no_second_holds_more_than_one_and_a_quarter_of_what_the_path_carries() {
        let mut tokens = Tokens::new(&instrument(1e8));
        let mut sent: Vec<(f64, f64)> = Vec::new();
        let mut at = Mono(0);
        for number in 0..200 {
            let train = burst(1 + number % 25);
            let cut = tokens.cut(&train, Some(RATE), 1e9);
            let train = Train { packets: cut, ..train };
            at += tokens.wait(at, &train, Span::ZERO, Some(RATE));
            tokens.spend(at, &train, Span::ZERO, Some(RATE));
            sent.push((at.0 as f64 / 1e9, f64::from(cut) * 12_000.0));
        }
        for (from, _) in &sent {
            let within = sent.iter().filter(|(at, _)| at >= from && *at < from + 1.0);
            let bits: f64 = within.map(|(_, bits)| bits).sum();
            assert!(bits <= 1.2501 * RATE, "{bits} from {from}");
        }
    }

    #[test]
    fn a_train_that_is_no_faster_than_tokens_come_is_not_cut() {
        let tokens = Tokens::new(&instrument(1e8));
        let even = |rate: f64| Train { gaps: Gaps::Even((12_000.0 / rate * 1e12) as u64), ..burst(10_000) };
        assert_eq!(tokens.cut(&even(0.9 * RATE), Some(RATE), 1e9), 10_000);
        // 37.5 kB.
        assert_eq!(tokens.cut(&burst(100), Some(RATE), 1e9), 25);
        assert_eq!(tokens.cut(&burst(100), None, 1e9), 100);
    }

    #[test]
    fn three_packets_of_the_slowest_path_are_a_train() {
        let tokens = Tokens::new(&instrument(1e8));
        assert_eq!(tokens.cut(&burst(100), Some(2e4), 1e9), 3);
    }
}

//! The trains that this host can send: rates turned into distances.

use netaware_units::Span;

use crate::{Gaps, Instrument, Train};

/// What bounds a train from the sender's side.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    /// Bytes of each packet.
    pub(crate) length: u32,
    /// bit/s that the host reaches with packets of this length.
    pub(crate) fastest: f64,
    /// Packets of the longest train.
    pub(crate) longest: u32,
    /// Standard error of a packet's two stamps, ns.
    pub(crate) stamp_error: f64,
}

impl Sender {
    /// With the largest packets, for these suffer least from the size of others' packets.
    pub(crate) fn new(instrument: &Instrument) -> Self {
        Self::with_length(instrument, instrument.largest)
    }

    /// With packets of `length`, or as near to it as the instrument allows.
    pub(crate) fn with_length(instrument: &Instrument, length: u32) -> Self {
        let length = length.min(instrument.largest).max(instrument.smallest.min(instrument.largest)).max(1);
        let gap = instrument.send_gap.nanos().max(0) as f64;
        let bits = f64::from(length) * 8.0;
        let longest = instrument.largest_burst / u64::from(length);
        Self {
            length,
            fastest: (bits / gap * 1e9).min(FASTEST),
            longest: u32::try_from(longest).unwrap_or(u32::MAX).clamp(SHORTEST, MOST_PACKETS),
            stamp_error: instrument.stamp_error(),
        }
    }

    /// Bits of one packet.
    pub(crate) fn bits(&self) -> f64 {
        f64::from(self.length) * 8.0
    }

    /// `packets` at `rate` bit/s, or as fast as the host can where that is slower.
    pub(crate) fn train(&self, rate: f64, packets: u32, rest: Span) -> Train {
        let rate = if rate.is_finite() { rate.max(SLOWEST).min(self.fastest) } else { self.fastest };
        // At most 1.2e16 ps for a packet of 64 KiB at the slowest rate.
        let gap = (self.bits() / rate * 1e12).round() as u64;
        let packets = packets.clamp(1, self.longest);
        Train { packets, length: self.length, gaps: Gaps::Even(gap), rest }
    }
}

/// Planned time from a train's first to its last packet.
pub(crate) fn duration(train: &Train, bits: f64, fastest: f64) -> Span {
    let gaps = u64::from(train.packets.saturating_sub(1));
    let ps = match &train.gaps {
        Gaps::Even(gap) => u128::from(*gap) * u128::from(gaps),
        Gaps::Each(each) => each.iter().map(|gap| u128::from(*gap)).sum(),
        Gaps::BackToBack => return Span::from_secs_f64(bits * gaps as f64 / fastest.max(SLOWEST)),
    };
    Span(i64::try_from(ps / 1000).unwrap_or(i64::MAX))
}

/// No rate below this is probed: a large packet takes more than a second.
pub(crate) const SLOWEST: f64 = 1e4;
/// No rate above this is probed.
const FASTEST: f64 = 1e12;
/// No train is shorter, whatever the burst allowed.
const SHORTEST: u32 = 8;
/// No train is longer: 90 MB of 1500 B.
const MOST_PACKETS: u32 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::available::fifo::instrument;

    #[test]
    fn rates_become_distances_to_the_picosecond() {
        let sender = Sender::new(&instrument(1e9));
        let train = sender.train(1e8, 20, Span::ZERO);
        assert_eq!((train.gaps.clone(), train.length), (Gaps::Even(120_000_000), 1500));
        assert_eq!(duration(&train, sender.bits(), sender.fastest), Span::from_micros(19 * 120));
    }

    #[test]
    fn packets_and_trains_are_as_long_as_the_host_allows() {
        let host = instrument(1e9);
        let told = |host: &Instrument, length: u32| {
            let sender = Sender::with_length(host, length);
            (sender.length, sender.longest, (sender.fastest / 1e6).round() as u64)
        };
        // A packet each 6 us, and 6.25 MB of them.
        assert_eq!(told(&host, 700), (700, 8_928, 933));
        assert_eq!(told(&host, 9_000), (1500, 4_166, 2_000));
        assert_eq!(told(&host, 1), (64, 60_000, 85));
        let quick = Instrument { send_gap: Span::ZERO, largest_burst: 3_000, ..host };
        assert_eq!(told(&quick, 1500), (1500, 8, 1_000_000));
        let each = Gaps::Each(vec![1_500, 2_000_600]);
        let train = Train { packets: 3, length: 1500, gaps: each, rest: Span::ZERO };
        assert_eq!(duration(&train, 12_000.0, 1e9), Span(2_002));
        let train = Train { packets: 10, gaps: Gaps::BackToBack, ..train };
        assert_eq!(duration(&train, 12_000.0, 1e9), Span::from_micros(108));
    }

    #[test]
    fn what_the_host_cannot_do_is_not_planned() {
        let mut host = instrument(1e9);
        host.send_gap = Span::from_micros(12);
        host.largest_burst = 30_000;
        let sender = Sender::new(&host);
        for rate in [1e12, f64::INFINITY, f64::NAN] {
            let train = sender.train(rate, 1000, Span::ZERO);
            assert_eq!((train.gaps, train.packets), (Gaps::Even(12_000_000), 20));
        }
        assert!(matches!(sender.train(-5.0, 2, Span::ZERO).gaps, Gaps::Even(gap) if gap > 0));
    }
}

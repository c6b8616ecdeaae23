//! Where a burst is stretched: recursive packet trains, after Pathneck (Hu et al., SIGCOMM 2004).
//!
//! ```text
//!  ttl:  1  2  3 | load … load | 3  2  1        router 1 drops the outermost pair and answers both:
//!        └──────── train length at router 1 ───┘ the time between its answers is how long the train is there
//! ```
//!
//! A link of less bandwidth than the train came with makes it longer; one of more leaves it as it
//! is. So the last hop at which the train grows is where it met the least. The rate there lies
//! between what was available and the capacity.

use netaware_stats::quantile::median_in_place;
use netaware_units::Span;

use super::finding::TrainAtHop;
use super::round::{Kind, Probe};

/// A train for routers that answer, and what belongs to which hop.
#[derive(Debug, Clone, Default)]
pub(super) struct Train {
    pub(super) probes: Vec<Probe>,
    /// Hop number, and places of its two probes.
    pub(super) ends: Vec<(u8, usize, usize)>,
}

/// `hops` are those to be asked, by TTL; `destination` asks the last one by echoes. `packets` of
/// load are between them.
pub(super) fn build(hops: &[u8], destination: Option<u8>, small: u32, wait: Span, packets: usize) -> Train {
    let mut train = Train::default();
    let edge = |ttl: u8| Probe {
        ttl,
        length: small,
        kind: Kind::Udp,
        after: Span::ZERO,
        awaited: true,
        mute: false,
    };
    let echo =
        Probe { ttl: FAR, length: small, kind: Kind::Echo, after: Span::ZERO, awaited: true, mute: false };
    train.probes.extend(hops.iter().map(|ttl| edge(*ttl)));
    train.probes.extend(destination.map(|_| echo));
    let load = Probe {
        ttl: FAR,
        length: LOAD_LENGTH,
        kind: Kind::Udp,
        after: Span::ZERO,
        awaited: false,
        mute: false,
    };
    train.probes.extend(std::iter::repeat_n(load, packets));
    train.probes.extend(destination.map(|_| echo));
    train.probes.extend(hops.iter().rev().map(|ttl| edge(*ttl)));
    if let Some(first) = train.probes.first_mut() {
        first.after = wait;
    }
    let last = train.probes.len() - 1;
    let all = hops.iter().copied().chain(destination);
    train.ends = all.enumerate().map(|(n, ttl)| (ttl, n, last - n)).collect();
    train
}

impl Train {
    /// Bytes between the answers to the packets in these places: all behind the first, up to and
    /// with the last.
    pub(super) fn bytes(&self, first: usize, last: usize) -> u64 {
        self.probes[first + 1..=last].iter().map(|probe| u64::from(probe.length)).sum()
    }
}

/// What trains looked like at one hop: ns per byte, one for each train of which both ends were
/// answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps(pub(super) Vec<f64>);

/// From the gaps at each hop (by TTL, in order) to rates, and the last hop that stretches.
pub(super) fn judge(gaps: &[(u8, Gaps)]) -> (Vec<(u8, TrainAtHop)>, Option<u8>) {
    let (mut longest, mut choke) = (0.0_f64, None);
    let mut found = Vec::new();
    for (ttl, gaps) in gaps {
        let mut values = gaps.0.clone();
        let Some(median) = median_in_place(&mut values) else { continue };
        if values.len() < LEAST_TRAINS || median <= 0.0 {
            continue;
        }
        let mut apart: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let scatter = median_in_place(&mut apart).unwrap_or(0.0) / (values.len() as f64).sqrt();
        let stretched = median > longest * LEAST_STEP + 3.0 * scatter;
        if stretched {
            (longest, choke) = (median, Some(*ttl));
        }
        let at_hop = TrainAtHop { rate: 8e9 / median, seen: values.len() as u32, stretched };
        found.push((*ttl, at_hop));
    }
    (found, choke)
}

/// The rate at which trains left this host, bit/s: the median.
pub(super) fn rate_of(departures: &Gaps) -> Option<f64> {
    median_in_place(&mut departures.0.clone()).filter(|gap| *gap > 0.0).map(|gap| 8e9 / gap)
}

/// Packets of load that pass a path in [`FILLS`] on which a packet of `length` bytes takes `each`;
/// `None` if that is too few to be stretched by anything.
pub(super) fn load(length: u32, each: Span) -> Option<usize> {
    let bytes = FILLS.secs_f64() / each.secs_f64().max(1e-9) * f64::from(length);
    let packets = (bytes / f64::from(LOAD_LENGTH)).min(LOAD as f64) as usize;
    (packets >= LEAST_LOAD).then_some(packets)
}

/// Bytes of so many packets of load.
pub(super) fn load_bytes(packets: usize) -> i64 {
    i64::try_from(packets).unwrap_or(i64::MAX).saturating_mul(i64::from(LOAD_LENGTH))
}

/// As the published tool has it.
pub(super) const LOAD: usize = 60;
const LOAD_LENGTH: u32 = 500;
/// But a slow path is not filled for longer.
const FILLS: Span = Span::from_millis(300);
/// Packets of the least load.
const LEAST_LOAD: usize = 12;
/// Trains sent in all.
pub(super) const TRAINS: u32 = 10;
const LEAST_TRAINS: usize = 3;
/// A train that grows by less may have grown by chance, or by its own small packets.
pub(super) const LEAST_STEP: f64 = 1.1;
/// Beyond any destination.
pub(super) const FAR: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_does_not_fill_a_slow_path_for_seconds() {
        let packets = |kbits: i64| load(1500, Span::from_micros(12_000_000 / kbits));
        // 30 kB are 240 kbit: 0.3 s at 800 kbit/s.
        assert_eq!([100_000, 1_000, 400, 160].map(packets), [Some(60), Some(60), Some(30), Some(12)]);
        assert_eq!([64, 20].map(packets), [None, None]);
    }

    #[test]
    fn each_hop_has_the_outermost_pair_that_reaches_it() {
        let train = build(&[1, 2, 4], Some(5), 60, Span::from_millis(3), LOAD);
        assert_eq!(train.probes.len(), 3 + 1 + LOAD + 1 + 3);
        assert_eq!(train.ends.iter().map(|end| end.0).collect::<Vec<_>>(), [1, 2, 4, 5]);
        for (ttl, first, last) in &train.ends {
            for place in [*first, *last] {
                let probe = train.probes[place];
                assert!(probe.ttl == *ttl || (*ttl == 5 && probe.kind == Kind::Echo), "{ttl} {probe:?}");
            }
        }
        assert_eq!(train.bytes(3, 3 + LOAD + 1), 500 * LOAD as u64 + 60);
        assert_eq!(train.probes[0].after, Span::from_millis(3));
        assert!(train.probes[1..].iter().all(|probe| probe.after == Span::ZERO));
    }

    #[test]
    fn the_last_hop_that_stretches_is_the_choke_point() {
        let gaps = |each: &[f64]| -> Vec<(u8, Gaps)> {
            (1..).zip(each).map(|(ttl, gap)| (ttl, Gaps(vec![*gap, gap * 1.01, gap * 0.99, *gap]))).collect()
        };
        let (found, choke) = judge(&gaps(&[80.0, 400.0, 410.0, 800.0, 790.0]));
        assert_eq!(choke, Some(4));
        let stretched: Vec<bool> = found.iter().map(|(_, at)| at.stretched).collect();
        assert_eq!(stretched, [true, true, false, true, false]);
        assert!((found[3].1.rate / 1e7 - 1.0).abs() < 0.01);
    }

    #[test]
    fn too_few_trains_say_nothing() {
        let (found, choke) = judge(&[(1, Gaps(vec![80.0, 81.0]))]);
        assert!(found.is_empty() && choke.is_none());
    }
}

//! The same packet seen at several points: one-way delay, loss, variation, reordering, path.
//!
//! **What it measures**: of each ordered pair of points and period, from sightings of packet
//! digests, a [`DelayRow`]. **Assumes** that points report what they saw and when they were
//! watching; that the digest covers nothing that changes on the way. **Bias**: a packet is taken
//! for lost only if the second point watched all the time in which it could have come; anything
//! else is `unobserved`, so loss leans to neither side. Delays are off by what the clocks are,
//! which stands beside them. Two packets with one 64-bit digest less than the window W apart at
//! rate R are matched wrongly with a probability of at most 2 W R / 2^64 each: 2e-11 at 10 million
//! packets/s and 20 s (`law.rs` measures it with shorter digests). **Published**: RFC 7679 (delay),
//! 7680 (loss), 3393 and 5481 (variation), 4737 (reordering), 5474 (digests of packets);
//! docs/methods/join.md.
//!
//! A [`Join`] is both halves in one: [`Matcher`], of which there may be several, each with its
//! range of digests, and one [`Ledger`], which makes rows of their merged [`Part`]s. Pure: `now` is
//! an argument.
//!
//! ```
//! use netaware_passive::join::{Join, JoinSettings, PointId};
//! use netaware_record::passive::{ClockState, PacketSighting, Period};
//! use netaware_units::Wall;
//!
//! let mut join = Join::new(JoinSettings::of(["here", "there"]))?;
//! let (here, there) = (PointId(0), PointId(1));
//! let seen = |at, ttl| PacketSighting { digest: 7, at: Wall(at), length: 100, ttl, version: 4 };
//! join.offer(here, &[seen(1_000_000, 64)]);
//! join.offer(there, &[seen(1_250_000, 63)]);
//! let clock = ClockState { identity: Some("the same kernel".into()), ..ClockState::default() };
//! for point in [here, there] {
//!     join.watched(point, Period { from: Wall(0), until: Wall(60_000_000_000) }, 0, &clock);
//! }
//! let joined = join.finish();
//! assert_eq!(joined[0].delays[0].matched, 1);
//! assert_eq!(joined[0].delays[0].delay.min.0, 250_000);
//! # Ok::<(), netaware_passive::join::SettingsError>(())
//! ```

mod arrivals;
mod law;
mod ledger;
mod matcher;
mod part;
mod route;
mod saved;
mod settings;
mod shelf;
mod watching;

use netaware_record::passive::{ClockState, PacketSighting, Period};
use netaware_units::Wall;

use crate::clock::Exchange;
pub(crate) use arrivals::Arrivals;
pub use ledger::{Joined, Ledger, LedgerState, PathCount};
pub use matcher::{JoinCounts, Matcher};
pub use part::Part;
use saved::{Sink, Source};
pub use settings::{Direction, Expects, JoinSettings, Pair, PointId, SettingsError};
pub(crate) use watching::Watching;

#[expect(unused_imports, reason = "for the documentation above")]
use netaware_record::passive::DelayRow;

/// Which of `shards` equal ranges of the digest space a digest belongs to: probes send it there,
/// lanes are made of it. Digests of 32 bits (BOB) are taken as if they were the upper half of one
/// with 64, or all would belong to the first range.
pub fn shard_of(digest: u64, shards: u16) -> u16 {
    let spread = if digest <= u32::MAX.into() { digest << 32 } else { digest };
    ((u128::from(spread) * u128::from(shards)) >> 64) as u16
}

/// Whether a digest is of one of so many ranges.
#[inline]
fn is_of_part(digest: u64, (index, parts): (u16, u16)) -> bool {
    parts == 1 || shard_of(digest, parts) == index
}

/// Whether a digest is of the sample, one in sixteen, by which collectors that share a join know
/// the clocks: probes tell each of them of these packets. It says nothing of the range that a
/// digest is in.
pub fn is_clock_sample(digest: u64) -> bool {
    digest.wrapping_mul(SAMPLE_SCATTER) >> 60 == 0
}

/// Odd, and another than what digests are scattered by in memory: a step of SplitMix64 (Steele,
/// Lea, Flood, OOPSLA 2014).
const SAMPLE_SCATTER: u64 = 0xbf58_476d_1ce4_e5b9;

/// Sightings in, rows out.
#[derive(Debug)]
pub struct Join {
    matcher: Matcher,
    ledger: Ledger,
}

impl Join {
    /// Knowing nothing: whatever points saw before this is unobserved.
    pub fn new(settings: JoinSettings) -> Result<Self, SettingsError> {
        Ok(Self { matcher: Matcher::new(settings.clone())?, ledger: Ledger::new(settings)? })
    }

    /// The point of that name.
    pub fn point(&self, name: &str) -> Option<PointId> {
        self.matcher.settings().point(name)
    }

    /// Takes sightings of one point: see [`Matcher::offer`].
    pub fn offer(&mut self, point: PointId, sightings: &[PacketSighting]) {
        self.matcher.offer(point, sightings);
    }

    /// All sightings of this point and period have been offered; it lost `lost` packets in it, and
    /// this was its clock.
    pub fn watched(&mut self, point: PointId, period: Period, lost: u64, clock: &ClockState) {
        self.matcher.watched(point, period, lost);
        self.ledger.watched(point, period, lost, clock);
    }

    /// An exchange of our own between two points: see [`Ledger::exchange`].
    pub fn exchange(&mut self, asked: PointId, answered: PointId, exchange: &Exchange) {
        self.ledger.exchange(asked, answered, exchange);
    }

    /// It is `now` by the collector's clock: gives the periods of which everything is known, oldest
    /// first.
    pub fn advance(&mut self, now: Wall) -> Vec<Joined> {
        let parts = self.matcher.advance(now);
        parts.into_iter().map(|part| self.ledger.settle(part)).collect()
    }

    /// Nothing will come any more: gives all that is left.
    pub fn finish(&mut self) -> Vec<Joined> {
        let parts = self.matcher.finish();
        parts.into_iter().map(|part| self.ledger.settle(part)).collect()
    }

    /// Tells all that it holds, some bytes at a time, for [`Self::restore`]; what it knows of
    /// points and clocks comes back.
    pub fn save(&mut self, out: &mut dyn FnMut(&[u8])) -> LedgerState {
        self.matcher.save(&mut Sink::new(out));
        self.ledger.state()
    }

    /// One that goes on from there, with the same settings. `None`: it cannot have been told like
    /// this.
    pub fn restore(settings: JoinSettings, bytes: &[u8], known: LedgerState) -> Option<Self> {
        let matcher = Matcher::restore(settings.clone(), &mut Source::new(bytes))?;
        Some(Self { matcher, ledger: Ledger::restore(settings, known)? })
    }

    /// What it did with sightings so far.
    pub fn counts(&self) -> JoinCounts {
        self.matcher.counts()
    }
}

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;

    use super::{Join, JoinSettings, PointId, is_clock_sample, shard_of};

    #[test]
    fn the_clock_sample_is_a_sixteenth_of_every_range() {
        let mut rng = SplitMix64::new(5);
        for bits in [32, 64] {
            let (mut all, mut sampled) = ([0_u32; 4], [0_u32; 4]);
            for _ in 0..400_000 {
                let digest = rng.next_u64() >> (64 - bits);
                let range = usize::from(shard_of(digest, 4));
                all[range] += 1;
                sampled[range] += u32::from(is_clock_sample(digest));
            }
            for (all, sampled) in all.into_iter().zip(sampled) {
                let share = f64::from(sampled) / f64::from(all);
                assert!((share * 16.0 - 1.0).abs() < 0.1, "{bits} bits: {share}");
            }
        }
    }

    #[test]
    fn digests_of_both_lengths_are_spread_over_all_shards() {
        let long = [0x1fff_ffff_ffff_ffff, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000, u64::MAX];
        assert_eq!(long.map(|digest| shard_of(digest, 4)), [0, 1, 2, 3]);
        let short = [0, 0x3fff_ffff, 0x4000_0000, 0x8000_0000, 0xffff_ffff];
        assert_eq!(short.map(|digest| shard_of(digest, 4)), [0, 0, 1, 2, 3]);
    }

    #[test]
    fn a_point_is_found_by_its_name() {
        let join = Join::new(JoinSettings::of(["here", "there"])).unwrap();
        let found = ["here", "there", "elsewhere"].map(|name| join.point(name));
        assert_eq!(found, [Some(PointId(0)), Some(PointId(1)), None]);
    }
}

//! Timestamps of both formats and how good they are.

use netaware_units::{Span, Wall};

use super::StampError;

/// How 64 bits say when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimeFormat {
    /// Seconds since 1900 and 2^-32 of them (RFC 5905 §6): what everybody must speak.
    #[default]
    Ntp,
    /// Seconds since 1970 and nanoseconds, 32 bits each: IEEE 1588 cut short (RFC 8186). Which time
    /// scale the seconds count is not said; TAI is 37 s ahead of UTC. We write and read UTC: a peer
    /// that means TAI is off by that, which an exchange both ways shows at once.
    Ptp,
}

impl TimeFormat {
    pub(super) fn emit(self, at: Wall) -> u64 {
        match self {
            Self::Ntp => to_ntp(at),
            Self::Ptp => to_ptp(at),
        }
    }

    pub(super) fn parse(self, bits: u64) -> Wall {
        match self {
            Self::Ntp => from_ntp(bits),
            Self::Ptp => from_ptp(bits),
        }
    }
}

/// 64 bits that say when, as they stand in a packet: whoever only repeats them alters none,
/// whatever they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// That instant, as nearly as the format has it.
    pub fn new(at: Wall, format: TimeFormat) -> Self {
        Self(format.emit(at))
    }

    /// What they mean in that format.
    pub fn at(self, format: TimeFormat) -> Wall {
        format.parse(self.0)
    }
}

/// NTP's 64 bits, rounded to the nearest 233 ps.
pub fn to_ntp(at: Wall) -> u64 {
    let seconds = at.0.div_euclid(NS_PER_S);
    let nanos = at.0.rem_euclid(NS_PER_S);
    let fraction = ((i128::from(nanos) << 32) + i128::from(NS_PER_S / 2)) / i128::from(NS_PER_S);
    // Eras are not told apart on the wire: seconds wrap.
    let seconds = i128::from(seconds) + i128::from(SECONDS_1900_TO_1970);
    ((seconds << 32) + fraction) as u64
}

/// The instant between 1968 and 2104 that NTP's 64 bits stand for (RFC 4330 §3), rounded to the
/// nearest ns.
pub fn from_ntp(bits: u64) -> Wall {
    let (seconds, fraction) = ((bits >> 32) as i64, bits & 0xffff_ffff);
    let era = if seconds & 0x8000_0000 == 0 { 1_i64 << 32 } else { 0 };
    let nanos = (u128::from(fraction) * NS_PER_S as u128 + (1 << 31)) >> 32;
    Wall((seconds + era - SECONDS_1900_TO_1970) * NS_PER_S + nanos as i64)
}

/// PTP's 64 bits; seconds wrap in 2106.
pub fn to_ptp(at: Wall) -> u64 {
    let seconds = at.0.div_euclid(NS_PER_S) as u64;
    (seconds << 32) | at.0.rem_euclid(NS_PER_S) as u64
}

/// The instant between 1970 and 2106 that PTP's 64 bits stand for. Nanoseconds beyond a second are
/// taken as they are.
pub fn from_ptp(bits: u64) -> Wall {
    Wall((bits >> 32) as i64 * NS_PER_S + (bits & 0xffff_ffff) as i64)
}

const NS_PER_S: i64 = 1_000_000_000;
/// 70 years with 17 leap days.
const SECONDS_1900_TO_1970: i64 = 2_208_988_800;

/// How good a clock is: RFC 4656 §4.1.2 with RFC 8186 §2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorEstimate {
    /// Its owner says that it is synchronised to UTC by an external source.
    pub synchronised: bool,
    /// Of the timestamps beside it.
    pub format: TimeFormat,
    /// 0..=63.
    pub scale: u8,
    /// Never 0.
    pub multiplier: u8,
}

impl ErrorEstimate {
    /// A clock of which nothing is known: not synchronised, and the largest error that can be said.
    pub const UNKNOWN: Self =
        Self { synchronised: false, format: TimeFormat::Ntp, scale: 63, multiplier: u8::MAX };

    /// The smallest that covers `bound`: at most 1/128 more, and never below 233 ps.
    pub fn of(bound: Span, synchronised: bool) -> Self {
        let nanos = bound.or_zero().nanos() as u128;
        let mut units = (nanos << 32).div_ceil(NS_PER_S as u128).max(1);
        let mut scale = 0;
        while units > u128::from(u8::MAX) {
            units = units.div_ceil(2);
            scale += 1;
        }
        Self { synchronised, format: TimeFormat::Ntp, scale, multiplier: units as u8 }
    }

    /// What it says, rounded up; the longest [`Span`] for all that is longer.
    pub fn span(self) -> Span {
        let units = u128::from(self.multiplier) << self.scale;
        let nanos = (units * NS_PER_S as u128).div_ceil(1 << 32);
        Span(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// The error if the clock is synchronised: otherwise what is said of it bounds nothing.
    pub fn bound(self) -> Option<Span> {
        self.synchronised.then(|| self.span())
    }

    pub(super) fn emit(self) -> u16 {
        let (s, z) = (u16::from(self.synchronised), u16::from(self.format == TimeFormat::Ptp));
        s << 15 | z << 14 | u16::from(self.scale & 0x3f) << 8 | u16::from(self.multiplier.max(1))
    }

    pub(super) fn parse(bits: u16) -> Result<Self, StampError> {
        if bits as u8 == 0 {
            return Err(StampError::ErrorEstimate);
        }
        Ok(Self {
            synchronised: bits & 0x8000 != 0,
            format: if bits & 0x4000 == 0 { TimeFormat::Ntp } else { TimeFormat::Ptp },
            scale: (bits >> 8 & 0x3f) as u8,
            multiplier: bits as u8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_those_of_the_formats() {
        // RFC 5905 figure 4: the first day of Unix, and the last of the first era.
        assert_eq!(to_ntp(Wall(0)), 2_208_988_800 << 32);
        let half = Wall(1_700_000_000_500_000_000);
        assert_eq!(to_ntp(half), ((1_700_000_000 + 2_208_988_800) << 32) + (1 << 31));
        assert_eq!(to_ptp(half), (1_700_000_000 << 32) + 500_000_000);
        // 2036-02-07 06:28:16 UTC: the second era begins.
        let turn = Wall(2_085_978_496 * NS_PER_S);
        assert_eq!(to_ntp(turn), 0);
        assert_eq!(from_ntp(0), turn);
        assert_eq!(from_ntp(u64::MAX), turn);
    }

    #[test]
    fn every_nanosecond_survives() {
        for nanos in [0, 1, 2, 233, 999_999_999, 123_456_789] {
            for seconds in [0, 1, 1_800_000_000, 2_085_978_495, 2_085_978_496, 4_000_000_000] {
                let at = Wall(seconds * NS_PER_S + nanos);
                assert_eq!(from_ntp(to_ntp(at)), at);
                assert_eq!(from_ptp(to_ptp(at)), at);
            }
        }
    }

    #[test]
    fn an_estimate_covers_its_bound_closely() {
        for bound in [0, 1, 999, 50_000, 1_000_000, 16_000_000_000, i64::MAX] {
            let estimate = ErrorEstimate::of(Span(bound), true);
            assert_ne!(estimate.multiplier, 0, "{bound}");
            let covered = estimate.span().nanos();
            assert!(covered >= bound, "{bound}: {covered}");
            assert!(covered as i128 <= i128::from(bound) * 129 / 128 + 1, "{bound}: {covered}");
            assert_eq!(ErrorEstimate::parse(estimate.emit()), Ok(estimate));
        }
        assert_eq!(ErrorEstimate::UNKNOWN.bound(), None);
        assert_eq!(ErrorEstimate::parse(0x8000), Err(StampError::ErrorEstimate));
    }
}

//! Times of IPFIX (RFC 7011 §6.1.7 to §6.1.10).
//!
//! Seconds and milliseconds count from 1970. Microseconds and nanoseconds are NTP timestamps:
//! seconds since 1900 in 32 bits, which begin anew on 8 February 2036, and a fraction of 1/2³² s.
//! Which era is meant is taken from the export time beside them: the nearest, so within 68 years.
//!
//! Nanoseconds survive the way there and back: a fraction is rounded up when written, and to the
//! nearest when read. A reader that cuts off the rest, as most do, gets the same nanosecond.

use netaware_units::Wall;

/// From 1900 (era 0 of NTP) to 1970, s (RFC 5905 §6).
const UNIX_TO_NTP: i64 = 2_208_988_800;
const NANOS: i64 = 1_000_000_000;

/// An NTP timestamp of the era that `at` lies in.
pub fn to_ntp(at: Wall) -> u64 {
    let seconds = at.0.div_euclid(NANOS) + UNIX_TO_NTP;
    let nanos = at.0.rem_euclid(NANOS) as u64;
    let fraction = (nanos << 32).div_ceil(NANOS as u64);
    (seconds as u64) << 32 | fraction
}

/// The instant of an NTP timestamp that is nearest to `about`; beyond what a [`Wall`] holds it
/// stops at its end.
pub fn from_ntp(ntp: u64, about: Wall) -> Wall {
    let nanos = ((ntp & 0xffff_ffff) * NANOS as u64 + (1 << 31)) >> 32;
    let reference = about.0.div_euclid(NANOS) + UNIX_TO_NTP;
    let seconds = reference + i64::from(((ntp >> 32) as u32).wrapping_sub(reference as u32) as i32);
    let whole = (seconds - UNIX_TO_NTP).saturating_mul(NANOS);
    Wall(whole.saturating_add(nanos as i64))
}

/// dateTimeMicroseconds: as nanoseconds, but the lowest eleven bits mean nothing and must not be
/// looked at (§6.1.9).
pub fn from_ntp_micros(ntp: u64, about: Wall) -> Wall {
    from_ntp(ntp & !0x7ff, about)
}

/// Seconds since 1970 of the header of a message or of a field, as exporters write them until 2106.
pub fn from_seconds(seconds: u64) -> Wall {
    Wall(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(NANOS))
}

/// Milliseconds since 1970.
pub fn from_millis(millis: u64) -> Wall {
    Wall(i64::try_from(millis).unwrap_or(i64::MAX).saturating_mul(1_000_000))
}

/// Seconds since 1970 for the header of a message; before 1970 it is 0.
pub fn to_seconds(at: Wall) -> u32 {
    at.0.div_euclid(NANOS).max(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_come_back_as_they_were_in_both_eras() {
        for seconds in [0, 1_795_440_000, 2_085_978_495, 2_085_978_496, 4_000_000_000] {
            for nanos in [0, 1, 2, 3, 499_999_999, 500_000_000, 999_999_998, 999_999_999] {
                let at = Wall(seconds * NANOS + nanos);
                for about in [at, Wall(at.0 - NANOS * 1_000_000_000), Wall(at.0 + NANOS * 1_000_000_000)] {
                    assert_eq!(from_ntp(to_ntp(at), about), at);
                }
            }
        }
    }

    #[test]
    fn readers_that_cut_off_the_rest_get_the_same_nanosecond() {
        for nanos in (0..NANOS).step_by(1_234_567) {
            let fraction = to_ntp(Wall(nanos)) & 0xffff_ffff;
            assert_eq!((fraction * NANOS as u64) >> 32, nanos as u64);
        }
    }

    #[test]
    fn era_one_begins_in_2036() {
        // RFC 5905 figure 4: 8 February 2036, 06:28:16 is second 0 of era 1.
        let begin = Wall(2_085_978_496 * NANOS);
        assert_eq!(to_ntp(begin), 0);
        assert_eq!(from_ntp(0, Wall(1_795_440_000 * NANOS)), begin);
        assert_eq!(from_ntp(u64::from(u32::MAX) << 32, begin), Wall(begin.0 - NANOS));
        assert_eq!(to_ntp(Wall(0)) >> 32, 2_208_988_800);
    }

    #[test]
    fn microseconds_ignore_their_lowest_eleven_bits() {
        let at = to_ntp(Wall(1_795_440_000 * NANOS + 250_000_000));
        assert_eq!(from_ntp_micros(at | 0x7ff, Wall(0)), from_ntp_micros(at, Wall(0)));
    }

    #[test]
    fn absurd_times_stop_at_the_end() {
        assert_eq!(from_seconds(u64::MAX), Wall(i64::MAX));
        assert_eq!(from_millis(u64::MAX), Wall(i64::MAX));
        assert_eq!(to_seconds(Wall(-1)), 0);
    }
}

//! Layer-2 devices that no router's answer betrays.
//!
//! A switch that stores and forwards serialises each packet once more, so k segments in a row read
//! as one link with 1 / C = 1 / C1 + … + 1 / Ck (Prasad, Dovrolis, Mah 2003). One link with that
//! rate reads the same, so a reading alone is no evidence of such a device. Trains of packets tell
//! the two apart: they pass segments in a row as fast as the slowest of them lets them, and one
//! link no faster than it reads. Segments are looked for only where trains came faster than that.

use netaware_stats::interval::Interval;

/// Link rates whose series gives the reading, bit/s, slowest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Segments {
    /// Two to four.
    pub rates: Vec<f64>,
}

/// Segments of common rates that explain `rate` and carry trains that came at `train` (both bit/s),
/// the fewest there are; `None` where a single link explains it, where nothing fits, or where the
/// interval is so wide that something always would.
pub fn segments(rate: &Interval, train: f64) -> Option<Segments> {
    if rate.estimate <= 0.0 || rate.width() > MOST_WIDTH * rate.estimate {
        return None;
    }
    let (lo, hi) = (rate.lo * (1.0 - SLACK), rate.hi * (1.0 + SLACK));
    let fits = |value: f64| lo <= value && value <= hi;
    if STANDARD.into_iter().any(fits) {
        return None;
    }
    let distance = |rates: &Vec<f64>| (in_series(rates) / rate.estimate - 1.0).abs();
    let closest = |candidates: Vec<Vec<f64>>| {
        let carries = |rates: &[f64]| rates.iter().all(|each| *each * (1.0 + ABOVE) >= train);
        let fitting = candidates.into_iter().filter(|rates| fits(in_series(rates)) && carries(rates));
        fitting.min_by(|a, b| distance(a).total_cmp(&distance(b))).map(|rates| Segments { rates })
    };
    let equal = |count: usize| STANDARD.map(|each| vec![each; count]).to_vec();
    closest(equal(2))
        .or_else(|| closest(unequal_pairs()))
        .or_else(|| closest(equal(3)))
        .or_else(|| closest(equal(4)))
}

/// What links one after the other read as, bit/s.
pub fn in_series(rates: &[f64]) -> f64 {
    1.0 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>()
}

fn unequal_pairs() -> Vec<Vec<f64>> {
    let pairs = STANDARD
        .iter()
        .enumerate()
        .flat_map(|(n, slow)| STANDARD[n + 1..].iter().map(move |fast| vec![*slow, *fast]));
    pairs.collect()
}

/// IEEE 802.3 rates in use, bit/s.
const STANDARD: [f64; 8] = [1e7, 1e8, 1e9, 2.5e9, 5e9, 1e10, 2.5e10, 1e11];
/// A rate may miss a reading's interval by so much: hosts and emulators have small errors that no
/// scatter shows.
const SLACK: f64 = 0.02;
/// Of the estimate. Two 100 Mbit/s segments (50) and three (33) are told apart easily at this
/// width.
const MOST_WIDTH: f64 = 0.35;
/// Trains may seem to come faster than a segment carries them by this part of it.
const ABOVE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(mbits: f64, error: f64) -> Interval {
        let rate = mbits * 1e6;
        Interval { estimate: rate, lo: rate * (1.0 - error), hi: rate * (1.0 + error), confidence: 0.95 }
    }

    #[test]
    fn readings_and_what_explains_them() {
        let rows: [(f64, f64, Option<&[f64]>); 9] = [
            (50.0, 0.01, Some(&[100.0, 100.0])),
            (49.2, 0.02, Some(&[100.0, 100.0])),
            (33.3, 0.02, Some(&[100.0, 100.0, 100.0])),
            (5.0, 0.02, Some(&[10.0, 10.0])),
            (9.09, 0.01, Some(&[10.0, 100.0])),
            (100.0, 0.03, None),
            (98.5, 0.01, None),
            (37.0, 0.01, None),
            (50.0, 0.5, None),
        ];
        for (mbits, error, want) in rows {
            let found = segments(&reading(mbits, error), 0.0).map(|found| found.rates);
            let want = want.map(|rates| rates.iter().map(|rate| rate * 1e6).collect::<Vec<_>>());
            assert_eq!(found, want, "{mbits} Mbit/s");
        }
    }

    #[test]
    fn the_closest_series_counts_and_a_reading_that_is_too_wide_has_none() {
        let of = |estimate: f64, lo: f64, hi: f64| {
            let mbits = |rate: f64| rate * 1e6;
            let rate = Interval { estimate: mbits(estimate), lo: mbits(lo), hi: mbits(hi), confidence: 0.95 };
            segments(&rate, 0.0).map(|found| found.rates)
        };
        // A series of 100 Mbit/s and 1, 2.5 or 5 Gbit/s reads 90.9, 96.2 or 98.0.
        assert_eq!(of(96.9, 91.0, 97.5), Some(vec![1e8, 2.5e9]));
        // Two per cent are allowed beyond the interval.
        assert_eq!(of(50.9, 50.85, 50.95), Some(vec![1e8, 1e8]));
        assert_eq!(of(51.2, 51.1, 51.3), None);
        // At 35 % of the estimate the interval is not yet too wide.
        assert_eq!(of(50.0, 41.25, 58.75), Some(vec![1e8, 1e8]));
        assert_eq!(of(50.0, 41.25, 58.76), None);
        assert_eq!(of(0.0, 0.0, 0.0), None);
    }

    #[test]
    fn no_segment_is_slower_than_the_trains_that_passed_it() {
        let of = |train: f64| segments(&reading(9.09, 0.01), train).map(|found| found.rates);
        assert_eq!(of(1e7), Some(vec![1e7, 1e8]));
        assert_eq!(of(2e7), None);
    }

    #[test]
    fn series_add_their_times() {
        assert!((in_series(&[1e8, 1e8]) - 5e7).abs() < 1.0);
        assert!((in_series(&[1e7, 1e8]) - 9.0909e6).abs() < 100.0);
    }
}

//! From smallest delays to slopes, and from two slopes to a link.

use std::collections::BTreeMap;

use netaware_stats::interval::Interval;
use netaware_stats::line_fit;
use netaware_units::Span;

use crate::estimate::Bound;

/// How a hop's slope was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Probes of several sizes whose answers are all of one size.
    Direct,
    /// A small packet behind each large one.
    Tailgating,
    /// Answers grow with the questions: bytes there and back, on the assumption that links have one
    /// rate both ways.
    TwoWay,
}

/// A smallest delay may be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Bytes whose transmission is in it.
    pub(super) bytes: u32,
    pub(super) delay: Span,
}

/// What a byte more costs up to a hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slope {
    /// ns per byte.
    pub(super) value: f64,
    /// Half of the 95 % interval, ns per byte.
    pub(super) half: f64,
    /// What of it is the host's own error, ns per byte.
    pub(super) host_half: f64,
    /// The same by least squares, ns per byte.
    pub(super) least_squares: f64,
    /// Sizes that were answered.
    pub(super) sizes: usize,
    /// Delays behind it.
    pub(super) samples: usize,
}

impl Slope {
    /// Before the first hop nothing has been transmitted.
    pub(super) const ZERO: Self =
        Self { value: 0.0, half: 0.0, host_half: 0.0, least_squares: 0.0, sizes: 0, samples: 0 };
}

/// The line through the smallest delay of each size. `stamp_error` is how wrong a smallest delay
/// may be for reasons that its scatter does not show. `None` for fewer than [`LEAST_SIZES`] sizes.
pub(super) fn slope(samples: &[Sample], stamp_error: Span) -> Option<Slope> {
    let mut smallest: BTreeMap<u32, i64> = BTreeMap::new();
    for sample in samples {
        let known = smallest.entry(sample.bytes).or_insert(i64::MAX);
        *known = (*known).min(sample.delay.nanos());
    }
    if smallest.len() < LEAST_SIZES {
        return None;
    }
    let points: Vec<(f64, f64)> =
        smallest.iter().map(|(bytes, ns)| (f64::from(*bytes), *ns as f64)).collect();
    let fit = line_fit::fit(&points, CONFIDENCE)?;
    let scatter = fit.slope.map(|slope| (slope.hi - slope.estimate).max(slope.estimate - slope.lo))?;
    let lever = points.last()?.0 - points.first()?.0;
    let host_half = stamp_error.or_zero().nanos() as f64 / lever;
    Some(Slope {
        value: fit.line.slope,
        half: scatter.hypot(host_half),
        host_half,
        least_squares: least_squares(&points)?,
        sizes: points.len(),
        samples: samples.len(),
    })
}

/// The least-squares slope, unit of y per unit of x.
fn least_squares(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (mean_x, mean_y) =
        (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let xx: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let xy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    (xx > 0.0).then(|| xy / xx)
}

/// A link between two hops whose slopes are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link {
    /// bit/s. Of a bound only the end that bounds means something.
    pub(super) rate: Interval,
    pub(super) bound: Bound,
    /// It is a bound because of the host's own error more than of what the samples scatter.
    pub(super) is_host_limited: bool,
    /// bit/s; absent where the least-squares slopes do not rise.
    pub(super) least_squares: Option<f64>,
}

impl Link {
    /// The same where the way in which it was found says nothing of links that are faster than
    /// this, bit/s.
    pub(super) fn no_more_than(self, rate: f64) -> Self {
        let lo = self.rate.lo.min(rate);
        let rate = Interval { estimate: lo, lo, hi: lo, ..self.rate };
        Self { rate, bound: Bound::AtLeast, ..self }
    }
}

/// The difference of two slopes as a capacity. `None` where it is below zero beyond doubt: then one
/// of them is wrong.
pub(super) fn link(before: &Slope, after: &Slope) -> Option<Link> {
    let difference = after.value - before.value;
    let half = before.half.hypot(after.half);
    if difference + half <= 0.0 {
        return None;
    }
    let lo = BITS_PER_NS / (difference + half);
    let known = half < MOST_ERROR * difference;
    let rate = if known {
        let estimate = BITS_PER_NS / difference;
        Interval { estimate, lo, hi: BITS_PER_NS / (difference - half), confidence: CONFIDENCE }
    } else {
        Interval { estimate: lo, lo, hi: lo, confidence: CONFIDENCE }
    };
    let squares = after.least_squares - before.least_squares;
    let host = before.host_half.hypot(after.host_half);
    Some(Link {
        rate,
        bound: if known { Bound::None } else { Bound::AtLeast },
        is_host_limited: !known && host > half * std::f64::consts::FRAC_1_SQRT_2,
        least_squares: (squares > 0.0).then(|| BITS_PER_NS / squares),
    })
}

/// A byte in a nanosecond is so many bit/s.
const BITS_PER_NS: f64 = 8e9;
pub(super) const CONFIDENCE: f64 = 0.95;
/// Sen's interval at 95 % needs as many.
pub(super) const LEAST_SIZES: usize = 5;
/// Of the difference: beyond it the upper end says nothing, so the figure is a lower bound.
const MOST_ERROR: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(ns_per_byte: f64, noise: impl Fn(u32) -> i64) -> Vec<Sample> {
        let sizes = (0..12).map(|n| 560 + 80 * n);
        sizes
            .map(|bytes| Sample {
                bytes,
                delay: Span(4_000_000 + (f64::from(bytes) * ns_per_byte) as i64 + noise(bytes)),
            })
            .collect()
    }

    #[test]
    fn a_slope_is_known_as_well_as_its_points_lie_on_a_line_and_stamps_err() {
        // 44 ns over 880 bytes.
        assert_eq!(
            slope(&samples(80.0, |_| 0), Span(44)),
            Some(Slope {
                value: 80.0,
                half: 0.05,
                host_half: 0.05,
                least_squares: 80.0,
                sizes: 12,
                samples: 12
            })
        );
        // One of six sizes is off by 4 us: of all fifteen slopes the second and the last but one
        // are 60 and 80, or 80 and 100. 7.5 us over 500 bytes are 15.
        for (late, least_squares) in [(4_000, 80.0 - 24.0 / 7.0), (-4_000, 80.0 + 24.0 / 7.0)] {
            let delay = |n: u32| Span(i64::from(n) * 8_000 + if n == 2 { late } else { 0 });
            let points: Vec<Sample> = (1..=6).map(|n| Sample { bytes: n * 100, delay: delay(n) }).collect();
            let found = slope(&points, Span(7_500)).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(near(found.value, 80.0) && near(found.half, 25.0), "{found:?}");
            assert!(near(found.host_half, 15.0) && near(found.least_squares, least_squares), "{found:?}");
        }
        assert_eq!(least_squares(&[(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)]), Some(0.5));
        assert_eq!(least_squares(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }

    #[test]
    fn two_slopes_are_a_link_or_a_bound_by_what_their_difference_leaves() {
        let of = |value: f64, half: f64, host_half: f64, least_squares: f64| Slope {
            value,
            half,
            host_half,
            least_squares,
            ..Slope::ZERO
        };
        let rate = |estimate: f64, lo: f64, hi: f64| Interval { estimate, lo, hi, confidence: 0.95 };
        // ns a byte: 2 and 12, whose halves are 3 and 4, or 5 together.
        let before = of(2.0, 3.0, 0.0, 1.0);
        let least = 8e9 / 15.0;
        let bound = |is_host_limited: bool, least_squares: Option<f64>| Link {
            rate: rate(least, least, least),
            bound: Bound::AtLeast,
            is_host_limited,
            least_squares,
        };
        assert_eq!(link(&before, &of(12.0, 4.0, 3.5, 5.0)), Some(bound(false, Some(2e9))));
        assert_eq!(link(&before, &of(12.0, 4.0, 3.6, 1.0)), Some(bound(true, None)));
        // Less than half of the difference is known of it.
        let known = Link {
            rate: rate(8e8, 8e9 / 14.0, 8e9 / 6.0),
            bound: Bound::None,
            is_host_limited: false,
            least_squares: None,
        };
        assert_eq!(link(&of(2.0, 0.0, 0.0, 5.0), &of(12.0, 4.0, 4.0, 4.0)), Some(known));
        // It may be nothing, and it cannot be less.
        let nothing = Link { rate: rate(1e9, 1e9, 1e9), ..bound(false, None) };
        assert_eq!(link(&before, &of(5.0, 4.0, 0.0, 1.0)), Some(nothing));
        assert_eq!(link(&before, &of(-3.0, 4.0, 0.0, 1.0)), None);
    }

    #[test]
    fn neighbouring_slopes_give_the_link_between_them() {
        let before = slope(&samples(80.0, |_| 0), Span(1)).unwrap();
        let after = slope(&samples(880.0, |_| 0), Span(1)).unwrap();
        let first = link(&Slope::ZERO, &before).unwrap();
        let second = link(&before, &after).unwrap();
        assert!((first.rate.estimate / 1e8 - 1.0).abs() < 1e-3, "{first:?}");
        assert!((second.rate.estimate / 1e7 - 1.0).abs() < 1e-3, "{second:?}");
        assert!(second.rate.contains(1e7) && second.bound == Bound::None);
    }

    #[test]
    fn only_the_smallest_of_a_size_counts() {
        let mut all = samples(80.0, |_| 0);
        all.extend(samples(80.0, |bytes| i64::from(bytes % 7) * 900_000 + 10));
        let found = slope(&all, Span(1)).unwrap();
        assert!((found.value - 80.0).abs() < 0.01);
        assert_eq!((found.sizes, found.samples), (12, 24));
    }

    #[test]
    fn a_fast_link_behind_a_slow_one_is_a_bound() {
        let noise = |bytes: u32| i64::from(bytes * 7 % 11) * 400;
        let before = slope(&samples(800.0, noise), Span(500)).unwrap();
        let after = slope(&samples(800.8, noise), Span(500)).unwrap();
        let found = link(&before, &after).unwrap();
        assert_eq!(found.bound, Bound::AtLeast);
        assert!(found.rate.lo < 1e10);
    }

    #[test]
    fn the_error_of_the_host_widens_the_interval_until_it_is_a_bound_that_says_so() {
        // 1 Gbit/s: 8 ns a byte, over 880 bytes.
        let of = |error: i64| link(&Slope::ZERO, &slope(&samples(8.0, |_| 0), Span(error)).unwrap()).unwrap();
        let (fine, coarse, blunt) = (of(50), of(2_000), of(5_000));
        assert_eq!([fine.bound, coarse.bound, blunt.bound], [Bound::None, Bound::None, Bound::AtLeast]);
        assert!(coarse.rate.width() > 10.0 * fine.rate.width() && coarse.rate.contains(1e9), "{coarse:?}");
        assert_eq!([fine, coarse, blunt].map(|link| link.is_host_limited), [false, false, true]);
        assert!(blunt.rate.lo < 1e9, "{blunt:?}");
    }

    #[test]
    fn a_bound_by_what_the_path_scatters_is_not_the_hosts() {
        let noise = |bytes: u32| i64::from(bytes * 7 % 11) * 4_000;
        let found = link(&Slope::ZERO, &slope(&samples(8.0, noise), Span(500)).unwrap()).unwrap();
        assert_eq!((found.bound, found.is_host_limited), (Bound::AtLeast, false));
    }

    #[test]
    fn a_slope_that_falls_is_no_link() {
        let before = slope(&samples(800.0, |_| 0), Span(1)).unwrap();
        let after = slope(&samples(80.0, |_| 0), Span(1)).unwrap();
        assert_eq!(link(&before, &after), None);
    }

    #[test]
    fn a_rough_figure_of_a_fast_link_behind_a_slow_one_is_not_printed_as_its_bound() {
        // 440 ns a byte up to the slow link, and nothing more behind it: 5.5 Gbit/s and more.
        let of = |value: f64, half: f64| Slope { value, half, least_squares: value, ..Slope::ZERO };
        for after in [of(440.05, 1.4), of(441.0, 0.1)] {
            let found = link(&of(440.0, 0.0), &after).unwrap();
            assert!(found.rate.lo > 5e9, "{found:?}");
            let told = found.no_more_than(3e8);
            let least = Interval { estimate: 3e8, lo: 3e8, hi: 3e8, confidence: CONFIDENCE };
            assert_eq!((told.rate, told.bound), (least, Bound::AtLeast));
        }
        // A bound that is lower is no worse for it.
        let low = link(&of(440.0, 0.0), &of(440.0, 40.0)).unwrap();
        assert_eq!(low.no_more_than(3e8).rate, low.rate);
    }

    #[test]
    fn too_few_sizes_are_no_line() {
        assert_eq!(slope(&samples(80.0, |_| 0)[..4], Span(1)), None);
    }
}

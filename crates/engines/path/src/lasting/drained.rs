//! What trains at several rates say of a bucket that has no credit left.

use netaware_stats::interval::Interval;

use super::steady::Stretch;
use super::{Found, Metric};
use crate::Bound;

/// What a line through the stretches says. `None` if it is that of a link which carries `peak`,
/// bit/s.
pub(super) fn line(peak: f64, parts: &[Stretch; 3], metric: Metric) -> Option<Found> {
    let weight = |part: &Stretch| part.error.powi(-2);
    let sum = |of: &dyn Fn(&Stretch) -> f64| parts.iter().map(|part| weight(part) * of(part)).sum::<f64>();
    let all = sum(&|_| 1.0);
    let (rate, by) = (sum(&|part| part.rate) / all, sum(&|part| part.by) / all);
    let squares = sum(&|part| (part.rate - rate).powi(2));
    let slope = sum(&|part| (part.rate - rate) * (part.by - by)) / squares;
    let left = sum(&|part| (part.by - by - slope * (part.rate - rate)).powi(2));
    // Three points that lie far off their line know it worse than each says for itself.
    let worse = left.max(1.0).sqrt();
    let (slope_error, by_error) = (worse / squares.sqrt(), worse / all.sqrt());
    let arrived = parts.iter().map(|part| part.rate / part.by).fold(f64::INFINITY, f64::min);
    let (least, most) = (slope - TWICE * slope_error, slope + TWICE * slope_error);
    let as_of_a_link = 1.0 / (LOWER * peak);
    let is_steep = least > as_of_a_link;
    if !is_steep {
        return (most > as_of_a_link).then_some(Found::Unclear(arrived));
    }
    let capacity = 1.0 / slope;
    let (value, error) = match metric {
        Metric::Capacity => (capacity, slope_error * capacity * capacity),
        Metric::Available => {
            // Where the line is one.
            let available = rate - (by - 1.0) / slope;
            (available, by_error.hypot((rate - available) * slope_error) / slope)
        }
    };
    let half =
        THRICE * error + FLOOR * value.max(0.0) + CROSS * (capacity - rate + (by - 1.0) / slope).max(0.0);
    let interval =
        |estimate: f64, lo: f64, hi: f64| Interval { estimate, lo: lo.max(0.0), hi, confidence: CONFIDENCE };
    // Nothing that came faster than it could last is available.
    let (lasts, bound) = if value > 0.0 && half < ROUGH * value {
        (interval(value, value - half, value + half), Bound::None)
    } else {
        match metric {
            Metric::Capacity => (interval(arrived, arrived, capacity.max(arrived)), Bound::AtLeast),
            Metric::Available => (interval(arrived, 0.0, arrived), Bound::AtMost),
        }
    };
    Some(Found::Bucket { peak, lasts, bound })
}

/// Of the peak: a token rate above it is no news.
const LOWER: f64 = 0.9;
/// Standard errors.
const TWICE: f64 = 2.0;
/// Of an interval: three short trains do not see how much they err.
const THRICE: f64 = 3.0;
/// What so short trains see of the cross traffic varies by this share of it.
const CROSS: f64 = 0.3;
/// Of a figure: no line knows better.
const FLOOR: f64 = 0.03;
/// Half an interval of this share of its figure is no figure, but a bound.
const ROUGH: f64 = 0.4;
const CONFIDENCE: f64 = 0.95;

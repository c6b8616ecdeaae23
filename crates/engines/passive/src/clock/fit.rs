//! A line through the corridor that packets both ways leave for the difference of two clocks.
//!
//! **What**: clock b minus clock a as `alpha + beta t` over a span in which both run steadily.
//! **Assumes** that no packet arrives before it was sent, and a steady rate: for what crystals do
//! meanwhile the bound grows by [`WANDER_PPB`]. **Bias**: the middle of the corridor is taken; the
//! truth is off by half the difference of the smallest delays of both ways, which nobody can know
//! from stamps alone, and the bound holds all of the corridor. **Published**: as a linear programme
//! by Moon, Skelly and Towsley, INFOCOM 1999 (one way, skew only) and by convex hulls by Zhang, Liu
//! and Xia, INFOCOM 2002. We differ in that we ask for the *extreme* feasible lines, which give a
//! bound instead of a best guess.

use super::envelope::Envelope;

/// Where the difference of two clocks may lie at both ends of a span, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Corridor {
    /// First instant of the span, ns by clock a.
    pub(crate) from: i64,
    /// Its end.
    pub(crate) until: i64,
    /// Middle at `from` and at `until`.
    pub(crate) middle: [i64; 2],
    /// Half of the greater width.
    pub(crate) half_width: i64,
}

/// What limits say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Found {
    /// There is a way through.
    Corridor(Corridor),
    /// No line meets all limits: the clocks did not run steadily.
    Contradiction,
    /// Packets of one direction only, or none.
    OneSided,
}

/// The corridor at the ends of `part`, from all limits within `from..until`.
pub(crate) fn corridor(envelope: &Envelope, (from, until): (i64, i64), part: (i64, i64)) -> Found {
    let Some(limits) = Limits::of(envelope, from, until) else { return Found::OneSided };
    let Some((low, high)) = limits.slopes() else { return Found::Contradiction };
    let mut middle = [0; 2];
    let mut half_width: f64 = 0.0;
    for (at, middle) in [part.0, part.1].into_iter().zip(&mut middle) {
        let x = limits.seconds(at);
        let most = -least_of(|slope| -(limits.most(slope) + slope * x), low, high).1;
        let least = least_of(|slope| limits.least(slope) + slope * x, low, high).1;
        *middle = limits.base + f64::midpoint(most, least).round() as i64;
        half_width = half_width.max((most - least) / 2.0);
    }
    let wander = (until - from) as f64 / 1e9 * WANDER_PPB;
    let half_width = (half_width + wander + STAMP_NS).ceil() as i64;
    Found::Corridor(Corridor { from: part.0, until: part.1, middle, half_width })
}

/// Whether a line meets all limits within `from..until`.
pub(crate) fn steady(envelope: &Envelope, from: i64, until: i64) -> bool {
    Limits::of(envelope, from, until).is_none_or(|limits| limits.slopes().is_some())
}

/// Limits around an origin, x in s and y in ns; of each side only those that a line can touch.
#[derive(Debug)]
struct Limits {
    origin: i64,
    base: i64,
    most: Vec<(f64, f64)>,
    least: Vec<(f64, f64)>,
}

impl Limits {
    /// `None` unless there are both.
    fn of(envelope: &Envelope, from: i64, until: i64) -> Option<Self> {
        let base = envelope.limits(from, until).find_map(|bin| bin.most)?.difference;
        let mut limits = Self { origin: from, base, most: Vec::new(), least: Vec::new() };
        for bin in envelope.limits(from, until) {
            let point = |limit: super::envelope::Limit| {
                (limits.seconds(limit.at), (limit.difference.saturating_sub(base)) as f64)
            };
            let (most, least) = (bin.most.map(point), bin.least.map(point));
            limits.most.extend(most);
            limits.least.extend(least.map(|(x, y)| (x, -y)));
        }
        lower_hull(&mut limits.most);
        lower_hull(&mut limits.least);
        limits.least.iter_mut().for_each(|point| point.1 = -point.1);
        (!limits.least.is_empty()).then_some(limits)
    }

    fn seconds(&self, at: i64) -> f64 {
        at.saturating_sub(self.origin) as f64 / 1e9
    }

    /// The highest line of this slope, by its height at the origin; concave in the slope.
    fn most(&self, slope: f64) -> f64 {
        self.most.iter().map(|(x, y)| y - slope * x).fold(f64::INFINITY, f64::min)
    }

    /// The lowest; convex.
    fn least(&self, slope: f64) -> f64 {
        self.least.iter().map(|(x, y)| y - slope * x).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The range of slopes for which there is a line; `None`: no slope.
    fn slopes(&self) -> Option<(f64, f64)> {
        let crossed = |slope: f64| self.least(slope) - self.most(slope);
        let (best, depth) = least_of(crossed, -STEEPEST, STEEPEST);
        if depth > 0.0 {
            return None;
        }
        Some((edge(crossed, best, -STEEPEST), edge(crossed, best, STEEPEST)))
    }
}

/// Where a convex function that is not above zero at `inside` comes to zero on the way to
/// `outside`.
fn edge(crossed: impl Fn(f64) -> f64, inside: f64, outside: f64) -> f64 {
    if crossed(outside) <= 0.0 {
        return outside;
    }
    let (mut inside, mut outside) = (inside, outside);
    for _ in 0..STEPS {
        let middle = f64::midpoint(inside, outside);
        *(if crossed(middle) <= 0.0 { &mut inside } else { &mut outside }) = middle;
    }
    // The further one: the bound must hold what lies between them too.
    outside
}

/// Least value of a convex function and where, by thirds.
fn least_of(value: impl Fn(f64) -> f64, low: f64, high: f64) -> (f64, f64) {
    let (mut low, mut high) = (low, high);
    for _ in 0..2 * STEPS {
        let third = (high - low) / 3.0;
        let (left, right) = (low + third, high - third);
        if value(left) <= value(right) {
            high = right;
        } else {
            low = left;
        }
    }
    [low, f64::midpoint(low, high), high]
        .map(|at| (at, value(at)))
        .into_iter()
        .min_by(|one, other| one.1.total_cmp(&other.1))
        .expect("there are three")
}

/// Keeps the points that a line from below can touch (Andrew 1979).
fn lower_hull(points: &mut Vec<(f64, f64)>) {
    points.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points.iter() {
        while let [.., before, last] = hull.as_slice() {
            let turn =
                (last.0 - before.0) * (point.1 - before.1) - (last.1 - before.1) * (point.0 - before.0);
            if turn > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(*point);
    }
    *points = hull;
}

/// Clocks differ in rate by no more, ns/s (1000 ppm): crystals are within 100 ppm, and kernels slew
/// by up to 500.
const STEEPEST: f64 = 1e6;

/// What a crystal's rate changes within a minute or two, ns/s: temperature, mostly.
const WANDER_PPB: f64 = 50.0;

/// Stamps are whole nanoseconds of a kernel that reads its clock in tens of them.
const STAMP_NS: f64 = 1000.0;

/// Halvings; a third of the range twice as often is about as fine. 1e6 / 2^50 is 1e-9 ns/s.
const STEPS: u32 = 50;

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;
    use netaware_units::{Span, Wall};

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Clocks `offset` and `ppm` apart, smallest delays one and other way, exponential queues.
    fn traffic(seconds: i64, offset: i64, ppm: f64, delays: [i64; 2], queue: f64, seed: u64) -> Envelope {
        let mut rng = SplitMix64::new(seed);
        let mut envelope = Envelope::new(Span::from_millis(40));
        let mut at = 0;
        while at < seconds * SECOND {
            at += (-(1.0 - rng.unit()).ln() * 2e6) as i64;
            let theta = |at: i64| offset + (at as f64 * ppm / 1e6) as i64;
            let wait = (-(1.0 - rng.unit()).ln() * queue) as i64;
            if rng.below(2) == 0 {
                let seen = at + delays[0] + wait;
                envelope.forward(Wall(at), Wall(seen + theta(seen)));
            } else {
                let seen = at + delays[1] + wait;
                envelope.reverse(Wall(at + theta(at)), Wall(seen));
            }
        }
        envelope
    }

    #[test]
    fn the_truth_lies_in_the_corridor_for_every_seed() {
        for seed in 0..40 {
            let delays = [300_000 + 20_000 * seed as i64, 1_100_000];
            let envelope = traffic(20, 50_000_000, 50.0, delays, 2e5, seed);
            let span = (0, 20 * SECOND);
            let Found::Corridor(found) = corridor(&envelope, span, (10 * SECOND, 20 * SECOND)) else {
                panic!("a corridor with seed {seed}")
            };
            for (at, middle) in [10, 20].into_iter().zip(found.middle) {
                let truth = 50_000_000 + at * 50_000;
                assert!(
                    (middle - truth).abs() <= found.half_width,
                    "{seed}: {middle} for {truth} +- {}",
                    found.half_width
                );
            }
            let unknowable = i64::midpoint(delays[0], delays[1]);
            assert!(found.half_width <= unknowable + 100_000, "{seed}: {}", found.half_width);
        }
    }

    #[test]
    fn one_direction_alone_says_nothing() {
        let mut envelope = Envelope::new(Span::from_millis(1));
        (0..100).for_each(|at| envelope.forward(Wall(at * SECOND / 100), Wall(at * SECOND / 100 + 5)));
        assert_eq!(corridor(&envelope, (0, SECOND), (0, SECOND)), Found::OneSided);
        assert!(steady(&envelope, 0, SECOND));
    }

    #[test]
    fn a_clock_that_jumps_by_more_than_the_round_trip_contradicts_itself() {
        let mut envelope = traffic(10, 0, 0.0, [100_000, 100_000], 1e5, 7);
        let before = envelope.clone();
        let after = traffic(20, 5_000_000, 0.0, [100_000, 100_000], 1e5, 8);
        let mut later = after.clone();
        later.forget_before(Wall(10 * SECOND));
        envelope.merge(&later);
        assert!(steady(&before, 0, 10 * SECOND) && steady(&after, 0, 20 * SECOND));
        assert!(!steady(&envelope, 0, 20 * SECOND));
        assert_eq!(corridor(&envelope, (0, 20 * SECOND), (0, SECOND)), Found::Contradiction);
    }

    #[test]
    fn limits_that_touch_leave_a_line() {
        // Packets that took no time either way: the difference is exactly known at one instant.
        let (at, difference) = (SECOND / 2, 7);
        let mut envelope = Envelope::new(Span(1000));
        envelope.forward(Wall(at), Wall(at + difference));
        envelope.reverse(Wall(at + difference), Wall(at));
        assert!(steady(&envelope, 0, SECOND));
        let Found::Corridor(found) = corridor(&envelope, (0, SECOND), (at, at)) else {
            panic!("limits that touch are no contradiction")
        };
        assert_eq!(found.middle, [difference; 2]);
    }

    #[test]
    fn a_corridor_is_as_wide_as_limits_slopes_and_stamps_leave_it() {
        // Clock b gains 20 us in each second. Two packets each way take 3 us and 1 us, 10 s apart.
        let mut envelope = Envelope::new(Span::from_millis(40));
        for second in [100, 110] {
            let (at, theta) = (second * SECOND, 50_000_000 + 20_000 * (second - 100));
            envelope.forward(Wall(at), Wall(at + theta + 3000));
            envelope.reverse(Wall(at + theta - 1000), Wall(at));
        }
        let (span, part) = ((100 * SECOND, 120 * SECOND), (110 * SECOND, 120 * SECOND));
        let Found::Corridor(found) = corridor(&envelope, span, part) else { panic!("a line fits") };
        assert_eq!((found.from, found.until), part);
        // At 110 s limits are 2 us around the middle; 10 s later lines of all slopes are 6 us
        // around it.
        assert_eq!(found.middle, [50_201_000, 50_401_000]);
        // The wander of 20 s is 1 us, and stamps err by another.
        assert!((8000..=8001).contains(&found.half_width), "{found:?}");
    }

    #[test]
    fn the_other_direction_alone_says_nothing_either() {
        let mut envelope = Envelope::new(Span::from_millis(1));
        (0..100).for_each(|at| envelope.reverse(Wall(at * SECOND / 100), Wall(at * SECOND / 100 + 5)));
        assert_eq!(corridor(&envelope, (0, SECOND), (0, SECOND)), Found::OneSided);
        assert!(steady(&envelope, 0, SECOND));
    }

    #[test]
    fn only_what_a_line_from_below_can_touch_is_kept() {
        let mut points = vec![
            (3.0, 0.0),
            (1.0, -1.0),
            (2.0, 7.0),
            (0.0, 0.0),
            (7.0, 12.0),
            (2.0, -2.0),
            (5.0, 3.0),
            (4.0, -1.0),
        ];
        lower_hull(&mut points);
        // The second lies on the line between its neighbours.
        assert_eq!(points, [(0.0, 0.0), (2.0, -2.0), (4.0, -1.0), (5.0, 3.0), (7.0, 12.0)]);
    }

    #[test]
    fn least_values_and_edges_are_found_to_the_last_digits() {
        let near = |found: f64, want: f64| (found - want).abs() < 1e-12;
        let (at, least) = least_of(|x| (x - 3.0).abs() + 7.0, -4.0, 16.0);
        assert!(near(at, 3.0) && near(least, 7.0), "{least} at {at}");
        let (at, least) = least_of(|x| 2.0 * x, -4.0, 16.0);
        assert!(near(at, -4.0) && near(least, -8.0), "{least} at {at}");
        for (outside, want) in [(100.0, 5.0), (5.0, 5.0), (3.0, 3.0), (-100.0, -5.0)] {
            let found = edge(|x: f64| x.abs() - 5.0, 0.0, outside);
            assert!(near(found, want) && found.abs() >= want.abs(), "{found} on the way to {outside}");
        }
    }
}

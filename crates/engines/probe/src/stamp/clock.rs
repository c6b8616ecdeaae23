//! What is known of the reflector's clock against ours, from exchanges and from what both say of
//! their clocks.
//!
//! An exchange bounds the offset whatever the path does: the apparent delay there is the true one
//! plus the offset, and no delay is negative, so the offset is at most the least apparent delay
//! there, and at least minus the least one back. All exchanges together leave an interval as long
//! as the least round trip. Its middle is right if the least delays are equal both ways; how
//! unequal they are cannot be known from exchanges alone, so the bound is half of that round trip,
//! no less. A rate difference of the clocks is taken off first: the slope of the middles of
//! [`SEGMENTS`] parts of the time, as Theil and Sen take it, and what the middles still scatter is
//! added to the bound.
//!
//! Clocks that both say that they are synchronised are believed if the exchanges do not contradict
//! them and what they promise is better. The very same clock is no estimate at all. **Published**:
//! Paxson 1998 (minima of both ways), Moon et al. 1999 (skew from the lower envelope); RFC 7679
//! §3.7 (calibration).

use std::collections::BTreeMap;

use netaware_record::passive::ClockExchange;
use netaware_units::Span;
use netaware_wire::stamp::ErrorEstimate;

use super::StampExchange;

/// How a relation came about; the words of `DelayRow::clock_method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMethod {
    /// Both stamps are of one kernel.
    SameHost,
    /// Both clocks are synchronised and say how well.
    ClockDaemons,
    /// From the exchanges.
    ActiveExchange,
}

impl ClockMethod {
    /// In records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SameHost => "same_host",
            Self::ClockDaemons => "clock_daemons",
            Self::ActiveExchange => "active_exchange",
        }
    }
}

/// The reflector's clock against ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockRelation {
    /// Its clock minus ours at the first exchange; is taken off every delay there and added back
    /// home.
    pub offset: Span,
    /// How much its clock gains, parts per million.
    pub skew_ppm: f64,
    /// No one-way delay is further off than this because of the clocks.
    pub bound: Span,
    /// Where all that is from.
    pub method: ClockMethod,
    /// Both clocks say that they are synchronised, and cannot both be right.
    pub contradicted: bool,
    /// A clock was set while they were compared: no straight line fits.
    pub stepped: bool,
    /// The instant of the first exchange, ns on our wall clock.
    origin: i64,
}

impl ClockRelation {
    /// Its clock minus ours at an instant of ours.
    pub fn offset_at(&self, exchange: &StampExchange) -> Span {
        self.offset + drift(self.skew_ppm, exchange.sent_at.0 - self.origin)
    }

    /// One-way delay there; may be negative by up to the bound.
    pub fn forward(&self, exchange: &StampExchange) -> Span {
        exchange.forward_apparent() - self.offset_at(exchange)
    }

    /// One-way delay back.
    pub fn reverse(&self, exchange: &StampExchange) -> Span {
        exchange.reverse_apparent() + self.offset_at(exchange)
    }
}

/// Of each sixteenth of a period those exchanges whose way there or back limits the difference of
/// the clocks most, in order of sending. What is left out is a limit less, never a wrong one.
pub fn tightest(exchanges: &[StampExchange], period: Span) -> Vec<ClockExchange> {
    let width = (period.0 / BINS).max(1);
    let mut bins: BTreeMap<i64, [&StampExchange; 2]> = BTreeMap::new();
    for one in exchanges {
        let [there, back] = bins.entry(one.sent_at.0.div_euclid(width)).or_insert([one; 2]);
        if one.forward_apparent() < there.forward_apparent() {
            *there = one;
        }
        if one.reverse_apparent() < back.reverse_apparent() {
            *back = one;
        }
    }
    let stamps = |one: &StampExchange| ClockExchange {
        sent_at: one.sent_at,
        received_at: one.received_at,
        answered_at: one.answered_at,
        came_at: one.came_at,
    };
    let mut found: Vec<ClockExchange> = bins.into_values().flatten().map(stamps).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Of a period: a collector looks for jumps of clocks as finely.
const BINS: i64 = 16;

fn drift(skew_ppm: f64, elapsed: i64) -> Span {
    Span((skew_ppm * 1e-6 * elapsed as f64).round() as i64)
}

/// Relates the clocks; `same` when both are known to be one. `None` without exchanges.
pub fn relate(exchanges: &[StampExchange], ours: ErrorEstimate, same: bool) -> Option<ClockRelation> {
    let first = exchanges.iter().min_by_key(|exchange| exchange.sent_at)?;
    let stamps = exchanges.iter().map(|exchange| exchange.tx.error + exchange.rx.error).max()?;
    let by_exchange = fit(exchanges, first.sent_at.0);
    let known = |method, bound| ClockRelation {
        offset: Span::ZERO,
        skew_ppm: 0.0,
        bound,
        method,
        contradicted: false,
        stepped: false,
        origin: first.sent_at.0,
    };
    if same && !by_exchange.contradicts(SAME_CLOCK_BOUND + stamps) {
        return Some(known(ClockMethod::SameHost, SAME_CLOCK_BOUND + stamps));
    }
    let theirs = exchanges.iter().map(|exchange| exchange.error.bound()).max().flatten();
    let all_synchronised = exchanges.iter().all(|exchange| exchange.error.synchronised);
    let promised = theirs.filter(|_| all_synchronised).zip(ours.bound());
    let promised = promised.map(|(theirs, ours)| theirs + ours + SAME_CLOCK_BOUND + stamps);
    let contradicted = same || promised.is_some_and(|bound| by_exchange.contradicts(bound));
    if let Some(bound) = promised.filter(|bound| !contradicted && *bound <= by_exchange.bound) {
        return Some(known(ClockMethod::ClockDaemons, bound));
    }
    Some(ClockRelation {
        offset: by_exchange.middle,
        skew_ppm: by_exchange.skew_ppm,
        stepped: by_exchange.bound > by_exchange.half_trip * 2 + STEP_NOTICED,
        contradicted,
        ..known(ClockMethod::ActiveExchange, by_exchange.bound + stamps)
    })
}

/// What exchanges say of the offset.
struct Fit {
    middle: Span,
    skew_ppm: f64,
    bound: Span,
    half_trip: Span,
}

impl Fit {
    /// Whether the offset cannot be within `bound` of zero.
    fn contradicts(&self, bound: Span) -> bool {
        self.middle.abs() > self.bound + bound
    }
}

/// One exchange, reduced: when, and between what the offset lies.
#[derive(Clone, Copy)]
struct Between {
    elapsed: i64,
    lo: i64,
    hi: i64,
}

fn fit(exchanges: &[StampExchange], origin: i64) -> Fit {
    let mut all: Vec<Between> = exchanges
        .iter()
        .map(|exchange| Between {
            elapsed: exchange.sent_at.0 - origin,
            lo: -exchange.reverse_apparent().0,
            hi: exchange.forward_apparent().0,
        })
        .collect();
    all.sort_unstable_by_key(|between| between.elapsed);
    let segments: Vec<Between> =
        all.chunks(all.len().div_ceil(SEGMENTS).max(FEWEST)).filter_map(narrowest).collect();
    let skew_ppm = slope(&segments);
    let level = |between: &Between, value: i64| value - drift(skew_ppm, between.elapsed).0;
    let lo = all.iter().map(|between| level(between, between.lo)).max().unwrap_or(0);
    let hi = all.iter().map(|between| level(between, between.hi)).min().unwrap_or(0);
    // Truths overlap; if ours do not, the line is wrong by at least the gap.
    let (half, gap) = ((hi - lo).max(0) / 2, (lo - hi).max(0));
    let middles = segments.iter().map(|segment| level(segment, i64::midpoint(segment.lo, segment.hi)));
    let scatter = if skew_ppm == 0.0 { 0 } else { spread(middles) };
    let half_trip = all.iter().map(|between| (between.hi - between.lo) / 2).min().unwrap_or(0);
    Fit {
        middle: Span(i64::midpoint(lo, hi)),
        skew_ppm,
        bound: Span(half + gap + scatter),
        half_trip: Span(half_trip.max(0)),
    }
}

/// The tightest bounds within a part of the time, in its middle.
fn narrowest(part: &[Between]) -> Option<Between> {
    let (first, last) = (part.first()?, part.last()?);
    Some(Between {
        elapsed: i64::midpoint(first.elapsed, last.elapsed),
        lo: part.iter().map(|between| between.lo).max()?,
        hi: part.iter().map(|between| between.hi).min()?,
    })
}

/// Median slope between the middles of all pairs of parts, ppm; 0 where that changes nothing that
/// could be seen.
fn slope(segments: &[Between]) -> f64 {
    let middle = |segment: &Between| i64::midpoint(segment.lo, segment.hi);
    let mut slopes: Vec<f64> = Vec::new();
    for (index, from) in segments.iter().enumerate() {
        for to in segments.get(index + 1..).unwrap_or_default() {
            let elapsed = to.elapsed - from.elapsed;
            if elapsed > 0 {
                slopes.push((middle(to) - middle(from)) as f64 * 1e6 / elapsed as f64);
            }
        }
    }
    if segments.len() < FEWEST_SEGMENTS {
        return 0.0;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let Some(median) = slopes.get(slopes.len() / 2).copied() else { return 0.0 };
    let whole =
        segments.last().map_or(0, |last| last.elapsed) - segments.first().map_or(0, |first| first.elapsed);
    let moved = drift(median, whole).0.abs();
    let scatter = spread(segments.iter().map(|segment| middle(segment) - drift(median, segment.elapsed).0));
    if moved > 2 * scatter + SLOPE_NOTICED { median } else { 0.0 }
}

fn spread(values: impl Iterator<Item = i64>) -> i64 {
    let (least, most) =
        values.fold((i64::MAX, i64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    most.saturating_sub(least).max(0)
}

/// Parts of the time.
const SEGMENTS: usize = 16;
/// Exchanges of a part, at least: its minima need some.
const FEWEST: usize = 5;
/// A slope needs so many parts.
const FEWEST_SEGMENTS: usize = 4;
/// Less than this between first and last part is no slope but noise, ns.
const SLOPE_NOTICED: i64 = 2_000;
/// A line that is wrong by so much more than the round trip explains tells of a step.
const STEP_NOTICED: Span = Span::from_millis(1);
/// One clock read twice: what stamps of the kernel on two paths differ by, beside the error that
/// they state.
const SAME_CLOCK_BOUND: Span = Span::from_micros(2);

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;
    use netaware_units::{Mono, Stamp, Wall};
    use netaware_wire::stamp::TimeFormat;

    use super::*;

    const SYNCHRONISED: ErrorEstimate =
        ErrorEstimate { synchronised: true, format: TimeFormat::Ntp, scale: 10, multiplier: 210 };

    /// 10 ms apart, there 3 ms and back 5 ms with queues up to `queue`, the clock off by `offset`
    /// and `ppm`.
    fn exchanges(count: i64, offset: i64, ppm: f64, queue: Span, error: ErrorEstimate) -> Vec<StampExchange> {
        let mut rng = SplitMix64::new(7);
        let mut draw = || (rng.unit() * rng.unit() * queue.0 as f64) as i64;
        (0..count)
            .map(|n| {
                let at = 1_700_000_000_000_000_000 + n * 10_000_000;
                let theirs = |at: i64| at + offset + (ppm * 1e-6 * (n as f64) * 1e7) as i64;
                let there = at + 3_000_000 + draw();
                let back = there + 20_000 + 5_000_000 + draw();
                StampExchange {
                    seq: n as u64,
                    sent_at: Wall(at),
                    received_at: Wall(theirs(there)),
                    answered_at: Wall(theirs(there + 20_000)),
                    came_at: Wall(back),
                    tx: Stamp::application(Mono(0)),
                    rx: Stamp::application(Mono(0)),
                    error,
                    ttl_forward: 64,
                    ttl_reverse: None,
                    reordered_forward: false,
                    reordered_reverse: false,
                }
            })
            .collect()
    }

    /// Sets the reflector's clock forward before these exchanges.
    fn set_clock(exchanges: &mut [StampExchange], by: Span) {
        for it in exchanges {
            it.received_at = Wall(it.received_at.0 + by.0);
            it.answered_at = Wall(it.answered_at.0 + by.0);
        }
    }

    /// Against the truth of the first test path.
    fn worst(all: &[StampExchange], relation: &ClockRelation, offset: i64, ppm: f64) -> Span {
        let of = |(n, it): (usize, &StampExchange)| {
            let truth = it.forward_apparent() - Span(offset + (ppm * 1e-6 * n as f64 * 1e7) as i64);
            (relation.forward(it) - truth).abs()
        };
        all.iter().enumerate().map(of).max().unwrap()
    }

    #[test]
    fn exchanges_bound_any_offset_and_skew() {
        let rows =
            [(0, 0.0), (50_000_000, 50.0), (-50_000_000, -50.0), (3_600_000_000_000, 100.0), (0, 10.0)];
        for (offset, ppm) in rows {
            for (count, queue) in [(30, 0), (1000, 0), (1000, 2_000_000), (3000, 20_000_000)] {
                let all = exchanges(count, offset, ppm, Span(queue), ErrorEstimate::UNKNOWN);
                let relation = relate(&all, ErrorEstimate::UNKNOWN, false).unwrap();
                let worst = worst(&all, &relation, offset, ppm);
                let row =
                    format!("{offset} ns, {ppm} ppm, {count}, queue {queue}: {relation:?}, worst {worst}");
                assert_eq!(relation.method, ClockMethod::ActiveExchange, "{row}");
                assert!(worst <= relation.bound, "{row}");
                assert!(!relation.stepped, "{row}");
                // Half of the round trip, what cannot be known, and 100 us on a path without
                // queues.
                assert!(queue > 0 || relation.bound <= Span::from_micros(4_100), "{row}");
                assert!(all.iter().all(|it| relation.forward(it) >= -relation.bound), "{row}");
            }
        }
    }

    #[test]
    fn good_clocks_are_believed_and_false_ones_are_not() {
        let good = exchanges(100, 20_000, 0.0, Span::ZERO, SYNCHRONISED);
        let relation = relate(&good, SYNCHRONISED, false).unwrap();
        assert_eq!((relation.method, relation.offset), (ClockMethod::ClockDaemons, Span::ZERO));
        assert!(relation.bound >= SYNCHRONISED.span() * 2 && !relation.contradicted);
        let wrong = exchanges(100, 500_000_000, 0.0, Span::ZERO, SYNCHRONISED);
        let relation = relate(&wrong, SYNCHRONISED, false).unwrap();
        assert_eq!((relation.method, relation.contradicted), (ClockMethod::ActiveExchange, true));
        // One end without synchronisation is as none.
        let half = relate(&good, ErrorEstimate::UNKNOWN, false).unwrap();
        assert_eq!((half.method, half.contradicted), (ClockMethod::ActiveExchange, false));
    }

    #[test]
    fn one_clock_is_known_to_be_one_unless_the_exchanges_say_otherwise() {
        let same = exchanges(100, 0, 0.0, Span::ZERO, ErrorEstimate::UNKNOWN);
        let relation = relate(&same, ErrorEstimate::UNKNOWN, true).unwrap();
        assert_eq!((relation.method, relation.offset), (ClockMethod::SameHost, Span::ZERO));
        assert!(relation.bound <= Span::from_micros(10));
        let other = exchanges(100, 900_000_000, 0.0, Span::ZERO, ErrorEstimate::UNKNOWN);
        assert!(relate(&other, ErrorEstimate::UNKNOWN, true).unwrap().contradicted);
    }

    #[test]
    fn the_tightest_of_a_period_are_few_and_limit_the_offset_as_all_do() {
        let all = exchanges(100, 50_000_000, 0.0, Span::from_millis(2), ErrorEstimate::UNKNOWN);
        let few = tightest(&all, Span::from_secs(1));
        assert!((17..=34).contains(&few.len()), "{}", few.len());
        assert!(few.windows(2).all(|pair| pair[0].sent_at < pair[1].sent_at));
        let most = few.iter().map(|one| one.received_at.since(one.sent_at)).min();
        let least = few.iter().map(|one| one.came_at.since(one.answered_at)).min();
        assert_eq!(most, all.iter().map(StampExchange::forward_apparent).min());
        assert_eq!(least, all.iter().map(StampExchange::reverse_apparent).min());
    }

    #[test]
    fn a_clock_that_is_set_in_between_is_noticed() {
        let mut all = exchanges(400, 0, 0.0, Span::ZERO, ErrorEstimate::UNKNOWN);
        set_clock(&mut all[200..], Span::from_millis(700));
        let relation = relate(&all, ErrorEstimate::UNKNOWN, false).unwrap();
        assert!(relation.stepped, "{relation:?}");
    }

    #[test]
    fn a_step_is_noticed_once_twice_the_round_trip_and_a_millisecond_do_not_explain_it() {
        // The gap is what the step exceeds the round trip of 8 ms by; 9 ms of it are allowed.
        for (step_ms, noticed) in [(16, false), (18, true), (-16, false), (-18, true)] {
            let mut all = exchanges(400, 0, 0.0, Span::ZERO, ErrorEstimate::UNKNOWN);
            set_clock(&mut all[200..], Span::from_millis(step_ms));
            let relation = relate(&all, ErrorEstimate::UNKNOWN, false).unwrap();
            assert_eq!(relation.stepped, noticed, "{step_ms} ms: {relation:?}");
        }
    }

    /// The reflector's clock is 50 ms ahead and gains 500 ns from each exchange to the next: 50
    /// ppm.
    fn gaining(count: i64) -> Vec<StampExchange> {
        let mut all = exchanges(count, 50_000_000, 0.0, Span::ZERO, ErrorEstimate::UNKNOWN);
        for (n, one) in all.iter_mut().enumerate() {
            set_clock(std::slice::from_mut(one), Span(500 * n as i64));
        }
        all
    }

    /// By the exchanges, of clocks that nobody speaks well of.
    fn estimated(offset: i64, skew_ppm: f64, bound: i64) -> ClockRelation {
        ClockRelation {
            offset: Span(offset),
            skew_ppm,
            bound: Span(bound),
            method: ClockMethod::ActiveExchange,
            contradicted: false,
            stepped: false,
            origin: 1_700_000_000_000_000_000,
        }
    }

    #[test]
    fn a_steady_gain_is_taken_off_whole_and_each_way_gets_half_of_the_round_trip() {
        let all = gaining(1_000);
        let relation = relate(&all, ErrorEstimate::UNKNOWN, false).unwrap();
        assert_eq!(relation, estimated(49_000_000, 50.0, 4_000_000));
        assert_eq!(relation.offset_at(&all[999]), Span(49_000_000 + 499_500));
        let half = Span::from_millis(4);
        assert!(all.iter().all(|it| relation.forward(it) == half && relation.reverse(it) == half));
    }

    #[test]
    fn a_gain_shows_from_four_parts_on_and_only_if_it_exceeds_what_the_parts_scatter() {
        // Parts of five exchanges. Of three of them the first and the last exchange set the bounds.
        let rows = [
            (20, 0, estimated(49_000_000, 50.0, 4_000_000)),
            (15, 0, estimated(49_003_500, 0.0, 3_996_500)),
            // The first part is off by so much; from part to part the line rises by 7.5 us in all.
            (20, 1_000, estimated(49_000_500, 50.0, 4_000_500)),
            (20, 2_750, estimated(49_006_000, 0.0, 3_996_500)),
        ];
        for (count, off, want) in rows {
            let mut all = gaining(count);
            set_clock(&mut all[..5], Span(off));
            let found = relate(&all, ErrorEstimate::UNKNOWN, false);
            assert_eq!(found, Some(want), "{count} exchanges, off by {off} ns");
        }
    }

    #[test]
    fn the_bound_holds_the_gap_that_a_step_leaves_and_the_middle_lies_between() {
        for (step, offset, bound, stepped) in
            [(17_000_000, 7_500_000, 9_000_000, false), (17_000_002, 7_500_001, 9_000_002, true)]
        {
            let mut all = exchanges(2, 0, 0.0, Span::ZERO, ErrorEstimate::UNKNOWN);
            set_clock(&mut all[1..], Span(step));
            let want = ClockRelation { stepped, ..estimated(offset, 0.0, bound) };
            assert_eq!(relate(&all, ErrorEstimate::UNKNOWN, false), Some(want), "{step} ns");
        }
    }

    /// Synchronised to 2^-9 or 2^-8 s.
    fn synchronised(scale: u8) -> ErrorEstimate {
        ErrorEstimate { synchronised: true, format: TimeFormat::Ntp, scale, multiplier: 1 }
    }

    #[test]
    fn clocks_are_believed_up_to_the_last_nanosecond_that_the_exchanges_allow() {
        let same_host = |bound| ClockRelation { method: ClockMethod::SameHost, ..estimated(0, 0.0, bound) };
        let daemons = ClockRelation { method: ClockMethod::ClockDaemons, ..estimated(0, 0.0, 3_908_400) };
        let contradicted = |offset| ClockRelation { contradicted: true, ..estimated(offset, 0.0, 4_000_150) };
        let (unknown, good, poor) = (ErrorEstimate::UNKNOWN, synchronised(23), synchronised(24));
        // Ours, theirs, whether both are one, the true offset. The estimate is 1 ms less, give or
        // take 4 ms.
        let rows = [
            (unknown, unknown, true, 5_002_150, same_host(2_150)),
            (unknown, unknown, true, -3_002_150, same_host(2_150)),
            (unknown, unknown, true, 5_002_151, contradicted(4_002_151)),
            (good, good, false, 1_000_000, daemons),
            (good, good, false, 8_908_400, daemons),
            (good, good, false, 8_908_401, contradicted(7_908_401)),
            // What they promise is worse than what the exchanges say.
            (poor, poor, false, 1_000_000, estimated(0, 0.0, 4_000_150)),
            (unknown, good, false, 1_000_000, estimated(0, 0.0, 4_000_150)),
            (good, unknown, false, 1_000_000, estimated(0, 0.0, 4_000_150)),
        ];
        for (n, (ours, theirs, same, offset, want)) in rows.into_iter().enumerate() {
            let mut all = exchanges(3, offset, 0.0, Span::ZERO, theirs);
            for it in &mut all {
                (it.tx.error, it.rx.error) = (Span(100), Span(50));
            }
            assert_eq!(relate(&all, ours, same), Some(want), "row {n}");
        }
        // One answer that is not synchronised makes the promises of the others void.
        let mut all = exchanges(3, 1_000_000, 0.0, Span::ZERO, good);
        all[1].error = unknown;
        assert_eq!(relate(&all, good, false), Some(estimated(0, 0.0, 4_000_000)));
        assert_eq!(relate(&[], good, true), None);
    }

    #[test]
    fn of_each_part_of_a_period_the_first_of_the_tightest_stay() {
        let template = exchanges(1, 0, 0.0, Span::ZERO, ErrorEstimate::UNKNOWN)[0];
        let stamps = |(sent, there, back): (i64, i64, i64)| ClockExchange {
            sent_at: Wall(sent),
            received_at: Wall(sent + there),
            answered_at: Wall(sent + there),
            came_at: Wall(sent + there + back),
        };
        // When it was sent, and how long it took there and back; a part is 10 ns long.
        let rows = [(1_000, 5, 5), (1_003, 4, 6), (1_006, 4, 5), (1_010, 9, 9), (1_019, 9, 8)];
        let all = rows.map(stamps).map(|of| StampExchange {
            sent_at: of.sent_at,
            received_at: of.received_at,
            answered_at: of.answered_at,
            came_at: of.came_at,
            ..template
        });
        let want = [rows[0], rows[1], rows[3], rows[4]].map(stamps);
        assert_eq!(tightest(&all, Span(160)), want);
    }

    #[test]
    fn methods_have_the_words_that_records_know() {
        let all = [ClockMethod::SameHost, ClockMethod::ClockDaemons, ClockMethod::ActiveExchange];
        assert_eq!(all.map(ClockMethod::name), ["same_host", "clock_daemons", "active_exchange"]);
    }
}

//! From when on a bulk transfer counts.
//!
//! **Measures** two ends: that of slow start, and that of a token bucket's initial credit. Slow
//! start is over when the receiver's rate has not grown by a quarter over its best for three
//! rounds, a round being a round trip or a slice, whichever is longer: BBR's "full pipe" rule
//! (draft-ietf-ccwg-bbr §5.3.1.2). Where we differ: we look at receiver's slices instead of
//! delivery-rate samples, and we count from the round after the last that grew instead of from the
//! third after it. Then leading slices go that lie outside what the second half of the transfer
//! looks like: a bucket's burst lies above it, the hole that slow start's overshoot tears lies
//! below. **Assumes** that the second half is typical. A prefix that makes up more than half of the
//! transfer is no transient but a path that changed, and stays in. **Biased**: growth slower than a
//! quarter per round (CUBIC's convex part on a long path, HyStart) is taken for the end, so the
//! mean leans low there; a burst that lasts longer than the transfer makes it lean high. RFC 6349
//! §3 wants the equilibrium; iperf3 leaves the choice to its user (`--omit`), as [`asked`] does.

use netaware_record::{ReceiverTick, WarmUp};
use netaware_stats::quantile;
use netaware_units::{BitRate, Span};

/// Where the warm-up of one transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUpEnd {
    /// By the rule of this module; slices from this index on count, at least one.
    SlowStartOver(usize),
    /// By the user's choice.
    Asked(usize),
    /// There was none to be seen: the path was full from the first slice on. All slices count.
    NoneSeen,
    /// The transfer ended first. All slices count, because there is nothing better, and the rate is
    /// a lower bound.
    NeverEnded,
}

impl WarmUpEnd {
    /// Index of the first slice that counts.
    pub fn first(self) -> usize {
        match self {
            Self::SlowStartOver(first) | Self::Asked(first) => first,
            Self::NoneSeen | Self::NeverEnded => 0,
        }
    }

    /// A warm-up that would leave out all that ever came was none.
    fn unless_all(self, ticks: &[ReceiverTick]) -> Self {
        let came = |ticks: &[ReceiverTick]| ticks.iter().any(|tick| tick.bytes.0 > 0);
        let rest = ticks.get(self.first()..).unwrap_or_default();
        if came(rest) || !came(ticks) { self } else { Self::NeverEnded }
    }

    fn rule(self) -> &'static str {
        match self {
            Self::SlowStartOver(_) => "slow start over",
            Self::Asked(_) => "asked for",
            Self::NoneSeen => "none seen",
            Self::NeverEnded => NEVER_ENDED,
        }
    }
}

/// The published rule of a transfer that was still speeding up when it ended, or that was too short
/// to tell.
pub const NEVER_ENDED: &str = "never ended";

/// A transfer that the rule found too short, with what came after its planned end: where a queue
/// then drained over many round trips, and no faster than what counts, the path was full all along.
#[must_use]
pub fn unless_full_at_once(end: WarmUpEnd, all: &[ReceiverTick], rtt: Span) -> WarmUpEnd {
    let heard = all.iter().rposition(|tick| tick.bytes.0 > 0).map_or(0, |last| last + 1);
    if end == WarmUpEnd::NeverEnded && was_full_at_once(&all[..heard], rtt) {
        WarmUpEnd::NoneSeen
    } else {
        end
    }
}

/// Applies the rule to the slices of one transfer. `rtt` is that of the path without load, zero if
/// unknown.
pub fn slow_start(ticks: &[ReceiverTick], rtt: Span) -> WarmUpEnd {
    let begun = all_streams_started(ticks);
    if begun > 0 && was_filled_by_the_first_window(ticks, rtt) {
        return WarmUpEnd::NoneSeen;
    }
    let Some(full) = full_pipe(&ticks[begun..], rtt) else {
        return if was_full_at_once(ticks, rtt) { WarmUpEnd::NoneSeen } else { WarmUpEnd::NeverEnded };
    };
    let first = begun + full;
    WarmUpEnd::SlowStartOver(first + transient(&ticks[first..])).unless_all(ticks)
}

/// Moves the end of slow start past what it leaves behind: the queue that its overshoot has filled
/// must drain, and what was dropped from it must be sent again, before the receiver sees the path's
/// own rate. `loaded_rtt` is the round trip with that queue in it. At least half of the slices
/// stay, so a short transfer keeps some of the disturbance and leans low. One that was still
/// repairing what the overshoot had lost shows a lower bound.
pub fn settled(end: WarmUpEnd, ticks: &[ReceiverTick], loaded_rtt: Span) -> WarmUpEnd {
    let WarmUpEnd::SlowStartOver(first) = end else { return end };
    let over = ticks.get(first).map_or(Span::ZERO, |tick| tick.end - tick.length)
        + loaded_rtt.or_zero() * SETTLING_ROUNDS;
    let settled = ticks.iter().position(|tick| tick.end - tick.length >= over).unwrap_or(ticks.len());
    let counts_from = settled.min(ticks.len() / 2).max(first);
    if settled > counts_from && is_repairing(ticks, counts_from, loaded_rtt) {
        return WarmUpEnd::NeverEnded;
    }
    WarmUpEnd::SlowStartOver(counts_from).unless_all(ticks)
}

/// Whether what counts is mostly the hole that losses have torn: for most of a round trip nothing
/// came, then data came as fast as in the best round before, and all in all it is far less. Behind
/// a path that became slower, such as a token bucket, they would not come that fast.
fn is_repairing(ticks: &[ReceiverTick], counts_from: usize, loaded_rtt: Span) -> bool {
    let (before, counted) = ticks.split_at(counts_from);
    let per_round =
        before.len() as f64 * loaded_rtt.or_zero().secs_f64() / length(before).secs_f64().max(1e-9);
    let per_round = (per_round.ceil() as usize).max(1);
    let best = before.windows(per_round).map(mean_rate).fold(0.0, f64::max);
    let is_hole = |tick: &ReceiverTick| rate(tick) < best * HOLE;
    let runs = counted.chunk_by(|one, next| is_hole(one) == is_hole(next));
    let mut holes = runs.scan(0, |end, run| {
        *end += run.len();
        Some((*end, run))
    });
    let hole = holes.find(|(_, run)| run.first().is_some_and(is_hole) && length(run) * 4 >= loaded_rtt * 3);
    let Some((end, _)) = hole.filter(|_| best > 0.0) else { return false };
    let later = counted[end..].iter().map(rate).fold(0.0, f64::max);
    mean_rate(counted) < best * FAR_LESS && later >= best * AS_FAST
}

/// Leaves out what arrived in the first `omit`, to the end of the slice that holds its end.
pub fn asked(ticks: &[ReceiverTick], omit: Span) -> WarmUpEnd {
    let first = ticks.iter().position(|tick| tick.end - tick.length >= omit);
    first.map_or(WarmUpEnd::NeverEnded, WarmUpEnd::Asked)
}

/// What the result says of the warm-ups of several rounds: their mean length, and the rule of the
/// one that went worst. Rounds without a slice say nothing; `None` if all of them are such.
pub fn published<'a>(rounds: impl IntoIterator<Item = (&'a [ReceiverTick], WarmUpEnd)>) -> Option<WarmUp> {
    let rounds: Vec<_> = rounds.into_iter().filter(|(ticks, _)| !ticks.is_empty()).collect();
    let omitted = |(ticks, end): &(&[ReceiverTick], WarmUpEnd)| -> Span {
        ticks.iter().take(end.first()).map(|tick| tick.length).sum()
    };
    let worst = rounds.iter().map(|(_, end)| *end).max_by_key(|end| *end == WarmUpEnd::NeverEnded)?;
    Some(WarmUp {
        omitted: rounds.iter().map(omitted).sum::<Span>() / rounds.len() as i64,
        rule: worst.rule().to_owned(),
    })
}

/// A stream that starts later makes the sum grow without any slow start of the others.
fn all_streams_started(ticks: &[ReceiverTick]) -> usize {
    let most = ticks.iter().map(|tick| tick.streams).max();
    ticks.iter().position(|tick| Some(tick.streams) == most).unwrap_or(0)
}

/// A round trip or a slice, whichever is longer; `None` without slices.
fn slices_per_round(ticks: &[ReceiverTick], rtt: Span) -> Option<usize> {
    let tick = quantile::median(&ticks.iter().map(|tick| tick.length.nanos()).collect::<Vec<_>>())?;
    Some((rtt.nanos() as f64 / tick.max(1.0)).ceil().clamp(1.0, ticks.len() as f64) as usize)
}

/// Index after the last round that grew, once three have not; `None` if the slices end before.
fn full_pipe(ticks: &[ReceiverTick], rtt: Span) -> Option<usize> {
    let per_round = slices_per_round(ticks, rtt)?;
    let rates = ticks.chunks_exact(per_round).map(mean_rate);
    let (mut best, mut last_growth) = (0.0, 0);
    for (round, rate) in rates.enumerate() {
        if rate >= best * GROWTH {
            (best, last_growth) = (rate, round);
        } else if round - last_growth >= FLAT_ROUNDS {
            return (best > 0.0).then_some((last_growth + 1) * per_round);
        }
    }
    None
}

/// Whether the first round came as fast as any later one, over so much time that slow start would
/// have multiplied the rate. A slow path has few slices, because each of them lasts until something
/// has come, and streams that wait in its queue start late without adding to its rate.
fn was_full_at_once(ticks: &[ReceiverTick], rtt: Span) -> bool {
    let lasted = length(ticks);
    rtt > Span::ZERO
        && lasted >= rtt * FULL_AT_ONCE_ROUNDS
        && slices_per_round(ticks, rtt).is_some_and(|slices| keeps_its_first_rate(ticks, slices))
}

/// Whether the first window of a single stream filled the path, which holds less in a round trip,
/// and its rate has stayed. Other streams wait in the queue behind that window and start seconds
/// later. Round trips with so few segments differ by chance, so a round is as long as
/// [`SHOWS_A_RATE`] takes.
fn was_filled_by_the_first_window(ticks: &[ReceiverTick], rtt: Span) -> bool {
    let bytes: u64 = ticks.iter().map(|tick| tick.bytes.0).sum();
    let lasted = length(ticks);
    if rtt <= Span::ZERO || lasted < rtt * FULL_AT_ONCE_ROUNDS || bytes == 0 {
        return false;
    }
    let rounds = bytes as f64 / SHOWS_A_RATE;
    let slices = (ticks.len() as f64 / rounds).ceil().max(1.0) as usize;
    lasted.secs_f64() / rounds >= rtt.secs_f64() && keeps_its_first_rate(ticks, slices)
}

/// Whether most rounds of so many slices came as fast as the first, and the last no faster.
fn keeps_its_first_rate(ticks: &[ReceiverTick], slices: usize) -> bool {
    let rates: Vec<f64> = ticks.chunks_exact(slices).map(mean_rate).collect();
    let Some((first, later)) = rates.split_first() else { return false };
    let stays = |rate: &&f64| (first / GROWTH..first * GROWTH).contains(*rate);
    let kept = later.iter().filter(stays).count();
    // A round may hold what another one lacks, but most do not.
    let ends_so = later.last().is_some_and(|last| *last < first * GROWTH);
    *first > 0.0 && ends_so && kept * 4 >= later.len() * 3
}

/// Whether what came in the second half of some round was faster, by a quarter or more, than what
/// came in the first.
pub fn has_grown(ticks: &[ReceiverTick]) -> bool {
    let mut rounds = ticks.chunk_by(|before, after| before.end < after.end);
    rounds.any(|round| {
        let (early, late) = round.split_at(round.len() / 2);
        !early.is_empty() && mean_rate(late) > mean_rate(early) * GROWTH
    })
}

/// How many leading slices lie outside the distribution of the second half.
fn transient(ticks: &[ReceiverTick]) -> usize {
    let rates: Vec<f64> = ticks.iter().map(rate).collect();
    let later = &rates[rates.len() / 2..];
    let (Some(typical), Some(spread)) = (quantile::median(later), quantile::mad(later)) else { return 0 };
    // A second half in which nothing came says nothing about what is typical.
    if typical <= 0.0 {
        return 0;
    }
    let allowed = (NORMAL_SD_PER_MAD * spread * OUTLIER_SDS).max(typical * ALWAYS_ALLOWED);
    let leading = rates.iter().take_while(|rate| (**rate - typical).abs() > allowed).count();
    if leading * 2 <= rates.len() { leading } else { 0 }
}

fn length(ticks: &[ReceiverTick]) -> Span {
    ticks.iter().map(|tick| tick.length.or_zero()).sum()
}

/// Payload rate of one slice in bit/s.
pub(crate) fn rate(tick: &ReceiverTick) -> f64 {
    mean_rate(std::slice::from_ref(tick))
}

fn mean_rate(ticks: &[ReceiverTick]) -> f64 {
    let bytes = ticks.iter().map(|tick| tick.bytes).sum();
    // In no time nothing comes that could count as growth.
    BitRate::mean(bytes, ticks.iter().map(|tick| tick.length).sum()).map_or(0.0, |rate| rate.0 as f64)
}

/// Full-pipe threshold of BBR: slow start doubles per round, so less than a quarter is not slow
/// start.
const GROWTH: f64 = 1.25;
/// Rounds without growth, of BBR: one or two may be held up by the receiver's window.
const FLAT_ROUNDS: usize = 3;
/// Round trips in which slow start multiplies its rate by so much that a path which has stayed at
/// one rate is full: two doublings take two, and a first flight that is spread over several slices
/// takes another one or two.
const FULL_AT_ONCE_ROUNDS: i64 = 8;
/// Bytes of which a segment more or less is no change of the rate; a first window has ten segments
/// (RFC 6928).
const SHOWS_A_RATE: f64 = 12_000.0;
/// Three rounds until the sender notices a full pipe, one to drain the queue, one to repair (BBR
/// §5.3.1; a CUBIC sender needs one round less).
const SETTLING_ROUNDS: i64 = 5;
/// Of the best round before, by which a transfer shows that it is repairing losses: what comes in a
/// hole, what counts all in all, and what comes again after the hole.
const HOLE: f64 = 0.1;
const FAR_LESS: f64 = 0.7;
const AS_FAST: f64 = 0.9;
/// Makes the median absolute deviation of normal noise its standard deviation (Rousseeuw and Croux
/// 1993).
const NORMAL_SD_PER_MAD: f64 = 1.4826;
/// One slice in 370 of a normal distribution lies outside: few honest slices are left out.
const OUTLIER_SDS: f64 = 3.0;
/// A slice within 5 % of the typical one stays, however flat the rest: among twenty it moves the
/// mean by 0.25 %.
const ALWAYS_ALLOWED: f64 = 0.05;

#[cfg(test)]
mod tests {
    use netaware_stats::rng::SplitMix64;
    use netaware_units::ByteCount;

    use super::*;

    const TICK: Span = Span::from_millis(100);

    /// Slices of 100 ms with these rates in Mbit/s.
    fn series(rates: &[f64]) -> Vec<ReceiverTick> {
        let tick = |(n, rate): (usize, &f64)| ReceiverTick {
            end: TICK * (n as i64 + 1),
            length: TICK,
            bytes: ByteCount((rate * 1e6 / 8.0 * TICK.secs_f64()) as u64),
            streams: 1,
            ..ReceiverTick::default()
        };
        rates.iter().enumerate().map(tick).collect()
    }

    fn mean_after(ticks: &[ReceiverTick], rtt: Span) -> f64 {
        mean_rate(&ticks[slow_start(ticks, rtt).first()..]) / 1e6
    }

    fn then(start: &[f64], rate: f64, n: usize) -> Vec<f64> {
        start.iter().copied().chain(std::iter::repeat_n(rate, n)).collect()
    }

    #[test]
    fn settling_takes_five_loaded_rounds_but_never_more_than_half() {
        let ticks = series(&[40.0; 40]);
        let settled = |end, rtt_ms| settled(end, &ticks, Span::from_millis(rtt_ms));
        let rows = [
            (WarmUpEnd::SlowStartOver(1), 0, WarmUpEnd::SlowStartOver(1)),
            (WarmUpEnd::SlowStartOver(1), 50, WarmUpEnd::SlowStartOver(4)),
            (WarmUpEnd::SlowStartOver(1), 2000, WarmUpEnd::SlowStartOver(20)),
            (WarmUpEnd::SlowStartOver(30), 50, WarmUpEnd::SlowStartOver(30)),
            (WarmUpEnd::NeverEnded, 50, WarmUpEnd::NeverEnded),
            (WarmUpEnd::Asked(2), 50, WarmUpEnd::Asked(2)),
        ];
        for (end, rtt_ms, want) in rows {
            assert_eq!(settled(end, rtt_ms), want, "{end:?} {rtt_ms}");
        }
    }

    #[test]
    fn a_hole_that_slow_starts_overshoot_tore_does_not_pass_for_the_paths_rate() {
        let ramp: Vec<f64> = [1.0, 2.0, 4.0].iter().flat_map(|rate| [*rate; 12]).collect();
        let end = |later: &[(f64, usize)]| {
            let later = later.iter().flat_map(|(rate, n)| std::iter::repeat_n(*rate, *n));
            let ticks = series(&ramp.iter().copied().chain([9.6; 30]).chain(later).collect::<Vec<_>>());
            settled(slow_start(&ticks, TICK * 12), &ticks, TICK * 13)
        };
        // Ten megabits at 1.2 s: what was sent again came at once, and then nothing for a while.
        let repairing = [(0.0, 20), (3.0, 1), (0.0, 10), (19.0, 7), (0.0, 10)];
        assert_eq!(end(&repairing), WarmUpEnd::NeverEnded);
        // A path that became slower does not give back what it had.
        assert!(matches!(end(&[(0.0, 20), (3.0, 28)]), WarmUpEnd::SlowStartOver(_)));
        // Nor is one a hole that goes on at its rate.
        assert!(matches!(end(&[(0.0, 5), (9.6, 43)]), WarmUpEnd::SlowStartOver(_)));
    }

    #[test]
    fn the_end_of_the_warm_up_is_found() {
        let rows: [(&str, Vec<f64>, WarmUpEnd); 9] = [
            ("constant", then(&[], 40.0, 20), WarmUpEnd::SlowStartOver(1)),
            ("doubling", then(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], 40.0, 20), WarmUpEnd::SlowStartOver(7)),
            ("bucket", then(&[5.0, 800.0, 90.0], 40.0, 20), WarmUpEnd::SlowStartOver(3)),
            ("bucket in the first slice", then(&[120.0], 40.0, 20), WarmUpEnd::SlowStartOver(1)),
            ("long bucket", then(&[80.0; 8], 40.0, 20), WarmUpEnd::SlowStartOver(8)),
            (
                "overshoot and hole",
                then(&[10.0, 100.0, 12.0, 20.0, 30.0], 40.0, 20),
                WarmUpEnd::SlowStartOver(5),
            ),
            ("grows to the end", vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0], WarmUpEnd::NeverEnded),
            ("too short", vec![40.0; 3], WarmUpEnd::NeverEnded),
            ("silent", vec![0.0; 20], WarmUpEnd::NeverEnded),
        ];
        for (name, rates, want) in rows {
            assert_eq!(slow_start(&series(&rates), Span::ZERO), want, "{name}");
        }
        assert_eq!(slow_start(&[], TICK), WarmUpEnd::NeverEnded);
    }

    /// 250 kbit/s: slices of 0.4 s, and four streams of which one after the other comes through.
    #[test]
    fn a_slow_path_at_its_full_rate_is_not_still_speeding_up() {
        let rtt = Span::from_millis(48);
        let slow = |rates: &[f64], streams: fn(u16) -> u16| {
            let mut ticks = series(rates);
            for (n, tick) in (0..).zip(&mut ticks) {
                tick.streams = streams(n);
            }
            slow_start(&ticks, rtt)
        };
        assert_eq!(slow(&[0.26, 0.25, 0.23, 0.26], |_| 1), WarmUpEnd::SlowStartOver(1));
        assert_eq!(slow(&[0.26, 0.26, 0.23, 0.26, 0.24], |n| 1 + n), WarmUpEnd::NoneSeen);
        let long = |rates: &[f64]| {
            let ticks = series(rates).into_iter().map(|tick| ReceiverTick {
                end: tick.end * 4,
                length: tick.length * 4,
                bytes: ByteCount(tick.bytes.0 * 4),
                ..tick
            });
            slow_start(&ticks.collect::<Vec<_>>(), rtt)
        };
        assert_eq!(long(&[0.26, 0.23]), WarmUpEnd::NoneSeen);
        assert_eq!(long(&[0.13, 0.23]), WarmUpEnd::NeverEnded, "it grew");
        assert_eq!(long(&[0.26]), WarmUpEnd::NeverEnded, "nothing to compare with");
        assert_eq!(long(&[0.26, 0.0]), WarmUpEnd::NeverEnded, "nothing came any more");
        assert_eq!(slow_start(&series(&[0.26, 0.23]), Span::from_millis(600)), WarmUpEnd::NeverEnded);
        // A plan that is over after one slice, and a queue that drains for a second.
        let drained = |rates: &[f64]| unless_full_at_once(WarmUpEnd::NeverEnded, &series(rates), rtt);
        assert_eq!(drained(&[0.26, 0.25, 0.23, 0.26, 0.25, 0.0]), WarmUpEnd::NoneSeen);
        assert_eq!(drained(&[2.6, 5.2, 10.0, 19.0, 1.0, 0.0]), WarmUpEnd::NeverEnded);
        let over = WarmUpEnd::SlowStartOver(2);
        assert_eq!(unless_full_at_once(over, &series(&[0.26; 5]), rtt), over);
    }

    #[test]
    fn streams_that_wait_in_a_slow_paths_queue_do_not_make_its_warm_up_long() {
        // Slices of 100 ms, in which so many segments have arrived by the end of each, and four
        // streams of which another one comes through every two seconds.
        let ticks = |arrived: fn(i64) -> i64| {
            let tick = |n: i64| ReceiverTick {
                end: TICK * (n + 1),
                length: TICK,
                bytes: ByteCount((arrived(n + 1) - arrived(n)).unsigned_abs() * 1448),
                streams: 1 + (n / 19).min(3) as u16,
                ..ReceiverTick::default()
            };
            (0..78).map(tick).collect::<Vec<_>>()
        };
        let rtt = Span::from_millis(214);
        // A segment every 187.5 ms is 64 kbit/s.
        let slow = ticks(|slices| slices * 1000 / 1875);
        assert_eq!(slow_start(&slow, rtt), WarmUpEnd::NoneSeen);
        assert_eq!(slow_start(&slow, Span::from_secs(2)), WarmUpEnd::NeverEnded, "four round trips");
        // Later streams brought more: a quarter of that for 3 s.
        let grew =
            |slices: i64| if slices < 30 { slices * 1000 / 7500 } else { 4 + (slices - 30) * 1000 / 1875 };
        let grown = slow_start(&ticks(grew), rtt);
        assert!(matches!(grown, WarmUpEnd::SlowStartOver(first) if first > 57), "{grown:?}");
        // A path of 1 Mbit/s holds more than a first window in that round trip.
        let faster = slow_start(&ticks(|slices| slices * 8), rtt);
        assert!(matches!(faster, WarmUpEnd::SlowStartOver(first) if first > 57), "{faster:?}");
    }

    #[test]
    fn only_a_rate_that_grew_is_one_that_grew() {
        assert!(has_grown(&series(&[2.8, 5.3, 7.9, 16.2, 29.1, 50.3, 14.8, 104.7, 135.5, 88.4])));
        assert!(!has_grown(&series(&[0.26, 0.23, 0.26, 0.24])));
        // What is sent again after slow start has overshot.
        assert!(!has_grown(&series(&[4.0, 9.6, 9.6, 9.6, 0.0, 0.0, 3.0, 0.0, 19.0])));
        // Two rounds, of which one grew.
        let both = [series(&[0.26, 0.25]), series(&[1.0, 2.0, 4.0, 8.0])].concat();
        assert!(has_grown(&both));
        assert!(!has_grown(&[]));
        assert!(!has_grown(&series(&[0.26])), "nothing to compare with");
    }

    #[test]
    fn a_path_that_changed_is_no_burst() {
        let changed = then(&[80.0; 15], 40.0, 10);
        assert_eq!(slow_start(&series(&changed), Span::ZERO), WarmUpEnd::SlowStartOver(1));
    }

    #[test]
    fn a_long_round_trip_makes_long_rounds() {
        // One round is five slices; within each the rate is flat, from round to round it doubles.
        let rates: Vec<f64> =
            [2.0, 4.0, 8.0, 16.0, 18.0, 18.0, 18.0, 18.0].iter().flat_map(|r| [*r; 5]).collect();
        assert_eq!(slow_start(&series(&rates), TICK * 5), WarmUpEnd::SlowStartOver(20));
        assert_eq!(full_pipe(&series(&rates), Span::ZERO), Some(1), "slices alone would be fooled");
    }

    #[test]
    fn counting_begins_when_all_streams_have_started() {
        let mut ticks = series(&then(&[10.0; 6], 40.0, 20));
        for tick in &mut ticks[6..] {
            tick.streams = 4;
        }
        assert_eq!(slow_start(&ticks, Span::ZERO), WarmUpEnd::SlowStartOver(7));
    }

    #[test]
    fn shaped_mean_is_within_one_per_cent_of_the_shapers_rate() {
        for seed in 0..200 {
            let mut rng = SplitMix64::new(seed);
            let credit = 1.0 + 20.0 * rng.unit();
            let noise: Vec<f64> = (0..25).map(|_| 40.0 + rng.unit() * 0.8 - 0.4).collect();
            let start = [2.0 + rng.unit(), 40.0 * credit, 40.0 + 30.0 * rng.unit()];
            let rates: Vec<f64> = start.into_iter().chain(noise).collect();
            let mean = mean_after(&series(&rates), Span::from_millis(20));
            assert!((mean - 40.0).abs() < 0.4, "seed {seed}: {mean}");
        }
    }

    #[test]
    fn noise_is_not_mistaken_for_a_transient() {
        let mut off = 0.0;
        for seed in 0..200 {
            let mut rng = SplitMix64::new(seed);
            let rates: Vec<f64> = (0..30).map(|_| 100.0 + 60.0 * (rng.unit() - 0.5)).collect();
            let mean = mean_after(&series(&rates), Span::ZERO);
            let all = rates.iter().sum::<f64>() / 30.0;
            off += (mean - all) / 200.0;
            assert!((mean - all).abs() < 6.0, "seed {seed}: {mean} {all}");
        }
        assert!(off.abs() < 0.5, "leans by {off}");
    }

    #[test]
    fn what_is_asked_for_is_left_out_whole() {
        let ticks = series(&[40.0; 20]);
        let rows = [(0, Some(0)), (100, Some(1)), (150, Some(2)), (1900, Some(19)), (2000, None)];
        for (omit, first) in rows {
            let want = first.map_or(WarmUpEnd::NeverEnded, WarmUpEnd::Asked);
            assert_eq!(asked(&ticks, Span::from_millis(omit)), want, "{omit} ms");
        }
    }

    #[test]
    fn rounds_are_published_with_their_mean_and_the_worst_rule() {
        let ticks = series(&[40.0; 20]);
        let ends = [WarmUpEnd::SlowStartOver(2), WarmUpEnd::SlowStartOver(4)];
        let both = published(ends.map(|end| (&ticks[..], end))).unwrap();
        assert_eq!((both.omitted, both.rule.as_str()), (TICK * 3, "slow start over"));
        let one = published([(&ticks[..], ends[0]), (&ticks[..], WarmUpEnd::NeverEnded)]).unwrap();
        assert_eq!((one.omitted, one.rule.as_str()), (TICK, "never ended"));
        assert_eq!(published([]), None);
        let silent = (&ticks[..0], WarmUpEnd::NeverEnded);
        assert_eq!(published([silent]), None, "no slice is no warm-up of 0 s");
    }

    #[test]
    fn slow_start_may_pause_for_two_rounds_and_not_for_three() {
        let rows = [
            ("two", then(&[1.0, 2.0, 2.2, 2.2, 5.0, 10.0, 20.0], 40.0, 20), WarmUpEnd::SlowStartOver(8)),
            // Then it is over, and the slices go that are unlike the second half.
            ("three", then(&[1.0, 2.0, 2.2, 2.2, 2.2], 40.0, 20), WarmUpEnd::SlowStartOver(5)),
        ];
        for (pauses, rates, want) in rows {
            assert_eq!(slow_start(&series(&rates), Span::ZERO), want, "{pauses}");
        }
    }

    #[test]
    fn a_slice_stays_within_three_deviations_of_the_second_half_or_a_twentieth_of_it() {
        // Of 90, 100 and 110 the median deviation is 10; three standard deviations of such noise
        // are 44.5.
        let before_noise = |rate: f64| [vec![rate; 3], [90.0, 100.0, 110.0].repeat(4)].concat();
        let rows = [
            (then(&[40.0, 42.0, 42.0], 40.0, 20), 1),
            (then(&[40.0, 42.1, 42.1], 40.0, 20), 3),
            (before_noise(144.0), 1),
            (before_noise(145.0), 3),
            // As many as half of all may go, and the second half alone says what is typical.
            (then(&[80.0; 11], 40.0, 10), 11),
            (then(&[80.0; 12], 40.0, 10), 1),
        ];
        for (rates, want) in rows {
            let found = slow_start(&series(&rates), Span::ZERO);
            assert_eq!(found, WarmUpEnd::SlowStartOver(want), "{rates:?}");
        }
    }
}

//! Which way queues, from the clock of a host that answers ICMP timestamps.
//!
//! **Measures**, for each way, how much longer packets took than the fastest of all: the host's
//! receive stamp less our departure, and our arrival less its transmit stamp, each less its least.
//! The offset of the clocks drops out of that; their drift is taken off as the slope under which
//! both ways together leave the most to their least delays, since a drift lengthens one way by what
//! it shortens the other. **Assumes** that the clock runs evenly while it is looked at, and that
//! each way was free once. **Biased**: stamps are whole milliseconds (or coarser, which is seen by
//! what all of them are multiples of), so a queue reads low by up to one such step and one of less
//! than two steps is not called one; a standing queue is not seen at all; a queue that grows as
//! slowly as clocks drift is told by preferring no drift. **Published**: RFC 792 (the stamps);
//! Moon, Skelly, Towsley, "Estimation and removal of clock skew from network delay measurements",
//! INFOCOM 1999 (a line under all delays). Where we differ: one line for both ways at once, and
//! none where it explains less than a step.
//!
//! What a host writes into its stamps is up to it: nothing is believed before it is seen that the
//! clock moved as ours did.

use netaware_stats::quantile;
use netaware_units::{Mono, Span};

use crate::hops::HostStamps;

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampSample {
    /// When the question left here.
    pub sent_at: Mono,
    /// When the answer came here.
    pub at: Mono,
    /// What it says.
    pub stamps: HostStamps,
}

/// How long packets waited on one way beyond the fastest, in whole steps of the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WayQueue {
    /// Of half of the packets.
    pub median: Span,
    /// Of nine in ten.
    pub p90: Span,
    /// Of all.
    pub max: Span,
}

/// Both ways.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WayQueues {
    /// There.
    pub forward: WayQueue,
    /// Back.
    pub reverse: WayQueue,
    /// Step of the host's clock, 1 ms or coarser.
    pub resolution: Span,
    /// From the host's receive stamp to its transmit stamp, median.
    pub held: Span,
    /// How much faster than ours the host's clock ran, parts per million; absent where it explains
    /// less than a step.
    pub drift_ppm: Option<f64>,
    /// The clock was set meanwhile: only what lies on one side of that was looked at.
    pub stepped: bool,
    /// Answers looked at.
    pub samples: u32,
}

/// What the stamps are worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HostClock {
    /// They tell the ways apart.
    Believed(WayQueues),
    /// Too few answers to see whether the clock moves as ours does.
    Few,
    /// They have the bytes of each number in the wrong order.
    LittleEndian,
    /// Marked as not being milliseconds since midnight.
    NonStandard,
    /// The clock does not move as ours does: it stands still, jumps, or was never one.
    Unsteady,
    /// It moved by less than a round trip takes, or both ways were never free at once: a queue on
    /// one way cannot be told from a clock that was set.
    Ambiguous,
}

impl WayQueue {
    /// Whether there was a queue: nine tenths of what a clock of whole steps shows without one is
    /// below two steps.
    pub fn is_queue(&self, resolution: Span) -> bool {
        self.p90 >= resolution * 2
    }

    /// From what packets took beyond the fastest, ns.
    fn of(mut excess: Vec<f64>, resolution: Span) -> Option<Self> {
        excess.sort_unstable_by(f64::total_cmp);
        let step = resolution.nanos() as f64;
        // What is read is the queue and up to a step: rounding down tells no queue where there is
        // none.
        let at = |q| quantile::linear(&excess, q).map(|ns: f64| resolution * (ns / step).floor() as i64);
        Some(Self { median: at(0.5)?, p90: at(0.9)?, max: at(1.0)? })
    }
}

impl HostClock {
    /// Judges the answers, in the order of asking.
    pub fn of(samples: &[StampSample]) -> Self {
        if samples.len() < LEAST_SAMPLES {
            return Self::Few;
        }
        let as_sent = Reading::all(samples, |stamp| stamp);
        let (run, whole) = longest_run(&as_sent);
        if is_enough(run, samples) {
            return Self::told(run, !whole);
        }
        if is_enough(longest_run(&Reading::all(samples, u32::swap_bytes)).0, samples) {
            return Self::LittleEndian;
        }
        let marked =
            |sample: &&StampSample| (sample.stamps.receive | sample.stamps.transmit) & NON_STANDARD != 0;
        if samples.iter().filter(marked).count() * 2 > samples.len() {
            Self::NonStandard
        } else {
            Self::Unsteady
        }
    }

    fn told(run: &[Reading], stepped: bool) -> Self {
        let resolution = resolution(run);
        let drift = drift(run, resolution);
        let (forward, reverse) = delays(run, drift);
        let (least_forward, least_reverse) = (least(&forward), least(&reverse));
        let both = forward.iter().zip(&reverse).map(|(f, r)| f + r).fold(f64::INFINITY, f64::min);
        let never_together = both - least_forward - least_reverse;
        let excess = |of: Vec<f64>, least: f64| of.into_iter().map(|ns| ns - least).collect();
        let forward = WayQueue::of(excess(forward, least_forward), resolution);
        let reverse = WayQueue::of(excess(reverse, least_reverse), resolution);
        let mut held: Vec<f64> = run.iter().map(|it| it.held as f64).collect();
        let held = quantile::median_in_place(&mut held);
        let (Some(forward), Some(reverse), Some(held)) = (forward, reverse, held) else { return Self::Few };
        let largest = forward.p90.max(reverse.p90).nanos() as f64;
        if never_together > (resolution * 3).nanos() as f64 && never_together * 2.0 > largest {
            return Self::Ambiguous;
        }
        Self::Believed(WayQueues {
            forward,
            reverse,
            resolution,
            held: Span(held as i64),
            drift_ppm: (drift != 0.0).then_some(drift * 1e6),
            stepped,
            samples: run.len() as u32,
        })
    }
}

/// A sample whose stamps could be a time of day, by what it says of each way; ns, from an arbitrary
/// zero each.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Since the first question.
    sent: i64,
    rtt: i64,
    forward: i64,
    reverse: i64,
    held: i64,
}

impl Reading {
    /// What can be read, the offset of the first taken off; a day begins anew at midnight.
    fn all(samples: &[StampSample], read: impl Fn(u32) -> u32) -> Vec<Self> {
        let Some(first) = samples.first() else { return Vec::new() };
        let mut zero: Option<(i64, i64)> = None;
        let mut readings = Vec::with_capacity(samples.len());
        for sample in samples {
            let (receive, transmit) = (read(sample.stamps.receive), read(sample.stamps.transmit));
            if receive >= MILLIS_OF_A_DAY || transmit >= MILLIS_OF_A_DAY {
                continue;
            }
            let (receive, transmit) = (i64::from(receive) * MILLI, i64::from(transmit) * MILLI);
            let (sent, at) = ((sample.sent_at - first.sent_at).nanos(), (sample.at - first.sent_at).nanos());
            let (forward, reverse) = (receive.saturating_sub(sent), at.saturating_sub(transmit));
            let (f, r) = *zero.get_or_insert((forward, reverse));
            readings.push(Self {
                sent,
                rtt: at.saturating_sub(sent),
                forward: of_a_day(forward.saturating_sub(f)),
                reverse: of_a_day(reverse.saturating_sub(r)),
                held: of_a_day(transmit - receive),
            });
        }
        readings
    }

    /// A host cannot answer before it is asked, nor later than its answer comes.
    fn is_possible(&self) -> bool {
        (0..=self.rtt.saturating_add(2 * MILLI)).contains(&self.held)
    }

    /// Whether one clock can have shown both: no way takes less than nothing, nor longer than both
    /// together.
    fn agrees_with(&self, other: &Self) -> bool {
        let slack = COARSEST + ((self.sent - other.sent).abs() as f64 * MOST_DRIFT) as i64;
        let range = -other.rtt.saturating_add(slack)..=self.rtt.saturating_add(slack);
        let (there, back) = (self.forward - other.forward, self.reverse - other.reverse);
        range.contains(&there) && range.contains(&back)
    }
}

/// Between minus and plus half a day.
fn of_a_day(ns: i64) -> i64 {
    let (day, half) = (i64::from(MILLIS_OF_A_DAY) * MILLI, i64::from(MILLIS_OF_A_DAY) * MILLI / 2);
    (ns.saturating_add(half)).rem_euclid(day) - half
}

/// The most readings in a row that one clock can have shown, and whether those are all.
fn longest_run(readings: &[Reading]) -> (&[Reading], bool) {
    let (mut best, mut begin) = (0..0, 0);
    for end in 0..readings.len() {
        let fits = readings[end].is_possible() && readings[end].agrees_with(&readings[begin]);
        if !fits {
            begin = if readings[end].is_possible() { end } else { end + 1 };
        }
        if end + 1 > begin && end + 1 - begin > best.len() {
            best = begin..end + 1;
        }
        if begin >= readings.len() {
            break;
        }
    }
    let whole = best.len() == readings.len();
    (&readings[best], whole)
}

fn is_enough(run: &[Reading], samples: &[StampSample]) -> bool {
    run.len() >= LEAST_SAMPLES && run.len() * 2 > samples.len()
}

/// What all stamps are multiples of: hosts whose clock ticks more slowly than once a millisecond.
fn resolution(run: &[Reading]) -> Span {
    let Some(first) = run.first() else { return Span(MILLI) };
    // The stamps again, from that of the first: forward delay and departure add up to it, in whole
    // milliseconds.
    let stamp = |reading: &Reading| reading.forward + reading.sent - first.forward - first.sent;
    let all = run.iter().flat_map(|reading| [stamp(reading), reading.held]);
    let ticks = all.map(|ns| (ns as f64 / MILLI as f64).round().abs() as u64).fold(0, gcd);
    Span(MILLI * (ticks.clamp(1, 1_000) as i64))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How much faster the host's clock runs, as a share; 0 where that explains less than a step.
fn drift(run: &[Reading], resolution: Span) -> f64 {
    let gained = |drift: f64| {
        let (forward, reverse) = delays(run, drift);
        least(&forward) + least(&reverse)
    };
    // Concave in the drift: the sum of two minima of linear functions.
    let (mut lo, mut hi) = (-MOST_DRIFT, MOST_DRIFT);
    for _ in 0..SEARCH_STEPS {
        let third = (hi - lo) / 3.0;
        if gained(lo + third) < gained(hi - third) { lo += third } else { hi -= third }
    }
    let most = f64::midpoint(lo, hi);
    let (none, all) = (gained(0.0), gained(most));
    if all - none <= resolution.nanos() as f64 {
        return 0.0;
    }
    // Of all that explain as much the least: the rest may be a queue that grows.
    let (mut short, mut enough) = (0.0, most);
    for _ in 0..SEARCH_STEPS {
        let middle = f64::midpoint(short, enough);
        if gained(middle) >= all - 1.0 { enough = middle } else { short = middle }
    }
    enough
}

/// Delays there and back without the drift.
fn delays(run: &[Reading], drift: f64) -> (Vec<f64>, Vec<f64>) {
    let of = |reading: &Reading| {
        let gained = reading.sent as f64 * drift;
        (reading.forward as f64 - gained, reading.reverse as f64 + gained)
    };
    run.iter().map(of).unzip()
}

fn least(of: &[f64]) -> f64 {
    of.iter().copied().fold(f64::INFINITY, f64::min)
}

const MILLI: i64 = 1_000_000;
const MILLIS_OF_A_DAY: u32 = 86_400_000;
/// RFC 792: set in a stamp that is something else.
const NON_STANDARD: u32 = 1 << 31;
/// Nothing that keeps time is worse; NTP steers by half of it at most.
const MOST_DRIFT: f64 = 1e-3;
/// Clocks that tick more slowly cannot be told from such that jump.
const COARSEST: i64 = 20 * MILLI;
const LEAST_SAMPLES: usize = 8;
const SEARCH_STEPS: usize = 60;

#[cfg(test)]
mod tests;

//! Maximum IP-layer capacity: fill the path and count what arrives (RFC 9097, ITU-T Y.1540 Annex B,
//! TR-471).
//!
//! **Measures** the highest receive rate of any sub-interval of a load search over UDP. **Assumes**
//! that the path may be filled: `max_load` must be near 1, for otherwise the search has to rest
//! after each step and hardly climbs in its time. **Biased**: it is what this flow gets, cross
//! traffic that yields or that is pushed aside counted in; on a first-in-first-out link more than
//! the available bandwidth, C R / (R + X), and the capacity only where there is no other traffic.
//! **Published**: RFC 9097 §8 with its Appendix A (type B) and the multiplicative type C of
//! OB-UDPST, thresholds as there. Where we differ: each feedback interval is a volley, and no
//! packet leaves while its report travels, so a queue drains a little between steps; a sub-interval
//! is twenty volleys, begins with any of them, and its rate is that over their own times, pauses
//! apart; delay variation is one-way; rows go on above 10 Gbit/s by 1 Gbit/s.

mod load;
#[cfg(test)]
mod tests;

use netaware_stats::interval::Interval;
use netaware_units::{Mono, Span};

use crate::available::budget::Budget;
use crate::available::sender::Sender;
use crate::{
    Bound, Estimate, Estimator, Flag, Gaps, Instrument, Needs, Step, Train, TrainReport, Volley, VolleyReport,
};

pub use load::Search;
use load::{Feedback, LoadSearch, rate_of};

/// The estimator.
#[derive(Debug, Clone)]
pub struct Maximum {
    sender: Sender,
    budget: Budget,
    load: LoadSearch,
    /// Least difference of the clocks so far, ns.
    least: Option<i128>,
    asked: Volley,
    /// Those of which anything came.
    volleys: Vec<VolleySeen>,
    sent: u64,
    arrived: u64,
    /// Whether the host could not send as fast as it should.
    host_limited: bool,
    over: bool,
}

impl Maximum {
    /// What a first figure needs.
    pub const NEEDS: Needs = Needs { packets: 100, train: 3, rounds: 25 };

    /// The longest that it takes by itself on a path like this.
    pub fn longest(instrument: &Instrument) -> Span {
        instrument.longest(LONGEST, Self::NEEDS.packets, Self::NEEDS.rounds)
    }

    /// For hosts like these, by this search. It takes 10 s, or what the instrument allows if that
    /// is less.
    pub fn new(instrument: &Instrument, search: Search) -> Self {
        let sender = Sender::new(instrument);
        let top = load::highest_row(sender.fastest);
        Self {
            budget: Budget::new(instrument, Self::longest(instrument)),
            sender,
            load: LoadSearch::new(search, top),
            least: None,
            asked: Volley::default(),
            volleys: Vec::new(),
            sent: 0,
            arrived: 0,
            host_limited: false,
            over: false,
        }
    }

    /// The same where a credit is so small that each volley spends it anew: the second halves of
    /// volleys that are held back come well below the best sub-interval, and all alike.
    fn credit_of_each(&self) -> Option<(f64, f64)> {
        let peak = self.best()?.rate;
        let held = self.volleys.iter().filter(|it| it.held_back);
        let tails: Vec<f64> = held.filter_map(|it| it.tail).collect();
        let quantile = |at: f64| {
            let mut sorted = tails.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            netaware_stats::quantile::linear(&sorted, at)
        };
        let (low, middle, high) = (quantile(0.25)?, quantile(0.5)?, quantile(0.75)?);
        let is_one_rate = tails.len() >= FEWEST_HELD && high - low < ALIKE * middle;
        (is_one_rate && peak > EACH * middle).then_some((peak, middle))
    }

    /// What passed at first and what lasts, bit/s, where a credit is spent: volleys that the path
    /// holds back by then come well below the best sub-interval. On a link without credit they come
    /// at its rate. Credit grows in the pauses, so these count.
    fn two_modes(&self) -> Option<(f64, f64)> {
        let peak = self.best()?.rate;
        let later = &self.volleys[self.volleys.len() / 2..];
        let held: Vec<f64> = later.iter().filter(|it| it.held_back).map(VolleySeen::rate).collect();
        let within = netaware_stats::quantile::median(&held).filter(|_| held.len() >= FEWEST_HELD)?;
        let with_pauses: Vec<f64> = later
            .windows(2)
            .filter(|pair| pair[0].held_back && pair[1].begin > pair[0].begin)
            .map(|pair| pair[0].bits * 1e9 / (i128::from(pair[1].begin) - i128::from(pair[0].begin)) as f64)
            .collect();
        let lasts = netaware_stats::quantile::median(&with_pauses)?;
        (peak > SPENT * within).then_some((peak, lasts))
    }

    /// The sub-interval with the highest receive rate. One may begin with any volley. Before the
    /// first is over, what there is of it.
    fn best(&self) -> Option<SubInterval> {
        let whole = self.volleys.windows(SUB_INTERVAL).map(SubInterval::of);
        let part = (!self.volleys.is_empty()).then(|| SubInterval::of(&self.volleys));
        whole.max_by(|one, other| one.rate.total_cmp(&other.rate)).or(part)
    }

    fn compose(&self) -> Volley {
        let rate = rate_of(self.load.row()).min(self.sender.fastest);
        let gap = self.sender.bits() / rate;
        let packets = (FEEDBACK.secs_f64() / gap).ceil().clamp(2.0, MOST_PACKETS) as u32;
        let longest = self.sender.longest;
        let trains = (0..packets.div_ceil(longest)).map(|number| {
            let count = longest.min(packets - number * longest);
            // The next one goes on as if it were the same.
            let rest = if number == 0 { Span::ZERO } else { Span::from_secs_f64(gap) };
            self.sender.train(rate, count, rest)
        });
        Volley { trains: trains.collect() }
    }

    fn take_volley(&mut self, asked: &Volley, report: &VolleyReport) {
        let mut seen = Seen::default();
        for (train, report) in asked.trains.iter().zip(&report.trains) {
            seen.add(train, report);
        }
        self.sent += seen.sent;
        self.arrived += seen.arrived;
        self.least = [self.least, seen.least].into_iter().flatten().min();
        let spread = self.least.zip(seen.highest).map_or(0, |(least, highest)| highest - least);
        let feedback = Feedback {
            errors: seen.sent - seen.arrived.min(seen.sent) + seen.reordered,
            delay_variation: Span(i64::try_from(spread).unwrap_or(i64::MAX)),
        };
        let is_congested = self.load.take(&feedback);
        if let Some((bits, seconds)) = seen.received() {
            self.budget.saw(bits / seconds, seen.arrived as f64);
            // A queue that the pauses empty again holds the packets up all the same.
            let held_back = seen.rate().is_some_and(|sent| bits / seconds < FULL * sent);
            let begin = seen.arrivals.map_or(0, |(first, _)| first);
            let tail = seen.tail();
            self.volleys.push(VolleySeen { bits, seconds, begin, held_back, is_congested, tail });
        }
        self.host_limited |= seen.rate().is_some_and(|rate| rate < 0.9 * planned(asked));
    }

    fn estimate(&self, best: SubInterval) -> Estimate {
        let mut flags = Vec::new();
        let at_top = self.load.is_at_top() && !best.is_limited;
        if at_top || self.host_limited {
            flags.push(Flag::HostLimited);
        }
        let lost = 1.0 - self.arrived as f64 / self.sent.max(1) as f64;
        if lost > LOSS_LIMIT {
            flags.push(Flag::Lossy(lost));
        }
        if self.volleys.len() < SUB_INTERVAL {
            flags.push(Flag::CutShort);
        }
        let modes = self.two_modes().or_else(|| self.credit_of_each());
        flags.extend(modes.map(|(peak, _)| Flag::Shaped { peak }));
        let rate = modes.map_or(best.rate, |(_, lasts)| lasts);
        // The rate that passed while more was sent. The mean is lower, because some volleys were
        // sent more slowly.
        let filled = best.filled.filter(|_| modes.is_none()).unwrap_or(rate);
        // Within a sub-interval the rate is counted, not estimated: what errs are the ends of
        // twenty volleys.
        let (lo, hi) = (rate * 0.98, rate.max(filled) * 1.02);
        Estimate {
            rate: Interval { estimate: rate, lo, hi, confidence: CONFIDENCE },
            bound: if best.is_limited || modes.is_some() { Bound::None } else { Bound::AtLeast },
            method: "maximum-capacity",
            bytes: self.budget.bytes,
            packets: self.budget.packets,
            took: self.budget.took(),
            flags,
        }
    }
}

/// Twenty volleys in a row.
#[derive(Debug, Clone, Copy)]
struct SubInterval {
    /// Mean receive rate, pauses apart, bit/s.
    rate: f64,
    /// Whether the path was the limit. One volley that a busy host held up does not prove it. While
    /// the search still climbs, the rate is only a lower bound.
    is_limited: bool,
    /// Median rate of the volleys that the path held back, bit/s.
    filled: Option<f64>,
}

impl SubInterval {
    fn of(volleys: &[VolleySeen]) -> Self {
        let bits: f64 = volleys.iter().map(|it| it.bits).sum();
        let limited = volleys.iter().filter(|it| it.held_back || it.is_congested).count();
        let held: Vec<f64> = volleys.iter().filter(|it| it.held_back).map(VolleySeen::rate).collect();
        Self {
            rate: bits / volleys.iter().map(|it| it.seconds).sum::<f64>(),
            is_limited: limited >= FEWEST_LIMITED,
            filled: netaware_stats::quantile::median(&held),
        }
    }
}

/// What came of one volley.
#[derive(Debug, Clone, Copy)]
struct VolleySeen {
    /// That arrived, the first packet's apart.
    bits: f64,
    /// From the first arrival to the last.
    seconds: f64,
    /// Its first arrival, by the receiver's clock, ns.
    begin: i64,
    /// Whether the path took less than it was sent.
    held_back: bool,
    /// Whether the search called it congested: for its losses or its delays.
    is_congested: bool,
    /// Rate of its second half, bit/s.
    tail: Option<f64>,
}

impl VolleySeen {
    /// bit/s.
    fn rate(&self) -> f64 {
        self.bits / self.seconds
    }
}

/// Counts over the trains of one volley.
#[derive(Debug, Clone, Default)]
struct Seen {
    sent: u64,
    arrived: u64,
    reordered: u64,
    least: Option<i128>,
    highest: Option<i128>,
    bits: f64,
    sent_bits: f64,
    arrivals: Option<(i64, i64)>,
    sends: Option<(i64, i64)>,
    /// When each packet came.
    came: Vec<i64>,
}

impl Seen {
    fn add(&mut self, train: &Train, report: &TrainReport) {
        let bits = f64::from(train.length) * 8.0;
        let mut highest = None;
        for arrival in &report.arrivals {
            let Some(Some(sent)) = report.sent.get(arrival.number as usize) else { continue };
            let delay = i128::from(arrival.at) - i128::from(*sent);
            self.arrived += 1;
            self.reordered += u64::from(highest.is_some_and(|highest| arrival.number < highest));
            highest = highest.max(Some(arrival.number));
            self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
            self.highest = Some(self.highest.map_or(delay, |highest| highest.max(delay)));
            self.bits += bits;
            self.arrivals = Some(widened(self.arrivals, arrival.at));
            self.came.push(arrival.at);
        }
        for sent in report.sent.iter().flatten() {
            self.sent += 1;
            self.sent_bits += bits;
            self.sends = Some(widened(self.sends, *sent));
        }
    }

    /// Bits and seconds from the first arrival to the last, the first packet's bits apart.
    /// Rate at which its second half came, bit/s.
    fn tail(&self) -> Option<f64> {
        let last = self.came.last().filter(|_| self.came.len() >= FEWEST_IN_TAIL)?;
        let half = self.came.len() / 2;
        let lasted = last.checked_sub(self.came[half]).filter(|lasted| *lasted > 0)?;
        let bits = self.bits / self.came.len() as f64 * (self.came.len() - 1 - half) as f64;
        Some(bits * 1e9 / lasted as f64)
    }

    fn received(&self) -> Option<(f64, f64)> {
        let (first, last) = self.arrivals?;
        let seconds = (i128::from(last) - i128::from(first)) as f64 / 1e9;
        let one = self.bits / self.arrived.max(1) as f64;
        // Handed over at once: the time of sending is the least that it took.
        let seconds = seconds.max(0.8 * self.seconds_sent());
        (seconds > 0.0 && self.arrived > 1).then_some((self.bits - one, seconds))
    }

    fn seconds_sent(&self) -> f64 {
        self.sends.map_or(0.0, |(first, last)| (i128::from(last) - i128::from(first)) as f64 / 1e9)
    }

    /// bit/s as sent.
    fn rate(&self) -> Option<f64> {
        let seconds = self.seconds_sent();
        let one = self.sent_bits / self.sent.max(1) as f64;
        (seconds > 0.0).then(|| (self.sent_bits - one) / seconds)
    }
}

fn widened(ends: Option<(i64, i64)>, at: i64) -> (i64, i64) {
    ends.map_or((at, at), |(first, last)| (first.min(at), last.max(at)))
}

fn planned(volley: &Volley) -> f64 {
    volley.trains.first().map_or(0.0, |train| match train.gaps {
        Gaps::Even(ps) if ps > 0 => f64::from(train.length) * 8e12 / ps as f64,
        _ => 0.0,
    })
}

impl Estimator for Maximum {
    fn next(&mut self, now: Mono) -> Step {
        self.budget.begin(now);
        if self.over {
            return Step::Done;
        }
        let volley = self.compose();
        let Some(due) = self.budget.due(now, &volley, &self.sender) else {
            self.over = true;
            return Step::Done;
        };
        self.budget.charge(&volley);
        self.asked = volley.clone();
        Step::Volley { volley, due }
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, _took: Span) {
        self.budget.heard(now);
        let asked = std::mem::take(&mut self.asked);
        self.take_volley(&asked, report);
    }

    fn answer(&self) -> Option<Estimate> {
        self.best().map(|best| self.estimate(best))
    }
}

const LONGEST: Span = Span::from_secs(10);
/// Between two reports.
const FEEDBACK: Span = Span::from_millis(50);
/// Volleys of a sub-interval: one second.
const SUB_INTERVAL: usize = 20;
/// Packets of a volley, whatever the row.
const MOST_PACKETS: f64 = 500_000.0;
/// What arrives at less than this share of the rate it left at met a full link.
const FULL: f64 = 0.95;
/// The best of a second over what lasts, where it lived on a credit.
const SPENT: f64 = 1.2;
/// Volleys of a sub-interval that the path limited, if it was the limit: a search that swings about
/// the limit is beyond it in one of three.
const FEWEST_LIMITED: usize = 5;
/// Volleys that tell what lasts.
const FEWEST_HELD: usize = 5;
const LOSS_LIMIT: f64 = 0.1;
/// Packets of a volley whose second half has a rate.
const FEWEST_IN_TAIL: usize = 12;
/// Second halves that differ by less than this share are of one rate; half of them.
const ALIKE: f64 = 0.05;
/// A best sub-interval above this many times that has lived on credit.
const EACH: f64 = 1.08;
const CONFIDENCE: f64 = 0.95;

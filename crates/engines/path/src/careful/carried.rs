//! What the path was seen to carry: the fastest of the rates at which trains came lately.
//!
//! A train says something about that if it came faster than what is known, or if it was held up:
//! one that came as slowly as it left says nothing. A longer train that was held up says more than
//! a short one, which a bucket's credit may have paid for. Where a good deal is lost, it counts how
//! much came altogether: see [`Held`]. If several trains in a row come whole but far more slowly
//! than what is known, the path has become slower, and what was known before is forgotten at once.

use netaware_units::{Mono, Span};

use super::transit::Transits;
use crate::{Train, TrainReport, Volley, VolleyReport};

/// The rates.
#[derive(Debug, Clone, Default)]
pub(super) struct Carried {
    /// The newest last.
    lately: Vec<Seen>,
    period: Period,
    held: Option<Held>,
    /// When the last packet that came left, ns, and whether those behind it are lost so far.
    came_at: Option<i64>,
    is_losing: bool,
    /// They were when the present period began.
    goes_on: bool,
    /// The last period lost much in one stretch.
    is_excused: bool,
    /// The fastest of what was known so far, bit/s; what it carries now if it became slower.
    usual: f64,
    slow: Option<Slow>,
    fell: Option<Fell>,
    /// bit/s at which the last volley came, if all that it says is that the path is far slower.
    slow_now: Option<f64>,
    /// Shortest one-way delay so far, ns, of two clocks without a common origin.
    least_delay: Option<i64>,
}

/// Trains in a row that waited for the path, and came far more slowly than what is known: not one
/// of them as fast as that.
#[derive(Debug, Clone, Copy)]
struct Slow {
    trains: u32,
    /// When the first and the last of them began to leave, ns.
    sent: (i64, i64),
    /// When their first packet and their last one came, ns.
    came: (i64, i64),
    fastest: Seen,
}

/// The path carries far less than it did.
#[derive(Debug, Clone, Copy)]
struct Fell {
    /// bit/s that it carried before.
    from: f64,
    at: Mono,
    /// When the first train that came so slowly left, ns.
    since: i64,
}

/// A train, or a whole volley, and how fast it came.
#[derive(Debug, Clone, Copy)]
struct Seen {
    packets: f64,
    /// bit/s.
    rate: f64,
}

/// What comes in the long run of what is sent, where much is lost. Nobody knows whether a policer
/// drops what is too much, or chance drops what it likes. So less is sent, no more than came, and
/// then more again as long as the share that is lost stays what it was when least was lost: loss by
/// chance does not grow with the rate, that of a policer does.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// bit/s that may be sent.
    rate: f64,
    /// Least share that was lost in a period, 0..=1.
    least: f64,
    /// Share that was lost at first, 0..=1.
    first: f64,
    /// Bits that were sent since then, and what of that was lost.
    sent: f64,
    lost: f64,
    /// A period of many packets lost much less than the first.
    fell: bool,
}

/// What was sent and what came since the last judgement, bits.
#[derive(Debug, Clone, Copy, Default)]
struct Period {
    since: Option<Mono>,
    sent: f64,
    came: f64,
    packets: u32,
    /// Stretches of packets in a row that were lost, and how long before the last packet of one
    /// something came at last, ns.
    stretches: u32,
    longest: i64,
    /// Packets that were lost.
    missing: u32,
}

impl Carried {
    /// What may be sent in the long run, bit/s; `None` before anything came.
    pub(super) fn rate(&self) -> Option<f64> {
        let fastest = self.fastest()?;
        Some(self.held.map_or(fastest, |held| held.rate.min(fastest)))
    }

    /// What came of long trains, whatever was lost, bit/s.
    pub(super) fn fastest(&self) -> Option<f64> {
        let longest = self.lately.iter().map(|seen| seen.packets).fold(0.0, f64::max);
        let long = self.lately.iter().filter(|seen| seen.packets * LONG_ENOUGH >= longest);
        long.map(|seen| seen.rate).reduce(f64::max)
    }

    /// What the path lets through in the long run, bit/s, where it was seen that it loses much less
    /// of less.
    pub(super) fn policed(&self) -> Option<f64> {
        let held = self.held?;
        let is_less = held.sent > 0.0 && held.lost < FELL * held.first * held.sent;
        (held.fell || is_less).then_some(held.rate)
    }

    /// When the path became far slower than first trains found it, if it still is.
    pub(super) fn fell_at(&self) -> Option<Mono> {
        self.fell.map(|fell| fell.at)
    }

    /// bit/s that the path carries now, where the last volley came far more slowly than the path is
    /// known to carry, or the path has become slower for good.
    pub(super) fn slower(&self) -> Option<f64> {
        let slow = self.slow_now.or_else(|| self.fell.and(self.fastest()))?;
        Some(self.held.map_or(slow, |held| held.rate.min(slow)))
    }

    /// bit/s that the path carried before it became far slower, and now, if it still is and trains
    /// are evidence of it. Where packets are held up and come at once then, as with jitter that
    /// keeps their order, some trains come as fast as a link behind that, and some far more slowly.
    /// Their transits, from the first departure to the last arrival, show neither.
    pub(super) fn fell(&self, transits: &Transits) -> Option<(f64, f64)> {
        let (fell, to) = (self.fell?, self.fastest()?);
        let from = transits.fastest_before(fell.since).map_or(fell.from, |seen| fell.from.min(seen));
        let to = transits.fastest_from(fell.since).map_or(to, |seen| to.max(seen));
        (to < FAR_BELOW * from).then_some((from, to))
    }

    /// The same of the last trains of all: where they ended the measurement they are too near to
    /// each other to count as a slower path, and nothing that came after them says otherwise. So
    /// it is the time in which they came that counts.
    pub(super) fn slow_at_the_end(&self, transits: &Transits) -> Option<(f64, f64)> {
        let slow = self.slow.filter(|_| self.slow_now.is_some())?;
        let came_for = slow.came.1.saturating_sub(slow.came.0) as f64 / 1e9;
        if slow.trains < SLOW_TRAINS || came_for < SLOW_COMES {
            return None;
        }
        let from = transits.fastest_before(slow.sent.0).map_or(self.usual, |seen| self.usual.min(seen));
        let rate = slow.fastest.rate;
        let to = transits.fastest_from(slow.sent.0).map_or(rate, |seen| rate.max(seen));
        (to < FAR_BELOW * from).then_some((from, to))
    }

    /// What was lost so far was lost to a queue that was too short for a train, and says nothing of
    /// the rate.
    pub(super) fn forget_loss(&mut self) {
        (self.held, self.period) = (None, Period::default());
    }

    /// A first train of so many packets came at this rate, bit/s.
    pub(super) fn saw_first(&mut self, packets: u32, rate: f64) {
        if rate.is_finite() && rate > 0.0 {
            self.lately.push(Seen { packets: f64::from(packets), rate });
        }
    }

    /// What became of a volley of which is known now.
    pub(super) fn observe(&mut self, now: Mono, asked: &Volley, report: &VolleyReport) {
        self.slow_now = None;
        let delays = report.trains.iter().flat_map(delays);
        self.least_delay = delays.chain(self.least_delay).min();
        for (train, report) in asked.trains.iter().zip(&report.trains) {
            if let Some((came, left)) = rates(train, report) {
                self.watch(now, report, came, left);
                self.saw(report.arrivals.len(), came, left);
            }
        }
        if let Some((packets, came, left)) = of_all(asked, report) {
            // All of its trains together filled a queue.
            if came < HELD_UP * left {
                self.saw(packets, came, left);
            }
        }
    }

    /// Whether the path has become far slower, or is as fast as before again. What is remembered of
    /// a faster path would otherwise be believed until as many trains have come as are remembered,
    /// and if these are short, for ever.
    fn watch(&mut self, now: Mono, report: &TrainReport, came: f64, left: f64) {
        if self.fell.is_some_and(|fell| came > FAR_BELOW * fell.from) {
            self.fell = None;
        }
        // Where packets overtake each other, as over links that take turns, a train comes over as
        // long as the links' delays differ by, and that is no rate.
        if is_taken_apart(report) {
            return;
        }
        // A long train is believed rather than short ones, and makes what is known its own rate.
        self.usual = self.fastest().unwrap_or(0.0).max(self.usual);
        let known = self.usual;
        if came >= FAR_BELOW * known {
            (self.slow, self.slow_now) = (None, None);
            return;
        }
        // A train gets this share, or more, of a link that others fill.
        let share = known * left / (known + left).max(1.0);
        // A train that left as slowly says nothing.
        if came >= UNEXPLAINED * share || !self.waited(report) {
            return;
        }
        let Some(began) = report.sent.iter().flatten().min().copied() else { return };
        self.slow_now = Some(self.slow_now.map_or(came, |slow| slow.max(came)));
        let this = Seen { packets: report.arrivals.len() as f64, rate: came };
        let first = report.arrivals.first().map_or(began, |arrival| arrival.at);
        let last = report.arrivals.last().map_or(first, |arrival| arrival.at);
        let one = Slow { trains: 1, sent: (began, began), came: (first, last), fastest: this };
        let slow = self.slow.map_or(one, |slow| Slow {
            trains: slow.trains + 1,
            sent: (slow.sent.0.min(began), slow.sent.1.max(began)),
            came: (slow.came.0.min(first), slow.came.1.max(last)),
            fastest: if came > slow.fastest.rate { this } else { slow.fastest },
        });
        self.slow = Some(slow);
        if slow.trains >= SLOW_TRAINS && slow.sent.1.saturating_sub(slow.sent.0) as f64 / 1e9 >= SLOW_FOR {
            let from = self.fell.map_or(known, |fell| fell.from.max(known));
            let since = self.fell.map_or(slow.sent.0, |fell| fell.since);
            self.fell = Some(Fell { from, at: now, since });
            self.lately = vec![slow.fastest];
            self.usual = slow.fastest.rate;
            self.slow = None;
        }
    }

    /// Whether the packets of a train waited for a slow link: it came whole, or all of it behind a
    /// queue that stood for most of the time in which it came. What a policer drops, or chance,
    /// leaves no queue.
    fn waited(&self, report: &TrainReport) -> bool {
        let (count, of) = (report.arrivals.len(), report.sent.iter().flatten().count());
        if count as f64 >= (1.0 - MUCH) * of as f64 {
            return true;
        }
        let (Some(least), Some(first), Some(last)) =
            (self.least_delay, report.arrivals.first(), report.arrivals.last())
        else {
            return false;
        };
        let mut waits: Vec<i64> = delays(report).map(|delay| delay.saturating_sub(least)).collect();
        waits.sort_unstable();
        let median = waits.get(waits.len() / 2).copied().unwrap_or(0);
        median as f64 / 1e9 >= STANDING && median > last.at.saturating_sub(first.at) / 4
    }

    fn saw(&mut self, packets: usize, came: f64, left: f64) {
        let known = self.lately.iter().map(|seen| seen.rate).fold(0.0, f64::max);
        if came > known || came < HELD_UP * left {
            self.lately.push(Seen { packets: packets as f64, rate: came });
            if self.lately.len() > LATELY {
                self.lately.remove(0);
            }
        }
    }

    /// Counts what was lost of a volley that took until now.
    pub(super) fn count(&mut self, now: Mono, took: Span, asked: &Volley, report: &VolleyReport) {
        let began = Mono(now.0.saturating_sub(took.nanos().max(0).unsigned_abs()));
        self.count_stretches(report);
        let period = &mut self.period;
        let since = *period.since.get_or_insert(began);
        for (train, report) in asked.trains.iter().zip(&report.trains) {
            let bits = f64::from(train.length) * 8.0;
            let left = report.sent.iter().flatten().count();
            period.packets += left as u32;
            period.sent += bits * left as f64;
            period.came += bits * report.arrivals.len() as f64;
        }
        let lost = 1.0 - period.came / period.sent.max(1.0);
        let lasted = now.since(since).secs_f64();
        // What came of a burst in no time may be all that comes in a while.
        let is_news = self.held.is_none() && lost > MUCH && period.packets >= MANY;
        if !is_news && (lasted < PERIOD || period.packets < FEWEST) {
            return;
        }
        let lasted = if self.held.is_none() { lasted.max(FIRST_PERIOD) } else { lasted };
        let Period { sent, came, packets, stretches, longest, missing, .. } = self.period;
        // A stretch that goes on is the same one.
        let went_on = std::mem::replace(&mut self.goes_on, self.is_losing);
        self.period = Period { since: Some(now), ..Period::default() };
        // What a link loses that is gone for a moment says nothing of the rate it carries. A
        // policer has tokens again before, and goes on dropping.
        let is_one = stretches + u32::from(went_on) == 1 && (went_on || !self.is_excused);
        let is_gone = is_one && (longest >= GONE || missing <= FEW_MISSING);
        self.is_excused = is_gone && lost > MUCH && self.held.is_none();
        if self.is_excused {
            return;
        }
        self.judge(sent / lasted, came / lasted, lasted, packets);
    }

    /// Counts stretches of packets in a row that were lost, in the order of sending.
    fn count_stretches(&mut self, report: &VolleyReport) {
        for train in &report.trains {
            let mut came = vec![false; train.sent.len()];
            for arrival in &train.arrivals {
                if let Some(came) = came.get_mut(arrival.number as usize) {
                    *came = true;
                }
            }
            for (sent, came) in train.sent.iter().zip(came).filter_map(|(sent, came)| Some(((*sent)?, came)))
            {
                if came {
                    (self.came_at, self.is_losing) = (Some(sent), false);
                    continue;
                }
                self.period.stretches += u32::from(!self.is_losing);
                self.period.missing += 1;
                self.is_losing = true;
                // A bucket would have had a token since then.
                let since = sent.saturating_sub(self.came_at.unwrap_or(sent));
                self.period.longest = self.period.longest.max(since);
            }
        }
    }

    /// bit/s that were sent and that came for so many seconds, in so many packets.
    fn judge(&mut self, sent: f64, came: f64, lasted: f64, packets: u32) {
        let lost = 1.0 - came / sent.max(1.0);
        let came = came.max(LEAST);
        self.held = match self.held {
            None if lost > MUCH => Some(Held {
                rate: came * CAUTION,
                least: lost,
                first: lost,
                sent: 0.0,
                lost: 0.0,
                fell: false,
            }),
            None => None,
            Some(held) => {
                let is_more = lost > MUCH && lost > held.least * MORE + STRAY;
                let least = held.least.min(lost);
                let rate = match () {
                    () if is_more => held.rate.min(CAUTION * came / (1.0 - least).max(MUCH)),
                    () if sent * 2.0 > held.rate => held.rate * GROWTH,
                    () => held.rate,
                };
                let fell = held.fell || packets >= CERTAIN && lost < FELL * held.first;
                let (sent, lost) = (held.sent + sent * lasted, held.lost + lost * sent * lasted);
                Some(Held { rate, least, sent, lost, fell, ..held })
            }
        };
    }
}

/// Packets of a volley that came, and bit/s at which it came and left, pauses included.
fn of_all(asked: &Volley, report: &VolleyReport) -> Option<(usize, f64, f64)> {
    let (mut sends, mut arrivals) = ((i64::MAX, i64::MIN), (i64::MAX, i64::MIN));
    let widen = |ends: &mut (i64, i64), at: i64| *ends = (ends.0.min(at), ends.1.max(at));
    let (mut bits, mut packets) = (0.0, 0);
    for (train, report) in asked.trains.iter().zip(&report.trains) {
        for arrival in &report.arrivals {
            let Some(Some(sent)) = report.sent.get(arrival.number as usize) else { continue };
            bits += f64::from(train.length) * 8.0;
            packets += 1;
            widen(&mut sends, *sent);
            widen(&mut arrivals, arrival.at);
        }
    }
    let span = |(first, last): (i64, i64)| last.saturating_sub(first).max(1) as f64 / 1e9;
    (packets >= LONG && span(arrivals) > LASTS).then(|| (packets, bits / span(arrivals), bits / span(sends)))
}

/// One-way delays of what came, ns.
pub(super) fn delays(report: &TrainReport) -> impl Iterator<Item = i64> + '_ {
    report.arrivals.iter().filter_map(|arrival| {
        let sent = report.sent.get(arrival.number as usize).copied().flatten()?;
        Some(arrival.at.saturating_sub(sent))
    })
}

/// Whether many of a train's packets came behind later ones.
fn is_taken_apart(report: &TrainReport) -> bool {
    let (mut overtaken, mut highest) = (0, None);
    for arrival in &report.arrivals {
        overtaken += usize::from(highest.is_some_and(|highest| arrival.number < highest));
        highest = highest.max(Some(arrival.number));
    }
    overtaken * TAKEN_APART > report.arrivals.len()
}

/// bit/s at which the second half of a train came and left: a credit may have paid for the first.
fn rates(train: &Train, report: &TrainReport) -> Option<(f64, f64)> {
    let all = &report.arrivals;
    let (whole, last) = (all.first()?, all.last()?);
    let is_long = all.len() >= LONG || last.at.saturating_sub(whole.at) as f64 / 1e9 >= LASTS;
    if all.len() < 3 || !is_long {
        return None;
    }
    let first = if all.len() >= HALVED { all.get(all.len() / 2)? } else { whole };
    let came = last.at.checked_sub(first.at).filter(|span| *span > 0)? as f64 / 1e9;
    let sent = |number: u32| report.sent.get(number as usize).copied().flatten();
    let left = sent(last.number)?.saturating_sub(sent(first.number)?) as f64 / 1e9;
    let bits = f64::from(train.length) * 8.0;
    let gaps = all.iter().filter(|it| it.at > first.at).count() as f64;
    let between = f64::from(last.number.saturating_sub(first.number));
    Some((bits * gaps / came, bits * between / left.max(1e-9)))
}

/// Trains that are remembered.
const LATELY: usize = 8;
/// A train that came at less than this of the rate at which it left was held up.
const HELD_UP: f64 = 0.8;
/// A train that came at less than this of what is known met a path that is not the one of before.
const FAR_BELOW: f64 = 0.4;
/// And at less than this of what others could leave it.
const UNEXPLAINED: f64 = 0.5;
/// One packet of so many that came behind later ones takes a train apart.
const TAKEN_APART: usize = 10;
/// So many such trains in a row, over so many s, are no hiccup.
const SLOW_TRAINS: u32 = 3;
const SLOW_FOR: f64 = 0.2;
/// And if nothing follows them, so many that came over so many s: a receiver that takes nothing for
/// a while has the next train as fast as the link again.
const SLOW_COMES: f64 = 0.1;
/// s; a queue that stands for that long is no jitter of a host.
const STANDING: f64 = 0.02;
/// Packets of a train whose second half says enough.
const HALVED: usize = 12;
/// Packets, or s, of a train that says what the path carries.
const LONG: usize = 24;
const LASTS: f64 = 0.005;
/// Trains that have this part of the longest one's packets count.
const LONG_ENOUGH: f64 = 2.0;
/// Share that is lost: with less than that no more than 1.25 times what came was sent.
const MUCH: f64 = 0.15;
/// Times and share by which a loss is more than another.
const MORE: f64 = 1.3;
const STRAY: f64 = 0.05;
/// ns in which nothing that was sent came: a bucket of more than 0.3 Mbit/s has tokens sooner.
const GONE: i64 = 50_000_000;
/// Packets in a row that are lost before anybody says why.
const FEW_MISSING: u32 = 8;
/// Of what came, what is sent then.
const CAUTION: f64 = 0.9;
/// Loss below this share of what it was at first has gone with the rate.
const FELL: f64 = 0.5;
/// Packets of a period in which chance hardly loses half of its share.
const CERTAIN: u32 = 150;
/// By which the rate grows from period to period.
const GROWTH: f64 = 1.2;
/// s and packets of a period.
const PERIOD: f64 = 0.2;
const FEWEST: u32 = 24;
/// The same of the first of which much is lost.
const FIRST_PERIOD: f64 = 0.5;
const MANY: u32 = 24;
/// bit/s.
const LEAST: f64 = 1e4;

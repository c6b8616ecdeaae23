//! What is remembered of one hop.

use std::collections::VecDeque;
use std::net::IpAddr;

use netaware_stats::quantile;
use netaware_units::{Mono, Span};

use super::finding::Queueing;
use super::round::{Kind, Reply};
use super::slope::Sample;

/// An answered probe that asked this hop alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    pub(super) kind: Kind,
    pub(super) length: u32,
    pub(super) rtt: Span,
    pub(super) reply_length: Option<u32>,
}

/// An address that answered.
#[derive(Debug, Clone, Copy)]
struct Seen {
    address: IpAddr,
    count: u32,
    first: Mono,
    last: Mono,
}

#[derive(Debug, Default)]
pub(super) struct HopLog {
    seen: Vec<Seen>,
    pub(super) asked: u32,
    pub(super) answered: u32,
    pub(super) exchanges: Vec<Exchange>,
    /// Delays of small packets behind large ones that end here; bytes are the large one's.
    pub(super) tails: Vec<Sample>,
    /// The same where the host that answers the small one has answered the large one, too: one answer behind the other.
    pub(super) behind_answers: Vec<Sample>,
    /// Large packets in front of small ones: sent, answered.
    leaders: (u32, u32),
    /// Outcomes since the pace last changed, newest last.
    recent: VecDeque<bool>,
    pub(super) pace: Pace,
    /// Places in the present order of sizes.
    pub(super) order: Vec<u32>,
}

/// How often a hop is asked that rations its answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// One round in so many.
    pub(super) every: u32,
    pub(super) limited: bool,
    /// When it was found out, and answers since.
    since: Option<Mono>,
    answers: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { every: 1, limited: false, since: None, answers: 0 }
    }
}

impl HopLog {
    pub(super) fn note_asked(&mut self) {
        self.asked += 1;
    }

    pub(super) fn note_answer(&mut self, kind: Kind, length: u32, sent_at: Mono, reply: Reply) {
        self.answered += 1;
        self.pace.answers += 1;
        self.note_address(reply.from, reply.at);
        if self.exchanges.len() < MOST_SAMPLES {
            let rtt = reply.at - sent_at;
            self.exchanges.push(Exchange { kind, length, rtt, reply_length: reply.length });
        }
    }

    pub(super) fn note_address(&mut self, address: IpAddr, at: Mono) {
        if let Some(seen) = self.seen.iter_mut().find(|seen| seen.address == address) {
            seen.count += 1;
            seen.last = seen.last.max(at);
        } else if self.seen.len() < MOST_ADDRESSES {
            self.seen.push(Seen { address, count: 1, first: at, last: at });
        }
    }

    pub(super) fn note_tail(&mut self, bytes: u32, delay: Span, behind_answer: bool) {
        let into = if behind_answer { &mut self.behind_answers } else { &mut self.tails };
        if into.len() < MOST_SAMPLES {
            into.push(Sample { bytes, delay });
        }
    }

    /// Those that nothing delayed on the way back where there are enough of them, else all.
    pub(super) fn tail_samples(&self) -> Vec<Sample> {
        if self.has_free_tails() {
            return self.tails.clone();
        }
        self.tails.iter().chain(&self.behind_answers).copied().collect()
    }

    pub(super) fn has_free_tails(&self) -> bool {
        self.tails.len() * 4 >= self.behind_answers.len() && self.tails.len() >= LEAST_TAILS
    }

    pub(super) fn note_leader(&mut self, answered: bool) {
        self.leaders.0 += 1;
        self.leaders.1 += u32::from(answered);
    }

    /// As a rule, and not now and then.
    pub(super) fn leaders_are_answered(&self) -> bool {
        self.leaders.1 * 2 > self.leaders.0
    }

    /// Slows down where answers stay out although packets pass here: `passes` says that something beyond answered.
    pub(super) fn note_outcome(&mut self, answered: bool, passes: bool, now: Mono) {
        if !answered && !passes {
            // Lost with everything else: no word about this router's answers.
            return;
        }
        self.recent.push_back(answered);
        // What is known to be rationed is slowed down more readily.
        let window = if self.pace.limited { WINDOW / 2 } else { WINDOW };
        if self.recent.len() < window {
            return;
        }
        let answers = self.recent.iter().filter(|answered| **answered).count();
        if answers * 2 <= window && self.answered > 0 {
            self.pace.limited = true;
            self.pace.since.get_or_insert(now);
            self.pace.every = (self.pace.every * 2).min(SLOWEST);
            self.recent.clear();
        } else {
            self.recent.pop_front();
        }
    }

    /// Answers per second since the limit was found out.
    pub(super) fn answers_per_second(&self, now: Mono, at_discovery: f64) -> f64 {
        let seconds = self.pace.since.map_or(0.0, |since| now.since(since).secs_f64());
        if seconds < 1.0 { at_discovery } else { f64::from(self.pace.answers) / seconds }
    }

    pub(super) fn restart_pace_count(&mut self) {
        self.pace.answers = 0;
    }

    /// Most frequent first.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let mut seen = self.seen.clone();
        seen.sort_by_key(|seen| std::cmp::Reverse(seen.count));
        seen.into_iter().map(|seen| seen.address).collect()
    }

    /// Addresses that answer in turns.
    pub(super) fn alternates(&self) -> bool {
        self.seen.iter().enumerate().any(|(n, a)| {
            self.seen[n + 1..].iter().any(|b| a.first <= b.last && b.first <= a.last && a.last > b.first)
        })
    }

    /// One address after the other, or a step of the smallest round trip.
    pub(super) fn changed(&self, smallest: u32) -> bool {
        let replaced = self.seen.len() > 1 && !self.alternates();
        replaced || self.stepped(smallest)
    }

    /// Whether the smallest round trips of the quarters of the run are further apart than queues explain.
    fn stepped(&self, smallest: u32) -> bool {
        let Some((kind, _)) = self.usual(smallest) else { return false };
        let of_size: Vec<&Exchange> =
            self.exchanges.iter().filter(|e| e.length == smallest && e.kind == kind).collect();
        if of_size.len() < LEAST_FOR_A_STEP {
            return false;
        }
        let quarters = of_size.chunks(of_size.len().div_ceil(4));
        let minima: Vec<i64> = quarters
            .filter_map(|quarter| quarter.iter().map(|exchange| exchange.rtt.nanos()).min())
            .collect();
        let (Some(least), Some(most)) = (minima.iter().min(), minima.iter().max()) else { return false };
        // What a quarter's smallest may be above the smallest of all where queues are rarely empty.
        let usual: Vec<f64> = of_size
            .chunks(of_size.len().div_ceil(4))
            .filter_map(|quarter| {
                let mut rtts: Vec<f64> = quarter.iter().map(|e| e.rtt.nanos() as f64).collect();
                let smallest = rtts.iter().copied().reduce(f64::min)?;
                Some(quantile::median_in_place(&mut rtts)? - smallest)
            })
            .collect();
        let scatter = usual.iter().copied().fold(0.0, f64::max);
        (most - least) as f64 > (3.0 * scatter).max(LEAST_STEP.nanos() as f64)
    }

    /// The kind that answered most at this size, with its round trips.
    fn usual(&self, length: u32) -> Option<(Kind, Vec<Span>)> {
        let of = |kind: Kind| -> Vec<Span> {
            let matching = self.exchanges.iter().filter(|e| e.length == length && e.kind == kind);
            matching.map(|exchange| exchange.rtt).collect()
        };
        let both = [Kind::Udp, Kind::Echo].map(|kind| (kind, of(kind)));
        both.into_iter().max_by_key(|(_, rtts)| rtts.len()).filter(|(_, rtts)| !rtts.is_empty())
    }

    /// Smallest and median round trip at a size.
    pub(super) fn rtt(&self, length: u32) -> Option<(Span, Span)> {
        let (_, mut rtts) = self.usual(length)?;
        let smallest = *rtts.iter().min()?;
        let mut nanos: Vec<f64> = rtts.drain(..).map(|rtt| rtt.nanos() as f64).collect();
        Some((smallest, Span(quantile::median_in_place(&mut nanos)?.round() as i64)))
    }

    /// What round trips took beyond the smallest of their size: sorted, ns.
    pub(super) fn excess(&self) -> Vec<f64> {
        let mut groups: std::collections::BTreeMap<(Kind, u32), Vec<i64>> = std::collections::BTreeMap::new();
        for exchange in &self.exchanges {
            groups.entry((exchange.kind, exchange.length)).or_default().push(exchange.rtt.nanos());
        }
        let mut all: Vec<f64> = Vec::with_capacity(self.exchanges.len());
        for rtts in groups.values().filter(|rtts| rtts.len() >= LEAST_OF_A_SIZE) {
            let Some(least) = rtts.iter().min() else { continue };
            all.extend(rtts.iter().map(|rtt| (rtt - least) as f64));
        }
        all.sort_unstable_by(f64::total_cmp);
        all
    }
}

/// Queueing from sorted excesses (ns) and the mean of the hop before.
pub(super) fn queueing(excess: &[f64], mean_before: f64) -> Option<Queueing> {
    Some(Queueing {
        median: Span(quantile::linear(excess, 0.5)?.round() as i64),
        p90: Span(quantile::linear(excess, 0.9)?.round() as i64),
        own_mean: Span((mean(excess)? - mean_before).round() as i64),
    })
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Outcomes that decide on a pace: a burst allowance of six, as Linux has it, must not hide the limit behind it.
const WINDOW: usize = 12;
/// One round in so many.
const SLOWEST: u32 = 64;
/// Kept per hop: five minutes at a hundred a second.
const MOST_SAMPLES: usize = 30_000;
const MOST_ADDRESSES: usize = 16;
const LEAST_FOR_A_STEP: usize = 24;
/// A shorter step than this is left to the intervals.
const LEAST_STEP: Span = Span::from_millis(1);
const LEAST_OF_A_SIZE: usize = 3;
const LEAST_TAILS: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hops::What;

    fn reply(from: u8, at: u64) -> Reply {
        Reply {
            at: Mono(at),
            from: IpAddr::from([192, 0, 2, from]),
            what: What::TimeExceeded,
            length: Some(56),
            ident: None,
            stamps: None,
        }
    }

    fn millis(n: u64) -> u64 {
        n * 1_000_000
    }

    #[test]
    fn a_rationed_router_is_asked_less_and_less_often() {
        let mut hop = HopLog { answered: 6, ..HopLog::default() };
        for n in 0..WINDOW * 3 {
            hop.note_outcome(n % 10 == 0, true, Mono(0));
        }
        assert!(hop.pace.limited);
        assert_eq!(hop.pace.every, 32);
    }

    #[test]
    fn losses_that_everybody_shares_are_no_limit() {
        let mut hop = HopLog { answered: 6, ..HopLog::default() };
        for n in 0..200 {
            hop.note_outcome(n % 3 == 0, n % 3 == 0, Mono(0));
        }
        assert!(!hop.pace.limited);
    }

    #[test]
    fn one_address_after_the_other_is_a_change_and_in_turns_is_not() {
        let mut changed = HopLog::default();
        let mut alternating = HopLog::default();
        for n in 0..20_u64 {
            changed.note_address(reply(u8::from(n >= 10), n).from, Mono(n));
            alternating.note_address(reply(u8::from(n % 2 == 0), n).from, Mono(n));
        }
        assert!(changed.changed(64) && !changed.alternates());
        assert!(!alternating.changed(64) && alternating.alternates());
    }

    #[test]
    fn a_step_of_the_smallest_round_trip_is_a_change_and_queueing_is_not() {
        let log = |extra: fn(u64) -> u64| {
            let mut hop = HopLog::default();
            for n in 0..100 {
                let sent_at = millis(100 * n);
                let at = sent_at + millis(10) + extra(n);
                hop.note_answer(Kind::Udp, 64, Mono(sent_at), reply(1, at));
            }
            hop
        };
        assert!(log(|n| if n < 50 { 0 } else { millis(4) }).changed(64));
        assert!(!log(|n| n % 7 * millis(1)).changed(64));
        assert!(!log(|_| 0).changed(64));
    }

    #[test]
    fn free_tails_count_alone_if_there_are_enough_and_a_fifth_of_all() {
        for (free, behind, alone) in [(30, 0, true), (29, 0, false), (30, 120, true), (30, 121, false)] {
            let mut hop = HopLog::default();
            for (count, behind_answer) in [(free, false), (behind, true)] {
                for _ in 0..count {
                    hop.note_tail(1500, Span(1), behind_answer);
                }
            }
            assert_eq!(hop.has_free_tails(), alone, "{free} {behind}");
            let samples = if alone { free } else { free + behind };
            assert_eq!(hop.tail_samples().len(), samples, "{free} {behind}");
        }
    }
}

//! What is remembered of one hop.

use std::collections::VecDeque;
use std::net::IpAddr;

use netaware_stats::quantile;
use netaware_units::{Mono, Span};

use super::finding::Queueing;
use super::ration::Ration;
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
    /// The same where the host that answers the small one has answered the large one, too: one
    /// answer behind the other.
    pub(super) behind_answers: Vec<Sample>,
    /// Large packets in front of small ones: sent, answered.
    leaders: (u32, u32),
    /// Outcomes since the pace last changed, newest last.
    recent: VecDeque<bool>,
    pub(super) pace: Pace,
    /// What it was asked since it was found to ration its answers.
    pub(super) ration: Ration,
    /// Places in the present order of sizes.
    pub(super) order: Vec<u32>,
    /// Exchanges before that were on a faster path.
    lately_from: usize,
    /// Asked since the last answer.
    silent_at_end: u32,
}

/// How often a hop is asked that rations its answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// One round in so many.
    pub(super) every: u32,
    pub(super) limited: bool,
    /// Answers since it was found out.
    pub(super) answers: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { every: 1, limited: false, answers: 0 }
    }
}

impl HopLog {
    pub(super) fn note_asked(&mut self) {
        self.asked += 1;
        self.silent_at_end += 1;
    }

    /// Asked, but for those since the last answer: of these nobody knows where answers ceased.
    pub(super) fn asked_before_silence(&self) -> u32 {
        self.asked - self.silent_at_end.min(self.asked)
    }

    pub(super) fn note_answer(&mut self, kind: Kind, length: u32, sent_at: Mono, reply: Reply) {
        self.answered += 1;
        self.silent_at_end = 0;
        self.pace.answers += 1;
        self.note_address(reply.from, reply.at);
        if self.exchanges.len() < MOST_SAMPLES {
            let rtt = reply.at - sent_at;
            self.exchanges.push(Exchange { kind, length, rtt, reply_length: reply.length });
        }
    }

    /// An answer to one that was asked came after it had been given up. It tells no delay: that of
    /// the others is conditional on coming in time.
    pub(super) fn note_late(&mut self, sent_at: Mono) {
        self.ration.note_late(sent_at);
        self.answered = (self.answered + 1).min(self.asked);
        self.silent_at_end = 0;
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

    /// Slows down where answers stay out although packets pass here: `passes` says that something
    /// beyond answered.
    pub(super) fn note_outcome(&mut self, answered: bool, passes: bool) {
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
            self.pace.every = (self.pace.every * 2).min(SLOWEST);
            self.recent.clear();
        } else {
            self.recent.pop_front();
        }
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

    /// Whether the smallest round trips of the quarters of the run are further apart than queues
    /// explain.
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

    /// The smallest since a slower path was noticed.
    pub(super) fn least_lately(&self, length: u32) -> Option<Span> {
        let (kind, _) = self.usual(length)?;
        let lately = self.exchanges.get(self.lately_from..)?.iter();
        lately.filter(|it| it.length == length && it.kind == kind).map(|it| it.rtt).min()
    }

    /// From now on the round trips so far say nothing of how long a large packet takes.
    pub(super) fn forget_long(&mut self) {
        self.lately_from = self.exchanges.len();
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

/// Outcomes that decide on a pace: a burst allowance of six, as Linux has it, must not hide the
/// limit behind it.
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
            hop.note_outcome(n % 10 == 0, true);
        }
        assert!(hop.pace.limited);
        assert_eq!(hop.pace.every, 32);
    }

    #[test]
    fn half_of_twelve_answers_are_a_limit_and_then_half_of_six() {
        let mut hop = HopLog { answered: 1, ..HopLog::default() };
        let mut next = |answers: [bool; 6]| {
            for answered in answers {
                hop.note_outcome(answered, true);
            }
            (hop.pace.limited, hop.pace.every, hop.recent.len())
        };
        let half = [true, true, true, false, false, false];
        let mostly = [true, true, true, true, false, false];
        // Seven of twelve; then the oldest, an answer, is forgotten, and the next one stays out.
        assert_eq!(next(half), (false, 1, 6));
        assert_eq!(next(mostly), (false, 1, 11));
        assert_eq!(next([false; 6]), (true, 2, 5));
        assert_eq!(next(mostly), (true, 4, 5));
        assert_eq!(next(half), (true, 8, 2));
        // What has never answered has no limit, and nobody is asked more seldom than once in 64
        // rounds.
        let mut silent = HopLog::default();
        let mut slow = HopLog { answered: 1, ..HopLog::default() };
        for _ in 0..100 {
            silent.note_outcome(false, true);
            slow.note_outcome(false, true);
        }
        assert_eq!((silent.pace.limited, silent.pace.every, slow.pace.every), (false, 1, 64));
    }

    #[test]
    fn only_so_much_is_kept_and_all_of_it_is_counted() {
        let exchange = Exchange { kind: Kind::Udp, length: 64, rtt: Span(1), reply_length: None };
        let mut hop = HopLog {
            exchanges: vec![exchange; MOST_SAMPLES - 1],
            tails: vec![Sample { bytes: 1500, delay: Span(1) }; MOST_SAMPLES - 1],
            ..HopLog::default()
        };
        for from in 0..20 {
            hop.note_answer(Kind::Udp, 64, Mono(3), reply(from, 10));
            hop.note_tail(1500, Span(2), false);
        }
        hop.note_answer(Kind::Udp, 64, Mono(3), reply(5, 12));
        assert_eq!((hop.answered, hop.pace.answers), (21, 21));
        assert_eq!((hop.exchanges.len(), hop.tails.len()), (MOST_SAMPLES, MOST_SAMPLES));
        assert_eq!(hop.exchanges[MOST_SAMPLES - 1].rtt, Span(7));
        assert_eq!(hop.exchanges[MOST_SAMPLES - 1].reply_length, Some(56));
        // The most frequent first, and no more than sixteen.
        let order: Vec<u8> = [5].into_iter().chain((0..16).filter(|from| *from != 5)).collect();
        assert_eq!(hop.addresses(), order.iter().map(|from| reply(*from, 0).from).collect::<Vec<_>>());
        let leaders = [false, true, true].map(|answered| {
            hop.note_leader(answered);
            hop.leaders_are_answered()
        });
        assert_eq!(leaders, [false, false, true]);
    }

    #[test]
    fn an_address_that_begins_when_the_other_ends_does_not_alternate() {
        let log = |second: u64| {
            let mut hop = HopLog::default();
            for (from, at) in [(1, 0), (1, 5), (2, second), (2, 9)] {
                hop.note_address(reply(from, at).from, Mono(at));
            }
            (hop.alternates(), hop.changed(64))
        };
        assert_eq!([4, 5, 6].map(log), [(true, false), (false, true), (false, true)]);
    }

    #[test]
    fn a_step_is_longer_than_a_millisecond_and_than_three_times_what_queues_make() {
        // Six round trips a quarter, us: the smallest of it and others that waited.
        let changed = |quarters: [i64; 4], waits: i64, count: usize| {
            let rtts = quarters
                .map(|least| [least, least + waits, least + waits, least + waits, least + waits, least]);
            let exchange = |us: i64| Exchange {
                kind: Kind::Echo,
                length: 64,
                rtt: Span::from_micros(us),
                reply_length: None,
            };
            let mut hop = HopLog::default();
            hop.exchanges.extend(rtts.concat().into_iter().take(count).map(exchange));
            // Others do not count: a longer packet, and what answered less often.
            hop.exchanges.extend([Exchange { length: 1500, ..exchange(90_000) }; 9]);
            hop.exchanges.extend([Exchange { kind: Kind::Udp, ..exchange(90_000) }; 9]);
            hop.changed(64)
        };
        assert!(!changed([10_000, 10_000, 11_000, 10_000], 0, 24));
        assert!(changed([10_000, 10_000, 11_001, 10_000], 0, 24));
        assert!(!changed([10_000, 10_000, 11_001, 10_000], 0, 23));
        assert!(!changed([10_000, 10_000, 13_000, 10_000], 1_000, 24));
        assert!(changed([10_000, 10_000, 13_001, 10_000], 1_000, 24));
        assert!(changed([13_001, 10_000, 10_000, 10_000], 1_000, 24));
    }

    #[test]
    fn round_trips_of_a_size_are_those_of_the_kind_that_answers_most() {
        let mut hop = HopLog::default();
        let rtts = [
            (Kind::Udp, 64, vec![10, 20, 12]),
            (Kind::Echo, 64, vec![1, 2]),
            (Kind::Udp, 1500, vec![33, 30, 30]),
            (Kind::Echo, 1500, vec![5, 9, 6, 7]),
        ];
        for (kind, length, all) in rtts {
            let exchange = |ms| Exchange { kind, length, rtt: Span::from_millis(ms), reply_length: None };
            hop.exchanges.extend(all.into_iter().map(exchange));
        }
        assert_eq!(hop.rtt(64), Some((Span::from_millis(10), Span::from_millis(12))));
        assert_eq!(hop.rtt(1500), Some((Span::from_millis(5), Span::from_micros(6_500))));
        assert_eq!(hop.rtt(576), None);
        // Beyond the smallest of its kind and size, of which there have to be three.
        let excess = hop.excess();
        assert_eq!(excess, [0.0, 0.0, 0.0, 0.0, 1e6, 2e6, 2e6, 3e6, 4e6, 10e6]);
        assert!((mean(&excess).unwrap() - 2.2e6).abs() < 1e-6 && mean(&[]).is_none());
        let told = Queueing { median: Span(1_500_000), p90: Span(4_600_000), own_mean: Span(1_200_000) };
        assert_eq!(queueing(&excess, 1e6), Some(told));
        assert_eq!(queueing(&[], 1e6), None);
    }

    #[test]
    fn losses_that_everybody_shares_are_no_limit() {
        let mut hop = HopLog { answered: 6, ..HopLog::default() };
        for n in 0..200 {
            hop.note_outcome(n % 3 == 0, n % 3 == 0);
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

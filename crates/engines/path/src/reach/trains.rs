//! Whether what pairs tell of the narrowest link also holds for many packets in a row.
//!
//! Two packets pass a token bucket at the rate of the link behind it, and wait for a turn each
//! where a link sends in slots or in bunches. A long train does neither: beyond the credit of a
//! bucket it passes at the bucket's rate, and it fills slots and bunches. So trains back to back
//! show whether pairs read low, and trains as fast as the pairs say whether that lasts.

use netaware_units::{Mono, Span};

use crate::estimate::Bound;

use super::pairs::Narrowest;

/// Echoes of one length, sent in a row, that left and what came of them.
#[derive(Debug, Clone)]
pub(super) struct EchoTrain {
    pub(super) kind: Train,
    /// When each left.
    pub(super) sent: Vec<Mono>,
    /// When the answer came, by number of the question; in the order of arrival.
    pub(super) answers: Vec<(usize, Mono)>,
}

/// How a train is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Train {
    /// Back to back.
    Fast,
    /// As far apart as the answers of a pair come.
    Paced,
}

/// What trains make of the figure of the pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lasting {
    /// A train passed as fast as pairs, or was only held up by what else the narrowest link
    /// carried.
    Confirmed,
    /// Trains pass faster than pairs: a link that sends in slots or bunches, or links in parallel.
    /// bit/s of the slowest of them.
    Faster(f64),
    /// Trains pass more slowly than pairs, or are cut off: a token bucket, a ration of answers,
    /// batches at the host, or much other traffic. bit/s that the trains came through with, at
    /// most.
    Slower(f64),
    /// No train could be sent as fast as that.
    Unknown,
    /// The path is so slow that a train would fill it for long, so that none was sent.
    TooSlow,
    /// Nothing of a train was answered that was sent as fast as that: no rate was measured.
    Unanswered,
}

/// The pairs' figure, as far as trains let it stand.
pub(super) fn judged(pairs: Narrowest, lasting: Lasting) -> Option<Narrowest> {
    let rate = pairs.rate;
    let is_wide = rate.hi > rate.lo * WIDE;
    let at_least = |value: f64| {
        let rate = netaware_stats::interval::Interval { estimate: value, lo: value, hi: value, ..rate };
        Some(Narrowest { rate, bound: Bound::AtLeast, ..pairs })
    };
    match lasting {
        Lasting::Unknown | Lasting::TooSlow | Lasting::Unanswered => None,
        // Jitter of the first and the last packet may have drawn a train together.
        Lasting::Faster(least) => at_least(least * DRAWN_TOGETHER),
        Lasting::Confirmed if pairs.bound != Bound::None => Some(pairs),
        Lasting::Confirmed if is_wide => at_least(rate.lo),
        Lasting::Confirmed => Some(pairs),
        // Neither end of it is known then.
        Lasting::Slower(_) if is_wide || pairs.bound != Bound::None => None,
        Lasting::Slower(_) => {
            let rate =
                netaware_stats::interval::Interval { estimate: rate.hi, lo: rate.hi, hi: rate.hi, ..rate };
            Some(Narrowest { rate, bound: Bound::AtMost, ..pairs })
        }
    }
}

/// What the trains say to `pair`, the rate of the pairs in bit/s, with packets of `length` bytes.
pub(super) fn lasting(trains: &[EchoTrain], pair: f64, length: u32) -> Lasting {
    let bits = f64::from(length) * 8e9;
    let longest = trains.iter().map(|train| train.sent.len()).max().unwrap_or(0);
    // The first is as long as the pairs let it be, which is too short where these read low.
    let full = || trains.iter().filter(|train| train.sent.len() * 2 > longest);
    let fast = full().filter(|train| train.kind == Train::Fast);
    let least = fast.filter_map(|train| train.whole(bits)).fold(f64::INFINITY, f64::min);
    if least.is_finite() && least > pair * FASTER {
        return Lasting::Faster(least);
    }
    if trains.iter().any(|train| train.confirms(pair, bits)) {
        return Lasting::Confirmed;
    }
    let judges = full().filter(|train| train.kind == Train::Paced && train.is_sent_at(pair * MOSTLY, bits));
    let most = judges.map(|train| train.passed(bits)).fold(f64::NEG_INFINITY, f64::max);
    match most {
        most if !most.is_finite() => Lasting::Unknown,
        most if most > 0.0 => Lasting::Slower(most),
        _ => Lasting::Unanswered,
    }
}

impl EchoTrain {
    fn is_sent_at(&self, rate: f64, bits: f64) -> bool {
        let (Some(first), Some(last)) = (self.sent.first(), self.sent.last()) else { return false };
        self.sent.len() >= LEAST_ANSWERS
            && bits * (self.sent.len() - 1) as f64 >= rate * nanos(*last - *first)
    }

    /// bit/s from the first to the last answer.
    pub(super) fn whole(&self, bits: f64) -> Option<f64> {
        between(&self.answers, bits)
    }

    /// bit/s that came through of its end, where most credit is spent.
    fn passed(&self, bits: f64) -> f64 {
        let from = self.sent.len() * 5 / 8;
        let of = (self.sent.len() - from) as f64;
        let tail = self.since(from);
        let share = tail.len() as f64 / of;
        let sent = match (self.sent.get(from), self.sent.last()) {
            (Some(first), Some(last)) => bits * (of - 1.0) / nanos(*last - *first).max(1.0),
            _ => 0.0,
        };
        // Of few that came the distances say less than how few they are.
        between(&tail, bits).unwrap_or(sent).min(sent * share)
    }

    /// Answers to the second half of the questions.
    fn tail(&self) -> Vec<(usize, Mono)> {
        self.since(self.sent.len() / 2)
    }

    fn since(&self, from: usize) -> Vec<(usize, Mono)> {
        self.answers.iter().copied().filter(|(number, _)| *number >= from).collect()
    }

    /// Whether its second half ran as fast as pairs do.
    fn confirms(&self, pair: f64, bits: f64) -> bool {
        let tail = self.tail();
        let of = self.sent.len() - self.sent.len() / 2;
        if tail.len() < LEAST_ANSWERS / 2 || (tail.len() as f64) < of as f64 * MOSTLY {
            return false;
        }
        if between(&tail, bits).is_some_and(|rate| rate >= pair * MOSTLY) {
            return true;
        }
        // Other traffic puts its packets between some of ours and leaves others as close as a pair.
        // A bucket leaves none so, and what hands packets over in bunches has long silences between
        // them.
        let apart = bits / pair;
        let gaps: Vec<f64> = tail.windows(2).map(|two| nanos(two[1].1 - two[0].1)).collect();
        let close = gaps.iter().filter(|gap| **gap <= apart * CLOSE).count() as f64;
        let widest = gaps.iter().copied().fold(0.0, f64::max);
        close >= gaps.len() as f64 * OFTEN && widest <= apart * SILENCE
    }
}

/// bit/s of the answers behind the first. What was lost does not count: it may never have come to
/// the narrowest link.
fn between(answers: &[(usize, Mono)], bits: f64) -> Option<f64> {
    let (first, last) = (answers.first()?, answers.last()?);
    let rate = || bits * (answers.len() - 1) as f64 / nanos(last.1 - first.1).max(1.0);
    (answers.len() >= LEAST_ANSWERS / 2).then(rate)
}

fn nanos(span: Span) -> f64 {
    span.nanos() as f64
}

/// A train that is shorter shows nothing that lasts.
pub(super) const LEAST_ANSWERS: usize = 16;
/// Of a rate or a count: what is less than that is another one.
const MOSTLY: f64 = 0.8;
/// Of the pairs' rate: what is more than that they read low.
const FASTER: f64 = 1.2;
/// Of an interval's ends: beyond it, its middle may be off by more than a fifth.
const WIDE: f64 = 1.2;
const DRAWN_TOGETHER: f64 = 0.9;
/// Of a pair's distance.
const CLOSE: f64 = 1.2;
/// Share of distances that are no longer than a pair's, on a link four fifths of which others use.
const OFTEN: f64 = 0.3;
/// Of a pair's distance: more than other traffic puts between two packets that left together.
const SILENCE: f64 = 6.0;

#[cfg(test)]
mod tests {
    use netaware_stats::interval::Interval;

    use super::*;

    /// 1500 bytes take 12 us at a gigabit.
    const PAIR: f64 = 1e9;

    /// 128 packets, sent `sent` ns apart, answered as `answer` says: when, of a packet sent then.
    fn train(kind: Train, sent: u64, mut answer: impl FnMut(usize, u64) -> Option<u64>) -> EchoTrain {
        let at: Vec<u64> = (0..128).map(|n| n * sent).collect();
        let answers =
            at.iter().enumerate().filter_map(|(n, at)| Some((n, Mono(1_000_000 + answer(n, *at)?))));
        EchoTrain { kind, answers: answers.collect(), sent: at.into_iter().map(Mono).collect() }
    }

    /// Behind a queue that takes so many ns per packet, the first `credit` none.
    fn queue(apart: u64, credit: usize) -> impl FnMut(usize, u64) -> Option<u64> {
        let mut free = 0;
        move |n, at| {
            free = at.max(free) + if n < credit { 12_000 } else { apart };
            Some(free)
        }
    }

    fn both(mut answer: impl FnMut() -> Box<dyn FnMut(usize, u64) -> Option<u64>>) -> Lasting {
        let trains = [train(Train::Fast, 2_000, answer()), train(Train::Paced, 12_000, answer())];
        lasting(&trains, PAIR, 1500)
    }

    #[test]
    fn a_train_that_passes_as_pairs_do_confirms_them() {
        assert_eq!(both(|| Box::new(queue(12_000, 0))), Lasting::Confirmed);
        // One in ten lost; and drop-tail, where the train that is sent faster loses most of its
        // second half.
        let lossy = || -> Box<dyn FnMut(usize, u64) -> Option<u64>> {
            let mut queue = queue(12_000, 0);
            Box::new(move |n, at| queue(n, at).filter(|_| n % 10 != 0))
        };
        assert_eq!(both(lossy), Lasting::Confirmed);
        let full = |n: usize, at: u64| (at >= 12_000 * n as u64 || n < 40).then_some(12_000 * (n as u64 + 1));
        assert_eq!(both(|| Box::new(full)), Lasting::Confirmed);
    }

    #[test]
    fn a_token_bucket_is_an_upper_bound_and_what_passes_is_told() {
        // A shaper of 50 Mbit/s with 20 packets of credit, and a policer with 60 that then lets one
        // of twenty pass.
        let Lasting::Slower(shaped) = both(|| Box::new(queue(240_000, 20))) else { panic!() };
        assert!((shaped / 5e7 - 1.0).abs() < 0.02, "{shaped}");
        let policed = || -> Box<dyn FnMut(usize, u64) -> Option<u64>> {
            let mut link = queue(12_000, 0);
            Box::new(move |n, at| if n < 60 || n % 20 == 0 { link(n, at) } else { None })
        };
        let Lasting::Slower(policed) = both(policed) else { panic!() };
        assert!((4e7..1e8).contains(&policed), "{policed}");
        // Of seven tenths of the pairs' rate.
        assert!(matches!(both(|| Box::new(queue(17_100, 20))), Lasting::Slower(_)));
    }

    #[test]
    fn packets_of_others_between_ours_are_no_bucket_and_bunches_are_one() {
        // Every second gap holds one or two packets of others.
        let mut loaded = 0;
        let between = |n: usize| [1, 2, 1, 3][n % 4] * 12_000;
        let answer = move || -> Box<dyn FnMut(usize, u64) -> Option<u64>> {
            Box::new(move |n, _| {
                loaded += between(n);
                Some(loaded)
            })
        };
        assert_eq!(both(answer), Lasting::Confirmed);
        // Handed over by twenty at the far host, from a link of 100 Mbit/s: as close as pairs, and
        // then nothing for long.
        let bunched = |n: usize, _| Some((n / 20 * 2_400_000 + n % 20 * 12_000) as u64);
        assert!(matches!(both(|| Box::new(bunched)), Lasting::Slower(_)));
    }

    #[test]
    fn slots_are_found_by_trains_that_are_faster_than_pairs() {
        // A grant each millisecond takes one packet of a pair, and ten of a train.
        let slotted = |n: usize, _| Some((n / 10 * 1_000_000 + n % 10 * 12_000) as u64);
        let trains = [train(Train::Fast, 2_000, slotted), train(Train::Fast, 2_000, slotted)];
        let Lasting::Faster(rate) = lasting(&trains, 12e6, 1500) else { panic!() };
        assert!((rate / 127e6 - 1.0).abs() < 0.02, "{rate}");
    }

    #[test]
    fn a_train_to_which_nobody_answers_passed_at_no_rate_that_was_measured() {
        let silent = train(Train::Paced, 12_000, |_, _| None);
        assert_eq!(lasting(&[silent], PAIR, 1500), Lasting::Unanswered);
    }

    #[test]
    fn what_is_not_sent_as_fast_says_nothing() {
        let slow = train(Train::Paced, 100_000, queue(12_000, 0));
        assert_eq!(lasting(&[slow], PAIR, 1500), Lasting::Unknown);
        assert_eq!(lasting(&[], PAIR, 1500), Lasting::Unknown);
    }

    fn first(packets: usize, of: &EchoTrain) -> EchoTrain {
        let (mut sent, mut answers) = (of.sent.clone(), of.answers.clone());
        sent.truncate(packets);
        answers.retain(|(number, _)| *number < packets);
        EchoTrain { kind: of.kind, sent, answers }
    }

    #[test]
    fn four_fifths_of_a_second_half_of_eight_packets_are_needed_to_confirm() {
        let cut = |after: usize| {
            let answer = |n: usize, at: u64| (n < after).then_some(at);
            lasting(&[train(Train::Paced, 12_000, answer)], PAIR, 1500)
        };
        // Of the last 48 questions 24 are answered, as far apart as they were sent.
        assert_eq!(cut(104), Lasting::Slower(5e8));
        assert_eq!((cut(115) == Lasting::Confirmed, cut(116)), (false, Lasting::Confirmed));
        let whole = train(Train::Paced, 12_000, |_, at| Some(at));
        let of = |packets: usize| lasting(&[first(packets, &whole)], PAIR, 1500);
        assert_eq!([12, 14, 15].map(of), [Lasting::Unknown, Lasting::Unknown, Lasting::Confirmed]);
    }

    #[test]
    fn trains_of_more_than_half_the_length_of_the_longest_say_whether_pairs_read_low() {
        let fast = |apart: u64| train(Train::Fast, 2_000, move |n, _| Some(n as u64 * apart));
        // A fifth faster is as fast.
        assert_eq!(lasting(&[fast(10_000)], PAIR, 1500), Lasting::Confirmed);
        assert_eq!(lasting(&[fast(9_999)], PAIR, 1500), Lasting::Faster(1.2e13 * 127.0 / 1_269_873.0));
        let with = |packets: usize| lasting(&[fast(9_600), first(packets, &fast(12_000))], PAIR, 1500);
        assert_eq!([64, 65].map(with), [Lasting::Faster(1.25e9), Lasting::Confirmed]);
    }

    #[test]
    fn a_bound_is_told_by_all_of_its_interval() {
        let rate = Interval { estimate: 100.0, lo: 95.0, hi: 105.0, confidence: 0.95 };
        let (bound, sent_apart) = (Bound::None, Span(2_000));
        let pairs = Narrowest { rate, bound, is_host_limited: false, sent_apart };
        let at = |value: f64, bound: Bound| {
            let rate = Interval { estimate: value, lo: value, hi: value, ..rate };
            Some(Narrowest { rate, bound, ..pairs })
        };
        assert_eq!(judged(pairs, Lasting::Confirmed), Some(pairs));
        assert_eq!(judged(pairs, Lasting::Faster(200.0)), at(180.0, Bound::AtLeast));
        assert_eq!(judged(pairs, Lasting::Slower(5.0)), at(105.0, Bound::AtMost));
        // An interval whose end is a fifth above its begin is not wide.
        let wider = |hi: f64| Narrowest { rate: Interval { lo: 100.0, hi, ..rate }, ..pairs };
        assert_eq!(judged(wider(120.0), Lasting::Confirmed), Some(wider(120.0)));
        assert_eq!(judged(wider(120.1), Lasting::Confirmed), at(100.0, Bound::AtLeast));
    }

    #[test]
    fn only_what_is_borne_out_is_a_figure() {
        let pairs = |lo: f64, hi: f64, bound| Narrowest {
            rate: Interval { estimate: f64::midpoint(lo, hi), lo, hi, confidence: 0.95 },
            bound,
            is_host_limited: bound != Bound::None,
            sent_apart: Span(2_000),
        };
        let said = |pairs, lasting| judged(pairs, lasting).map(|it| (it.bound, it.rate.lo, it.rate.hi));
        let (sure, wide) = (pairs(95.0, 105.0, Bound::None), pairs(50.0, 100.0, Bound::None));
        let limited = pairs(70.0, 70.0, Bound::AtLeast);
        let rows = [
            (sure, Lasting::Confirmed, Some((Bound::None, 95.0, 105.0))),
            (sure, Lasting::Slower(5.0), Some((Bound::AtMost, 105.0, 105.0))),
            (sure, Lasting::Faster(200.0), Some((Bound::AtLeast, 180.0, 180.0))),
            (sure, Lasting::Unknown, None),
            (wide, Lasting::Confirmed, Some((Bound::AtLeast, 50.0, 50.0))),
            (wide, Lasting::Slower(5.0), None),
            (limited, Lasting::Confirmed, Some((Bound::AtLeast, 70.0, 70.0))),
            (limited, Lasting::Slower(5.0), None),
        ];
        for (pairs, lasting, want) in rows {
            assert_eq!(said(pairs, lasting), want, "{pairs:?} {lasting:?}");
        }
    }
}

//! How often a router answers that rations its answers.
//!
//! Such a router keeps a bucket of tokens: an answer takes one, they come back at the rate that is
//! looked for, and a full bucket takes no more of them. A question that stays unanswered shows that
//! the bucket was empty. Of the answers between two such questions follow both ends of the rate:
//! tokens for all of these answers but one must have come in that time, so the rate is no lower;
//! and all tokens that came in it were answers, apart from those that came while the bucket may
//! have been full. It can only have been full in the gap in front of a question that was answered.
//!
//! **Assumes** that nobody else takes the router's tokens: what they take is missing from both
//! ends, which then are of the answers that are left for this host. **Biased** low where the path
//! itself loses probes or answers, by the share that it loses.

use std::collections::VecDeque;

use netaware_units::{Mono, Span};

/// Answers a second of a router that gives no more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnswerRate {
    /// It gives at least so many a second.
    pub at_least: f64,
    /// It gives at most so many a second; infinite where it was not asked often enough to know.
    pub at_most: f64,
}

impl AnswerRate {
    /// The middle of both ends, where they are so close together that it says something.
    pub fn about(&self) -> Option<f64> {
        let is_known = self.at_least > 0.0 && self.at_most <= self.at_least * CLOSE;
        is_known.then(|| f64::midpoint(self.at_least, self.at_most))
    }
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Answered,
    /// Others beyond the router were answered in the same round: the bucket was empty.
    Unanswered,
    /// Nobody waited for the answer, or nobody answered at all.
    Unknown,
}

/// Questions to a router since it was found to ration its answers, in the order of sending.
#[derive(Debug, Clone, Default)]
pub(super) struct Ration {
    asked: VecDeque<(Mono, Outcome)>,
}

impl Ration {
    pub(super) fn note(&mut self, sent_at: Mono, outcome: Outcome) {
        if self.asked.is_empty() && outcome != Outcome::Unanswered {
            // Before the first of these the bucket may have held any number of tokens.
            return;
        }
        if self.asked.len() < MOST_QUESTIONS {
            self.asked.push_back((sent_at, outcome));
        }
    }

    /// An answer came after its question had been given up.
    pub(super) fn note_late(&mut self, sent_at: Mono) {
        if let Some((_, outcome)) = self.asked.iter_mut().rev().find(|(at, _)| *at == sent_at) {
            *outcome = Outcome::Answered;
        }
    }

    /// Both ends of the rate, as far as the questions so far tell them.
    pub(super) fn rate(&self) -> Option<AnswerRate> {
        let mut asked = self.asked.iter().skip_while(|(_, outcome)| *outcome != Outcome::Unanswered);
        let (begin, _) = *asked.next()?;
        // What stays unanswered up to the end may be an outage.
        let last = self.asked.iter().rev().find(|(_, outcome)| *outcome == Outcome::Answered)?.0;
        let (mut answers, mut perhaps, mut emptied) = (0.0, 0.0, Span::ZERO);
        let (mut before, mut ends) = (begin, AnswerRate { at_least: 0.0, at_most: f64::INFINITY });
        for (at, outcome) in asked.take_while(|(at, _)| *at <= last) {
            match outcome {
                Outcome::Answered => (answers, perhaps) = (answers + 1.0, perhaps + 1.0),
                Outcome::Unknown => perhaps += 1.0,
                Outcome::Unanswered => {
                    emptied += *at - before;
                    if perhaps >= LEAST_ANSWERS && emptied > Span::ZERO {
                        ends.at_most = ends.at_most.min((perhaps + 1.0) / emptied.secs_f64());
                    }
                }
            }
            before = *at;
            let lasted = *at - begin;
            if answers >= LEAST_ANSWERS && lasted >= LEAST_TIME {
                ends.at_least = ends.at_least.max((answers - 1.0) / lasted.secs_f64());
            }
        }
        if ends.at_least > ends.at_most {
            // It is no bucket of tokens, or the path lost much; so many answers came all the same.
            let lasted = (last - begin).secs_f64().max(LEAST_TIME.secs_f64());
            ends = AnswerRate { at_least: (answers - 1.0).max(0.0) / lasted, at_most: f64::INFINITY };
        }
        (ends.at_least > 0.0).then_some(ends)
    }
}

/// Both ends of a rate that has a middle to tell are no further apart than this.
const CLOSE: f64 = 1.5;
/// Answers that tell a rate: a token more or less is no great part of them.
const LEAST_ANSWERS: f64 = 4.0;
/// And the time in which they came, so that a question that the path lost, while the bucket held
/// some tokens, does not make a high rate of these.
const LEAST_TIME: Span = Span::from_secs(1);
/// Questions that are kept.
const MOST_QUESTIONS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A router of `rate` answers a second and `burst` at once, asked each time that `gap` (ms)
    /// says of the number of the question, for 20 s.
    fn asked(rate: f64, burst: f64, gap: impl Fn(u64) -> u64) -> Ration {
        let (mut ration, mut tokens, mut at) = (Ration::default(), burst, 0);
        for n in 0.. {
            let waits = gap(n);
            at += waits;
            tokens = (tokens + rate * waits as f64 / 1e3).min(burst);
            if at > 20_000 {
                break;
            }
            let outcome = if tokens >= 1.0 { Outcome::Answered } else { Outcome::Unanswered };
            tokens -= if tokens >= 1.0 { 1.0 } else { 0.0 };
            ration.note(Mono(at * 1_000_000), outcome);
        }
        ration
    }

    /// How often hops are asked: often at first, and then more and more seldom.
    fn slower_and_slower(slowest: u64) -> impl Fn(u64) -> u64 {
        move |n| (30 << (n / 12).min(6)).min(slowest)
    }

    #[test]
    fn a_router_of_two_answers_a_second_is_not_said_to_give_0_4() {
        for rate in [0.5, 1.0, 2.0, 5.0, 10.0] {
            for burst in [1.0, 2.0, 6.0] {
                for slowest in [120, 480, 700, 2_000] {
                    let row = format!("{rate} a second, {burst} at once, each {slowest} ms at most");
                    let Some(found) = asked(rate, burst, slower_and_slower(slowest)).rate() else { continue };
                    assert!(found.at_least <= rate * 1.000_1, "{row}: {found:?}");
                    assert!(found.at_most >= rate * 0.999_9, "{row}: {found:?}");
                    let told = found.about().unwrap_or(rate);
                    assert!((told / rate - 1.0).abs() < 0.25, "{row}: {found:?}");
                }
            }
        }
        // Asked eight times as often as it answers, it is known.
        let found = asked(2.0, 2.0, |_| 60).rate().unwrap();
        assert!(found.about().is_some_and(|rate| (rate - 2.0).abs() < 0.2), "{found:?}");
        // Asked as often as it answers, only that it gives no less.
        let found = asked(2.0, 2.0, |n| if n < 6 { 10 } else { 700 }).rate();
        assert!(found.is_none_or(|it| it.about().is_none() && it.at_most.is_infinite()), "{found:?}");
    }

    #[test]
    fn an_outage_is_no_lower_rate() {
        let mut ration = asked(2.0, 2.0, |_| 120);
        let before = ration.rate().unwrap();
        for n in 0..500 {
            ration.note(Mono((20_100 + n * 100) * 1_000_000), Outcome::Unanswered);
        }
        assert_eq!(ration.rate(), Some(before));
        // Nobody answered for 50 s: nothing is known of that time.
        let mut ration = asked(2.0, 2.0, |_| 120);
        for n in 0..500 {
            ration.note(Mono((20_100 + n * 100) * 1_000_000), Outcome::Unknown);
        }
        ration.note(Mono(71_000_000_000), Outcome::Answered);
        ration.note(Mono(71_100_000_000), Outcome::Unanswered);
        let found = ration.rate().unwrap();
        assert!(found.at_least <= 2.0 && found.at_most >= 2.0, "{found:?}");
    }

    #[test]
    fn an_answer_that_came_late_counts_for_the_rate() {
        let mut ration = Ration::default();
        for n in 0..41_u64 {
            ration.note(Mono(n * 100_000_000), Outcome::Unanswered);
        }
        assert_eq!(ration.rate(), None);
        for n in [4, 14, 24, 34] {
            ration.note_late(Mono(n * 100_000_000));
        }
        let found = ration.rate().unwrap();
        assert!(found.at_least > 0.8 && found.at_least <= 1.0 && found.at_most >= 1.0, "{found:?}");
    }

    #[test]
    fn few_answers_or_a_moment_tell_no_rate() {
        let of = |gap: u64, answers: u64| {
            let mut ration = Ration::default();
            ration.note(Mono(0), Outcome::Unanswered);
            for n in 1..=answers {
                ration.note(Mono(n * gap * 1_000_000), Outcome::Answered);
            }
            ration.rate()
        };
        assert_eq!((of(250, 3), of(249, 4)), (None, None));
        assert_eq!(of(250, 4), Some(AnswerRate { at_least: 3.0, at_most: f64::INFINITY }));
    }
}

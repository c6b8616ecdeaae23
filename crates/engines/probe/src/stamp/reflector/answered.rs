//! Which requests were answered before, so that no recorded one draws a second answer.
//!
//! A session is protected as IPsec protects its own (RFC 4303 §3.4.3): what comes a second time is
//! not answered, nor is what is older than the window, since nobody remembers whether that was. A
//! window of 64 numbers, as usual there, is 3 ms at the highest rate, and paths reorder by more
//! than that; ours is [`WINDOW`].
//!
//! The proof of an authenticated packet does not cover its addresses. So [`Proofs`] remembers
//! those of all sessions, and a recorded packet draws no answer to another address either, for as
//! long as it is among the last [`MOST_PROOFS`] that were answered.

use std::collections::{HashSet, VecDeque};

/// The numbers of one session that were answered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Numbers {
    highest: Option<u32>,
    /// One bit for each number of the window, at the number modulo [`WINDOW`].
    answered: [u64; WORDS],
}

/// What a number is to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// It was not answered.
    New,
    /// It was answered.
    Repeated,
    /// It is older than what is remembered.
    Old,
}

impl Numbers {
    pub(super) fn judge(&self, number: u32) -> Number {
        let ahead = self.highest.map_or(1, |highest| number.wrapping_sub(highest).cast_signed());
        let (word, bit) = place(number);
        match ahead {
            1.. => Number::New,
            _ if ahead.unsigned_abs() >= WINDOW => Number::Old,
            _ if self.answered[word] & bit != 0 => Number::Repeated,
            _ => Number::New,
        }
    }

    /// Notes that a new number was answered.
    pub(super) fn note(&mut self, number: u32) {
        let highest = *self.highest.get_or_insert(number);
        let ahead = number.wrapping_sub(highest).cast_signed();
        if ahead > 0 {
            // What stands at the places of the numbers between is older than the window now.
            for between in 1..=ahead.unsigned_abs().min(WINDOW) {
                let (word, bit) = place(highest.wrapping_add(between));
                self.answered[word] &= !bit;
            }
            self.highest = Some(number);
        }
        let (word, bit) = place(number);
        self.answered[word] |= bit;
    }
}

fn place(number: u32) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / u64::BITS) as usize, 1 << (at % u64::BITS))
}

/// The proofs of the packets that were answered last.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    known: HashSet<u128>,
    /// The same ones, the oldest first.
    in_order: VecDeque<u128>,
}

impl Proofs {
    pub(super) fn contain(&self, proof: u128) -> bool {
        self.known.contains(&proof)
    }

    pub(super) fn note(&mut self, proof: u128) {
        if !self.known.insert(proof) {
            return;
        }
        if self.in_order.len() == MOST_PROOFS
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.in_order.push_back(proof);
    }
}

/// Numbers of a session that are remembered: 51 ms at 20,000 packets a second. A power of two, so
/// that places are right where numbers begin again at 0.
const WINDOW: u32 = 1024;
const WORDS: usize = (WINDOW / u64::BITS) as usize;
/// Some 3 MB with what finds them.
const MOST_PROOFS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judged(numbers: &mut Numbers, number: u32) -> Number {
        let is = numbers.judge(number);
        if is == Number::New {
            numbers.note(number);
        }
        is
    }

    #[test]
    fn a_number_is_answered_once_in_whatever_order_it_comes() {
        for first in [0, 5_000, u32::MAX - 500, u32::MAX] {
            let mut numbers = Numbers::default();
            // 0, 1023, 1, 1022 and so on, each of the window once.
            for n in 0..WINDOW {
                let n = if n % 2 == 0 { n / 2 } else { WINDOW - 1 - n / 2 };
                assert_eq!(judged(&mut numbers, first.wrapping_add(n)), Number::New, "{first} + {n}");
            }
            for n in 0..WINDOW {
                let is = judged(&mut numbers, first.wrapping_add(n));
                assert_eq!(is, Number::Repeated, "{first} + {n}");
            }
        }
    }

    #[test]
    fn what_is_older_than_the_window_is_not_answered() {
        let rows = [
            (0, Number::Repeated),
            (1, Number::New),
            (WINDOW - 1, Number::New),
            (WINDOW, Number::Old),
            (1 << 31, Number::Old),
            ((1 << 31) + 1, Number::New),
        ];
        for (behind, want) in rows {
            let mut numbers = Numbers::default();
            numbers.note(7);
            assert_eq!(numbers.judge(7_u32.wrapping_sub(behind)), want, "{behind}");
        }
    }

    #[test]
    fn a_recorded_packet_behind_a_jump_of_the_numbers_is_not_answered() {
        for jump in [1, 63, 64, 65, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW, i32::MAX as u32 - 10] {
            let mut numbers = Numbers::default();
            for number in 0..=10 {
                numbers.note(number);
            }
            numbers.note(10 + jump);
            for number in 0..=10 {
                assert_ne!(numbers.judge(number), Number::New, "{number} behind {jump}");
            }
            assert_eq!(numbers.judge(10 + jump), Number::Repeated);
            assert_eq!(numbers.judge(11 + jump), Number::New);
            let between = if jump > 1 { Number::New } else { Number::Repeated };
            assert_eq!(numbers.judge(9 + jump), between, "{jump}");
        }
    }

    #[test]
    fn the_oldest_proof_is_forgotten_first_and_there_are_no_more_than_so_many() {
        let mut proofs = Proofs::default();
        let most = MOST_PROOFS as u128;
        for proof in 0..most {
            proofs.note(proof);
            proofs.note(proof);
        }
        assert!(proofs.contain(0) && proofs.contain(most - 1) && !proofs.contain(most));
        proofs.note(most);
        assert!(!proofs.contain(0) && proofs.contain(1) && proofs.contain(most));
        assert_eq!((proofs.known.len(), proofs.in_order.len()), (MOST_PROOFS, MOST_PROOFS));
    }

    proptest! {
        /// The oracle forgets nothing, and its numbers do not begin again at 0.
        #[test]
        fn any_order_of_numbers_is_judged_as_by_remembering_all(
            first in prop_oneof![Just(1_u64 << 33), Just((1_u64 << 33) - 700), Just((1_u64 << 33) + 99_999)],
            steps in proptest::collection::vec(prop_oneof![-3_i64..4, -1100_i64..1100], 1..300),
        ) {
            let (mut numbers, mut answered) = (Numbers::default(), HashSet::new());
            let (mut highest, mut number) = (0, first);
            for step in steps {
                number = number.saturating_add_signed(step);
                let is = judged(&mut numbers, number as u32);
                let want = if highest >= number + u64::from(WINDOW) {
                    Number::Old
                } else if answered.contains(&number) {
                    Number::Repeated
                } else {
                    Number::New
                };
                prop_assert_eq!(is, want, "{} with {}", number, highest);
                if is == Number::New {
                    answered.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}

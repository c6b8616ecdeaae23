//! Which numbers have come, of those lately sent.
//!
//! What is further behind than [`WINDOW`] cannot be told from something that has come already and
//! is not taken: at 100,000 datagrams each second that is reordering by more than 80 ms. Memory is
//! the same whatever comes.

/// Follows one row of numbers, which begins with 1.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    highest: u64,
    received: u64,
    /// A bit for each of the last numbers; bit `n % WINDOW` is that of `n`.
    bits: Box<[u64; WORDS]>,
}

/// What an arrival is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It has not come before.
    First,
    /// It has.
    Again,
    /// Too far behind to be told.
    TooLate,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self { highest: 0, received: 0, bits: Box::new([0; WORDS]) }
    }

    /// The highest number that came; 0 before the first.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// Different numbers that came in time.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Takes one, of which the low bits are known.
    pub(super) fn take(&mut self, low: u32) -> Arrival {
        let number = extend(self.highest, low);
        if number == 0 || self.highest >= number + WINDOW {
            return Arrival::TooLate;
        }
        if number > self.highest {
            self.clear(number);
            self.highest = number;
        }
        let (word, bit) = place(number);
        if self.bits[word] & bit != 0 {
            return Arrival::Again;
        }
        self.bits[word] |= bit;
        self.received += 1;
        Arrival::First
    }

    /// Those between the highest up to now and `number` have not come.
    fn clear(&mut self, number: u64) {
        if number - self.highest >= WINDOW {
            *self.bits = [0; WORDS];
            return;
        }
        for skipped in self.highest + 1..=number {
            let (word, bit) = place(skipped);
            self.bits[word] &= !bit;
        }
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

/// The number with these low bits that is nearest to one that is known.
pub(super) fn extend(near: u64, low: u32) -> u64 {
    let ahead = low.wrapping_sub(near as u32) as i32;
    near.checked_add_signed(ahead.into()).unwrap_or(low.into())
}

const WORDS: usize = 128;
/// Numbers that are remembered.
pub(super) const WINDOW: u64 = 64 * WORDS as u64;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_number_comes_once_in_any_order() {
        let mut seen = Seen::new();
        let rows = [
            (1, Arrival::First),
            (3, Arrival::First),
            (3, Arrival::Again),
            (2, Arrival::First),
            (2, Arrival::Again),
            (0, Arrival::TooLate),
            (9000, Arrival::First),
            (2, Arrival::TooLate),
            (9000 - WINDOW as u32 + 1, Arrival::First),
            (9000 - WINDOW as u32, Arrival::TooLate),
        ];
        for (row, (low, what)) in rows.into_iter().enumerate() {
            assert_eq!(seen.take(low), what, "row {row}");
        }
        assert_eq!((seen.highest(), seen.received()), (9000, 5));
    }

    #[test]
    fn it_agrees_with_a_set_over_jumps_of_all_sizes() {
        let mut seen = Seen::new();
        let mut came = HashSet::new();
        let mut x = 1_u64;
        for _ in 0..200_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (seen.highest() + 300 + (x >> 62) * 40).saturating_sub((x >> 33) % 9000).max(1);
            let highest = seen.highest();
            let expected = match (highest >= number + WINDOW, came.insert(number)) {
                (true, _) => Arrival::TooLate,
                (false, true) => Arrival::First,
                (false, false) => Arrival::Again,
            };
            assert_eq!(seen.take(number as u32), expected, "{number} after {highest}");
        }
        assert!(seen.received() > 1000);
    }

    #[test]
    fn counts_go_on_where_32_bits_end() {
        let before = (7 << 32) - 2;
        assert_eq!(extend(before, 1), (7 << 32) + 1);
        assert_eq!(extend((7 << 32) + 1, u32::MAX), (7 << 32) - 1);
        assert_eq!(extend(5, u32::MAX), u64::from(u32::MAX));
    }
}

//! The recent past of a stream, one bit per number: arrived or missing.
//!
//! A ring of words covers `floor..floor + SPAN`. Bits are appended at the `frontier` and retired
//! word by word at the floor; retiring is the moment at which missing becomes lost.

use super::LENGTH_BINS;
use crate::hist::LengthHistogram;

/// Invariants: `floor` is a multiple of 64; `floor <= frontier <= floor + SPAN`; bits at and above
/// `frontier` are zero.
#[derive(Debug, Clone)]
pub(super) struct Window {
    words: Box<[u64]>,
    /// Everything below is decided.
    floor: u64,
    /// First number not appended yet.
    frontier: u64,
    loss_runs: LengthHistogram,
    /// Length of the loss run that ends at `floor`; it may go on.
    open_run: u64,
}

impl Window {
    /// Begins at `first`. What lies before it in the same word counts as arrived, so that it is not
    /// lost.
    pub(super) fn starting_at(first: u64) -> Self {
        let mut words = vec![0; WORDS].into_boxed_slice();
        words[slot(first)] = mask_below(first % 64);
        let loss_runs = LengthHistogram::new(LENGTH_BINS);
        Self { words, floor: first - first % 64, frontier: first, loss_runs, open_run: 0 }
    }

    /// Numbers below this are decided and can no longer be marked.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Appends `frontier..to` as arrived.
    pub(super) fn append_received(&mut self, to: u64) {
        self.append(to, Bit::Received);
    }

    /// Appends `frontier..to` as missing.
    pub(super) fn append_missing(&mut self, to: u64) {
        self.append(to, Bit::Missing);
    }

    /// Marks a number in `floor..frontier` as arrived; false if it was already.
    pub(super) fn mark(&mut self, seq: u64) -> bool {
        debug_assert!(
            (self.floor..self.frontier).contains(&seq),
            "only numbers inside the window are marked"
        );
        let word = &mut self.words[slot(seq)];
        let bit = 1 << (seq % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Decides all that is left, adds `lost_at_the_end` numbers never seen, and closes the last
    /// run.
    pub(super) fn into_loss_runs(mut self, lost_at_the_end: u64) -> LengthHistogram {
        while self.floor < self.frontier {
            self.retire_word();
        }
        // The last word was retired whole; its bits from the frontier on are not missing, they
        // never were sent.
        let beyond = self.floor - self.frontier;
        self.open_run = self.open_run.saturating_sub(beyond).saturating_add(lost_at_the_end);
        self.loss_runs.observe(self.open_run);
        self.loss_runs
    }

    /// Takes a bounded number of steps however far `to` is: a stretch longer than the window never
    /// enters the ring.
    fn append(&mut self, to: u64, bit: Bit) {
        // The rest of the word that the frontier stands in.
        self.fill(to.min(self.frontier.next_multiple_of(64)), bit);
        if self.frontier == to {
            return;
        }
        let floor = to.next_multiple_of(64).saturating_sub(SPAN).max(self.floor);
        while self.floor < floor.min(self.frontier) {
            self.retire_word();
        }
        if self.floor < floor {
            self.retire_run(bit, floor - self.floor);
            (self.floor, self.frontier) = (floor, floor);
        }
        while self.frontier < to {
            self.fill(to.min(self.frontier + 64), bit);
        }
    }

    /// Appends `frontier..to`, which must lie within one word of the ring.
    fn fill(&mut self, to: u64, bit: Bit) {
        if to > self.frontier && bit == Bit::Received {
            let below_end = if to.is_multiple_of(64) { u64::MAX } else { mask_below(to % 64) };
            self.words[slot(self.frontier)] |= below_end & !mask_below(self.frontier % 64);
        }
        self.frontier = to;
    }

    fn retire_word(&mut self) {
        let mut word = std::mem::take(&mut self.words[slot(self.floor)]);
        let mut left = 64;
        while left > 0 {
            // Zeros shifted in from above must not count as missing numbers of this word.
            let received = word.trailing_ones().min(left);
            self.retire_run(Bit::Received, u64::from(received));
            left -= received;
            word = word.checked_shr(received).unwrap_or(0);
            let missing = word.trailing_zeros().min(left);
            self.retire_run(Bit::Missing, u64::from(missing));
            left -= missing;
            word = word.checked_shr(missing).unwrap_or(0);
        }
        self.floor += 64;
    }

    fn retire_run(&mut self, bit: Bit, length: u64) {
        match bit {
            Bit::Missing => self.open_run += length,
            Bit::Received if length > 0 => self.loss_runs.observe(std::mem::take(&mut self.open_run)),
            Bit::Received => {}
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bit {
    Received,
    Missing,
}

fn slot(seq: u64) -> usize {
    (seq / 64) as usize % WORDS
}

/// The lowest `bits` bits, `bits` below 64.
fn mask_below(bits: u64) -> u64 {
    (1 << bits) - 1
}

/// 64 Ki numbers: 2 ms at 30 million packets per second, and 8 KiB, which stays in the first-level
/// cache.
const WORDS: usize = 1024;
const SPAN: u64 = 64 * WORDS as u64;

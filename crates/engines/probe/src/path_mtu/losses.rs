//! How many datagrams the path loses whatever their size.

/// Datagrams of sizes that pass, and how many of them were answered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Losses {
    sent: usize,
    answered: usize,
}

impl Losses {
    /// So many more were sent, and so many of these were answered.
    pub(super) fn observe(&mut self, sent: usize, answered: usize) {
        self.sent += sent;
        self.answered += answered;
    }

    /// Returns how likely it is that a datagram of a size that passes is lost so often in a row. A
    /// path of which little has been seen is not taken for one that loses nothing: half a datagram
    /// more was lost, and half a one more was answered (the estimate of Krichevsky and Trofimov).
    pub(super) fn chance_of(self, losses: u32) -> f64 {
        let lost = (self.sent - self.answered) as f64 + 0.5;
        let share = lost / (self.sent as f64 + 1.0);
        (0..losses).fold(1.0, |chance, _| chance * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_a_path_loses_the_more_losses_in_a_row_are_bad_luck() {
        // Sent, answered, and how many losses in a row are less likely than one in a thousand.
        let rows = [(3, 3, 4), (4, 4, 4), (7, 7, 3), (20, 20, 2), (20, 18, 4), (20, 10, 10), (20, 1, 94)];
        for (sent, answered, losses) in rows {
            let mut path = Losses::default();
            path.observe(sent, answered);
            let least = (1..200).find(|losses| path.chance_of(*losses) < 0.001);
            assert_eq!(least, Some(losses), "{sent}, {answered}");
        }
        assert!(Losses::default().chance_of(3) > 0.1, "nothing is known");
    }
}

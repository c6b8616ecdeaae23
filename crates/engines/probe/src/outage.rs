//! Losses in a row that tell of an outage, and not of a path that loses packets one by one.
//!
//! **Measures** the rows of lost packets that lasted [`NOTICEABLE`] and longer. **Assumes** packets
//! at even distances. **Biased**: an outage is short by up to the distance of two packets, and one
//! that took fewer than [`MIN_LOST`] packets is not told. A row that losses one by one would bring
//! about by themselves now and then is none.

use netaware_units::Span;

/// The outages of a stream or of a train.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outages {
    /// How many there were.
    pub times: u64,
    /// How long the longest lasted.
    pub longest: Span,
    /// Packets that fell into them.
    pub lost: u64,
}

impl Outages {
    /// Of these rows, each of so many lost packets and so many times, among `sent` packets that
    /// were this far apart.
    pub fn of(rows: &[(u64, u64)], sent: u64, apart: Span) -> Self {
        if rows.iter().map(|(length, times)| length * times).sum::<u64>() >= sent {
            // Nothing came at all: that is no outage that ended.
            return Self::default();
        }
        let lasted = |length: u64| apart * i64::try_from(length).unwrap_or(i64::MAX);
        let is_long = |length: u64| length >= MIN_LOST && lasted(length) >= NOTICEABLE;
        let others: u64 =
            rows.iter().filter(|(length, _)| !is_long(*length)).map(|(n, times)| n * times).sum();
        let one_by_one = others as f64 / sent.max(1) as f64;
        let mut found = Self::default();
        for (length, times) in rows.iter().copied().filter(|(length, _)| is_long(*length)) {
            let by_chance = sent as f64 * one_by_one.powf(length as f64);
            if by_chance < SELDOM {
                found = found.and(Self { times, longest: lasted(length), lost: length * times });
            }
        }
        found
    }

    /// Of the packets that have no answer, between those with these numbers, which rise.
    pub fn between(answered: impl IntoIterator<Item = u64>, sent: u64, apart: Span) -> Self {
        let mut rows = Vec::new();
        let mut next = 0;
        for number in answered {
            rows.extend(number.checked_sub(next).filter(|lost| *lost > 0).map(|lost| (lost, 1)));
            next = next.max(number + 1);
        }
        Self::of(&rows, sent, apart)
    }

    /// Of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            times: self.times + other.times,
            longest: self.longest.max(other.longest),
            lost: self.lost + other.lost,
        }
    }

    /// A sentence for a person, of `lost` packets in all; `None` where there was no outage.
    pub fn in_words(self, lost: u64, what: &str) -> Option<String> {
        let Self { times, longest, lost: fell } = self;
        let often = match times {
            0 => return None,
            1 => format!("nothing came for {longest}"),
            times => format!("{times} times nothing came, for up to {longest}"),
        };
        Some(format!("{often}: {fell} of the {lost} lost {what} fell into such an outage"))
    }
}

/// People notice pauses of this length in a call.
const NOTICEABLE: Span = Span::from_millis(100);
/// Fewer in a row may be lost one by one.
const MIN_LOST: u64 = 4;
/// Rows like that which chance would bring about in the same measurement.
const SELDOM: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::*;

    const APART: Span = Span::from_millis(10);

    #[test]
    fn fades_of_a_radio_link_are_not_told_as_loss_of_seven_per_cent() {
        let found = Outages::of(&[(1, 1), (41, 1), (43, 1)], 1200, APART);
        assert_eq!(found, Outages { times: 2, longest: APART * 43, lost: 84 });
        assert_eq!(
            found.in_words(85, "requests").unwrap(),
            "2 times nothing came, for up to 430 ms: 84 of the 85 lost requests fell into such an outage"
        );
        let one = Outages::of(&[(41, 1)], 1200, APART);
        assert!(one.in_words(41, "datagrams").unwrap().starts_with("nothing came for 410 ms: 41 of the 41"));
    }

    #[test]
    fn numbers_without_an_answer_are_rows() {
        let answered = (0..100).chain(140..400).chain(450..1000);
        let found = Outages::between(answered, 1000, APART);
        assert_eq!(found, Outages { times: 2, longest: APART * 50, lost: 90 });
        assert_eq!(Outages::between([], 0, APART), Outages::default());
    }

    #[test]
    fn losses_one_by_one_and_short_bursts_are_no_outage() {
        let none = Outages::default();
        // Half is lost at requests a fifth of a second apart: four in a row are usual.
        assert_eq!(Outages::of(&[(1, 100), (2, 50), (4, 12)], 400, Span::from_millis(200)), none);
        assert_eq!(Outages::of(&[(9, 3)], 1200, APART), none);
        assert_eq!(Outages::of(&[], 0, APART), none);
        // Packets that the path never takes, however long it is asked.
        assert_eq!(Outages::of(&[(1000, 1)], 1000, APART), none);
        assert_eq!(none.in_words(3, "requests"), None);
    }
}

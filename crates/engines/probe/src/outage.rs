//! Losses in a row that tell of an outage, and not of a path that loses packets one by one.
//!
//! **Measures** the rows of lost packets that lasted [`NOTICEABLE`] and longer. **Assumes** packets
//! at even distances. **Biased**: an outage is short by up to the distance of two packets, and one
//! that took fewer than [`MIN_LOST`] packets is not told. A row that losses one by one would bring
//! about by themselves now and then is none. How often these are is the larger one of two shares:
//! of what is lost apart from long rows, and of the packets that came and were followed by a loss.
//! The first one alone is too small on a path that loses much, whose long rows it leaves out. A row
//! at the beginning or at the end of a train is the part that the train saw of an outage: it counts
//! from [`NOTICEABLE_IN_PART`] on, and tells less than the outage lasted. Trains that follow each
//! other over the same path are looked at as one: a row that reaches over the end of one of them
//! lasted at least until the last request without an answer, and at most until the first one after
//! it that had one. One of requests is long by up to a round trip, with the queue in it: both the
//! request and its answer have to pass. What was lost up to a second before or after an ICMP
//! message about such packets was rejected, and is in no outage.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use netaware_units::{Mono, Span};

/// The outages of a stream or of a train.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outages {
    /// How many there were.
    pub times: u64,
    /// How long the longest lasted, at least.
    pub longest: Span,
    /// How long it lasted at most, as far as that was observed.
    pub at_most: Span,
    /// Packets that fell into them.
    pub lost: u64,
}

impl Outages {
    /// Of these rows, each of so many lost packets and so many times, among `sent` packets that
    /// were this far apart. It is not known which of them were in the midst.
    pub fn of(rows: &[(u64, u64)], sent: u64, apart: Span) -> Self {
        Self::of_stream(rows, 0, sent, apart)
    }

    /// The same where the last packets were lost in a row of this length, which is in none of the
    /// others.
    pub fn of_stream(rows: &[(u64, u64)], at_the_end: u64, sent: u64, apart: Span) -> Self {
        let rows: Vec<Row> = rows
            .iter()
            .filter_map(|(length, times)| Some(Row { times: *times, ..Row::lost(*length, At::Midst)? }))
            .chain(Row::lost(at_the_end, At::Edge))
            .collect();
        Self::among(&rows, sent, apart)
    }

    /// Of one that took all packets of a stream of this length, and lasted at most so long.
    pub fn of_all(lost: u64, longest: Span, at_most: Span) -> Self {
        Self { times: 1, longest, at_most: longest.max(at_most), lost }
    }

    fn among(rows: &[Row], sent: u64, apart: Span) -> Self {
        let lost: u64 = rows.iter().map(Row::packets).fold(0, u64::saturating_add);
        if lost >= sent {
            // Nothing came at all: that is no outage that ended.
            return Self::default();
        }
        let is_long = |row: &&Row| row.length >= MIN_LOST && row.lasted(apart) >= row.noticeable();
        let others: u64 =
            rows.iter().filter(|row| !is_long(row)).map(Row::packets).fold(0, u64::saturating_add);
        let begun = rows.iter().map(|row| row.times).fold(0, u64::saturating_add);
        let followed = (begun as f64 / (sent - lost) as f64).min(1.0);
        let one_by_one = (others as f64 / sent as f64).max(followed);
        let mut found = Self::default();
        for row in rows.iter().filter(is_long) {
            let by_chance = sent as f64 * one_by_one.powf(row.length as f64);
            if by_chance < SELDOM {
                let Row { times, .. } = *row;
                let longest = row.lasted(apart);
                let at_most = longest.max(row.at_most.unwrap_or_default());
                found = found.and(Self { times, longest, at_most, lost: row.packets() });
            }
        }
        found
    }

    /// Of the packets that have no answer, between those with these numbers, which rise, of `sent`
    /// packets that were this far apart.
    pub fn between(answered: impl IntoIterator<Item = u64>, sent: u64, apart: Span) -> Self {
        let mut rows = Vec::new();
        let mut next = 0;
        for number in answered {
            let at = if next == 0 { At::Edge } else { At::Midst };
            rows.extend(Row::lost(number.saturating_sub(next), at));
            next = next.max(number + 1);
        }
        rows.extend(Row::lost(sent.saturating_sub(next), At::Edge));
        Self::among(&rows, sent, apart)
    }

    /// Of trains that followed each other over the same path, with packets this far apart.
    pub fn over(trains: &[Train], apart: Span) -> Self {
        let (mut rows, mut open, mut answered_until) = (Vec::new(), None, None);
        for train in trains {
            let mut next = 0;
            for number in train.not_lost.iter().copied().chain([train.sent]) {
                if number > next {
                    let (first, last) = (train.due(next, apart), train.due(number - 1, apart));
                    let row: &mut Silence = open.get_or_insert(Silence {
                        began_after: answered_until.unwrap_or(first),
                        first,
                        ..Silence::default()
                    });
                    row.until = last;
                    row.length += number - next;
                    row.is_cut |= next == 0 || number == train.sent;
                    row.longest_part = row.longest_part.max(number - next);
                }
                if number < train.sent {
                    rows.extend(
                        open.take().and_then(|row: Silence| row.ended(Some(train.due(number, apart)), apart)),
                    );
                    answered_until = Some(train.due(number, apart));
                }
                next = next.max(number + 1);
            }
            if let Some(row) = &mut open {
                row.until = row.until.max(train.silent_at.unwrap_or(row.until));
            }
            if train.came_at.is_some() {
                rows.extend(open.take().and_then(|row: Silence| row.ended(train.came_at, apart)));
            }
        }
        rows.extend(open.and_then(|row| row.ended(None, apart)));
        Self::among(&rows, trains.iter().map(|train| train.sent).sum(), apart)
    }

    /// Of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            times: self.times + other.times,
            longest: self.longest.max(other.longest),
            at_most: self.at_most.max(other.at_most),
            lost: self.lost + other.lost,
        }
    }

    /// A sentence for a person, of `lost` packets in all; `None` where there was no outage.
    pub fn in_words(self, lost: u64, what: &str) -> Option<String> {
        in_words(&[Part { outages: self, lost, what: what.to_owned() }])
    }
}

/// The time of which ICMP messages that came from `first` to `last` tell: packets that were lost
/// then are taken for rejected. The messages come up to a round trip after their packets, and not
/// each packet has one, because systems ration ICMP to about one a second (RFC 1812 §4.3.2.8).
pub fn rejected_within(first: Span, last: Span) -> RangeInclusive<Span> {
    first - ICMP_TELLS_OF..=last + ICMP_TELLS_OF
}

/// The numbers of the packets of which ICMP messages tell, of packets this far apart: the messages
/// came from `first` to `last`, since the first packet was due.
pub fn rejected(first: Span, last: Span, apart: Span) -> RangeInclusive<u64> {
    let number = |at: Span| u64::try_from(at.or_zero().nanos() / apart.nanos().max(1)).unwrap_or(0);
    let within = rejected_within(first, last);
    number(*within.start())..=number(*within.end())
}

/// These numbers of packets that are not lost, in order, and those of lost ones that are among the
/// `rejected`: what somebody on the path rejected is no outage. The part of a row of losses of
/// which no message tells stays lost.
pub fn and_rejected(not_lost: &[u64], sent: u64, rejected: &[RangeInclusive<u64>]) -> Vec<u64> {
    if rejected.is_empty() {
        return not_lost.to_vec();
    }
    let mut numbers = Vec::with_capacity(not_lost.len());
    let mut next = 0;
    for number in not_lost.iter().copied().chain([sent]) {
        numbers.extend((next..number).filter(|lost| rejected.iter().any(|some| some.contains(lost))));
        numbers.extend((number < sent).then_some(number));
        next = next.max(number + 1);
    }
    numbers
}

/// Rows of lost packets, each of so many and so many times, of a stream that lost no more than
/// `elsewhere` in long rows while nobody rejected anything. It is not known where the rows were:
/// the longest keep what they can have lost then. Rows that are too short for an outage stay.
pub fn rows_elsewhere(rows: &[(u64, u64)], elsewhere: u64, apart: Span) -> Vec<(u64, u64)> {
    let may_be_outage = |length: u64| {
        Row::lost(length, At::Edge)
            .is_some_and(|row| length >= MIN_LOST && row.lasted(apart) >= row.noticeable())
    };
    let (mut long, mut kept): (Vec<_>, Vec<_>) =
        rows.iter().copied().partition(|(length, _)| may_be_outage(*length));
    long.sort_unstable_by_key(|(length, _)| Reverse(*length));
    let mut left = elsewhere;
    for (length, times) in long {
        let whole = (left / length).min(times);
        left -= whole * length;
        kept.extend((whole > 0).then_some((length, whole)));
        if whole < times {
            kept.extend((left > 0).then_some((left, 1)));
            left = 0;
        }
    }
    kept
}

/// The outages that one kind of packets met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// These.
    pub outages: Outages,
    /// Packets of the kind that were lost in all.
    pub lost: u64,
    /// Its name, such as "requests".
    pub what: String,
}

/// One sentence for a person about the outages of a path that several kinds of packets met one
/// after the other; `None` where there was none.
pub fn in_words(parts: &[Part]) -> Option<String> {
    let all = parts.iter().map(|part| part.outages).reduce(Outages::and)?;
    let is_known = all.at_most.nanos() <= all.longest.nanos() / 5 * 6;
    let often = match all.times {
        0 => return None,
        1 if is_known => format!("nothing came for {}", all.longest),
        1 => format!("nothing came for {} at least and {} at most", all.longest, all.at_most),
        times if is_known => format!("{times} times nothing came, for up to {}", all.longest),
        times => {
            format!(
                "{times} times nothing came, the longest time for {} at least and {} at most",
                all.longest, all.at_most
            )
        }
    };
    let met = parts.iter().filter(|part| part.outages.times > 0);
    let fell: Vec<String> =
        met.map(|part| format!("{} of the {} lost {}", part.outages.lost, part.lost, part.what)).collect();
    let fell = match fell.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => fell.join(""),
    };
    Some(format!("{often}: {fell} fell into such an outage"))
}

/// Packets at even distances, a part of a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Train {
    /// When the first one was due.
    pub began_at: Mono,
    /// The numbers of those that are not lost, in order.
    pub not_lost: Vec<u64>,
    /// How many there were.
    pub sent: u64,
    /// After its end something else was asked then, and nothing came.
    pub silent_at: Option<Mono>,
    /// After its end something else was asked, and then it was answered.
    pub came_at: Option<Mono>,
}

impl Train {
    fn due(&self, number: u64, apart: Span) -> Mono {
        self.began_at + apart * i64::try_from(number).unwrap_or(i64::MAX)
    }
}

/// A row in the making.
#[derive(Debug, Clone, Copy, Default)]
struct Silence {
    /// The last one that was answered was due then.
    began_after: Mono,
    first: Mono,
    until: Mono,
    length: u64,
    /// A train began or ended in it.
    is_cut: bool,
    /// The most that were lost in a row within one train.
    longest_part: u64,
}

impl Silence {
    fn ended(self, came_at: Option<Mono>, apart: Span) -> Option<Row> {
        if !self.is_cut {
            return Row::lost(self.length, At::Midst);
        }
        // A few at the end of one train and a few at the begin of the next tell nothing of what was
        // between them.
        let row = Row::lost(self.length, At::Edge).filter(|_| self.longest_part >= MIN_LOST)?;
        let at_most = came_at.map(|at| at - self.began_after);
        Some(Row { lasted: Some(self.until - self.first + apart), at_most, ..row })
    }
}

/// Packets that were lost in a row.
#[derive(Debug, Clone, Copy)]
struct Row {
    length: u64,
    times: u64,
    at: At,
    /// By the clock, where that is known.
    lasted: Option<Span>,
    at_most: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Packets before and after it came.
    Midst,
    /// The train began or ended in it.
    Edge,
}

impl Row {
    fn lost(length: u64, at: At) -> Option<Self> {
        (length > 0).then_some(Self { length, times: 1, at, lasted: None, at_most: None })
    }

    /// Of all rows of this length.
    fn packets(&self) -> u64 {
        self.length.saturating_mul(self.times)
    }

    fn lasted(&self, apart: Span) -> Span {
        let by_count = apart * i64::try_from(self.length).unwrap_or(i64::MAX);
        by_count.max(self.lasted.unwrap_or_default())
    }

    fn noticeable(&self) -> Span {
        match self.at {
            At::Midst => NOTICEABLE,
            At::Edge => NOTICEABLE_IN_PART,
        }
    }
}

/// People notice pauses of this length in a call.
const NOTICEABLE: Span = Span::from_millis(100);
/// The part of such a pause that one train saw is half of it on average.
const NOTICEABLE_IN_PART: Span = Span::from_millis(50);
/// An ICMP message comes no later after its packet, as a rule, and the next one no later after it.
const ICMP_TELLS_OF: Span = Span::from_secs(1);
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
        assert_eq!(found, Outages { times: 2, longest: APART * 43, at_most: APART * 43, lost: 84 });
        assert_eq!(
            found.in_words(85, "requests").unwrap(),
            "2 times nothing came, for up to 430 ms: 84 of the 85 lost requests fell into such an outage"
        );
        let one = Outages::of(&[(41, 1)], 1200, APART);
        assert!(one.in_words(41, "datagrams").unwrap().starts_with("nothing came for 410 ms: 41 of the 41"));
    }

    /// 105 packets that a filter rejected for a second were said to have met an outage.
    #[test]
    fn a_row_that_somebody_on_the_path_rejected_is_no_outage() {
        let answered: Vec<u64> = (0..200).chain(305..400).chain(450..500).collect();
        // Reports came from 2.02 s on, and no longer than 2.98 s, because they are rationed.
        let reports = rejected(Span::from_millis(2020), Span::from_millis(2980), APART);
        assert_eq!(reports, 102..=398);
        let numbers = and_rejected(&answered, 500, &[reports]);
        assert_eq!(numbers, (0..400).chain(450..500).collect::<Vec<_>>());
        let found = Outages::between(numbers, 500, APART);
        assert_eq!((found.times, found.lost), (1, 50), "nobody rejected those");
        assert_eq!(and_rejected(&answered, 500, &[]), answered);
        // A row that reaches to the end, and reports that came before the first packet could have.
        assert_eq!(and_rejected(&[0, 1], 5, &[rejected(Span::ZERO, APART * 3, APART)]), [0, 1, 2, 3, 4]);
        assert_eq!(and_rejected(&[0, 1, 2], 3, &[RangeInclusive::new(0, 9)]), [0, 1, 2]);
    }

    /// Ten seconds without an answer were no outage, because one "host unreachable" had come at
    /// their beginning.
    #[test]
    fn one_icmp_message_does_not_make_a_long_outage_a_rejection() {
        let answered: Vec<u64> = (0..500).chain(1500..2000).collect();
        let at = Span::from_secs(5);
        let numbers = and_rejected(&answered, 2000, &[rejected(at, at, APART)]);
        assert_eq!(numbers.len() - answered.len(), 101, "those of 5 s to 6 s");
        let found = Outages::between(numbers, 2000, APART);
        assert_eq!((found.times, found.longest, found.lost), (1, APART * 899, 899));
    }

    #[test]
    fn rows_of_a_stream_keep_what_was_lost_while_nobody_rejected_anything() {
        let rows = [(1, 7), (90, 1), (120, 2)];
        assert_eq!(rows_elsewhere(&rows, 0, APART), [(1, 7)]);
        assert_eq!(rows_elsewhere(&rows, 100, APART), [(1, 7), (100, 1)]);
        assert_eq!(rows_elsewhere(&rows, 150, APART), [(1, 7), (120, 1), (30, 1)]);
        assert_eq!(rows_elsewhere(&rows, 330, APART), [(1, 7), (120, 2), (90, 1)]);
    }

    #[test]
    fn numbers_without_an_answer_are_rows() {
        let answered = (0..100).chain(140..400).chain(450..1000);
        let found = Outages::between(answered, 1000, APART);
        assert_eq!(found, Outages { times: 2, longest: APART * 50, at_most: APART * 50, lost: 90 });
        assert_eq!(Outages::between([], 0, APART), Outages::default());
    }

    /// 0.4 s without anything, of which a train of requests 5 ms apart saw the first 80 ms.
    #[test]
    fn an_outage_that_a_train_saw_in_part_is_not_sixteen_losses() {
        let apart = Span::from_millis(5);
        let found = Outages { times: 1, longest: apart * 16, at_most: apart * 16, lost: 16 };
        assert_eq!(Outages::between(0..184, 200, apart), found);
        assert_eq!(Outages::between(16..200, 200, apart), found);
        let in_the_midst = (0..100).chain(116..200);
        assert_eq!(Outages::between(in_the_midst, 200, apart), Outages::default());
        assert_eq!(Outages::between(0..191, 200, apart), Outages::default());
    }

    /// Two seconds in which nothing came took a whole block of requests, and were no outage: no
    /// answer followed in the same block.
    #[test]
    fn an_outage_over_the_end_of_a_block_is_told_with_its_whole_length() {
        let ms = Span::from_millis;
        let block = |at: u64, not_lost: std::ops::Range<u64>| Train {
            began_at: Mono(at * 1_000_000),
            not_lost: not_lost.collect(),
            sent: 125,
            silent_at: None,
            came_at: None,
        };
        let all = |at| block(at, 0..125);
        // The other version has its turn in between.
        let trains = [all(0), block(2500, 0..0), all(5000)];
        let whole = Outages { times: 1, longest: ms(1250), at_most: ms(5000 - 1240), lost: 125 };
        assert_eq!(Outages::over(&trains, APART), whole);
        let said = whole.in_words(125, "requests").unwrap();
        assert!(
            said.starts_with(
                "nothing came for 1.25 s at least and 3.76 s at most: 125 of the 125 lost requests"
            ),
            "{said}"
        );
        // What was tried behind the block tells when it was over.
        let tried = Train {
            silent_at: Some(Mono(4_000_000_000)),
            came_at: Some(Mono(4_300_000_000)),
            ..block(2500, 0..50)
        };
        let found = Outages::over(&[all(0), tried, all(5000)], APART);
        assert_eq!((found.times, found.longest, found.at_most, found.lost), (1, ms(1010), ms(1310), 75));
        // It goes on in the next block.
        let found = Outages::over(&[block(0, 0..100), block(2000, 25..125)], APART);
        assert_eq!((found.times, found.longest, found.at_most, found.lost), (1, ms(1250), ms(1260), 50));
        // Losses one by one are none, wherever blocks end, and nor is a path that never answers.
        let few = Train { not_lost: (0..124).filter(|number| number % 50 != 7).collect(), ..all(0) };
        assert_eq!(Outages::over(&[few, all(2000)], APART), Outages::default());
        assert_eq!(Outages::over(&[block(0, 0..0), block(2000, 0..0)], APART), Outages::default());
        // In the midst of one it is what it was.
        let midst = Train { not_lost: (0..40).chain(90..125).collect(), ..all(0) };
        let found = Outages::over(&[midst], APART);
        assert_eq!((found.longest, found.at_most), (ms(500), ms(500)));
    }

    #[test]
    fn requests_and_datagrams_that_met_the_outages_of_a_path_share_a_sentence() {
        let part = |times, ms, lost, what: &str| Part {
            outages: Outages { times, longest: Span::from_millis(ms), at_most: Span::from_millis(ms), lost },
            lost: lost + 1,
            what: what.to_owned(),
        };
        let said =
            in_words(&[part(1, 80, 16, "requests"), part(0, 0, 0, "x"), part(2, 402, 672, "datagrams")]);
        let want = "3 times nothing came, for up to 402 ms: 16 of the 17 lost requests and 672 of the 673 lost \
                    datagrams fell into such an outage";
        assert_eq!(said.as_deref(), Some(want));
        assert_eq!((in_words(&[]), in_words(&[part(0, 0, 0, "requests")])), (None, None));
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

    /// On a path that lost 25 % each way, 14 of 22 lost requests "fell into an outage".
    #[test]
    fn long_rows_on_a_path_that_loses_half_of_all_are_no_outages() {
        let apart = Span::from_millis(20);
        let rows = [(1, 3), (2, 1), (3, 1), (7, 2)];
        assert_eq!(Outages::of(&rows, 45, apart), Outages::default());
        // The same rows among many more packets that came are no work of chance.
        assert_eq!(Outages::of(&rows, 1000, apart).lost, 14);
    }
}

//! What was decided, and what became of it.

use std::collections::VecDeque;
use std::fmt;

use netaware_units::{BitRate, Span};

use super::{DecidedBy, Decision, Metric};
use crate::stream::CannotSwitch;

/// Why nothing came of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotDone {
    /// The application holds it where it is.
    Held,
    /// There is no connection of that version, or nothing comes through.
    Down,
    /// Another switch was under way.
    Unsettled,
    /// It has ended.
    Over,
}

impl NotDone {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Down => "down",
            Self::Unsettled => "unsettled",
            Self::Over => "over",
        }
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Held => "it is held where it is",
            Self::Down => "there is no way over that version",
            Self::Unsettled => "another switch is under way",
            Self::Over => "it has ended",
        })
    }
}

impl From<CannotSwitch> for NotDone {
    fn from(why: CannotSwitch) -> Self {
        match why {
            CannotSwitch::Down => Self::Down,
            CannotSwitch::Held => Self::Held,
            CannotSwitch::Over => Self::Over,
        }
    }
}

/// "IPv6 looks better: 41 Mbit/s against 20 Mbit/s (medians of 8 and 12 looks), by more than 37 %".
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: f64| match self.metric {
            _ if value.is_nan() => "nothing seen".to_owned(),
            Metric::Goodput => BitRate(value as u64).to_string(),
            Metric::RoundTrip => Span::from_nanos(value as i64).to_string(),
            Metric::Loss => format!("{:.2} % lost", value * 100.0),
        };
        let to = self.to.name();
        match self.by {
            DecidedBy::Rules => write!(f, "{to} looks better: ")?,
            DecidedBy::Callback => write!(f, "the program's own policy wants {to}: ")?,
        }
        let [here, there] = self.of;
        let (other, present) = (value(self.other), value(self.present));
        write!(f, "{other} against {present} (medians of {there} and {here} looks)")?;
        if self.by == DecidedBy::Rules {
            write!(f, ", by more than {:.1} %", self.margin * 100.0)?;
        }
        self.not_done.map_or(Ok(()), |why| write!(f, "; not done, as {why}"))
    }
}

/// Decisions that nobody has read; of very many the latest.
///
/// Rules that cannot have what they want say so at every look. What is the same as the last
/// decision that came to nothing, soon after it, is left out, and so is what repeats a switch that
/// is still under way.
#[derive(Debug, Clone, Default)]
pub struct DecisionLog {
    unread: VecDeque<Decision>,
    last: Option<Decision>,
}

impl DecisionLog {
    /// Takes in what was decided and became of it.
    pub fn note(&mut self, decision: Decision) {
        if self.last.is_some_and(|last| says_nothing_new(&last, &decision)) {
            return;
        }
        self.last = Some(decision);
        if self.unread.len() == MOST {
            self.unread.pop_front();
        }
        self.unread.push_back(decision);
    }

    /// The oldest that nobody has read.
    pub fn take(&mut self) -> Option<Decision> {
        self.unread.pop_front()
    }
}

fn says_nothing_new(last: &Decision, now: &Decision) -> bool {
    let same = (last.to, last.by) == (now.to, now.by);
    match (last.not_done, now.not_done) {
        (_, None) => false,
        (None, Some(why)) => same && why == NotDone::Unsettled,
        (Some(before), Some(why)) => same && before == why && now.at - last.at < SOON,
    }
}

const MOST: usize = 256;
const SOON: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;
    use netaware_units::Mono;

    use super::*;

    fn decision(seconds: i64, to: IpVersion, not_done: Option<NotDone>) -> Decision {
        Decision {
            at: Mono(0) + Span::from_secs(seconds),
            to,
            by: DecidedBy::Rules,
            metric: Metric::RoundTrip,
            present: 2.0,
            other: 1.0,
            of: [3, 3],
            margin: 0.1,
            not_done,
        }
    }

    #[test]
    fn what_repeats_itself_is_told_once_in_a_while() {
        let mut log = DecisionLog::default();
        let (v4, v6) = (IpVersion::V4, IpVersion::V6);
        for second in 0..25 {
            log.note(decision(second, v6, Some(NotDone::Held)));
        }
        log.note(decision(25, v6, Some(NotDone::Down)));
        log.note(decision(26, v6, None));
        log.note(decision(27, v6, Some(NotDone::Unsettled)));
        log.note(decision(28, v4, Some(NotDone::Unsettled)));
        log.note(decision(29, v4, None));
        log.note(decision(30, v6, None));
        let told: Vec<_> = std::iter::from_fn(|| log.take()).map(|it| it.at.0 / 1_000_000_000).collect();
        assert_eq!(told, [0, 10, 20, 25, 26, 28, 29, 30]);
    }

    #[test]
    fn evidence_is_in_the_units_of_its_metric() {
        let of = |metric, present, other| Decision {
            metric,
            present,
            other,
            of: [12, 8],
            margin: 0.25,
            ..decision(1, IpVersion::V6, None)
        };
        let rate = of(Metric::Goodput, 20e6, 40e6);
        assert_eq!(
            rate.to_string(),
            "IPv6 looks better: 40.0 Mbit/s against 20.0 Mbit/s (medians of 8 and 12 looks), by more than 25.0 %"
        );
        let held = Decision { not_done: Some(NotDone::Held), ..of(Metric::RoundTrip, 20e6, 10e6) };
        let held = held.to_string();
        assert!(held.contains("10.0 ms against 20.0 ms"), "{held}");
        assert!(held.ends_with("; not done, as it is held where it is"), "{held}");
        let own = Decision { by: DecidedBy::Callback, ..of(Metric::Loss, 0.1, f64::NAN) }.to_string();
        assert!(own.contains("policy wants IPv6: nothing seen against 10.00 % lost"), "{own}");
    }

    #[test]
    fn each_reason_has_its_word_and_its_sentence() {
        let rows = [
            (NotDone::Held, "held", "it is held where it is"),
            (NotDone::Down, "down", "there is no way over that version"),
            (NotDone::Unsettled, "unsettled", "another switch is under way"),
            (NotDone::Over, "over", "it has ended"),
        ];
        for (why, word, sentence) in rows {
            assert_eq!((why.name(), why.to_string()), (word, sentence.to_owned()));
        }
    }

    #[test]
    fn of_very_many_the_latest_stay() {
        let mut log = DecisionLog::default();
        for second in 0..1000 {
            log.note(decision(second, IpVersion::V6, None));
        }
        assert_eq!(log.take().map(|it| it.at), Some(Mono(0) + Span::from_secs(744)));
        assert_eq!(std::iter::from_fn(|| log.take()).count(), 255);
    }
}
